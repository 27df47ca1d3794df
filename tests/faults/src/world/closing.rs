//! The operator closes everything while faults go on: the user stream is cut and cannot be opened again
//! for a while, requests are answered. The venue's truth is witnessed until the operator resumes.

use serde_json::json;
use windvane_model::input::Command;

use super::incidents::Incident;
use super::{Event, MS, S, World};
use crate::mix::Kind;
use crate::venue::LinkName;
use crate::witness::{Request, Seen, View};

/// No connection of a user stream comes about for so long.
const BLIND_MS: i64 = 45_000;
/// The operator resumes so long after the flatten.
const RESUME_NS: i64 = 60 * S;
/// The truth is witnessed so often while everything is to be closed.
const LOOK_NS: i64 = 5 * S;

impl World {
    /// The user stream ends, or dies without a word, and the operator flattens. Sometimes a person closes
    /// a position by hand at about the same time.
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
        self.tell(format!("no user stream comes about for {BLIND_MS} ms"));
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

    /// The operator has everything closed.
    pub(super) fn flatten(&mut self) {
        self.tell("the operator: flatten".to_owned());
        self.command(Command::Flatten, None);
        self.watch_closes();
    }

    /// A person closes what the account holds of the first symbol.
    pub(super) fn close_by_hand(&mut self) {
        if let Some(name) = self.setup.names.first() {
            let symbol = name.symbol.clone();
            self.count(Kind::Actors);
            self.act(&json!({"act": "close", "symbol": symbol}));
        }
    }

    /// From now on the truth is witnessed until the operator resumes.
    pub(super) fn watch_closes(&mut self) {
        if self.closing_since.replace(self.now_ns).is_none() {
            self.queue.put(self.now_ns + LOOK_NS, Event::LookAtCloses);
        }
    }

    /// Witnesses the truth while everything is to be closed.
    pub(super) fn look_at_closes(&mut self) {
        if self.closing_since.is_none() || !self.faults_on {
            self.closing_since = None;
            return;
        }
        self.carry_frames();
        let truth = self.venue.truth(false, self.now_ns);
        self.see(Seen::Closing(truth));
        self.queue.put(self.now_ns + LOOK_NS, Event::LookAtCloses);
    }

    /// What the runtime believes as it sends a market order.
    pub(super) fn belief(&self, what: &Request) -> Option<Box<View>> {
        let is_market = what.route == "futures.new_order" && what.param("type") == Some("MARKET");
        let process = self.process.as_ref().filter(|_| is_market)?;
        process.view().map(Box::new)
    }

    /// Witnesses what a market order did at the venue.
    pub(super) fn witness_market(
        &mut self,
        what: Request,
        view: Box<View>,
        before: serde_json::Value,
    ) {
        let after = self.venue.truth(true, self.now_ns);
        self.see(Seen::Market {
            what,
            view,
            before,
            after,
        });
    }
}
