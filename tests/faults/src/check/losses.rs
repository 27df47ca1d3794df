//! The account's daily loss limit halts in time and not early, by the venue's truth.
//!
//! The loss is what the venue's account is worth less than at the start, positions at the prices that
//! the runtime has. Where the runtime's balances and positions are the venue's, the data suffice to
//! compute it: the limit halts before the next such sample. Where they are not, the difference of
//! both versions of the account is the uncertainty: a halt is early only below the limit less that.
//!
//! Judged are lives up to their first halt, within one UTC day, until money comes or goes or a journal
//! is lost: then the base of the limit is another.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::wire;
use crate::witness::{BalanceView, Entry, ProcessSeen, Rest, Seen, Terms, View};

const DAY_NS: i64 = 86_400_000_000_000;
/// Rounding, and funding that is on its way, in hundredths of the limit.
const SLACK: Decimal = Decimal::from_parts(5, 0, 0, false, 2);

/// Instrument and position side, with the signed quantity and cost.
type Positions = BTreeMap<(String, String), (Decimal, Decimal)>;

/// One version of the account.
#[derive(Clone, Debug, Default, PartialEq)]
struct Account {
    cash: Decimal,
    positions: Positions,
}

impl Account {
    fn of_truth(truth: &Value) -> Self {
        let account = &truth["accounts"][0];
        let text = |value: &Value| wire::decimal(value.as_str().unwrap_or_default());
        let mut known = Self::default();
        let balances = account["balances"]["futures"].as_array();
        for balance in balances.into_iter().flatten() {
            if balance["asset"] == "USDT" {
                known.cash += text(&balance["wallet"]);
            }
        }
        for position in account["positions"].as_array().into_iter().flatten() {
            let qty = text(&position["qty"]);
            let symbol = position["symbol"].as_str().unwrap_or_default();
            let side = position["position_side"].as_str().unwrap_or_default();
            let cost = text(&position["cost"]);
            known.hold((format!("futures:{symbol}"), side.to_owned()), qty, cost);
        }
        known
    }

    fn of_view(view: &View) -> Self {
        let mut known = Self::default();
        let is_cash = |of: &&BalanceView| of.surface == "futures" && of.asset == "USDT";
        for balance in view.balances.iter().filter(is_cash) {
            known.cash += wire::decimal(&balance.total);
        }
        for held in &view.positions {
            let key = (held.instrument.clone(), held.position_side.clone());
            known.hold(key, wire::decimal(&held.qty), wire::decimal(&held.cost));
        }
        known
    }

    fn hold(&mut self, key: (String, String), qty: Decimal, cost: Decimal) {
        if !qty.is_zero() {
            self.positions.insert(key, (qty, cost));
        }
    }

    /// Its value at these prices; `None` without the price of a position.
    fn equity(&self, marks: &BTreeMap<String, String>) -> Option<Decimal> {
        let mut equity = self.cash;
        for ((instrument, _), (qty, cost)) in &self.positions {
            equity += qty * wire::decimal(marks.get(instrument)?) - cost;
        }
        Some(equity)
    }

    /// Whether both say the same, apart from rounding.
    fn agrees(&self, other: &Self) -> bool {
        let quantities = |known: &Self| -> Vec<_> {
            let positions = known.positions.iter();
            positions
                .map(|(key, (qty, _))| (key.clone(), *qty))
                .collect()
        };
        quantities(self) == quantities(other)
            && (self.cash - other.cash).abs() <= Decimal::new(1, 3)
    }
}

/// The rule.
#[derive(Debug)]
pub struct Losses {
    limit: Option<Decimal>,
    truth: Option<Account>,
    /// The day, and what the account was worth when the run knew it first.
    base: Option<(i64, Decimal)>,
    /// The last sample showed a loss over the limit, and the data sufficed.
    overdue: bool,
    /// The limit halted, and the sample of that moment comes next.
    halted: bool,
}

impl Losses {
    /// On these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            limit: terms.max_daily_loss.as_deref().map(wire::decimal),
            truth: None,
            base: None,
            overdue: false,
            halted: false,
        }
    }

    fn judge(&mut self, at_ns: i64, view: &View) -> Result<(), String> {
        let (Some(limit), Some(truth)) = (self.limit, self.truth.take()) else {
            return Ok(());
        };
        let runs = matches!(view.state.as_str(), "ready" | "degraded" | "paused");
        let known = Account::of_view(view);
        let day = at_ns.div_euclid(DAY_NS);
        let (Some(is), Some(believed)) = (truth.equity(&view.marks), known.equity(&view.marks))
        else {
            return Ok(());
        };
        let agrees = truth.agrees(&known);
        let Some((begun, start)) = self.base else {
            if runs && agrees {
                self.base = Some((day, is));
            }
            return Ok(());
        };
        let lost = start - is;
        if begun != day {
            self.limit = None;
        } else if self.halted {
            self.limit = None;
            let uncertain = (is - believed).abs() + limit * SLACK;
            if lost + uncertain < limit {
                return Err(format!(
                    "halted at a loss of {lost}, give or take {uncertain}, with a limit of {limit}"
                ));
            }
        } else if runs && agrees && lost > limit * (Decimal::ONE + SLACK) {
            if self.overdue {
                return Err(format!(
                    "no halt at a loss of {lost} with a limit of {limit}"
                ));
            }
            self.overdue = true;
        } else {
            self.overdue = false;
        }
        Ok(())
    }
}

impl Check for Losses {
    fn rule(&self) -> &'static str {
        "a loss halts in time, and not early"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            Seen::LossHalt => self.halted = true,
            Seen::Truth(truth) => self.truth = Some(Account::of_truth(truth)),
            Seen::View(view) => return self.judge(entry.at_ns, view),
            // The operator's halt or resume: the limit may count from there.
            Seen::Commanded { strategy: None, .. } => self.limit = None,
            Seen::Act { act, .. } => {
                let word = act["act"].as_str().unwrap_or_default();
                if ["deposit", "withdraw", "transfer", "fund"].contains(&word) {
                    self.limit = None;
                }
            }
            Seen::Process(ProcessSeen::Running {
                process, journal, ..
            }) if *process > 1 && journal != "clean" => self.limit = None,
            _ => {}
        }
        Ok(())
    }

    fn at_rest(&mut self, _: &Rest) -> Result<(), String> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::terms;
    use crate::witness::PositionView;

    fn rule() -> Losses {
        let limit = Some("10".to_owned());
        Losses::new(&Terms {
            max_daily_loss: limit,
            ..terms()
        })
    }

    /// A sample: the wallet and a position of 1 at 100 with its mark, as both versions have them.
    fn sample(rule: &mut Losses, venue: (&str, bool), known: (&str, bool)) -> Result<(), String> {
        let held =
            json!([{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": "1", "cost": "100"}]);
        let truth = json!({"accounts": [{
            "balances": {"futures": [{"asset": "USDT", "wallet": venue.0}]},
            "positions": if venue.1 { held } else { json!([]) },
        }]});
        let position = PositionView {
            instrument: "futures:BTCUSDT".to_owned(),
            position_side: "BOTH".to_owned(),
            qty: "1".to_owned(),
            cost: "100".to_owned(),
        };
        let view = View {
            state: "ready".to_owned(),
            balances: vec![BalanceView {
                surface: "futures".to_owned(),
                asset: "USDT".to_owned(),
                total: known.0.to_owned(),
            }],
            positions: known.1.then_some(position).into_iter().collect(),
            marks: BTreeMap::from([("futures:BTCUSDT".to_owned(), "95".to_owned())]),
            ..View::default()
        };
        rule.truth = Some(Account::of_truth(&truth));
        rule.judge(0, &view)
    }

    #[test]
    fn a_loss_over_the_limit_must_halt_before_the_next_sample() {
        let mut rule = rule();
        let both = |wallet| ((wallet, false), (wallet, false));
        for (wallet, sound) in [("1000", true), ("995", true), ("985", true), ("984", false)] {
            let (venue, known) = both(wallet);
            assert_eq!(sample(&mut rule, venue, known).is_ok(), sound, "{wallet}");
        }
    }

    #[test]
    fn a_loss_that_was_not_told_needs_no_halt() {
        let mut rule = rule();
        assert_eq!(sample(&mut rule, ("1000", false), ("1000", false)), Ok(()));
        for _ in 0..3 {
            assert_eq!(sample(&mut rule, ("900", false), ("1000", false)), Ok(()));
        }
    }

    #[test]
    fn a_halt_is_early_below_the_limit_less_the_uncertainty() {
        for (venue, known, sound) in [
            (("991", true), ("991", true), true),
            (("998", true), ("998", true), false),
            (("998", true), ("993", false), false),
            (("996", true), ("989", false), true),
        ] {
            let mut rule = rule();
            assert_eq!(sample(&mut rule, ("1000", false), ("1000", false)), Ok(()));
            rule.halted = true;
            assert_eq!(sample(&mut rule, venue, known).is_ok(), sound, "{venue:?}");
        }
    }
}
