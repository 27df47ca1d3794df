//! Leverage and margin type of symbols. The runtime never changes them, but a person may; margin
//! and liquidation price change with them.

use std::collections::BTreeMap;

use windvane_model::effect::Notice;
use windvane_model::ids::{InstrumentId, Time};
use windvane_model::names::Names;
use windvane_model::protocol::MarginTerms;

use super::Engine;

/// The last known terms of each instrument, and the time of their last change.
pub(super) type Margins = BTreeMap<InstrumentId, (MarginTerms, Option<Time>)>;

impl Engine {
    /// Leverage and margin type of each instrument whose terms are known, and when they last
    /// changed.
    pub fn margin_terms(&self) -> impl Iterator<Item = (&MarginTerms, Option<Time>)> {
        self.margins.values().map(|(terms, at)| (terms, *at))
    }

    /// Takes the terms from an event or an account snapshot. The first snapshot of an instrument
    /// shows the initial terms; any other difference is a change.
    pub(super) fn note_margin(&mut self, told: &MarginTerms, by_event: bool) {
        if usize::from(told.instrument.0) >= self.instruments.len() {
            return;
        }
        let now = self.now;
        let unknown = MarginTerms {
            leverage: None,
            isolated: None,
            ..*told
        };
        let entry = self.margins.entry(told.instrument);
        let (known, changed) = entry.or_insert((unknown, None));
        let before = *known;
        known.leverage = told.leverage.or(known.leverage);
        known.isolated = told.isolated.or(known.isolated);
        let differs = |was: bool, is: bool| is && (was || by_event);
        let leverage = differs(before.leverage.is_some(), known.leverage != before.leverage);
        let isolated = differs(before.isolated.is_some(), known.isolated != before.isolated);
        if !leverage && !isolated {
            return;
        }
        *changed = Some(now);
        let after = *known;
        self.notices.push_back(Notice::MarginChanged {
            time: now,
            before,
            after,
        });
    }

    pub(super) fn inherit_margins(&mut self, from: &Self, names: &Names) {
        for (id, (terms, at)) in &from.margins {
            if let Some(id) = names.instruments.get(id) {
                let terms = MarginTerms {
                    instrument: *id,
                    ..*terms
                };
                self.margins.insert(*id, (terms, *at));
            }
        }
    }
}
