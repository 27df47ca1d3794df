//! Two instances on one account. A client order id of our form that no process of this data folder
//! issued belongs to another instance, or to a data folder that was wiped.
//!
//! At startup such an id begins a watch of two reconcile intervals. An order that is placed during
//! the watch shows that another instance is alive: this instance ends. Fills, expiries and cancels
//! prove nothing, because they also happen to the orders of a dead instance. If no new order
//! appears, the engine adopts the orders. While this instance runs, such an id degrades it until
//! the operator resumes.
//!
//! Ids come from lists of open orders, from events, and from the orders of the account's newest
//! trades (`recent_orders`), because an instance may have no resting order. If the venue does not
//! list the account's trades, ids come from the newest orders (`newest_orders`).
//!
//! The operator may start the run with `--take-over`. Then it adopts orders of another instance at
//! once. An order that was placed before the startup counts as an old order, even if a late list of
//! open orders shows it only afterwards.
//!
//! The order numbers of an instance only rise. So the highest number of each epoch separates old
//! ids from new ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::ids::{ClientOrderId, OrderSeq, Time};
use windvane_model::order::{OrderStatus, Surface};

/// At most this many epochs are remembered; ids of earlier epochs count as ours.
const EPOCHS_MAX: usize = 4_096;

/// No own order is older than ten years. An epoch is the second in which a process started.
pub const OLDEST_S: u64 = 10 * 366 * 24 * 60 * 60;

/// The clock of another instance is at most this far ahead of ours.
const AHEAD_S: u64 = 24 * 60 * 60;

/// A list of open orders may be behind the stream by this much.
const LIST_LAG_MS: i64 = 10_000;

/// Highest order numbers, by surface and epoch.
type Numbers = BTreeMap<(Surface, u64), OrderSeq>;

/// The order ids of this data folder, and those of other instances on the account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instances {
    /// By epoch, the first number that an earlier process of this data folder did not issue.
    issued: BTreeMap<u64, OrderSeq>,
    /// Ids of epochs up to this one count as issued, because it is not known which were.
    assumed: Option<u64>,
    /// The highest adopted id of each epoch of other instances; all lower ids are adopted too.
    adopted: Numbers,
    /// Ids that this folder did not issue and that were not adopted.
    seen: Numbers,
    /// The run was started with `--take-over`: it adopts orders of another instance at once.
    take_over: bool,
    /// Surfaces whose open orders were read since startup.
    listed: BTreeSet<Surface>,
    watch: Option<Watch>,
    /// An order of another live instance.
    other: Option<ClientOrderId>,
}

/// A watch for another instance on the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The order that began it.
    pub id: ClientOrderId,
    since: Time,
    /// When it ends, unless another order is placed.
    pub until: Time,
    /// The requests that end the watch were sent.
    ends: bool,
}

/// How an order id was seen.
#[derive(Clone, Copy, Debug)]
pub enum Sighting {
    /// In the first list of open orders of this process.
    First,
    /// In a later list.
    Listed {
        /// Its status.
        status: OrderStatus,
        /// When it last changed.
        updated: Time,
    },
    /// The venue accepted the order at this time.
    Accepted(Time),
    /// The list of the account's trades has a fill of an order that was placed at this time.
    Traded {
        /// When it was placed.
        placed: Time,
    },
    /// The order changed in another way.
    Changed,
}

/// The engine's knowledge of its own run when it sees an order id.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Whether balances and positions are the account's.
    pub knows_account: bool,
    /// When the run began.
    pub began: Option<Time>,
    /// The venue's clock minus ours, in nanoseconds.
    pub offset_ns: i64,
    /// Time of the last input.
    pub now: Time,
}

/// The consequence of an order of another instance that the engine sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SightingResult {
    /// Nothing follows.
    Nothing,
    /// The order is an old one. It is adopted.
    Adopt,
    /// All orders that were seen are adopted.
    AdoptSeen,
    /// Another instance is alive while this one runs.
    Degrade,
    /// A watch for another instance begins.
    BeginWatch,
}

impl Sighting {
    /// A time, by the venue's clock, by which the order was placed. If the order changed since, it
    /// is a later time.
    fn placed_by(&self) -> Option<Time> {
        let time = match *self {
            Self::First | Self::Changed => return None,
            Self::Listed { updated, .. } => updated,
            Self::Accepted(at) => at,
            Self::Traded { placed } => placed,
        };
        (time != Time::default()).then_some(time)
    }

    /// Whether `placed_by` is the exact time of placement.
    const fn is_exact(&self) -> bool {
        match self {
            Self::First | Self::Changed => false,
            Self::Listed { status, .. } => matches!(status, OrderStatus::New),
            Self::Accepted(_) | Self::Traded { .. } => true,
        }
    }
}

impl Instances {
    /// For an engine that kept no list: every id of our form counts as issued.
    pub fn unlisted() -> Self {
        Self {
            assumed: Some(u64::MAX),
            ..Self::default()
        }
    }

    /// The list for the next process. This process issued the ids below `next` of `epoch`.
    #[must_use]
    pub fn succeed(&self, epoch: u64, next: OrderSeq) -> Self {
        let mut heir = Self {
            issued: self.issued.clone(),
            assumed: self.assumed.map(|up_to| up_to.min(epoch.saturating_sub(1))),
            adopted: self.adopted.clone(),
            ..Self::default()
        };
        heir.mark_issued(epoch, next);
        heir
    }

    /// The ids below `next` of an epoch were issued by this data folder.
    pub fn mark_issued(&mut self, epoch: u64, next: OrderSeq) {
        let known = self.issued.entry(epoch).or_default();
        *known = (*known).max(next);
        while self.issued.len() > EPOCHS_MAX {
            let oldest = self.issued.pop_first().map(|(epoch, _)| epoch);
            self.assumed = self.assumed.max(oldest);
            let assumed = self.assumed;
            self.adopted.retain(|(_, epoch), _| Some(*epoch) > assumed);
        }
    }

    /// Epoch and number of an id of our form that this folder did not issue and that was not
    /// adopted.
    pub fn unknown(
        &self,
        surface: Surface,
        id: &ClientOrderId,
        (own, now): (u64, Time),
    ) -> Option<(u64, OrderSeq)> {
        let (_, epoch, number) = id.parse_own()?;
        let oldest = own.saturating_sub(OLDEST_S);
        let newest = own.max(second_of(now)).saturating_add(AHEAD_S);
        if !(oldest..=newest).contains(&epoch) {
            return None;
        }
        let ours = self.issued.get(&epoch).is_some_and(|end| number < *end)
            || self.assumed.is_some_and(|up_to| epoch <= up_to);
        let adopted = self.adopted.get(&(surface, epoch));
        let known = ours || adopted.is_some_and(|last| number <= *last);
        (!known).then_some((epoch, number))
    }

    /// Notes that the run was started with `--take-over`.
    pub const fn take_over(&mut self) {
        self.take_over = true;
    }

    /// The present watch for another instance.
    pub const fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// An order of another live instance.
    pub const fn other(&self) -> Option<ClientOrderId> {
        self.other
    }

    /// Another instance is alive. Returns whether that is new.
    pub const fn note_other(&mut self, id: ClientOrderId) -> bool {
        self.other.replace(id).is_none()
    }

    /// The operator accepts the orders of the other instance. Returns whether there is one, and no
    /// watch.
    pub fn accept_other(&mut self) -> bool {
        if self.watch.is_some() || self.other.is_none() {
            return false;
        }
        self.other = None;
        true
    }

    /// Notes that open orders of a surface were listed. Returns whether it is the first list.
    pub fn note_listed(&mut self, surface: Surface) -> bool {
        self.listed.insert(surface)
    }

    /// Whether an order is the newest of another instance so far.
    pub fn is_first_seen(&self, surface: Surface, (epoch, number): (u64, OrderSeq)) -> bool {
        let known = self.seen.get(&(surface, epoch));
        known.is_none_or(|known| number > *known)
    }

    /// Whether the engine must query when an order of another instance was placed. If the run was
    /// started with `--take-over`, an order counts as another live instance's unless it was placed
    /// before the start, and only the order itself states its time.
    pub fn must_ask_when_placed(&self, sighting: &Sighting, run: &Run) -> bool {
        self.take_over
            && run.knows_account
            && self.other.is_none()
            && is_older_than(run, sighting).is_none()
    }

    /// Notes an order of another instance.
    pub fn note_sighting(
        &mut self,
        surface: Surface,
        id: ClientOrderId,
        (epoch, number): (u64, OrderSeq),
        sighting: &Sighting,
        run: &Run,
    ) -> SightingResult {
        let is_new = self.is_first_seen(surface, (epoch, number));
        if is_new {
            self.seen.insert((surface, epoch), number);
        }
        if run.knows_account && self.take_over {
            match is_older_than(run, sighting) {
                Some(true) => SightingResult::Adopt,
                Some(false) => SightingResult::Degrade,
                // The order is being queried.
                None => SightingResult::Nothing,
            }
        } else if run.knows_account {
            SightingResult::Degrade
        } else if self.take_over {
            SightingResult::AdoptSeen
        } else if self.watch.is_none() {
            SightingResult::BeginWatch
        } else {
            if self.proves_live_instance(sighting, is_new, run) {
                self.other = Some(id);
            }
            SightingResult::Nothing
        }
    }

    /// Whether an order was placed since the watch began. If the time is not known, the order must
    /// not have been seen before.
    fn proves_live_instance(&self, sighting: &Sighting, is_new: bool, run: &Run) -> bool {
        let Some(watch) = &self.watch else {
            return false;
        };
        // Compared by the venue's clock, which has milliseconds.
        let since = watch.since.plus_ns(run.offset_ns).millis();
        match *sighting {
            Sighting::First | Sighting::Changed => false,
            Sighting::Accepted(at) if at == Time::default() => is_new,
            Sighting::Accepted(at) => at.millis() >= since,
            Sighting::Traded { placed } => placed.millis() >= since,
            Sighting::Listed { updated, .. }
                if updated > Time::default() && updated.millis() < since =>
            {
                false
            }
            Sighting::Listed { status, updated } => {
                let dated = status == OrderStatus::New && updated > Time::default();
                is_new && (dated || run.now > watch.since.plus_ms(LIST_LAG_MS))
            }
        }
    }

    /// Takes the orders that were seen and are adopted now: surface, epoch and number.
    pub fn take_seen(&mut self) -> Vec<(Surface, u64, OrderSeq)> {
        let seen = std::mem::take(&mut self.seen).into_iter();
        seen.map(|((surface, epoch), number)| (surface, epoch, number))
            .collect()
    }

    /// Epochs and numbers of the orders that were seen.
    pub fn seen(&self) -> Vec<(u64, OrderSeq)> {
        let seen = self.seen.iter();
        seen.map(|((_, epoch), number)| (*epoch, *number)).collect()
    }

    /// Adopts all orders of an epoch up to this number.
    pub fn adopt(&mut self, surface: Surface, epoch: u64, number: OrderSeq) {
        let known = self.adopted.entry((surface, epoch)).or_default();
        *known = (*known).max(number);
    }

    /// Whether an order of another instance was adopted.
    pub fn was_adopted(&self, surface: Surface, id: &ClientOrderId) -> bool {
        id.parse_own().is_some_and(|(_, epoch, number)| {
            let adopted = self.adopted.get(&(surface, epoch));
            adopted.is_some_and(|last| number <= *last)
        })
    }

    /// Begins a watch that lasts until this time.
    pub const fn begin_watch(&mut self, id: ClientOrderId, since: Time, until: Time) {
        self.watch = Some(Watch {
            id,
            since,
            until,
            ends: false,
        });
    }

    /// Whether everything must be read again because the watch is over. It is returned once.
    pub fn is_watch_over(&mut self, now: Time) -> bool {
        let Some(watch) = &mut self.watch else {
            return false;
        };
        if watch.ends || now < watch.until || self.other.is_some() {
            return false;
        }
        watch.ends = true;
        true
    }

    /// Ends the watch, unless another instance is alive.
    pub fn end_watch(&mut self) -> Option<Watch> {
        self.watch.take_if(|_| self.other.is_none())
    }
}

/// Whether an order was placed before this run began. If the run was started with `--take-over`,
/// such an order is an old one, which a late list of open orders may show only now. `None` if the
/// time of placement is not known.
fn is_older_than(run: &Run, sighting: &Sighting) -> Option<bool> {
    // Compared by the venue's clock, which has milliseconds.
    let began = run.began?.plus_ns(run.offset_ns).millis();
    if matches!(sighting, Sighting::Traded { placed } if *placed == Time::default()) {
        return Some(false);
    }
    let is_older = sighting.placed_by()?.millis() < began;
    (is_older || sighting.is_exact()).then_some(is_older)
}

/// The epoch of a process that starts at this time: its second.
pub fn second_of(now: Time) -> u64 {
    u64::try_from(now.millis() / 1_000).unwrap_or_default()
}
