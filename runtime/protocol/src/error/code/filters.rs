//! 40xx: filters and other issues (docs/interface/errors.md#40xx).

super::row::codes! {
    -4000 INVALID_ORDER_STATUS Definite:
        "invalid order status";
        "Query the order and use a status of the documents."
    -4001 PRICE_LESS_THAN_ZERO Definite:
        "price below 0";
        "Send a price above zero."
    -4002 PRICE_GREATER_THAN_MAX_PRICE Definite:
        "price above max price";
        "Stay at or below maxPrice of PRICE_FILTER."
    -4003 QTY_LESS_THAN_ZERO Definite:
        "quantity below zero";
        "Send a quantity above zero."
    -4004 QTY_LESS_THAN_MIN_QTY Definite:
        "quantity below minimum";
        "Send at least minQty of LOT_SIZE, or of MARKET_LOT_SIZE for a market order."
    -4005 QTY_GREATER_THAN_MAX_QTY Definite:
        "quantity above maximum";
        "Split the order: maxQty of LOT_SIZE or MARKET_LOT_SIZE is the maximum of one order."
    -4006 STOP_PRICE_LESS_THAN_ZERO Definite:
        "stop price below zero";
        "Send a stop price above zero."
    -4007 STOP_PRICE_GREATER_THAN_MAX_PRICE Definite:
        "stop price above max price";
        "Stay at or below maxPrice of PRICE_FILTER."
    -4008 TICK_SIZE_LESS_THAN_ZERO Definite:
        "tick size below zero";
        "The symbol's rules are wrong on the venue's side; report it."
    -4009 MAX_PRICE_LESS_THAN_MIN_PRICE Definite:
        "max price below min price";
        "The symbol's rules are wrong on the venue's side; report it."
    -4010 MAX_QTY_LESS_THAN_MIN_QTY Definite:
        "max quantity below min quantity";
        "The symbol's rules are wrong on the venue's side; report it."
    -4011 STEP_SIZE_LESS_THAN_ZERO Definite:
        "step size below zero";
        "The symbol's rules are wrong on the venue's side; report it."
    -4012 MAX_NUM_ORDERS_LESS_THAN_ZERO Definite:
        "max order count below 0";
        "The symbol's rules are wrong on the venue's side; report it."
    -4013 PRICE_LESS_THAN_MIN_PRICE Definite:
        "price below minimum";
        "Stay at or above minPrice of PRICE_FILTER."
    -4014 PRICE_NOT_INCREASED_BY_TICK_SIZE Definite:
        "price not a multiple of tick size";
        "Round the price to tickSize of PRICE_FILTER, counted from minPrice."
    -4015 INVALID_CL_ORD_ID_LEN Definite:
        "client order id invalid; length must not exceed 36 characters";
        "Use 1 to 36 characters of the allowed set."
    -4016 PRICE_HIGHTER_THAN_MULTIPLIER_UP Definite:
        "price above the mark price multiplier cap";
        "Lower the price to PERCENT_PRICE's multiplierUp times the mark or index price."
    -4017 MULTIPLIER_UP_LESS_THAN_ZERO Definite:
        "multiplier up below zero";
        "The symbol's rules are wrong on the venue's side; report it."
    -4018 MULTIPLIER_DOWN_LESS_THAN_ZERO Definite:
        "multiplier down below zero";
        "The symbol's rules are wrong on the venue's side; report it."
    -4019 COMPOSITE_SCALE_OVERFLOW Definite:
        "composite scale too large";
        "Send fewer decimals in price and quantity."
    -4020 TARGET_STRATEGY_INVALID Definite:
        "target strategy invalid for the order type and reduceOnly";
        "Choose another order type or leave out reduceOnly."
    -4021 INVALID_DEPTH_LIMIT Definite:
        "invalid depth limit";
        "Use 5, 10, 20, 50, 100, 500 or 1000."
    -4022 WRONG_MARKET_STATUS Definite:
        "market status invalid";
        "Wait until the symbol's status is TRADING."
    -4023 QTY_NOT_INCREASED_BY_STEP_SIZE Definite:
        "quantity not a multiple of step size";
        "Round the quantity to stepSize of LOT_SIZE or MARKET_LOT_SIZE, counted from minQty."
    -4024 PRICE_LOWER_THAN_MULTIPLIER_DOWN Definite:
        "price below the mark price multiplier floor";
        "Raise the price to PERCENT_PRICE's multiplierDown times the mark or index price."
    -4025 MULTIPLIER_DECIMAL_LESS_THAN_ZERO Definite:
        "multiplier decimal below zero";
        "The symbol's rules are wrong on the venue's side; report it."
    -4026 COMMISSION_INVALID Definite:
        "commission invalid; incorrect profit value; value below zero or absolute value too large";
        "Check the fee rate against the approved maximum."
    -4027 INVALID_ACCOUNT_TYPE Definite:
        "invalid account type";
        "Use an account of this surface."
    -4028 INVALID_LEVERAGE Definite:
        "invalid leverage";
        "Choose a whole number from 1 to the symbol's highest initialLeverage."
    -4029 INVALID_TICK_SIZE_PRECISION Definite:
        "tick size or price decimal precision incorrect";
        "Round the price to tickSize of PRICE_FILTER."
    -4030 INVALID_STEP_SIZE_PRECISION Definite:
        "step size decimal places incorrect";
        "Round the quantity to stepSize of LOT_SIZE."
    -4031 INVALID_WORKING_TYPE Definite:
        "invalid working type";
        "Use MARK_PRICE or CONTRACT_PRICE."
    -4032 EXCEED_MAX_CANCEL_ORDER_SIZE Definite:
        "exceeds the maximum number of orders that can be cancelled";
        "Cancel at most 10 ids in one request."
    -4044 INVALID_BALANCE_TYPE Definite:
        "balance type incorrect";
        "Compare the parameter with the route's table."
    -4045 MAX_STOP_ORDER_EXCEEDED Definite:
        "stop-loss order limit reached";
        "Cancel conditional orders of the symbol first (MAX_NUM_ALGO_ORDERS)."
    -4046 NO_NEED_TO_CHANGE_MARGIN_TYPE Definite:
        "no need to change the margin type";
        "Do nothing: the symbol already has this margin type."
    -4047 THERE_EXISTS_OPEN_ORDERS Definite:
        "margin type cannot be changed while there are open orders";
        "Cancel the symbol's open orders first."
    -4048 THERE_EXISTS_QUANTITY Definite:
        "margin type cannot be changed while there is a position";
        "Close the symbol's position first."
    -4055 AMOUNT_MUST_BE_POSITIVE Definite:
        "quantity must be a positive integer";
        "Send an amount above zero."
    -4056 INVALID_API_KEY_TYPE Fatal:
        "API key type invalid";
        "Use an API key of the kind that this version of the interface expects."
    -4057 INVALID_RSA_PUBLIC_KEY Fatal:
        "API key invalid";
        "Create a new API key."
    -4058 MAX_PRICE_TOO_LARGE Definite:
        "maxPrice and priceDecimal too large";
        "The symbol's rules are wrong on the venue's side; report it."
    -4059 NO_NEED_TO_CHANGE_POSITION_SIDE Definite:
        "no need to change the position side";
        "Do nothing: the account already has this mode."
    -4060 INVALID_POSITION_SIDE Definite:
        "invalid position side";
        "Use BOTH in one-way mode, LONG or SHORT in hedge mode."
    -4061 POSITION_SIDE_NOT_MATCH Definite:
        "order position direction differs from the user's setting";
        "Compare position_mode in the configuration with the account's position mode."
    -4062 REDUCE_ONLY_CONFLICT Definite:
        "invalid or improper reduceOnly value";
        "Leave out reduceOnly in hedge mode and with closePosition."
    -4084 UPCOMING_METHOD Definite:
        "method not allowed currently";
        "Use another route until this one is opened."
    -4086 INVALID_PRICE_SPREAD_THRESHOLD Definite:
        "invalid price spread threshold";
        "The symbol's rules are wrong on the venue's side; report it."
    -4087 REDUCE_ONLY_ORDER_PERMISSION Definite:
        "user can only place reduce-only orders";
        "Only close positions until the account may open new ones; ask the venue why."
    -4088 NO_PLACE_ORDER_PERMISSION Fatal:
        "user cannot place orders currently";
        "Ask the venue why the account may not trade; cancels may still pass."
    -4114 INVALID_CLIENT_TRAN_ID_LEN Definite:
        "clientTranId invalid; length must be under 64 characters";
        "Use a clientTranId of 1 to 63 characters."
    -4115 DUPLICATED_CLIENT_TRAN_ID Definite:
        "clientTranId duplicated; must be unique within 7 days";
        "A transfer with this id exists: check it before you choose a new id."
    -4116 DUPLICATED_CLIENT_ORDER_ID Definite:
        "client order id duplicated among the open orders";
        "An order with this id exists: query it before you send anything again."
    -4118 REDUCE_ONLY_MARGIN_CHECK_FAILED Definite:
        "reduce-only order failed; check position and open orders";
        "Compare the position with the open reduce-only orders."
    -4131 MARKET_ORDER_REJECT Definite:
        "counterparty best price does not meet the PERCENT_PRICE filter";
        "The book is too thin or too far from the mark price: use a limit order."
    -4135 INVALID_ACTIVATION_PRICE Definite:
        "invalid activation price";
        "Put activationPrice above the latest price for a sell, below it for a buy."
    -4137 QUANTITY_EXISTS_WITH_CLOSE_POSITION Definite:
        "quantity must be zero when closePosition is true";
        "Leave out quantity when closePosition is sent."
    -4138 REDUCE_ONLY_MUST_BE_TRUE Definite:
        "reduce only must be true when closePosition is true";
        "Leave out reduceOnly when closePosition is sent."
    -4139 ORDER_TYPE_CANNOT_BE_MKT Definite:
        "order type cannot be market when it cannot be cancelled";
        "Use a limit order."
    -4140 INVALID_OPENING_POSITION_STATUS Definite:
        "invalid symbol status for opening a position";
        "Open nothing until the symbol's status is TRADING; closing may pass."
    -4141 SYMBOL_ALREADY_CLOSED Definite:
        "pair delisted";
        "Take the symbol out of the configuration."
    -4142 STRATEGY_INVALID_TRIGGER_PRICE Definite:
        "take-profit or stop order would trigger immediately";
        "Put the stop price on the other side of the latest price."
    -4161 ISOLATED_LEVERAGE_REJECT_WITH_POSITION Definite:
        "leverage cannot be lowered in isolated margin mode while a position is open";
        "Close the position or add margin before lowering the leverage."
    -4164 MIN_NOTIONAL Definite:
        "order notional below the minimum (5.0 in one message) unless reduce only";
        "Raise the quantity until price times quantity reaches MIN_NOTIONAL."
    -4165 INVALID_TIME_INTERVAL Definite:
        "invalid time interval; maximum interval in days";
        "Cut the time range into pieces that the route allows."
    -4183 PRICE_HIGHTER_THAN_STOP_MULTIPLIER_UP Definite:
        "limit or take-profit/stop price above the cap";
        "Lower the price to PERCENT_PRICE's multiplierUp times the stop price."
    -4184 PRICE_LOWER_THAN_STOP_MULTIPLIER_DOWN Definite:
        "price below the stop price limit or floor";
        "Raise the price to PERCENT_PRICE's multiplierDown times the stop price."
    -4225 INVALID_NONCE Definite:
        "nonce used before, below the smallest kept, or outside of the server's window";
        "Correct the clock offset and use a new nonce; if it was sent twice, query first."
}
