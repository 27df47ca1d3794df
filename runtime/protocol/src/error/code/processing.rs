//! 20xx: processing issues (docs/interface/errors.md#20xx).

super::row::codes! {
    -2010 NEW_ORDER_REJECTED Definite:
        "new order rejected";
        "Read the message: the balance, a filter or the symbol's state prevents the order."
    -2011 CANCEL_REJECTED Definite:
        "cancellation rejected";
        "Query the order: it has most likely been filled, cancelled or has expired already."
    -2013 NO_SUCH_ORDER Definite:
        "order does not exist";
        "Check symbol and id; an order just sent may not be visible yet, so ask again."
    -2014 BAD_API_KEY_FMT Fatal:
        "API key format invalid";
        "Put the whole API key, without spaces or quotes, into the configuration."
    -2015 REJECTED_MBX_KEY Fatal:
        "invalid API key, IP or permissions for the action";
        "Check the key, its permissions and its IP whitelist, and the environment of the address."
    -2016 NO_TRADING_WINDOW Definite:
        "no trading window for the symbol";
        "Wait until the symbol's status is TRADING."
    -2018 BALANCE_NOT_SUFFICIENT Definite:
        "balance insufficient";
        "Lower the quantity, free locked balance, or transfer assets to this surface."
    -2019 MARGIN_NOT_SUFFICIENT Definite:
        "margin not sufficient";
        "Lower the quantity, raise the leverage, or transfer margin to the futures account."
    -2020 UNABLE_TO_FILL Definite:
        "unable to fill";
        "The book holds too little: lower the quantity or place a resting order."
    -2021 ORDER_WOULD_IMMEDIATELY_TRIGGER Definite:
        "order would immediately trigger";
        "Put the stop or activation price on the other side of the latest price."
    -2022 REDUCE_ONLY_REJECT Definite:
        "reduce-only order rejected";
        "Check that an opposite position is open and not yet covered by other reduce-only orders."
    -2023 USER_IN_LIQUIDATION Definite:
        "the account is being liquidated";
        "Place nothing until the liquidation is over; then compare positions and balances."
    -2024 POSITION_NOT_SUFFICIENT Definite:
        "position insufficient";
        "Lower the quantity to what the position holds."
    -2025 MAX_OPEN_ORDER_EXCEEDED Definite:
        "max open order limit reached";
        "Cancel open orders of the symbol first."
    -2026 REDUCE_ONLY_ORDER_TYPE_NOT_SUPPORTED Definite:
        "order type unsupported with reduceOnly";
        "Leave out reduceOnly or choose another order type."
    -2027 MAX_LEVERAGE_RATIO Definite:
        "position would exceed the maximum allowed at this leverage";
        "Lower the leverage or the quantity."
    -2028 MIN_LEVERAGE_RATIO Definite:
        "leverage too low: the margin does not suffice";
        "Choose a higher leverage or add margin."
}
