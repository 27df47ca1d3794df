//! Converts journal records to JSON for other programs, one object per record.
//!
//! Prices and quantities of the engine's own records are decimals. Inside a `request`, `reply` or
//! `user` event they are the engine's integers. The line of the segment's checkpoint has their
//! scales.

use serde::Serialize;
use serde_json::{Value, json};
use windvane_engine::Engine;
use windvane_model::codec::{Record, RecordBody, RecordedEffect, RecordedInput, RecordedNotice};
use windvane_model::forced::ForcedCloseReport;
use windvane_model::market::Level;
use windvane_model::{
    Instrument, InstrumentId, Intent, MarketEvent, OrderTerms, Outcome, Reply, StrategyId, Time,
};

use windvane_report::utc::utc_text;
use windvane_session::Checkpoint;

/// Names and scales for the records of a segment.
#[derive(Debug)]
pub struct RecordFormatter {
    segment: u32,
    version: String,
    epoch: u64,
    instruments: Vec<Instrument>,
    /// Names of the strategies and hashes of their modules.
    strategies: Vec<(String, String)>,
}

impl RecordFormatter {
    /// Reads them from the segment's checkpoint; `None` if it cannot be read.
    pub fn new(segment: u32, checkpoint: &[u8]) -> Option<Self> {
        let checkpoint = Checkpoint::from_bytes(checkpoint)?;
        let engine = Engine::restore(&checkpoint.engine).ok()?;
        let named = |saved: &windvane_session::SavedStrategy| {
            (saved.name.clone(), hex::encode(saved.sha256))
        };
        Some(Self {
            segment,
            epoch: engine.epoch(),
            instruments: engine.instruments().to_vec(),
            strategies: checkpoint.strategies.iter().map(named).collect(),
            version: checkpoint.version,
        })
    }

    /// The segment's number.
    pub const fn segment(&self) -> u32 {
        self.segment
    }

    /// The line for the segment's checkpoint.
    pub fn checkpoint(&self) -> Value {
        let instruments = self.instruments.iter().map(|rules| {
            json!({
                "name": rules.name(),
                "price_scale": rules.price_scale,
                "qty_scale": rules.qty_scale,
            })
        });
        let strategies = self.strategies.iter();
        json!({
            "segment": self.segment,
            "head": {
                "version": self.version,
                "epoch": self.epoch,
                "instruments": instruments.collect::<Vec<_>>(),
                "strategies": strategies
                    .map(|(id, sha256)| json!({"id": id, "module_sha256": sha256}))
                    .collect::<Vec<_>>(),
            },
        })
    }

    /// The line for a record.
    pub fn record(&self, sequence: u64, record: &Record) -> Value {
        let (kind, body) = match &record.body {
            RecordBody::Config(text) => ("config", json!({ "text": text })),
            RecordBody::Input(input) => ("input", self.input(input)),
            RecordBody::Effect(effect) => ("effect", self.effect(effect)),
            RecordBody::Notice(notice) => ("notice", self.notice(notice)),
        };
        json!({
            "segment": self.segment,
            "sequence": sequence,
            "time_ns": record.time.0,
            "time": utc_text(record.time),
            kind: body,
        })
    }

    fn input(&self, input: &RecordedInput) -> Value {
        match input {
            RecordedInput::Market { instrument, event } => {
                self.market(*instrument, &event.market())
            }
            RecordedInput::Answer { strategy, intents } => json!({
                "kind": "answer",
                "strategy": self.strategy(*strategy),
                "intents": intents.iter().map(|one| self.intent(one)).collect::<Vec<_>>(),
            }),
            RecordedInput::Reply(reply) => match refused(reply) {
                Some(how) => json!({"kind": "reply", "refused": how, "reply": value(reply)}),
                None => json!({"kind": "reply", "reply": value(reply)}),
            },
            RecordedInput::User(event) => json!({"kind": "user", "user": value(event)}),
            RecordedInput::Timeout => json!({"kind": "timeout"}),
            RecordedInput::Fault { strategy, kind } => json!({
                "kind": "fault",
                "strategy": self.strategy(*strategy),
                "fault": kind.as_str(),
            }),
            RecordedInput::Command(command) => {
                json!({"kind": "command", "command": value(command)})
            }
            RecordedInput::Steer { strategy, command } => json!({
                "kind": "steer",
                "strategy": self.strategy(*strategy),
                "command": value(command),
            }),
            RecordedInput::Renew { strategy } => {
                json!({"kind": "renew", "strategy": self.strategy(*strategy)})
            }
            RecordedInput::Start { strategy, phase } => json!({
                "kind": "start",
                "strategy": self.strategy(*strategy),
                "phase": phase.as_str(),
            }),
            RecordedInput::Saved {
                strategy,
                handled,
                state,
            } => json!({
                "kind": "saved",
                "strategy": self.strategy(*strategy),
                "handled": handled,
                "state": state.as_deref().map(hex::encode),
            }),
            RecordedInput::Reconfigure(next) => {
                json!({"kind": "reconfigure", "to": value(next)})
            }
            RecordedInput::Live(input) => json!({"kind": "live", "live": value(input)}),
            RecordedInput::SymbolStatus { instrument, status } => json!({
                "kind": "symbol_status",
                "instrument": self.name(*instrument),
                "status": value(status),
            }),
            RecordedInput::OnLiquidation(reaction) => {
                json!({"kind": "on_liquidation", "reaction": reaction.as_str()})
            }
        }
    }

    fn market(&self, id: InstrumentId, event: &MarketEvent<'_>) -> Value {
        let instrument = self.name(id);
        match event {
            MarketEvent::Trade {
                price,
                qty,
                trade_id,
                buyer_is_maker,
            } => json!({
                "kind": "trade",
                "instrument": instrument,
                "price": self.price(id, *price),
                "qty": self.qty(id, *qty),
                "trade_id": trade_id,
                "buyer_is_maker": buyer_is_maker,
            }),
            MarketEvent::Top {
                update_id,
                bid,
                ask,
            } => json!({
                "kind": "top",
                "instrument": instrument,
                "update_id": update_id,
                "bid": self.level(id, bid),
                "ask": self.level(id, ask),
            }),
            MarketEvent::Depth {
                update_id,
                snapshot,
                bids,
                asks,
            } => json!({
                "kind": if *snapshot { "depth_snapshot" } else { "depth" },
                "instrument": instrument,
                "update_id": update_id,
                "bids": self.levels(id, bids),
                "asks": self.levels(id, asks),
            }),
            MarketEvent::Gap => json!({"kind": "gap", "instrument": instrument}),
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                next_funding,
            } => {
                let decimal = |mantissa: i64| rust_decimal::Decimal::new(mantissa, 8).normalize();
                json!({
                    "kind": "mark",
                    "instrument": instrument,
                    "mark": decimal(*mark),
                    "index": decimal(*index),
                    "funding_rate": decimal(*funding_rate),
                    "next_funding_ns": (*next_funding != Time::NEVER).then_some(next_funding.0),
                })
            }
        }
    }

    fn effect(&self, effect: &RecordedEffect) -> Value {
        match effect {
            RecordedEffect::Deliver { strategy, kind, .. } => json!({
                "kind": "deliver",
                "strategy": self.strategy(*strategy),
                "event": format!("{kind:?}"),
            }),
            RecordedEffect::Send { record, request } => json!({
                "kind": "send",
                "after_record": record,
                "request": value(request),
            }),
            RecordedEffect::Reconnect { surface } => {
                json!({"kind": "reconnect", "surface": surface.as_str()})
            }
            RecordedEffect::Heartbeat { number } => json!({"kind": "beat", "number": number}),
        }
    }

    fn notice(&self, notice: &RecordedNotice) -> Value {
        match notice {
            RecordedNotice::State { from, to, reasons } => {
                let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
                json!({
                    "kind": "state",
                    "from": from.as_str(),
                    "to": to.as_str(),
                    "degraded_reasons": reasons,
                    // Deprecated: the name in earlier versions.
                    "doubts": reasons,
                })
            }
            RecordedNotice::Adjusted { adjustment, cause } => json!({
                "kind": "adjusted",
                "adjustment": value(adjustment),
                "cause": cause.as_str(),
            }),
            RecordedNotice::ForcedClose(report) => self.forced_close(report),
        }
    }

    fn forced_close(&self, report: &ForcedCloseReport) -> Value {
        let id = report.instrument;
        let shares = report.shares.iter().map(|share| {
            json!({
                "strategy": self.strategy(share.strategy),
                "qty": self.qty(id, share.qty),
                "realized_pnl": share.realized_pnl.to_decimal(),
                "left": self.qty(id, share.left),
            })
        });
        json!({
            "kind": "forced_close",
            "reason": report.kind.as_str(),
            "instrument": self.name(id),
            "side": report.side.as_str(),
            "position_side": report.position_side.as_str(),
            "order_id": report.order_id.0,
            "client_order_id": report.client_order_id.map(|id| id.to_string()),
            "qty": self.qty(id, report.qty),
            "value": report.quote.to_decimal(),
            "realized_pnl": report.realized_pnl.to_decimal(),
            "fee": report.fee.to_decimal(),
            "strategies": shares.collect::<Vec<_>>(),
            "unowned": self.qty(id, report.unowned),
            "left": self.qty(id, report.left),
            "on_liquidation": report.reaction.as_str(),
            "latched": report.kill_switch_changed,
        })
    }

    /// An intent of a strategy.
    pub fn intent(&self, intent: &Intent) -> Value {
        match intent {
            Intent::Submit { order, terms } => {
                json!({"kind": "submit", "order": order.0, "terms": self.terms(terms)})
            }
            Intent::Rejected { terms, rejection } => json!({
                "kind": "rejected",
                "rule": rejection.to_string(),
                "terms": self.terms(terms),
            }),
            Intent::Cancel { order } => json!({"kind": "cancel", "order": order.0}),
            Intent::CancelAll { instrument } => json!({
                "kind": "cancel_all",
                "instrument": instrument.map(|id| self.name(id)),
            }),
            Intent::SetTimer { time, token } => {
                json!({"kind": "set_timer", "time_ns": time.0, "token": token})
            }
            Intent::CancelTimer { token } => json!({"kind": "cancel_timer", "token": token}),
        }
    }

    /// The parameters of an order.
    pub fn terms(&self, terms: &OrderTerms) -> Value {
        let id = terms.instrument;
        json!({
            "instrument": self.name(id),
            "side": value(&terms.side),
            "type": value(&terms.order_type),
            "time_in_force": terms.time_in_force.map(|word| value(&word)),
            "price": terms.price.map(|price| self.price(id, price.0)),
            "stop_price": terms.stop_price.map(|price| self.price(id, price.0)),
            "qty": terms.qty.map(|qty| self.qty(id, qty.0)),
            "reduce_only": terms.reduce_only,
            "position_side": value(&terms.position_side),
        })
    }

    /// The name of an instrument.
    pub fn name(&self, id: InstrumentId) -> String {
        let rules = self.instruments.get(usize::from(id.0));
        rules.map_or_else(|| format!("instrument {}", id.0), Instrument::name)
    }

    /// The id of a strategy.
    pub fn strategy(&self, id: StrategyId) -> &str {
        let named = self.strategies.get(usize::from(id.0));
        named.map_or("unknown", |(name, _)| name)
    }

    /// A price of an instrument.
    pub fn price(&self, id: InstrumentId, mantissa: i64) -> Value {
        let rules = self.instruments.get(usize::from(id.0));
        rules.map_or_else(|| json!(mantissa), |rules| json!(rules.price(mantissa)))
    }

    /// A quantity of an instrument.
    pub fn qty(&self, id: InstrumentId, mantissa: i64) -> Value {
        let rules = self.instruments.get(usize::from(id.0));
        rules.map_or_else(|| json!(mantissa), |rules| json!(rules.qty(mantissa)))
    }

    fn level(&self, id: InstrumentId, level: &Level) -> Value {
        json!([self.price(id, level.price), self.qty(id, level.qty)])
    }

    fn levels(&self, id: InstrumentId, levels: &[Level]) -> Vec<Value> {
        levels.iter().map(|level| self.level(id, level)).collect()
    }
}

/// How a request that changes something failed: it never left the process, or the venue rejected
/// it.
fn refused(reply: &Reply) -> Option<&'static str> {
    const fn of<T>(outcome: &Outcome<T>) -> Option<&'static str> {
        match outcome {
            Outcome::Refused(refusal) if refusal.is_not_sent() => Some("not_sent"),
            Outcome::Refused(_) => Some("rejected_by_venue"),
            _ => None,
        }
    }
    match reply {
        Reply::Placed { outcome, .. } | Reply::Canceled { outcome, .. } => of(outcome),
        Reply::CanceledAll { outcome, .. } | Reply::PositionMode { outcome } => of(outcome),
        Reply::Countdown { outcome, .. } => of(outcome),
        Reply::Leverage { outcome, .. } => of(outcome),
        Reply::Queried { .. } | Reply::Read { .. } | Reply::Margins(_) | Reply::Stated(_) => None,
    }
}

/// Converts to JSON. It cannot fail, because these types contain only numbers, strings and lists.
fn value<T: Serialize>(what: &T) -> Value {
    serde_json::to_value(what).unwrap_or(Value::Null)
}
