//! The rules that an intent can break, and the rejection of an intent with its values.

use crate::decimal::Decimal;

/// The relation between the value of a broken rule and its bound. It selects the sentence of the
/// message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The value must be at least the limit.
    AtLeast,
    /// The value must be at most the limit.
    AtMost,
    /// The value must be the minimum plus a multiple of the limit.
    Step,
    /// The value must have at most `limit` decimals.
    Decimals,
    /// The value must be over 0.
    Positive,
    /// The message shows both numbers without a relation.
    Against,
    /// The limit is a strategy's share of a limit of the account.
    Share,
    /// The value is a duration.
    Wait,
    /// The message shows no numbers.
    Plain,
}

macro_rules! rules {
    ($($item:ident = $number:literal, $name:literal, $code:literal, $field:literal $form:ident,
       $text:literal;)*) => {
        /// A rule that an intent can break. The numbers are part of the strategy contract and never
        /// change their meaning. `submit` returns minus this number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u16)]
        #[expect(clippy::doc_markdown, reason = "the sentences are shown as plain text too")]
        pub enum Rule { $(#[doc = $text] $item = $number,)* }

        impl Rule {
            /// Every rule, by increasing number.
            pub const ALL: &'static [Self] = &[$(Self::$item,)*];

            /// The name in messages and reports: the filter or parameter as the venue spells it,
            /// and its part.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$item => $name,)* }
            }

            /// The venue's code for this rule (docs/interface/errors.md#errors). It is the most
            /// similar code if the documents define none, and 0 for our own limits.
            pub const fn code(self) -> i32 {
                match self { $(Self::$item => $code,)* }
            }

            /// The meaning of the rule, in one sentence.
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$item => $text,)* }
            }

            /// The rule with this number.
            pub const fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$item),)* _ => None }
            }

            /// The parameter that breaks the rule, as the venue spells it.
            pub const fn field(self) -> &'static str {
                match self { $(Self::$item => $field,)* }
            }

            const fn form(self) -> Form {
                match self { $(Self::$item => Form::$form,)* }
            }
        }
    };
}

rules! {
    UnknownInstrument = 1, "UNKNOWN_INSTRUMENT", -1121, "instrument" Plain,
        "The instrument is unknown or not granted to the strategy.";
    Capability = 2, "CAPABILITY", 0, "capability" Plain,
        "The configuration does not grant the strategy this capability.";
    Malformed = 3, "MALFORMED", -1130, "parameter" Against,
        "An integer of the call has no meaning in the contract.";
    UnknownOrder = 4, "UNKNOWN_ORDER", -2013, "order" Plain,
        "The strategy has no order with this number.";
    OrderFinal = 5, "ORDER_FINAL", -2011, "order" Plain,
        "The order is final: there is nothing left to cancel.";
    TooManyIntents = 6, "TOO_MANY_INTENTS", 0, "intents" AtMost,
        "One callback made more intents than it may.";
    TooManyTimers = 7, "TOO_MANY_TIMERS", 0, "timers" AtMost,
        "The strategy has more timers than it may.";
    Halted = 8, "HALTED", 0, "state" Plain,
        "The run or the strategy is halted and takes no order.";
    Quarantined = 9, "QUARANTINED", 0, "state" Plain,
        "The strategy is in quarantine after a fault.";
    Paused = 10, "PAUSED", 0, "state" Plain,
        "The runtime is paused: nothing that adds exposure passes.";
    Degraded = 11, "DEGRADED", 0, "state" Plain,
        "The account's state is not certain: nothing that adds exposure passes.";
    AccountBlocked = 12, "ACCOUNT_BLOCKED", 0, "state" Plain,
        "The venue accepts no orders of the account now: nothing that adds exposure is sent.";
    InstrumentBlocked = 13, "INSTRUMENT_BLOCKED", 0, "instrument" Plain,
        "The venue accepts no orders for the instrument now: nothing that adds exposure is sent.";
    FundsBlocked = 14, "FUNDS_BLOCKED", 0, "balance" Plain,
        "The venue says that the balance is too small: nothing that adds exposure is sent.";
    RefusalPause = 15, "REFUSAL_PAUSE", 0, "state" Plain,
        "Orders like it were refused again and again: the next one may be sent after a pause.";
    RulesUnusable = 16, "RULES_UNUSABLE", 0, "instrument" Plain,
        "The venue's new rules need more decimals than this run counts in: only closing passes.";
    OrderLimit = 17, "ORDER_LIMIT", 0, "seconds" Wait,
        "The venue's order limit was exceeded: no order is sent before its interval is over.";
    Unsupported = 18, "UNSUPPORTED", 0, "call" Plain,
        "The contract has this call or parameter, and this runtime does not do it yet.";

    SymbolTest = 20, "SYMBOL_TEST", -1121, "symbol" Plain,
        "Symbols whose name starts with TEST must not be traded (docs/interface/conventions.md#symbols).";
    SymbolStatus = 21, "SYMBOL_STATUS", -4022, "status" Plain,
        "The symbol's status is not TRADING, so it takes no order; live, 13 refuses what opens.";
    OrderTypeInvalid = 22, "ORDER_TYPE", -1116, "type" Plain,
        "The surface or the symbol does not take this order type.";
    TimeInForceInvalid = 23, "TIME_IN_FORCE", -1115, "timeInForce" Plain,
        "The symbol does not take this time in force.";
    TimeInForceNotRequired = 24, "TIME_IN_FORCE.notRequired", -1114, "timeInForce" Plain,
        "timeInForce goes with LIMIT, STOP and TAKE_PROFIT only.";

    MandatoryPrice = 30, "MANDATORY.price", -1102, "price" Plain,
        "price is mandatory for LIMIT, STOP and TAKE_PROFIT.";
    MandatoryQty = 31, "MANDATORY.quantity", -1102, "quantity" Plain,
        "quantity is mandatory, except for spot MARKET BUY and with closePosition.";
    MandatoryQuoteQty = 32, "MANDATORY.quoteOrderQty", -1102, "quoteOrderQty" Plain,
        "quoteOrderQty is mandatory for spot MARKET BUY (docs/interface/orders.md#place-a-spot-order).";
    MandatoryStopPrice = 33, "MANDATORY.stopPrice", -1102, "stopPrice" Plain,
        "stopPrice is mandatory for STOP, STOP_MARKET, TAKE_PROFIT and TAKE_PROFIT_MARKET.";
    MandatoryCallbackRate = 34, "MANDATORY.callbackRate", -1102, "callbackRate" Plain,
        "callbackRate is mandatory for TRAILING_STOP_MARKET.";
    MandatoryTimeInForce = 35, "MANDATORY.timeInForce", -1102, "timeInForce" Plain,
        "timeInForce is mandatory for LIMIT.";

    NotRequiredPrice = 40, "NOT_REQUIRED.price", -1106, "price" Plain,
        "price goes with LIMIT, STOP and TAKE_PROFIT only.";
    NotRequiredQty = 41, "NOT_REQUIRED.quantity", -1106, "quantity" Plain,
        "A spot MARKET BUY goes by quoteOrderQty, without quantity.";
    NotRequiredQuoteQty = 42, "NOT_REQUIRED.quoteOrderQty", -1106, "quoteOrderQty" Plain,
        "quoteOrderQty goes with spot MARKET BUY only.";
    NotRequiredStopPrice = 43, "NOT_REQUIRED.stopPrice", -1106, "stopPrice" Plain,
        "stopPrice goes with STOP, STOP_MARKET, TAKE_PROFIT and TAKE_PROFIT_MARKET only.";
    NotRequiredActivationPrice = 44, "NOT_REQUIRED.activationPrice", -1106,
        "activationPrice" Plain,
        "activationPrice goes with TRAILING_STOP_MARKET only.";
    NotRequiredCallbackRate = 45, "NOT_REQUIRED.callbackRate", -1106, "callbackRate" Plain,
        "callbackRate goes with TRAILING_STOP_MARKET only.";
    NotRequiredWorkingType = 46, "NOT_REQUIRED.workingType", -1106, "workingType" Plain,
        "workingType goes with futures only.";
    NotRequiredPriceProtect = 47, "NOT_REQUIRED.priceProtect", -1106, "priceProtect" Plain,
        "priceProtect goes with futures STOP, STOP_MARKET, TAKE_PROFIT, TAKE_PROFIT_MARKET only.";
    NotRequiredPositionSide = 48, "NOT_REQUIRED.positionSide", -1106, "positionSide" Plain,
        "positionSide goes with futures only.";
    NotRequiredReduceOnly = 49, "NOT_REQUIRED.reduceOnly", -1106, "reduceOnly" Plain,
        "reduceOnly goes with futures only.";

    PositionSideMode = 60, "POSITION_SIDE", -4061, "positionSide" Plain,
        "One-way mode takes BOTH; hedge mode takes LONG or SHORT.";
    ReduceOnlyHedge = 61, "REDUCE_ONLY.hedgeMode", -1106, "reduceOnly" Plain,
        "reduceOnly cannot be sent in hedge mode.";
    ReduceOnlyClose = 62, "REDUCE_ONLY.closePosition", -1106, "reduceOnly" Plain,
        "reduceOnly cannot be sent with closePosition.";
    ReduceOnlyPosition = 63, "REDUCE_ONLY.position", -2022, "quantity" AtMost,
        "A reduce-only order, or one that closes a side of hedge mode, may not exceed what is left of the strategy's own position.";
    ClosePositionType = 64, "CLOSE_POSITION.type", -1106, "closePosition" Plain,
        "closePosition goes with futures STOP_MARKET and TAKE_PROFIT_MARKET only.";
    ClosePositionQty = 65, "CLOSE_POSITION.quantity", -4137, "quantity" Plain,
        "quantity cannot be sent with closePosition.";
    ClosePositionSide = 66, "CLOSE_POSITION.side", -4061, "side" Plain,
        "In hedge mode closePosition cannot BUY on the LONG side or SELL on the SHORT side.";

    ClosePositionShared = 67, "CLOSE_POSITION.shared", -2022, "position" Against,
        "closePosition closes the account's whole position: another strategy has this instrument, or the position is not this strategy's alone. Use reduceOnly with a quantity.";

    CallbackRateMin = 70, "CALLBACK_RATE.min", -1130, "callbackRate" AtLeast,
        "callbackRate, in percent, is below 0.1.";
    CallbackRateMax = 71, "CALLBACK_RATE.max", -1130, "callbackRate" AtMost,
        "callbackRate, in percent, is above 5.";
    ActivationPriceBuy = 72, "ACTIVATION_PRICE.buy", -2021, "activationPrice" Against,
        "A BUY needs an activationPrice below the latest price, else it triggers at once.";
    ActivationPriceSell = 73, "ACTIVATION_PRICE.sell", -2021, "activationPrice" Against,
        "A SELL needs an activationPrice above the latest price, else it triggers at once.";

    BadPrecisionPrice = 80, "BAD_PRECISION.price", -1111, "price" Decimals,
        "price has more decimals than pricePrecision.";
    BadPrecisionStopPrice = 81, "BAD_PRECISION.stopPrice", -1111, "stopPrice" Decimals,
        "stopPrice has more decimals than pricePrecision.";
    BadPrecisionActivationPrice = 82, "BAD_PRECISION.activationPrice", -1111,
        "activationPrice" Decimals,
        "activationPrice has more decimals than pricePrecision.";
    BadPrecisionQty = 83, "BAD_PRECISION.quantity", -1111, "quantity" Decimals,
        "quantity has more decimals than quantityPrecision.";

    PricePositive = 90, "PRICE.positive", -4001, "price" Positive,
        "price is not over 0.";
    StopPricePositive = 91, "STOP_PRICE.positive", -4006, "stopPrice" Positive,
        "stopPrice is not over 0.";
    ActivationPricePositive = 92, "ACTIVATION_PRICE.positive", -4135,
        "activationPrice" Positive,
        "activationPrice is not over 0.";
    QtyPositive = 93, "QUANTITY.positive", -4003, "quantity" Positive,
        "quantity is not over 0.";
    QuoteQtyPositive = 94, "QUOTE_ORDER_QTY.positive", -4055, "quoteOrderQty" Positive,
        "quoteOrderQty is not over 0.";

    PriceMin = 100, "PRICE_FILTER.minPrice", -4013, "price" AtLeast,
        "price is below minPrice.";
    PriceMax = 101, "PRICE_FILTER.maxPrice", -4002, "price" AtMost,
        "price is above maxPrice.";
    PriceTick = 102, "PRICE_FILTER.tickSize", -4014, "price" Step,
        "price is not minPrice plus a multiple of tickSize.";
    StopPriceMin = 103, "PRICE_FILTER.minPrice.stopPrice", -4013, "stopPrice" AtLeast,
        "stopPrice is below minPrice.";
    StopPriceMax = 104, "PRICE_FILTER.maxPrice.stopPrice", -4007, "stopPrice" AtMost,
        "stopPrice is above maxPrice.";
    StopPriceTick = 105, "PRICE_FILTER.tickSize.stopPrice", -4014, "stopPrice" Step,
        "stopPrice is not minPrice plus a multiple of tickSize.";
    ActivationPriceMin = 106, "PRICE_FILTER.minPrice.activationPrice", -4013,
        "activationPrice" AtLeast,
        "activationPrice is below minPrice.";
    ActivationPriceMax = 107, "PRICE_FILTER.maxPrice.activationPrice", -4002,
        "activationPrice" AtMost,
        "activationPrice is above maxPrice.";
    ActivationPriceTick = 108, "PRICE_FILTER.tickSize.activationPrice", -4014,
        "activationPrice" Step,
        "activationPrice is not minPrice plus a multiple of tickSize.";

    LotMin = 110, "LOT_SIZE.minQty", -4004, "quantity" AtLeast,
        "quantity is below minQty of LOT_SIZE.";
    LotMax = 111, "LOT_SIZE.maxQty", -4005, "quantity" AtMost,
        "quantity is above maxQty of LOT_SIZE.";
    LotStep = 112, "LOT_SIZE.stepSize", -4023, "quantity" Step,
        "quantity is not minQty plus a multiple of stepSize of LOT_SIZE.";
    MarketLotMin = 113, "MARKET_LOT_SIZE.minQty", -4004, "quantity" AtLeast,
        "quantity of a MARKET order is below minQty of MARKET_LOT_SIZE.";
    MarketLotMax = 114, "MARKET_LOT_SIZE.maxQty", -4005, "quantity" AtMost,
        "quantity of a MARKET order is above maxQty of MARKET_LOT_SIZE.";
    MarketLotStep = 115, "MARKET_LOT_SIZE.stepSize", -4023, "quantity" Step,
        "quantity of a MARKET order is not minQty plus a multiple of stepSize of MARKET_LOT_SIZE.";

    PercentUp = 120, "PERCENT_PRICE.multiplierUp", -4016, "price" AtMost,
        "The price of a BUY is above the mark price times multiplierUp.";
    PercentDown = 121, "PERCENT_PRICE.multiplierDown", -4024, "price" AtLeast,
        "The price of a SELL is below the mark price times multiplierDown.";
    BySideUp = 122, "PERCENT_PRICE_BY_SIDE.multiplierUp", -4016, "price" AtMost,
        "price is above the reference price times the multiplierUp of its side.";
    BySideDown = 123, "PERCENT_PRICE_BY_SIDE.multiplierDown", -4024, "price" AtLeast,
        "price is below the reference price times the multiplierDown of its side.";
    MarketPercentUp = 124, "PERCENT_PRICE.multiplierUp.market", -4131, "best ask" AtMost,
        "A MARKET BUY meets a best ask above the mark price times multiplierUp.";
    MarketPercentDown = 125, "PERCENT_PRICE.multiplierDown.market", -4131, "best bid" AtLeast,
        "A MARKET SELL meets a best bid below the mark price times multiplierDown.";
    MarketTakeUp = 126, "MARKET_TAKE_BOUND.above", -4131, "best price" AtMost,
        "A MARKET order meets a best price further above the mark price than marketTakeBound.";
    MarketTakeDown = 127, "MARKET_TAKE_BOUND.below", -4131, "best price" AtLeast,
        "A MARKET order meets a best price further below the mark price than marketTakeBound.";
    StopPercentUp = 128, "PERCENT_PRICE.multiplierUp.stop", -4183, "price" AtMost,
        "The price of a STOP or TAKE_PROFIT order is above its stopPrice times multiplierUp.";
    StopPercentDown = 129, "PERCENT_PRICE.multiplierDown.stop", -4184, "price" AtLeast,
        "The price of a STOP or TAKE_PROFIT order is below its stopPrice times multiplierDown.";

    MinNotional = 130, "MIN_NOTIONAL", -4164, "notional" AtLeast,
        "The notional is below the minimum; reduce-only orders are exempt.";
    MaxNotional = 131, "MAX_NOTIONAL", -1013, "notional" AtMost,
        "The notional is above maxNotional.";
    NotionalMin = 132, "NOTIONAL.minNotional", -4164, "notional" AtLeast,
        "The notional is below minNotional of NOTIONAL.";
    NotionalMax = 133, "NOTIONAL.maxNotional", -1013, "notional" AtMost,
        "The notional is above maxNotional of NOTIONAL.";

    MaxNumOrders = 140, "MAX_NUM_ORDERS", -2025, "open orders" AtMost,
        "The account has as many open orders on the symbol as it may.";
    MaxNumAlgoOrders = 141, "MAX_NUM_ALGO_ORDERS", -4045, "open algo orders" AtMost,
        "The account has as many open conditional orders on the symbol as it may.";

    RiskOrderNotional = 200, "RISK.max_order_notional", 0, "order notional" AtMost,
        "The order is larger than max_order_notional.";
    RiskPositionNotional = 201, "RISK.max_position_notional", 0, "position notional" AtMost,
        "With all open orders at their worst the position would exceed max_position_notional.";
    RiskOpenOrders = 202, "RISK.max_open_orders", 0, "open orders" AtMost,
        "There are as many open orders as max_open_orders allows.";
    RiskOrdersPerMinute = 203, "RISK.max_orders_per_minute", 0, "orders per minute" AtMost,
        "There were as many orders within a minute as max_orders_per_minute allows.";
    RiskPriceCollar = 204, "RISK.price_collar", 0, "price" Against,
        "The price is further from the reference price than price_collar.";
    RiskNoReferencePrice = 205, "RISK.no_reference_price", 0, "price" Plain,
        "No price of the market is known yet, so the risk of the order cannot be computed.";
    RiskDailyLoss = 206, "RISK.max_daily_loss", 0, "loss of the day" AtMost,
        "The loss of the day has reached max_daily_loss.";
    RiskDrawdown = 207, "RISK.max_drawdown", 0, "drawdown" AtMost,
        "The drawdown has reached max_drawdown.";

    QuotaOpenOrders = 210, "QUOTA.max_open_orders", 0, "open orders" Share,
        "The strategy's share of the account's max_open_orders is used up, and the rest is used or kept for other strategies: end open orders, or raise risk.max_open_orders.";
    QuotaInstrumentOrders = 211, "QUOTA.MAX_NUM_ORDERS", 0, "open orders on the symbol" Share,
        "The strategy's share of the venue's MAX_NUM_ORDERS on the symbol is used up, and the rest is used or kept for other strategies: end open orders on the symbol.";
    QuotaInstrumentAlgoOrders = 212, "QUOTA.MAX_NUM_ALGO_ORDERS", 0,
        "open conditional orders on the symbol" Share,
        "The strategy's share of the venue's MAX_NUM_ALGO_ORDERS on the symbol is used up, and the rest is used or kept for other strategies: end conditional orders on the symbol.";
    QuotaOrdersPerMinute = 213, "QUOTA.max_orders_per_minute", 0, "orders per minute" Share,
        "The strategy's share of the account's max_orders_per_minute is used up, and the rest is used or kept for other strategies: order less often, or raise risk.max_orders_per_minute.";
    QuotaPositionNotional = 214, "QUOTA.max_position_notional", 0, "position notional" Share,
        "The strategy's share of the account's max_position_notional is used up, and the rest is used or kept for other strategies: reduce positions and orders, or raise risk.max_position_notional.";
    QuotaMargin = 215, "QUOTA.margin", 0, "margin" Share,
        "The strategy's share of the account's margin is used up, and the rest is used or kept for other strategies: reduce positions and orders.";
}

impl Rule {
    /// The number in the strategy contract. `submit` returns minus this number.
    #[inline]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// A rejection by this rule with the value that breaks it and the bound.
    #[cold]
    pub const fn with(self, value: Decimal, limit: Decimal) -> Rejection {
        Rejection {
            rule: self,
            value,
            limit,
        }
    }

    /// A rejection by this rule without numbers.
    #[cold]
    pub const fn plain(self) -> Rejection {
        self.with(Decimal::ZERO, Decimal::ZERO)
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A broken rule. Its text is one sentence with rule, field, value, bound and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The rule.
    pub rule: Rule,
    /// The value that breaks it; 0 if the rule has no numbers.
    pub value: Decimal,
    /// The bound that it breaks; 0 if the rule has no numbers.
    pub limit: Decimal,
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rule, value, limit } = self;
        let field = rule.field();
        write!(f, "{rule}: ")?;
        match rule.form() {
            Form::AtLeast => write!(f, "{field} {value} must be at least {limit}")?,
            Form::AtMost => write!(f, "{field} {value} must be at most {limit}")?,
            Form::Step => {
                write!(
                    f,
                    "{field} {value} must be the minimum plus a multiple of {limit}"
                )?;
            }
            Form::Decimals => write!(f, "{field} {value} must have at most {limit} decimals")?,
            Form::Positive => write!(f, "{field} {value} must be over 0")?,
            Form::Against => {
                let sentence = rule.describe().trim_end_matches('.');
                write!(f, "{sentence}: {field} {value} against {limit}")?;
            }
            Form::Share => {
                let sentence = rule.describe().trim_end_matches('.');
                write!(f, "{sentence} ({field}: {value}, share: {limit})")?;
            }
            Form::Wait => {
                let sentence = rule.describe().trim_end_matches('.');
                write!(f, "{sentence}, in {value} {field}")?;
            }
            Form::Plain => f.write_str(rule.describe().trim_end_matches('.'))?,
        }
        match rule.code() {
            0 if *rule == Rule::OrderLimit => Ok(()),
            0 => f.write_str(" (a limit of this runtime)"),
            code => write!(f, " (venue code {code})"),
        }
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_numbers_increase_and_are_unique() {
        for pair in Rule::ALL.windows(2) {
            assert!(pair[0].number() < pair[1].number(), "{pair:?}");
        }
        for &rule in Rule::ALL {
            assert_eq!(Rule::from_number(rule.number()), Some(rule));
        }
        assert_eq!(Rule::from_number(0), None);
    }

    #[test]
    fn names_are_unique_and_descriptions_end_with_a_period() {
        let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            assert!(rule.describe().ends_with('.'), "{rule}");
            assert!(rule.code() <= 0, "{rule}");
        }
    }

    #[test]
    fn a_rejection_names_rule_field_value_bound_and_code() {
        let value = Decimal::new(10_005, 2);
        let shown = |rule: Rule| rule.with(value, Decimal::new(1, 1)).to_string();
        assert_eq!(
            shown(Rule::PriceTick),
            "PRICE_FILTER.tickSize: price 100.05 must be the minimum plus a multiple of 0.1 \
             (venue code -4014)"
        );
        assert_eq!(
            shown(Rule::RiskOrderNotional),
            "RISK.max_order_notional: order notional 100.05 must be at most 0.1 \
             (a limit of this runtime)"
        );
        assert_eq!(
            Rule::QuotaOpenOrders.with(51.into(), 50.into()).to_string(),
            "QUOTA.max_open_orders: The strategy's share of the account's max_open_orders is used \
             up, and the rest is used or kept for other strategies: end open orders, or raise \
             risk.max_open_orders (open orders: 51, share: 50) (a limit of this runtime)"
        );
        assert_eq!(
            Rule::OrderLimit.with(41.into(), Decimal::ZERO).to_string(),
            "ORDER_LIMIT: The venue's order limit was exceeded: no order is sent before its \
             interval is over, in 41 seconds"
        );
        assert_eq!(
            Rule::MandatoryPrice.plain().to_string(),
            "MANDATORY.price: price is mandatory for LIMIT, STOP and TAKE_PROFIT \
             (venue code -1102)"
        );
    }
}
