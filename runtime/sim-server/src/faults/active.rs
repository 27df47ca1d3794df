//! The active fault switches, and their effect on requests and user events. This module does no IO;
//! delayed events wait here until they are due.
//!
//! Switches apply in the order in which they were set. For one request, delays add up, and the
//! first switch that changes the response wins. Each switch has its own random sequence, so the
//! same requests get the same faults.

use std::collections::BTreeMap;

use windvane_model::Time;
use windvane_protocol::route::Surface;

use super::plan::{Ending, Plan};
use super::switch::{Fault, Switch, Target, names, wide};
use crate::user_frame::UserFrame;

/// Maximum number of delayed events. Further events are sent at once.
const HELD_MAX: usize = 100_000;
/// Maximum number of active switches.
pub(crate) const SWITCHES_MAX: usize = 256;

/// The switches.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Milliseconds added to the clock that responses show and that the time rule reads.
    pub(crate) skew_ms: i64,
    switches: Vec<Switch>,
    made: u64,
    /// Delayed events by their time, then by sequence number.
    held: BTreeMap<(Time, u64), UserFrame>,
    /// Events that wait for the next event of their listen key, at most until a time.
    swapped: BTreeMap<String, (Time, UserFrame)>,
    sequence: u64,
}

/// The parts of a request that a switch looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) surface: Surface,
    pub(crate) route: &'a str,
    pub(crate) account: Option<u16>,
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
    pub(crate) const fn next_id(&self) -> u64 {
        self.made + 1
    }

    /// Marks the next id as used.
    pub(crate) const fn give_id(&mut self) {
        self.made += 1;
    }

    /// Turns a switch on.
    pub(crate) fn set(&mut self, switch: Switch) {
        self.switches.push(switch);
        self.read_skew();
    }

    /// Turns a switch off; false if it is not on. Events that it delayed keep their time.
    pub(crate) fn clear(&mut self, id: u64) -> bool {
        let before = self.switches.len();
        self.switches.retain(|switch| switch.id != id);
        self.read_skew();
        self.switches.len() < before
    }

    /// Turns every switch off. All delayed events become due at once.
    pub(crate) fn clear_all(&mut self, now: Time) {
        self.switches.clear();
        self.read_skew();
        // Keep the order in which the events would have been sent.
        for ((time, _), frame) in std::mem::take(&mut self.held) {
            let turn = self.number();
            self.held.insert((time.min(now), turn), frame);
        }
        for (until, _) in self.swapped.values_mut() {
            *until = now.min(*until);
        }
    }

    pub(crate) fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// Number of delayed events.
    pub(crate) fn held_len(&self) -> usize {
        self.held.len() + self.swapped.len()
    }

    /// Whether no switch is on and no event is delayed.
    pub(crate) fn is_quiet(&self) -> bool {
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

/// Effects on requests.
impl Faults {
    /// Whether any switch concerns requests.
    pub(crate) fn concern_requests(&self) -> bool {
        let mut faults = self.switches.iter().map(|switch| &switch.fault);
        faults.any(Fault::is_of_requests)
    }

    /// Decides how a request is handled.
    pub(crate) fn plan(&mut self, seen: &Seen<'_>, now: Time) -> Plan {
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

/// Effects on user events.
impl Faults {
    /// Applies the switches to a user event and returns the events to send now.
    pub(crate) fn carry(
        &mut self,
        frame: &UserFrame,
        account: Option<u16>,
        now: Time,
    ) -> Vec<UserFrame> {
        let surface = wide(frame.surface);
        let event = event_name(&frame.text).to_owned();
        let mut copies = vec![after(now, frame.delay_ms)];
        let mut swap = None;
        // If a swapped event waits for this one, this one must not be swapped too.
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
                // Shuffled events are all sent at the end of the stall, in random order.
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

    /// Delays or swaps each copy of an event, or returns it to be sent now.
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

    /// The delayed events that are due now, in order.
    pub(crate) fn due(&mut self, now: Time) -> Vec<UserFrame> {
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
    /// A number that was not returned before.
    pub(crate) fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

fn after(time: Time, ms: u64) -> Time {
    time.plus_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// The field `e` of an event, which is the first key of every event.
fn event_name(text: &str) -> &str {
    let value = text.split_once("\"e\":\"").map(|(_, rest)| rest);
    let name = value.and_then(|rest| rest.split_once('"'));
    name.map_or("", |(name, _)| name)
}
