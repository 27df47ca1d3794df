//! The account's daily loss limit halts in time and not early, according to the venue's true state.
//!
//! The loss is the decrease of the venue's account value since the start, with positions at the
//! runtime's prices. If the runtime's balances and positions equal the venue's, the runtime can
//! compute the loss. Then the limit must halt before the next such sample. Lives with such a limit
//! are sampled every second, and the run compares its limits as often, so the halt comes within
//! about one event and a second. The time of a stopped process counts from the moment when it
//! continues. If balances and positions differ, the difference of both versions of the account is
//! the uncertainty. A halt is early only below the limit minus this uncertainty.
//!
//! Positions on symbols that are not configured count at the profit that the venue last reported to
//! the runtime, or at their current one, whichever loses less. The same holds for the base of the
//! limit: the first account that the runtime knew may have been an older one.
//!
//! A life is judged up to its first halt, within one UTC day, until money is deposited or withdrawn
//! or a journal is lost. After that the base of the limit is another.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::wire;
use crate::witness::{BalanceView, Entry, ProcessEvent, Terms, View, WitnessEvent};

const DAY_NS: i64 = 86_400_000_000_000;
/// Tolerance for rounding, and for funding in flight, in hundredths of the limit.
const SLACK: Decimal = Decimal::from_parts(5, 0, 0, false, 2);

/// Instrument and position side, with the signed quantity and cost.
type Positions = BTreeMap<(String, String), (Decimal, Decimal)>;

/// Balances of other assets, from which commissions may be taken.
type Tokens = BTreeMap<String, Decimal>;

/// One version of the account.
#[derive(Clone, Debug, Default, PartialEq)]
struct Account {
    cash: Decimal,
    positions: Positions,
    /// On symbols that are not configured: symbol and position side, with the signed quantity and
    /// the unrealized profit.
    elsewhere: Positions,
    tokens: Tokens,
}

impl Account {
    fn of_truth(truth: &Value, configured: &BTreeSet<String>) -> Self {
        let account = &truth["accounts"][0];
        let text = |value: &Value| wire::decimal(value.as_str().unwrap_or_default());
        let mut known = Self::default();
        let balances = account["balances"]["futures"].as_array();
        for balance in balances.into_iter().flatten() {
            let asset = balance["asset"].as_str().unwrap_or_default();
            known.fund(asset, text(&balance["wallet"]));
        }
        for position in account["positions"].as_array().into_iter().flatten() {
            let qty = text(&position["qty"]);
            let symbol = position["symbol"].as_str().unwrap_or_default();
            let side = position["position_side"].as_str().unwrap_or_default();
            let instrument = format!("futures:{symbol}");
            if configured.contains(&instrument) {
                known.hold((instrument, side.to_owned()), qty, text(&position["cost"]));
            } else {
                let key = (symbol.to_owned(), side.to_owned());
                let unrealized = text(&position["unrealized"]);
                known.elsewhere.insert(key, (qty, unrealized));
            }
        }
        known
    }

    fn of_view(view: &View) -> Self {
        let mut known = Self::default();
        let is_futures = |of: &&BalanceView| of.surface == "futures";
        for balance in view.balances.iter().filter(is_futures) {
            known.fund(&balance.asset, wire::decimal(&balance.total));
        }
        for held in &view.positions {
            let key = (held.instrument.clone(), held.position_side.clone());
            known.hold(key, wire::decimal(&held.qty), wire::decimal(&held.cost));
        }
        for held in &view.elsewhere {
            let key = (held.symbol.clone(), held.position_side.clone());
            let stated = (wire::decimal(&held.qty), wire::decimal(&held.unrealized));
            known.elsewhere.insert(key, stated);
        }
        known
    }

    fn fund(&mut self, asset: &str, amount: Decimal) {
        if asset == "USDT" {
            self.cash += amount;
        } else if !amount.is_zero() {
            self.tokens.insert(asset.to_owned(), amount);
        }
    }

    fn hold(&mut self, key: (String, String), qty: Decimal, cost: Decimal) {
        if !qty.is_zero() {
            self.positions.insert(key, (qty, cost));
        }
    }

    /// Its value at these prices; other assets count with their change since the start. `None` if a
    /// price is missing.
    fn equity(&self, marks: &BTreeMap<String, String>, start: &Tokens) -> Option<Decimal> {
        let mut equity = self.cash;
        for (asset, amount) in &self.tokens {
            let changed = start
                .get(asset)
                .map_or(Decimal::ZERO, |before| amount - before);
            if !changed.is_zero() {
                equity += changed * wire::decimal(marks.get(&format!("futures:{asset}USDT"))?);
            }
        }
        for ((instrument, _), (qty, cost)) in &self.positions {
            equity += qty * wire::decimal(marks.get(instrument)?) - cost;
        }
        Some(equity + self.unrealized_elsewhere())
    }

    fn unrealized_elsewhere(&self) -> Decimal {
        self.elsewhere
            .values()
            .map(|(_, unrealized)| unrealized)
            .sum()
    }

    /// Whether both versions are equal, apart from rounding.
    fn agrees(&self, other: &Self) -> bool {
        let quantities = |known: &Self| -> Vec<_> {
            let positions = known.positions.iter().chain(&known.elsewhere);
            positions
                .map(|(key, (qty, _))| (key.clone(), *qty))
                .collect()
        };
        let same = |(asset, amount): (&String, &Decimal)| {
            let known = other.tokens.get(asset);
            known.is_none_or(|known| (amount - known).abs() <= Decimal::new(1, 7))
        };
        quantities(self) == quantities(other)
            && self.tokens.iter().all(same)
            && (self.cash - other.cash).abs() <= Decimal::new(1, 3)
    }
}

/// The rule.
#[derive(Debug)]
pub struct Losses {
    limit: Option<Decimal>,
    configured: BTreeSet<String>,
    truth: Option<Account>,
    /// The day, the lower of both account values when the run first knew it, and its other assets.
    base: Option<(i64, Decimal, Tokens)>,
    /// The highest account value since the run began, known to the runtime or not, and the other
    /// assets then. The base of the limit is no higher.
    most: Option<(Decimal, Tokens)>,
    /// The last sample showed a loss over the limit, and the data were sufficient.
    overdue: bool,
    /// The process is stopped, and computes nothing.
    stopped: bool,
    /// The limit halted, and the sample of that moment comes next.
    halted: bool,
}

impl Losses {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            limit: terms.max_daily_loss.as_deref().map(wire::decimal),
            configured: terms.instruments.iter().cloned().collect(),
            truth: None,
            base: None,
            most: None,
            overdue: false,
            stopped: false,
            halted: false,
        }
    }

    fn judge(&mut self, at_ns: i64, view: &View) -> Result<(), String> {
        let (Some(limit), Some(truth)) = (self.limit, self.truth.take()) else {
            return Ok(());
        };
        let runs = matches!(view.state.as_str(), "ready" | "degraded" | "paused") && !self.stopped;
        let known = Account::of_view(view);
        let day = at_ns.div_euclid(DAY_NS);
        let lost_at_most = self.lost_at_most(&truth, &known, view);
        let base = self.base.as_ref();
        let start = base.map_or(&truth.tokens, |(_, _, tokens)| tokens);
        let (is, believed) = (
            truth.equity(&view.marks, start),
            known.equity(&view.marks, start),
        );
        let (Some(is), Some(believed)) = (is, believed) else {
            return Ok(());
        };
        let agrees = truth.agrees(&known);
        let Some((started, start, _)) = base else {
            if runs && agrees {
                self.base = Some((day, is.min(believed), truth.tokens));
            }
            return Ok(());
        };
        let lost = start - is;
        let stated = known.unrealized_elsewhere() - truth.unrealized_elsewhere();
        let lost_at_least = lost - stated.max(Decimal::ZERO);
        if *started != day {
            self.limit = None;
        } else if self.halted {
            self.limit = None;
            let uncertain = (is - believed).abs() + limit * SLACK;
            let lost = lost_at_most.unwrap_or(lost);
            if lost + uncertain < limit {
                return Err(format!(
                    "halted at a loss of {lost}, uncertain by {uncertain}, with a limit of {limit}"
                ));
            }
        } else if runs && agrees && lost_at_least > limit * (Decimal::ONE + SLACK) {
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

impl Losses {
    /// The loss since the highest account value of the samples so far.
    fn lost_at_most(&mut self, truth: &Account, known: &Account, view: &View) -> Option<Decimal> {
        let new = || (Decimal::MIN, truth.tokens.clone());
        let (most, tokens) = self.most.get_or_insert_with(new);
        let is = truth.equity(&view.marks, tokens)?;
        let believed = known.equity(&view.marks, tokens)?;
        *most = is.max(believed).max(*most);
        Some(*most - is)
    }
}

impl Check for Losses {
    fn rule(&self) -> &'static str {
        "a loss halts in time, and not early"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::LossHalt => self.halted = true,
            WitnessEvent::Truth(truth) => {
                self.truth = Some(Account::of_truth(truth, &self.configured));
            }
            WitnessEvent::View(view) => return self.judge(entry.at_ns, view),
            // After a halt or a resume of the operator the limit may start anew. After a pause it
            // does not.
            WitnessEvent::Commanded {
                strategy: None,
                command,
            } if command != "pause" => self.limit = None,
            WitnessEvent::Act { act, .. } => {
                let word = act["act"].as_str().unwrap_or_default();
                if ["deposit", "withdraw", "transfer", "fund"].contains(&word) {
                    self.limit = None;
                }
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) if *process > 1 && journal != "clean" => self.limit = None,
            WitnessEvent::Process(seen) => {
                self.stopped = matches!(seen, ProcessEvent::Paused { .. });
                self.overdue = false;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::terms;
    use crate::witness::{ElsewhereView, PositionView};

    fn rule() -> Losses {
        let limit = Some("10".to_owned());
        Losses::new(&Terms {
            max_daily_loss: limit,
            ..terms()
        })
    }

    /// A sample: the wallet, and whether there is a position of 1 with a cost of 100, in both
    /// versions.
    fn sample(rule: &mut Losses, venue: (&str, bool), known: (&str, bool)) -> Result<(), String> {
        let held =
            json!([{"symbol": "BTCUSDT", "position_side": "BOTH", "qty": "1", "cost": "100"}]);
        let truth = json!({"accounts": [{
            "balances": {"futures": [{"asset": "USDT", "wallet": venue.0}]},
            "positions": if venue.1 { held } else { json!([]) },
        }]});
        let position = PositionView {
            dust: String::new(),
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
        rule.truth = Some(Account::of_truth(&truth, &rule.configured));
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
    fn a_loss_that_lasts_three_seconds_must_halt() {
        let limited = Terms {
            max_daily_loss: Some("10".to_owned()),
            ..terms()
        };
        let mut rule = rule();
        let period_s = limited.sample_ns() / 1_000_000_000;
        // From the 31st to the 33rd second the account is worth less than the limit allows.
        let found = (0..120).step_by(period_s as usize).any(|second| {
            let is_low = (31..=33).contains(&second);
            let wallet = if is_low { "985" } else { "1000" };
            sample(&mut rule, (wallet, false), (wallet, false)).is_err()
        });
        assert!(found, "samples every {period_s} s do not find the loss");
    }

    #[test]
    fn a_process_that_is_stopped_cannot_halt() {
        let mut rule = rule();
        let low = (("985", false), ("985", false));
        let process = |rule: &mut Losses, seen| {
            let (number, at_ns, seen) = (0, 0, WitnessEvent::Process(seen));
            let entry = Entry {
                number,
                at_ns,
                seen,
            };
            assert_eq!(rule.see(&entry), Ok(()));
        };
        assert_eq!(sample(&mut rule, ("1000", false), ("1000", false)), Ok(()));
        process(&mut rule, ProcessEvent::Paused { process: 1 });
        for _ in 0..3 {
            assert_eq!(sample(&mut rule, low.0, low.1), Ok(()));
        }
        process(&mut rule, ProcessEvent::Resumed { process: 1 });
        assert_eq!(sample(&mut rule, low.0, low.1), Ok(()));
        assert!(sample(&mut rule, low.0, low.1).is_err());
    }

    #[test]
    fn an_unreported_loss_needs_no_halt() {
        let mut rule = rule();
        assert_eq!(sample(&mut rule, ("1000", false), ("1000", false)), Ok(()));
        for _ in 0..3 {
            assert_eq!(sample(&mut rule, ("900", false), ("1000", false)), Ok(()));
        }
    }

    /// A sample with a position on a symbol that is not configured: the wallet, and the unrealized
    /// profit in both versions.
    fn sample_elsewhere(
        rule: &mut Losses,
        wallet: &str,
        is: &str,
        stated: &str,
    ) -> Result<(), String> {
        let truth = json!({"accounts": [{
            "balances": {"futures": [{"asset": "USDT", "wallet": wallet}]},
            "positions": [{"symbol": "DOGEUSDT", "position_side": "BOTH", "qty": "9",
                "cost": "0", "unrealized": is}],
        }]});
        let view = View {
            state: "ready".to_owned(),
            balances: vec![BalanceView {
                surface: "futures".to_owned(),
                asset: "USDT".to_owned(),
                total: wallet.to_owned(),
            }],
            elsewhere: vec![ElsewhereView {
                symbol: "DOGEUSDT".to_owned(),
                position_side: "BOTH".to_owned(),
                qty: "9".to_owned(),
                unrealized: stated.to_owned(),
            }],
            ..View::default()
        };
        rule.truth = Some(Account::of_truth(&truth, &rule.configured));
        rule.judge(0, &view)
    }

    #[test]
    fn a_loss_on_another_symbol_must_halt() {
        for (stated, sound) in [("-20", false), ("-1", true)] {
            let mut rule = rule();
            let mut sample = |is, stated| sample_elsewhere(&mut rule, "1000", is, stated);
            assert_eq!(sample("0", "0"), Ok(()));
            assert_eq!(sample("-20", stated), Ok(()));
            assert_eq!(sample("-20", stated).is_ok(), sound, "{stated}");
        }
    }

    #[test]
    fn the_base_uses_the_reported_profit_of_other_symbols() {
        let mut rule = rule();
        let mut sample = |wallet, stated| sample_elsewhere(&mut rule, wallet, "3", stated);
        assert_eq!(sample("1000", "0"), Ok(()));
        for _ in 0..3 {
            assert_eq!(sample("988", "3"), Ok(()));
        }
        assert_eq!(sample("986", "3"), Ok(()));
        assert!(sample("986", "3").is_err());
    }

    #[test]
    fn losses_before_the_data_agree_count() {
        let mut rule = rule();
        assert_eq!(sample(&mut rule, ("991", false), ("1000", false)), Ok(()));
        assert_eq!(sample(&mut rule, ("991", false), ("991", false)), Ok(()));
        rule.halted = true;
        assert_eq!(sample(&mut rule, ("989", false), ("989", false)), Ok(()));
    }

    #[test]
    fn a_halt_below_limit_minus_uncertainty_is_early() {
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
