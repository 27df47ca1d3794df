//! Leverage and margin type of symbols: people are notified of changes by others
//! (`windvane_supervision::margin_terms`).

use windvane_model::effect::Notice;
use windvane_model::ids::Time;
use windvane_model::protocol::MarginTerms;

use super::Engine;

impl Engine {
    /// Leverage and margin type of each instrument whose terms are known, and when they last
    /// changed.
    pub fn margin_terms(&self) -> impl Iterator<Item = (&MarginTerms, Option<Time>)> {
        self.margins.iter()
    }

    /// Takes the terms from an event or an account snapshot. The first snapshot of an instrument
    /// shows the initial terms; any other difference is a change.
    pub(super) fn note_margin(&mut self, reported: &MarginTerms, by_event: bool) {
        if usize::from(reported.instrument.0) >= self.instruments.len() {
            return;
        }
        let now = self.now;
        let changed = self.margins.note(reported, by_event, now);
        let Some((before, after)) = changed else {
            return;
        };
        self.notices.push_back(Notice::MarginChanged {
            time: now,
            before,
            after,
        });
    }
}
