//! Leverage and margin type of symbols. The runtime never changes them, but a person may; margin
//! and liquidation price change with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::names::Names;
use windvane_model::protocol::MarginTerms;

/// The last known margin terms (leverage and margin type) of each instrument, and the time of their
/// last change.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Margins(BTreeMap<InstrumentId, (MarginTerms, Option<Time>)>);

impl Margins {
    /// Leverage and margin type of each instrument whose terms are known, and when they last
    /// changed.
    pub fn iter(&self) -> impl Iterator<Item = (&MarginTerms, Option<Time>)> {
        self.0.values().map(|(terms, at)| (terms, *at))
    }

    /// The last known leverage of an instrument.
    pub fn leverage(&self, instrument: InstrumentId) -> Option<u32> {
        self.0.get(&instrument)?.0.leverage
    }

    /// Takes the terms from an event or an account snapshot. The first snapshot of an instrument
    /// shows the initial terms; any other difference is a change. Returns the terms before and
    /// after a change.
    pub fn note(
        &mut self,
        reported: &MarginTerms,
        by_event: bool,
        now: Time,
    ) -> Option<(MarginTerms, MarginTerms)> {
        let unknown = MarginTerms {
            leverage: None,
            isolated: None,
            ..*reported
        };
        let entry = self.0.entry(reported.instrument);
        let (known, changed) = entry.or_insert((unknown, None));
        let before = *known;
        known.leverage = reported.leverage.or(known.leverage);
        known.isolated = reported.isolated.or(known.isolated);
        let differs = |was: bool, is: bool| is && (was || by_event);
        let leverage = differs(before.leverage.is_some(), known.leverage != before.leverage);
        let isolated = differs(before.isolated.is_some(), known.isolated != before.isolated);
        if !leverage && !isolated {
            return None;
        }
        *changed = Some(now);
        Some((before, *known))
    }

    /// Takes over the margin terms that an earlier process knew.
    pub fn inherit(&mut self, old: &Self, names: &Names) {
        for (id, (terms, at)) in &old.0 {
            if let Some(id) = names.instruments.get(id) {
                let terms = MarginTerms {
                    instrument: *id,
                    ..*terms
                };
                self.0.insert(*id, (terms, *at));
            }
        }
    }
}
