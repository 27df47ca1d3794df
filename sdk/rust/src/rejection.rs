//! Rejections of intents: the rule that an intent broke.

use std::fmt;

/// The rule that an intent broke, identified by its number in `sdk/wit/RULES.md`. The intent had no
/// effect, and no request was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rejection(u16);

/// The numbers and names in `sdk/wit/RULES.md`, in the same order. A test compares both.
const RULES: &[(u16, &str)] = &[
    (1, "UNKNOWN_INSTRUMENT"),
    (2, "CAPABILITY"),
    (3, "MALFORMED"),
    (4, "UNKNOWN_ORDER"),
    (5, "ORDER_FINAL"),
    (6, "TOO_MANY_INTENTS"),
    (7, "TOO_MANY_TIMERS"),
    (8, "HALTED"),
    (9, "QUARANTINED"),
    (10, "PAUSED"),
    (11, "DEGRADED"),
    (12, "ACCOUNT_BLOCKED"),
    (13, "INSTRUMENT_BLOCKED"),
    (14, "FUNDS_BLOCKED"),
    (15, "REFUSAL_PAUSE"),
    (16, "RULES_UNUSABLE"),
    (17, "ORDER_LIMIT"),
    (18, "UNSUPPORTED"),
    (20, "SYMBOL_TEST"),
    (21, "SYMBOL_STATUS"),
    (22, "ORDER_TYPE"),
    (23, "TIME_IN_FORCE"),
    (24, "TIME_IN_FORCE.notRequired"),
    (30, "MANDATORY.price"),
    (31, "MANDATORY.quantity"),
    (32, "MANDATORY.quoteOrderQty"),
    (33, "MANDATORY.stopPrice"),
    (34, "MANDATORY.callbackRate"),
    (35, "MANDATORY.timeInForce"),
    (40, "NOT_REQUIRED.price"),
    (41, "NOT_REQUIRED.quantity"),
    (42, "NOT_REQUIRED.quoteOrderQty"),
    (43, "NOT_REQUIRED.stopPrice"),
    (44, "NOT_REQUIRED.activationPrice"),
    (45, "NOT_REQUIRED.callbackRate"),
    (46, "NOT_REQUIRED.workingType"),
    (47, "NOT_REQUIRED.priceProtect"),
    (48, "NOT_REQUIRED.positionSide"),
    (49, "NOT_REQUIRED.reduceOnly"),
    (60, "POSITION_SIDE"),
    (61, "REDUCE_ONLY.hedgeMode"),
    (62, "REDUCE_ONLY.closePosition"),
    (63, "REDUCE_ONLY.position"),
    (64, "CLOSE_POSITION.type"),
    (65, "CLOSE_POSITION.quantity"),
    (66, "CLOSE_POSITION.side"),
    (67, "CLOSE_POSITION.shared"),
    (70, "CALLBACK_RATE.min"),
    (71, "CALLBACK_RATE.max"),
    (72, "ACTIVATION_PRICE.buy"),
    (73, "ACTIVATION_PRICE.sell"),
    (80, "BAD_PRECISION.price"),
    (81, "BAD_PRECISION.stopPrice"),
    (82, "BAD_PRECISION.activationPrice"),
    (83, "BAD_PRECISION.quantity"),
    (90, "PRICE.positive"),
    (91, "STOP_PRICE.positive"),
    (92, "ACTIVATION_PRICE.positive"),
    (93, "QUANTITY.positive"),
    (94, "QUOTE_ORDER_QTY.positive"),
    (100, "PRICE_FILTER.minPrice"),
    (101, "PRICE_FILTER.maxPrice"),
    (102, "PRICE_FILTER.tickSize"),
    (103, "PRICE_FILTER.minPrice.stopPrice"),
    (104, "PRICE_FILTER.maxPrice.stopPrice"),
    (105, "PRICE_FILTER.tickSize.stopPrice"),
    (106, "PRICE_FILTER.minPrice.activationPrice"),
    (107, "PRICE_FILTER.maxPrice.activationPrice"),
    (108, "PRICE_FILTER.tickSize.activationPrice"),
    (110, "LOT_SIZE.minQty"),
    (111, "LOT_SIZE.maxQty"),
    (112, "LOT_SIZE.stepSize"),
    (113, "MARKET_LOT_SIZE.minQty"),
    (114, "MARKET_LOT_SIZE.maxQty"),
    (115, "MARKET_LOT_SIZE.stepSize"),
    (120, "PERCENT_PRICE.multiplierUp"),
    (121, "PERCENT_PRICE.multiplierDown"),
    (122, "PERCENT_PRICE_BY_SIDE.multiplierUp"),
    (123, "PERCENT_PRICE_BY_SIDE.multiplierDown"),
    (124, "PERCENT_PRICE.multiplierUp.market"),
    (125, "PERCENT_PRICE.multiplierDown.market"),
    (126, "MARKET_TAKE_BOUND.above"),
    (127, "MARKET_TAKE_BOUND.below"),
    (128, "PERCENT_PRICE.multiplierUp.stop"),
    (129, "PERCENT_PRICE.multiplierDown.stop"),
    (130, "MIN_NOTIONAL"),
    (131, "MAX_NOTIONAL"),
    (132, "NOTIONAL.minNotional"),
    (133, "NOTIONAL.maxNotional"),
    (140, "MAX_NUM_ORDERS"),
    (141, "MAX_NUM_ALGO_ORDERS"),
    (200, "RISK.max_order_notional"),
    (201, "RISK.max_position_notional"),
    (202, "RISK.max_open_orders"),
    (203, "RISK.max_orders_per_minute"),
    (204, "RISK.price_collar"),
    (205, "RISK.no_reference_price"),
    (206, "RISK.max_daily_loss"),
    (207, "RISK.max_drawdown"),
    (210, "QUOTA.max_open_orders"),
    (211, "QUOTA.MAX_NUM_ORDERS"),
    (212, "QUOTA.MAX_NUM_ALGO_ORDERS"),
    (213, "QUOTA.max_orders_per_minute"),
    (214, "QUOTA.max_position_notional"),
    (215, "QUOTA.margin"),
];

impl Rejection {
    /// Creates a rejection from a rule number. Unknown numbers of later runtimes are kept.
    pub const fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// Creates a rejection from a negative return value of the host.
    #[inline]
    pub(crate) fn from_answer(answer: i64) -> Self {
        Self(u16::try_from(answer.saturating_neg()).unwrap_or(u16::MAX))
    }

    /// Number of the rule.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Name of the rule, or `unknown rule` for a number of a later runtime.
    pub fn name(self) -> &'static str {
        let known = RULES.iter().find(|(number, _)| *number == self.0);
        known.map_or("unknown rule", |(_, name)| name)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (rule {})", self.name(), self.0)
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_equals_that_of_the_contract() {
        let page = include_str!("../../wit/RULES.md");
        let rows = page.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let number: u16 = cells.next()?.parse().ok()?;
            Some((number, cells.next()?.trim_matches('`')))
        });
        assert_eq!(RULES, rows.collect::<Vec<_>>());
        assert_eq!(
            Rejection::from_answer(-1).to_string(),
            "UNKNOWN_INSTRUMENT (rule 1)"
        );
    }

    #[test]
    fn unknown_numbers_are_kept() {
        let rejection = Rejection::from_answer(-60_000);
        assert_eq!(rejection.to_string(), "unknown rule (rule 60000)");
        assert_eq!(Rejection::from_answer(i64::MIN).number(), u16::MAX);
    }
}
