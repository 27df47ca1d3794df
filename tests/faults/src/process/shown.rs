//! What a session shows the witness: notices, balances, tops of book, and what its strategies said.
//!
//! What may never enter here: anything that the session hears back.

use std::collections::{BTreeMap, VecDeque};

use windvane_model::{Amount, AssetId, Notice, Request, Surface};
use windvane_session::Session;

use super::closes::Closes;
use super::overheard::Overheard;
use super::{Out, notices};
use crate::witness::Seen;

/// What the witness has of one process.
pub struct Shown {
    life: u32,
    /// The epoch that was reserved for this process.
    epoch: u64,
    /// The engine's balances after the last step.
    balances: BTreeMap<(Surface, AssetId), Amount>,
    /// Closes by others that people were told of and that are not durable yet.
    closes: Closes,
    /// What the notices of the running step say of balances.
    step: Step,
}

/// What moved balances in a step.
#[derive(Default)]
struct Step {
    filled: bool,
    adjusted: bool,
    /// What others did moves balances too, and is not told in figures.
    others: bool,
}

impl Shown {
    /// Of a process that has written so many records.
    pub fn new(life: u32, epoch: u64, records: u64) -> Self {
        Self {
            life,
            epoch,
            balances: BTreeMap::new(),
            closes: Closes::new(records),
            step: Step::default(),
        }
    }

    /// What strategies said in a step.
    pub fn overheard(&self, session: &mut Session<Overheard>, outs: &mut VecDeque<Out>) {
        for heard in session.guests_mut().take() {
            let seen = notices::overheard(session.engine(), self.life, self.epoch, &heard);
            outs.extend(seen.into_iter().map(Out::Seen));
        }
    }

    /// A notice of a step.
    pub fn notice(
        &mut self,
        session: &Session<Overheard>,
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
            if matches!(seen, Seen::ClosedOutside { .. }) {
                self.closes.note(seen.clone(), records);
            }
            outs.push_back(Out::Seen(seen));
        }
    }

    /// The end of a step: what it made of the engine's balances, where that is to be seen, and whether
    /// fills and adjustments alone moved them.
    pub fn end_step(&mut self, session: &Session<Overheard>, outs: &mut VecDeque<Out>) {
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
            outs.push_back(Out::Seen(Seen::Balance {
                process: self.life,
                of: format!("{surface}:{}", engine.assets()[usize::from(asset.0)]),
                from: from.unwrap_or_default().to_decimal().to_string(),
                to: balance.total.to_decimal().to_string(),
                by_fills: filled && !others,
            }));
        }
        self.closes.end_step(engine.records());
    }

    /// The journal is durable up to here.
    pub fn durable(&mut self, record: u64) {
        self.closes.durable(record);
    }
    /// Closes by others that a next process does not know of, where its journal ends with this record; but
    /// the last ones.
    pub fn closes_after(&self, record: u64, but_last: usize) -> impl Iterator<Item = &Seen> {
        self.closes.after(record, but_last)
    }
}

/// What the book was like when an order left.
pub fn top(session: &Session<Overheard>, request: &Request) -> Option<Seen> {
    let Request::Place(order) = request else {
        return None;
    };
    let (id, engine) = (order.terms.instrument, session.engine());
    let instrument = engine.instrument(id)?;
    let bid = engine.book_level(id, windvane_model::Side::Buy, 0)?;
    let ask = engine.book_level(id, windvane_model::Side::Sell, 0)?;
    Some(Seen::Top {
        instrument: instrument.name(),
        bid: instrument.price(bid.price).to_string(),
        ask: instrument.price(ask.price).to_string(),
    })
}
