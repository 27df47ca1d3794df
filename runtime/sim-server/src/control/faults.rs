//! The switches that are on, and what they do to requests and to user events. No IO: what is held
//! back waits here until its time.
//!
//! Switches are asked in the order in which they were set. Of one request, delays add up and the
//! first switch that changes the ending wins. Each switch draws from a sequence of its own, so
//! that the same requests meet the same faults.

use std::collections::BTreeMap;

use windvane_model::Time;
use windvane_protocol::route::Surface;

use super::plan::{Ending, Plan};
use super::switch::{Fault, Switch, Target, names};
use crate::stream::UserFrame;

/// Events that may be held back; further ones are sent at once.
const HELD_MAX: usize = 100_000;
/// Switches that may be on.
pub(crate) const SWITCHES_MAX: usize = 256;

/// The switches.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Added to the clock that answers show and that the time rule reads, in milliseconds.
    pub(crate) skew_ms: i64,
    switches: Vec<Switch>,
    made: u64,
    /// Held back until a time, then in the order of the second number.
    held: BTreeMap<(Time, u64), UserFrame>,
    /// Waits for the next event of its listen key, at most until a time.
    swapped: BTreeMap<String, (Time, UserFrame)>,
    sequence: u64,
}

/// A request as far as a switch looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) surface: Surface,
    pub(super) route: &'a str,
    pub(super) account: Option<u16>,
}

impl Target {
    fn has(&self, seen: &Seen<'_>) -> bool {
        self.surface.is_none_or(|surface| surface == seen.surface)
            && self.account.is_none_or(|n| Some(n) == seen.account)
            && (self.route.as_deref()).is_none_or(|route| names(route, seen.route))
    }

    fn has_event(&self, surface: Surface, account: Option<u16>, event: &str) -> bool {
        self.surface.is_none_or(|wanted| wanted == surface)
            && self.account.is_none_or(|n| Some(n) == account)
            && self.event.as_deref().is_none_or(|wanted| wanted == event)
    }
}

impl Fault {
    const fn is_of_requests(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::Delay { .. }
                | Self::Refuse { .. }
                | Self::Body { .. }
                | Self::Ban { .. }
        )
    }

    const fn is_of_events(&self) -> bool {
        matches!(
            self,
            Self::Late { .. }
                | Self::Twice { .. }
                | Self::Lost
                | Self::Swap { .. }
                | Self::Stall { .. }
        )
    }
}

/// The list of switches.
impl Faults {
    /// The id of the next switch.
    pub(super) const fn next_id(&self) -> u64 {
        self.made + 1
    }

    /// The next id is given.
    pub(super) const fn give_id(&mut self) {
        self.made += 1;
    }

    /// Turns a switch on.
    pub(super) fn set(&mut self, switch: Switch) {
        self.switches.push(switch);
        self.read_skew();
    }

    /// Turns a switch off; false where there is none. What it held back is sent at its time.
    pub(super) fn clear(&mut self, id: u64) -> bool {
        let before = self.switches.len();
        self.switches.retain(|switch| switch.id != id);
        self.read_skew();
        self.switches.len() < before
    }

    /// Turns every switch off; what is held back is due at once.
    pub(super) fn clear_all(&mut self, now: Time) {
        self.switches.clear();
        self.read_skew();
        // In the order in which they would have come.
        for ((time, _), frame) in std::mem::take(&mut self.held) {
            let turn = self.number();
            self.held.insert((time.min(now), turn), frame);
        }
        for (until, _) in self.swapped.values_mut() {
            *until = now.min(*until);
        }
    }

    pub(super) fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// Events that are held back.
    pub(super) fn held_len(&self) -> usize {
        self.held.len() + self.swapped.len()
    }

    /// Nothing is on and nothing is held back.
    pub(super) fn is_quiet(&self) -> bool {
        self.switches.is_empty() && self.held_len() == 0
    }

    fn read_skew(&mut self) {
        let skews = self.switches.iter().map(|switch| match switch.fault {
            Fault::Skew { ms } => ms,
            _ => 0,
        });
        self.skew_ms = skews.fold(0, i64::saturating_add);
    }

    fn retire(&mut self, now: Time) {
        if self.switches.iter().any(|switch| switch.is_over(now)) {
            self.switches.retain(|switch| !switch.is_over(now));
            self.read_skew();
        }
    }
}

/// Requests.
impl Faults {
    /// Whether any switch is about requests.
    pub(super) fn concern_requests(&self) -> bool {
        let mut faults = self.switches.iter().map(|switch| &switch.fault);
        faults.any(Fault::is_of_requests)
    }

    /// What is done with a request.
    pub(super) fn plan(&mut self, seen: &Seen<'_>, now: Time) -> Plan {
        let mut plan = Plan::as_is();
        for switch in &mut self.switches {
            if !switch.fault.is_of_requests() || switch.until <= now || !switch.target.has(seen) {
                continue;
            }
            let ends = !matches!(switch.fault, Fault::Delay { .. });
            if ends && !matches!(plan.ending, Ending::AsIs) {
                continue;
            }
            if !switch.hit() {
                continue;
            }
            if let Fault::Delay {
                before_ms,
                after_ms,
                jitter_ms,
            } = switch.fault
            {
                let bound = jitter_ms.saturating_add(1);
                let (before, after) = (switch.draw(bound), switch.draw(bound));
                plan.wait(
                    before_ms.saturating_add(before),
                    after_ms.saturating_add(after),
                );
            } else {
                plan.add(&switch.fault, switch.until, now);
            }
        }
        self.retire(now);
        plan
    }
}

/// User events.
impl Faults {
    /// Takes a user event on its way; what is to be sent now.
    pub(super) fn carry(
        &mut self,
        frame: &UserFrame,
        account: Option<u16>,
        now: Time,
    ) -> Vec<UserFrame> {
        let surface = wide(frame.surface);
        let event = event_name(&frame.text).to_owned();
        let mut copies = vec![after(now, frame.delay_ms)];
        let mut swap = None;
        // The next event of a key is what another waits for: it passes, even where all are hits.
        let awaited = self.swapped.contains_key(&frame.listen_key);
        for switch in &mut self.switches {
            let concerns = switch.fault.is_of_events()
                && !(awaited && matches!(switch.fault, Fault::Swap { .. }))
                && switch.until > now
                && switch.target.has_event(surface, account, &event);
            if !concerns || !switch.hit() {
                continue;
            }
            match switch.fault {
                Fault::Late { ms, jitter_ms } => {
                    let late = ms.saturating_add(switch.draw(jitter_ms.saturating_add(1)));
                    for time in &mut copies {
                        *time = after(*time, late);
                    }
                }
                Fault::Twice { after_ms } => {
                    let again = copies.last().map_or(now, |time| after(*time, after_ms));
                    copies.push(again);
                }
                Fault::Lost => copies.clear(),
                Fault::Swap { within_ms } => swap = Some(after(now, within_ms)),
                // Shuffled events all come at the end of the stall, in the order of a draw.
                Fault::Stall { shuffle } => {
                    let until = switch.until;
                    let turn = if shuffle { switch.draw(1_000_000) } else { 0 };
                    let until = until.plus_ns(turn.cast_signed());
                    for time in &mut copies {
                        *time = until.max(*time);
                    }
                }
                _ => {}
            }
        }
        self.retire(now);
        let mut out = self.place(frame, &copies, swap, now);
        if let (None, Some(last)) = (swap, out.last())
            && let Some((_, waited)) = self.swapped.remove(&last.listen_key)
        {
            out.push(waited);
        }
        out
    }

    /// Puts each copy of an event where it belongs; what is to be sent now.
    fn place(
        &mut self,
        frame: &UserFrame,
        copies: &[Time],
        swap: Option<Time>,
        now: Time,
    ) -> Vec<UserFrame> {
        let mut out = Vec::new();
        for time in copies {
            if *time > now && self.held_len() < HELD_MAX {
                self.sequence += 1;
                self.held.insert((*time, self.sequence), frame.clone());
            } else if let Some(until) = swap {
                let key = frame.listen_key.clone();
                if let Some((_, before)) = self.swapped.insert(key, (until, frame.clone())) {
                    out.push(before);
                }
            } else {
                out.push(frame.clone());
            }
        }
        out
    }

    /// What was held back until now, in its order.
    pub(super) fn due(&mut self, now: Time) -> Vec<UserFrame> {
        self.retire(now);
        let mut due = Vec::new();
        while let Some(entry) = self.held.first_entry()
            && entry.key().0 <= now
        {
            due.push(entry.remove());
        }
        let waited: Vec<_> = self
            .swapped
            .iter()
            .filter(|(_, (until, _))| *until <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in waited {
            due.extend(self.swapped.remove(&key).map(|(_, frame)| frame));
        }
        due
    }
}

impl Faults {
    /// A number that it has not given before.
    pub(super) fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// Switches that lose public frames. The hub has them, where the frames pass.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    switches: Vec<Switch>,
}

impl Gaps {
    /// Whether a frame of a topic is lost.
    #[inline]
    pub(crate) fn lose(&mut self, surface: windvane_model::Surface, topic: &str) -> bool {
        let mut lost = false;
        for switch in &mut self.switches {
            let target = &switch.target;
            let concerns = target.surface.is_none_or(|wanted| wanted == wide(surface))
                && (target.topic.as_deref()).is_none_or(|wanted| names(wanted, topic));
            lost |= concerns && switch.hit();
        }
        lost
    }

    pub(super) fn set(&mut self, switch: Switch) {
        self.switches.push(switch);
    }

    /// Keeps the switches for which `keep` holds; how many went.
    pub(super) fn retain(&mut self, keep: impl Fn(&Switch) -> bool) -> usize {
        let before = self.switches.len();
        self.switches.retain(keep);
        before - self.switches.len()
    }

    pub(super) fn switches(&self) -> &[Switch] {
        &self.switches
    }
}

/// A surface of orders as one of routes.
const fn wide(surface: windvane_model::Surface) -> Surface {
    match surface {
        windvane_model::Surface::Spot => Surface::Spot,
        windvane_model::Surface::Futures => Surface::Futures,
    }
}

fn after(time: Time, ms: u64) -> Time {
    time.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// `e` of an event: the first key of all of them.
fn event_name(text: &str) -> &str {
    let value = text.split_once("\"e\":\"").map(|(_, rest)| rest);
    let name = value.and_then(|rest| rest.split_once('"'));
    name.map_or("", |(name, _)| name)
}
