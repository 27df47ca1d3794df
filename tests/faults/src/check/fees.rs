//! Every fee is booked once, as the venue charged it. A fill carries the commission of its trade.
//! The runtime's own balance changes exactly by the realized profit of its fills minus their fees.
//! On spot a fill exchanges the base asset for the quote asset.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::Check;
use super::wire::{self, RequestKind};
use crate::witness::{Answer, Entry, ProcessEvent, RequestId, WitnessEvent};

/// The quote asset of every instrument.
const QUOTE: &str = "USDT";

/// An instrument and one of its trades.
type Trade = (String, i64);

/// The rule.
#[derive(Debug, Default)]
pub struct Fees {
    /// Requests for lists of the account's trades, and their instruments.
    questions: BTreeMap<RequestId, String>,
    /// The venue's charges; two own orders that met share one trade, and each has its fee.
    charged: BTreeMap<Trade, BTreeSet<(Decimal, String)>>,
    /// Commissions that the process learned in this life from the list of the account's trades, by
    /// order.
    late: BTreeSet<(Trade, i64)>,
    /// The sum of the fills and adjustments of the running step, by balance.
    moved: BTreeMap<String, Decimal>,
    /// Fills of the running step, for the error text.
    fills: Vec<String>,
    /// The last step ended: its balances were reported.
    ended: bool,
}

impl Fees {
    /// An event or an account trade reports a commission.
    fn charge(
        &mut self,
        instrument: &str,
        trade: i64,
        fee: Option<Decimal>,
        asset: Option<String>,
    ) {
        let charged = (fee.unwrap_or_default(), asset.unwrap_or_default());
        let of_trade = (instrument.to_owned(), trade);
        self.charged.entry(of_trade).or_default().insert(charged);
    }

    fn emitted(&mut self, surface: &str, text: &str) {
        let Ok(event) = serde_json::from_str::<Value>(text) else {
            return;
        };
        let event = event.get("data").unwrap_or(&event);
        let order = event.get("o").filter(|order| order.is_object());
        let order = order.unwrap_or(event);
        let trade = order.get("t").and_then(Value::as_i64);
        if let (Some(symbol), Some(trade)) = (wire::text(order, "s"), trade.filter(|id| *id > 0)) {
            let instrument = format!("{surface}:{symbol}");
            let (fee, asset) = (wire::number(order, "n"), wire::text(order, "N"));
            self.charge(&instrument, trade, fee, asset);
        }
    }

    fn answered(&mut self, instrument: &str, answer: &Answer) {
        let Some(Value::Array(trades)) = answer.json() else {
            return;
        };
        for trade in &trades {
            if let Some(id) = trade.get("id").and_then(Value::as_i64) {
                let fee = wire::number(trade, "commission");
                self.charge(instrument, id, fee, wire::text(trade, "commissionAsset"));
            }
        }
    }

    /// A step begins or continues.
    fn begin(&mut self) {
        if std::mem::take(&mut self.ended) {
            self.moved.clear();
            self.fills.clear();
        }
    }

    fn booked(
        &mut self,
        instrument: &str,
        trade: i64,
        (fee, asset): (Decimal, &str),
        (base, quote): (Decimal, Decimal),
    ) -> Result<(), String> {
        self.begin();
        let charged = self.charged.get(&(instrument.to_owned(), trade));
        // An event without a commission names no asset.
        let booked = (fee, if fee.is_zero() { "" } else { asset });
        let names = |(of, in_asset): &(Decimal, String)| {
            *of == booked.0 && (of.is_zero() || in_asset == booked.1)
        };
        if let Some(charged) = charged.filter(|charged| !charged.iter().any(names)) {
            return Err(format!(
                "trade {trade} of {instrument} is booked with a fee of {fee} {asset}, but the venue \
                 charged {charged:?}"
            ));
        }
        let (surface, symbol) = instrument.split_once(':').unwrap_or_default();
        self.add(format!("{surface}:{asset}"), -fee);
        // Both surfaces of this venue quote and settle in one asset.
        self.add(format!("{surface}:{QUOTE}"), quote);
        if let Some(of) = symbol.strip_suffix(QUOTE) {
            self.add(format!("{surface}:{of}"), base);
        }
        self.fills
            .push(format!("trade {trade} with {base} and {quote} less {fee}"));
        Ok(())
    }

    /// A commission became known later: an account trade reported it for a fill that was booked
    /// without one, or an event replaced an estimate.
    fn booked_late(
        &mut self,
        trade: &Trade,
        order_id: i64,
        (fee, asset): (Decimal, &str),
        replaced: Option<Decimal>,
    ) -> Result<(), String> {
        self.begin();
        let (instrument, number) = trade;
        let surface = instrument.split(':').next().unwrap_or_default();
        if let Some(estimate) = replaced {
            self.add(format!("{surface}:{QUOTE}"), estimate);
            self.add(format!("{surface}:{asset}"), -fee);
        }
        if fee.is_zero() {
            // The commission is still unknown.
            return Ok(());
        }
        let charged = self.charged.get(trade);
        let is_charged = |charged: &BTreeSet<_>| charged.contains(&(fee, asset.to_owned()));
        if !charged.is_some_and(is_charged) {
            return Err(format!(
                "trade {number} of {instrument} is booked late with a fee of {fee} {asset}, but the venue \
                 charged {charged:?}"
            ));
        }
        if !self.late.insert((trade.clone(), order_id)) {
            return Err(format!(
                "the fee of trade {number} of {instrument} is booked late a second time"
            ));
        }
        self.fills.push(format!("{fee} of trade {number}, late"));
        Ok(())
    }

    fn add(&mut self, of: String, amount: Decimal) {
        *self.moved.entry(of).or_default() += amount;
    }

    fn moved(&mut self, of: &str, from: Decimal, to: Decimal) -> Result<(), String> {
        let moved = self.moved.get(of).copied().unwrap_or_default();
        if to - from == moved {
            return Ok(());
        }
        Err(format!(
            "{of} changes by {} from {from} to {to}, but the bookings sum to {moved}: {}",
            to - from,
            self.fills.join(", ")
        ))
    }
}

impl Check for Fees {
    fn rule(&self) -> &'static str {
        "every fee is booked once, as the venue charged it"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Emitted { surface, text, .. } => self.emitted(surface, text),
            WitnessEvent::Sent(request) => {
                if let RequestKind::Trades(instrument) = wire::request_kind(request) {
                    self.questions.insert(request.id, instrument);
                }
            }
            WitnessEvent::Answered {
                request, answer, ..
            } => {
                if let Some(instrument) = self.questions.get(request).cloned() {
                    self.answered(&instrument, answer);
                }
            }
            WitnessEvent::Booked {
                instrument,
                trade_id,
                side,
                qty,
                quote,
                fee,
                fee_asset,
                realized,
                ..
            } => {
                let fee = (wire::decimal(fee), fee_asset.as_str());
                let (qty, quote) = (wire::decimal(qty), wire::decimal(quote));
                let moved = match (instrument.starts_with("spot:"), side.as_str()) {
                    (false, _) => (Decimal::ZERO, wire::decimal(realized)),
                    (true, "BUY") => (qty, -quote),
                    (true, _) => (-qty, quote),
                };
                self.booked(instrument, *trade_id, fee, moved)?;
            }
            WitnessEvent::LateFee {
                instrument,
                order_id,
                trade_id,
                fee,
                fee_asset,
                estimate,
                in_balance,
                ..
            } => {
                let trade = (instrument.clone(), *trade_id);
                let fee = (wire::decimal(fee), fee_asset.as_str());
                let replaced = (!in_balance).then(|| wire::decimal(estimate));
                self.booked_late(&trade, *order_id, fee, replaced)?;
            }
            WitnessEvent::Adjusted {
                kind, of, from, to, ..
            } if kind == "balance" => {
                self.begin();
                self.add(of.clone(), wire::decimal(to) - wire::decimal(from));
            }
            WitnessEvent::Balance {
                of,
                from,
                to,
                by_fills,
                ..
            } => {
                self.ended = true;
                if *by_fills {
                    self.moved(of, wire::decimal(from), wire::decimal(to))?;
                }
            }
            // A kill in the middle of a step.
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                self.ended = true;
                self.late.clear();
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
    use crate::check::log::{Log, verdict};

    /// A fill of 1 at 100 with a commission of 0.04.
    fn filled() -> Log {
        let order = json!({"c": "mm.a.1", "s": "BTCUSDT", "t": 7, "n": "0.04", "N": "USDT"});
        Log::new()
            .place("mm.a.1")
            .user_event(&json!({"e": "ORDER_TRADE_UPDATE", "o": order}))
    }

    #[test]
    fn a_balance_that_changes_by_its_fills_is_accepted() {
        let sound = filled()
            .charged("mm.a.1", 7, "0.04")
            .balance("100", "99.96");
        let next = sound.charged("mm.a.2", 8, "0.01").balance("99.96", "99.95");
        assert_eq!(verdict(Fees::default(), &next), Ok(()));
    }

    #[test]
    fn a_fee_that_is_booked_twice_is_found() {
        let broken = filled()
            .charged("mm.a.1", 7, "0.04")
            .balance("100", "99.92");
        assert!(verdict(Fees::default(), &broken).is_err());
        let forgotten = filled().charged("mm.a.1", 7, "0.04").balance("100", "100");
        assert!(verdict(Fees::default(), &forgotten).is_err());
    }

    #[test]
    fn another_fee_than_the_venue_charged_is_found() {
        let broken = filled()
            .charged("mm.a.1", 7, "0.08")
            .balance("100", "99.92");
        assert!(verdict(Fees::default(), &broken).is_err());
    }

    #[test]
    fn a_commission_from_account_trades_counts_once() {
        let order = json!({"c": "mm.a.1", "s": "BTCUSDT", "t": 7});
        let event = json!({"e": "ORDER_TRADE_UPDATE", "o": order});
        let trades = json!([{"id": 7, "commission": "0.04", "commissionAsset": "USDT"}]);
        let log = Log::new().place("mm.a.1").user_event(&event);
        let log = log.charged("mm.a.1", 7, "0").balance("100", "100");
        let log = log.request("GET", "/fapi/v1/userTrades", &[]);
        let log = log
            .with_answer(200, &[], &trades.to_string())
            .late_fee(7, "0.04");
        let sound = log.clone().balance("100", "99.96");
        assert_eq!(verdict(Fees::default(), &sound), Ok(()));
        let forgotten = log.clone().balance("100", "100");
        assert!(verdict(Fees::default(), &forgotten).is_err());
        let twice = log.late_fee(7, "0.04").balance("100", "99.92");
        assert!(verdict(Fees::default(), &twice).is_err());
    }

    #[test]
    fn a_fill_on_spot_exchanges_base_for_quote() {
        let bought = || {
            let fill = ("2", "200");
            Log::new().bought_on_spot("sp.a.1", 7, fill, ("0.01", "BTC"))
        };
        let base = |to| bought().balance_of("spot:BTC", "5", to);
        assert_eq!(verdict(Fees::default(), &base("6.99")), Ok(()));
        assert!(verdict(Fees::default(), &base("7")).is_err());
        let quote = |to| bought().balance_of("spot:USDT", "300", to);
        assert_eq!(verdict(Fees::default(), &quote("100")), Ok(()));
        assert!(verdict(Fees::default(), &quote("99.99")).is_err());
        let futures = bought().balance("100", "99.99");
        assert!(verdict(Fees::default(), &futures).is_err());
    }

    #[test]
    fn an_adjustment_explains_its_balance_change() {
        let reported = filled()
            .charged("mm.a.1", 7, "0.04")
            .adjusted_balance("99.96", "99.97");
        assert_eq!(
            verdict(Fees::default(), &reported.balance("100", "99.97")),
            Ok(())
        );
    }
}
