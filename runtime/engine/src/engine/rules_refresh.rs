//! The venue's rules of instruments, read again during the run (`windvane_supervision::rules_refresh`).
//!
//! Price and quantity scales stay fixed for the whole run, because positions and orders are counted
//! in them. New rules that need more decimals are not used: no position opens on that instrument
//! until a restart.

use windvane_model::effect::{Effect, Notice};
use windvane_model::event::EventKind;
use windvane_model::ids::{InstrumentId, StrategyId};
use windvane_model::instrument::SymbolStatus;
use windvane_model::ledger::Grains;
use windvane_model::order::{PositionSide, Surface};
use windvane_model::planted;
use windvane_model::protocol::{Outcome, Request};
use windvane_model::state_report::{ListedRules, StateReport, Subject};
use windvane_model::timer::Timer;
use windvane_supervision::rules_refresh::compile;

use super::{Engine, narrow};

/// How often rules are read.
const HOURLY_MS: i64 = 3_600_000;
/// How often rules are read while a symbol does not trade, or after a failed read.
const SOON_MS: i64 = 15_000;

/// Flags of an event that reports rules.
const TRADING: u32 = 1;
const UNUSABLE: u32 = 2;

impl Engine {
    /// Why the rules that the venue now reports for an instrument cannot be used; `None` if they
    /// can. While they cannot, no order may open a position there.
    pub fn unusable_rules(&self, instrument: InstrumentId) -> Option<&str> {
        self.rules_refresh.unusable(instrument)
    }

    /// Sets the first read to an hour after startup, because startup has read the rules itself.
    pub(super) fn schedule_rules_refresh(&mut self) {
        if planted!(RulesNeverReread) {
            return;
        }
        let Some(live) = &self.live else { return };
        for surface in live.config.surfaces.clone() {
            let at = self.now.plus_ms(HOURLY_MS);
            self.timers.set(at, Timer::Rules { surface });
        }
    }

    /// Reads the rules of a surface, unless a request is in flight.
    pub(super) fn read_rules(&mut self, surface: Surface) {
        let now = self.now;
        if self.live.is_none() || planted!(RulesNeverReread) {
            return;
        }
        // The next read is scheduled now, in case this request fails.
        let at = now.plus_ms(SOON_MS);
        self.timers.set(at, Timer::Rules { surface });
        if !self.rules_refresh.ask(surface, now) {
            return;
        }
        self.emit(Effect::Send {
            record: 0,
            request: Box::new(Request::Read(Subject::Rules { surface })),
        });
    }

    /// Handles an order that the venue or the engine refused: if the code is about a rule, the
    /// rules may have changed.
    pub(super) fn note_refusal(&mut self, instrument: InstrumentId, code: i32) {
        if self.live.is_none() || !self.rules_refresh.note_refusal(instrument, code, self.now) {
            return;
        }
        self.read_rules(self.surface_of(instrument));
    }

    pub(super) fn take_rules_response(&mut self, surface: Surface, outcome: &Outcome<StateReport>) {
        if !self.rules_refresh.take_answer(surface) {
            return;
        }
        let next_ms = match outcome {
            Outcome::Done(StateReport::Rules(listed)) => {
                for one in listed {
                    self.take_rules(surface, one);
                }
                let stopped = self.instruments_of(surface).into_iter().any(|id| {
                    let status = &self.instruments[usize::from(id.0)].status;
                    *status != SymbolStatus::Trading || self.unusable_rules(id).is_some()
                });
                if stopped { SOON_MS } else { HOURLY_MS }
            }
            _ => SOON_MS,
        };
        let at = self.now.plus_ms(next_ms);
        self.timers.set(at, Timer::Rules { surface });
    }

    fn take_rules(&mut self, surface: Surface, listed: &ListedRules) {
        let (id, index) = (listed.instrument, usize::from(listed.instrument.0));
        if index >= self.instruments.len() || self.surface_of(id) != surface {
            return;
        }
        let taken = match &listed.rules {
            Ok(rules) => compile(&self.instruments[index], rules),
            Err(why) => Err(why.clone()),
        };
        let known = self.rules_refresh.take_unusable(id);
        let (rules, compiled) = match taken {
            Ok(taken) => taken,
            Err(why) => {
                let is_news = known.as_ref() != Some(&why);
                self.rules_refresh.set_unusable(id, why.clone());
                if is_news {
                    self.deliver_rules(id);
                    self.notices.push_back(Notice::RulesUnusable {
                        time: self.now,
                        instrument: id,
                        why,
                    });
                }
                return;
            }
        };
        if rules == self.instruments[index] && known.is_none() {
            return;
        }
        self.rules_refresh.forget_refusals(id);
        self.rules[index] = compiled;
        let before = std::mem::replace(&mut self.instruments[index], rules);
        self.settle_dust(id);
        self.deliver_rules(id);
        if before.status != self.instruments[index].status {
            self.take_status(id);
        }
        self.notices.push_back(Notice::RulesChanged {
            time: self.now,
            instrument: id,
            before: Box::new(before),
        });
    }

    /// Reports the present rules of an instrument to the strategies that have it.
    pub(super) fn deliver_rules(&mut self, id: InstrumentId) {
        for place in 0..self.strategies.len() {
            let strategy = StrategyId(place as u16);
            if self.grants(strategy, id) {
                self.deliver_rules_to(strategy, id);
            }
        }
    }

    /// Reports to a new instance the present rules of its instruments. It was started with the
    /// rules from the start of the process.
    pub(super) fn deliver_all_rules(&mut self, strategy: StrategyId) {
        for index in 0..self.instruments.len() {
            let id = InstrumentId(index as u16);
            if self.grants(strategy, id) {
                self.deliver_rules_to(strategy, id);
            }
        }
    }

    fn deliver_rules_to(&mut self, strategy: StrategyId, id: InstrumentId) {
        let rules = &self.instruments[usize::from(id.0)];
        let price = rules.filters.price.unwrap_or_default();
        let lot = rules.filters.lot_size.unwrap_or_default();
        let fields = [
            price.tick_size,
            price.min_price,
            price.max_price,
            lot.step_size,
            lot.min_qty,
            lot.max_qty,
        ];
        let min_notional = narrow(rules.filters.least_notional().unwrap_or_default());
        let trades = u32::from(rules.status == SymbolStatus::Trading) * TRADING;
        let unusable = u32::from(self.unusable_rules(id).is_some()) * UNUSABLE;
        let event = self.event(
            EventKind::Rules,
            id,
            trades | unusable,
            fields,
            min_notional,
        );
        self.deliver(strategy, event);
    }

    /// Splits spot holdings into whole steps and dust again. Futures have no dust.
    fn settle_dust(&mut self, id: InstrumentId) {
        if self.surface_of(id) != Surface::Spot {
            return;
        }
        let grains = Grains::of(&self.instruments[usize::from(id.0)]);
        let ledgers = &mut self.ledgers;
        let own = ledgers.strategies.iter_mut();
        for ledger in own.chain([&mut ledgers.account, &mut ledgers.external]) {
            let position = &mut ledger.at_mut(id, PositionSide::Both).position;
            position.settle(position.held(grains), grains);
        }
    }
}
