//! The operator flattens while faults go on. The user stream is cut and cannot reconnect for a
//! while, but requests are answered. The witness gets the venue's true state until the operator
//! resumes.

use serde_json::json;
use windvane_model::input::Command;

use super::incidents::Incident;
use super::{Event, MS, S, World};
use crate::fault_plan::Kind;
use crate::venue::LinkName;
use crate::witness::{Request, View, WitnessEvent};

/// For this time no user stream can connect, milliseconds.
const BLIND_MS: i64 = 45_000;
/// Time from the flatten until the operator resumes.
const RESUME_NS: i64 = 60 * S;
/// Interval of the samples of the true state during a flatten.
const LOOK_NS: i64 = 5 * S;

impl World {
    /// The user stream ends or dies without any message, and the operator flattens. Sometimes a
    /// person closes a position by hand at about the same time.
    pub(super) fn flatten_blind(&mut self) {
        let user = self
            .links
            .iter()
            .filter(|(_, link)| link.up && link.key.user);
        let names: Vec<LinkName> = user.map(|(name, _)| *name).collect();
        let silent = self.blind.chance(300_000);
        let after_ms = self.blind.between(0, 10_000);
        let by_hand = self.blind.chance(400_000);
        let hand_ms = self.blind.between(-300, 300);
        if names.is_empty() {
            return;
        }
        self.count(Kind::Blind);
        self.blind_until_ns = self.now_ns + BLIND_MS * MS;
        self.record_fault(format!("no user stream can connect for {BLIND_MS} ms"));
        for name in names {
            if silent {
                if let Some(link) = self.links.get_mut(&name) {
                    link.dead = true;
                }
            } else {
                self.venue.hang_up(name);
                self.ended(name);
            }
        }
        let at_ns = self.now_ns + after_ms * MS;
        self.queue.put(at_ns, Event::Incident(Incident::Flatten));
        if by_hand {
            let at_ns = (at_ns + hand_ms * MS).max(self.now_ns);
            self.queue.put(at_ns, Event::Incident(Incident::Hand));
        }
        self.queue
            .put(at_ns + RESUME_NS, Event::Incident(Incident::GoOn(None)));
    }

    /// The operator flattens.
    pub(super) fn flatten(&mut self) {
        self.record_fault("the operator: flatten".to_owned());
        self.command(Command::Flatten, None);
        self.watch_closes();
    }

    /// A person closes the account's position in the first symbol.
    pub(super) fn close_by_hand(&mut self) {
        if let Some(name) = self.setup.names.first() {
            let symbol = name.symbol.clone();
            self.count(Kind::Actors);
            self.act(&json!({"act": "close", "symbol": symbol}));
        }
    }

    /// From now on the witness gets the true state until the operator resumes.
    pub(super) fn watch_closes(&mut self) {
        if self.closing_since.replace(self.now_ns).is_none() {
            self.queue.put(self.now_ns + LOOK_NS, Event::LookAtCloses);
        }
    }

    /// Gives the true state to the witness during a flatten.
    pub(super) fn look_at_closes(&mut self) {
        if self.closing_since.is_none() || !self.faults_on {
            self.closing_since = None;
            return;
        }
        self.carry_frames();
        let truth = self.venue.truth(false, self.now_ns);
        self.see(WitnessEvent::Closing(truth));
        self.queue.put(self.now_ns + LOOK_NS, Event::LookAtCloses);
    }

    /// The runtime's view when it sends a market order.
    pub(super) fn belief(&self, what: &Request) -> Option<Box<View>> {
        let is_market = what.route == "futures.new_order" && what.param("type") == Some("MARKET");
        let process = self.process.as_ref().filter(|_| is_market)?;
        process.view().map(Box::new)
    }

    /// Gives the effect of a market order at the venue to the witness.
    pub(super) fn witness_market(
        &mut self,
        what: Request,
        view: Box<View>,
        before: serde_json::Value,
    ) {
        let after = self.venue.truth(true, self.now_ns);
        self.see(WitnessEvent::Market {
            what,
            view,
            before,
            after,
        });
    }
}
