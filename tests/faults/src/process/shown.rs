//! The outputs of a session for the witness: notices, balances, tops of book, and the acts of its
//! strategies.
//!
//! Inputs of the session must not enter here.

use std::collections::{BTreeMap, VecDeque};

use windvane_model::{Amount, AssetId, Notice, Request, Surface};
use windvane_session::Session;

use super::closes::Closes;
use super::observed::ObservedGuests;
use super::{Out, notices};
use crate::witness::WitnessEvent;

/// The data of one process for the witness.
pub struct Shown {
    life: u32,
    /// The epoch that was reserved for this process.
    epoch: u64,
    /// The engine's balances after the last step.
    balances: BTreeMap<(Surface, AssetId), Amount>,
    /// Closes by others that were reported and are not durable yet.
    closes: Closes,
    /// What the notices of the running step say about balances.
    step: Step,
}

/// What changed balances in a step.
#[derive(Default)]
struct Step {
    filled: bool,
    adjusted: bool,
    /// Acts of others change balances too, and the notices do not give the amounts.
    others: bool,
}

impl Shown {
    /// For a process that has written this many records.
    pub fn new(life: u32, epoch: u64, records: u64) -> Self {
        Self {
            life,
            epoch,
            balances: BTreeMap::new(),
            closes: Closes::new(records),
            step: Step::default(),
        }
    }

    /// Reports the acts of strategies in a step.
    pub fn observed(&self, session: &mut Session<ObservedGuests>, outs: &mut VecDeque<Out>) {
        for observed in session.guests_mut().take() {
            let seen = notices::observed(session.engine(), self.life, self.epoch, &observed);
            outs.extend(seen.into_iter().map(Out::WitnessEvent));
        }
    }

    /// Handles a notice of a step.
    pub fn notice(
        &mut self,
        session: &Session<ObservedGuests>,
        notice: &Notice,
        outs: &mut VecDeque<Out>,
    ) {
        let step = &mut self.step;
        step.filled |= matches!(*notice, Notice::Filled { .. } | Notice::LateFee { .. });
        step.adjusted |= matches!(*notice, Notice::Adjusted { .. });
        step.others |= matches!(*notice, Notice::External { .. } | Notice::Funding { .. });
        let engine = session.engine();
        let mut seen = Vec::from_iter(notices::seen(engine, self.life, notice));
        if let Notice::ForcedClose { report, .. } = notice {
            seen.extend(notices::forced(engine, self.life, report));
        }
        if let Notice::Adjusted { adjustment, .. } = notice {
            seen.extend(notices::settled(engine, self.life, adjustment));
        }
        let records = engine.records();
        for seen in seen {
            if matches!(seen, WitnessEvent::ClosedOutside { .. }) {
                self.closes.note(seen.clone(), records);
            }
            outs.push_back(Out::WitnessEvent(seen));
        }
    }

    /// Ends a step: reports its effect on the engine's balances if the step booked or adjusted
    /// something, and whether only fills and adjustments changed them.
    pub fn end_step(&mut self, session: &Session<ObservedGuests>, outs: &mut VecDeque<Out>) {
        let engine = session.engine();
        let Step {
            filled,
            adjusted,
            others,
        } = std::mem::take(&mut self.step);
        for (surface, asset, balance) in engine.balances() {
            let from = self.balances.insert((surface, asset), balance.total);
            if !filled && !adjusted {
                continue;
            }
            outs.push_back(Out::WitnessEvent(WitnessEvent::Balance {
                process: self.life,
                of: format!("{surface}:{}", engine.assets()[usize::from(asset.0)]),
                from: from.unwrap_or_default().to_decimal().to_string(),
                to: balance.total.to_decimal().to_string(),
                by_fills: filled && !others,
            }));
        }
        self.closes.end_step(engine.records());
    }

    /// The journal is durable up to this record.
    pub fn durable(&mut self, record: u64) {
        self.closes.durable(record);
    }
    /// The closes by others that a next process does not know if its journal ends with this record,
    /// without the last `but_last` ones.
    pub fn closes_after(
        &self,
        record: u64,
        but_last: usize,
    ) -> impl Iterator<Item = &WitnessEvent> {
        self.closes.after(record, but_last)
    }
}

/// The top of the book when an order was sent.
pub fn top(session: &Session<ObservedGuests>, request: &Request) -> Option<WitnessEvent> {
    let Request::Place(order) = request else {
        return None;
    };
    let (id, engine) = (order.terms.instrument, session.engine());
    let instrument = engine.instrument(id)?;
    let bid = engine.book_level(id, windvane_model::Side::Buy, 0)?;
    let ask = engine.book_level(id, windvane_model::Side::Sell, 0)?;
    Some(WitnessEvent::Top {
        instrument: instrument.name(),
        bid: instrument.price(bid.price).to_string(),
        ask: instrument.price(ask.price).to_string(),
    })
}
