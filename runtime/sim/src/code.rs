//! The error codes (docs/interface/errors.md#errors) that this venue uses, with their messages.

use windvane_model::protocol::Refusal;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $msg:literal;)*) => {
        /// Why a request is refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            pub(crate) fn refusal(self) -> Refusal {
                let (code, msg) = match self { $(Self::$name => ($code, $msg),)* };
                Refusal { code, msg: msg.to_owned() }
            }
        }
    };
}

codes! {
    MaxNotional = -1013, "Filter failure: order's notional is above the maximum.";
    Unsupported = -1020, "This operation is not supported.";
    IsolatedSymbol = -1020, "Multi-assets mode is not supported while a symbol's margin is ISOLATED.";
    NoTimeInForce = -1102, "Mandatory parameter 'timeInForce' was not sent, was empty/null, or malformed.";
    NoPrice = -1102, "Mandatory parameter 'price' was not sent, was empty/null, or malformed.";
    NoStopPrice = -1102, "Mandatory parameter 'stopPrice' was not sent, was empty/null, or malformed.";
    NoCallbackRate = -1102, "Mandatory parameter 'callbackRate' was not sent, was empty/null, or malformed.";
    NoQuoteQty = -1102, "Mandatory parameter 'quoteOrderQty' was not sent, was empty/null, or malformed.";
    NoQty = -1102, "Mandatory parameter 'quantity' was not sent, was empty/null, or malformed.";
    PriceNotRequired = -1106, "Parameter 'price' sent when not required.";
    StopPriceNotRequired = -1106, "Parameter 'stopPrice' sent when not required.";
    CallbackRateNotRequired = -1106, "Parameter 'callbackRate' sent when not required.";
    QuoteQtyNotRequired = -1106, "Parameter 'quoteOrderQty' sent when not required.";
    QtyNotRequired = -1106, "Parameter 'quantity' sent when not required.";
    ReduceOnlyNotRequired = -1106, "Parameter 'reduceOnly' sent when not required.";
    ClosePositionNotRequired = -1106, "Parameter 'closePosition' sent when not required.";
    ActivationPriceNotRequired = -1106, "Parameter 'activationPrice' sent when not required.";
    PriceProtectNotRequired = -1106, "Parameter 'priceProtect' sent when not required.";
    WorkingTypeNotRequired = -1106, "Parameter 'workingType' sent when not required.";
    PositionSideNotRequired = -1106, "Parameter 'positionSide' sent when not required.";
    PricePrecision = -1111, "Precision of parameter 'price' is over the maximum defined for this asset.";
    StopPricePrecision = -1111, "Precision of parameter 'stopPrice' is over the maximum defined for this asset.";
    ActivationPrecision = -1111, "Precision of parameter 'activationPrice' is over the maximum defined for this asset.";
    QtyPrecision = -1111, "Precision of parameter 'quantity' is over the maximum defined for this asset.";
    NoDepth = -1112, "No orders on book for symbol.";
    TifNotRequired = -1114, "TimeInForce parameter sent when not required.";
    InvalidTif = -1115, "Invalid timeInForce.";
    InvalidOrderType = -1116, "Invalid orderType.";
    BadSymbol = -1121, "Invalid symbol.";
    InvalidBatch = -1130, "Data sent for parameter 'batchOrders' is not valid.";
    InvalidCallbackRate = -1130, "Data sent for parameter 'callbackRate' is not valid.";
    Duplicate = -2010, "Duplicate order sent.";
    PostOnly = -2010, "New order rejected: it would trade at once.";
    CancelRejected = -2011, "Unknown order sent.";
    NoSuchOrder = -2013, "Order does not exist.";
    BalanceNotSufficient = -2018, "Balance is insufficient.";
    MarginNotSufficient = -2019, "Margin is insufficient.";
    WouldTrigger = -2021, "Order would immediately trigger.";
    ReduceOnly = -2022, "ReduceOnly Order is rejected.";
    PositionNotSufficient = -2024, "Position is not sufficient.";
    MaxOpenOrders = -2025, "Reach max open order limit.";
    PositionLimit = -2027, "Exceeded the maximum allowable position at current leverage.";
    LeverageTooSmall = -2028, "Leverage is smaller than permitted: insufficient margin balance.";
    InvalidOrderStatus = -4000, "Invalid order status.";
    PriceNotPositive = -4001, "Price must be greater than 0.";
    PriceOverMax = -4002, "Price greater than max price.";
    QtyNotPositive = -4003, "Quantity must be greater than 0.";
    QtyUnderMin = -4004, "Quantity less than min quantity.";
    QtyOverMax = -4005, "Quantity greater than max quantity.";
    StopPriceNotPositive = -4006, "Stop price must be greater than 0.";
    StopPriceOverMax = -4007, "Stop price greater than max price.";
    PriceUnderMin = -4013, "Price less than min price.";
    PriceTick = -4014, "Price not increased by tick size.";
    PriceOverMultiplier = -4016, "Price is higher than mark price multiplier cap.";
    MarketStatus = -4022, "Symbol is not in trading status.";
    QtyStep = -4023, "Quantity not increased by step size.";
    PriceUnderMultiplier = -4024, "Price is lower than mark price multiplier floor.";
    InvalidLeverage = -4028, "Leverage is not valid.";
    TooManyCancels = -4032, "Exceed maximum cancel order size.";
    MaxStopOrders = -4045, "Reach max stop order limit.";
    NoMarginTypeChange = -4046, "No need to change margin type.";
    OpenOrdersExist = -4047, "The mode cannot be changed while there are open orders.";
    PositionExists = -4048, "The mode cannot be changed while there is a position.";
    AmountNotPositive = -4055, "Amount must be positive.";
    NoModeChange = -4059, "No need to change: this is the mode already.";
    PositionSideMismatch = -4061, "Order's position side does not match user's setting.";
    DuplicateId = -4116, "ClientOrderId is duplicated.";
    MarketReject = -4131, "The counterparty's best price does not meet the price bound.";
    ActivationNotPositive = -4135, "Invalid activation price.";
    QtyWithClosePosition = -4137, "Quantity must be zero with closePosition equals true.";
    IsolatedLeverage = -4161, "Leverage cannot be lowered in isolated margin with open positions.";
    MinNotional = -4164, "Order's notional must not be smaller than the minimum.";
    StopOverMultiplier = -4183, "Price is higher than stop price multiplier cap.";
    StopUnderMultiplier = -4184, "Price is lower than stop price multiplier floor.";
}
