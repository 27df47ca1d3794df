//! Two instances on one account. A client order id of our form that no process of this data folder
//! issued belongs to another instance, or to a data folder that was wiped.
//!
//! At startup such an id begins a watch of two reconcile intervals. An order that is placed during
//! the watch shows that another instance is alive: this instance ends. Fills, expiries and cancels
//! prove nothing, because they also happen to the orders of a dead instance. If no new order
//! appears, the engine adopts the orders. While this instance runs, such an id degrades it until
//! the operator resumes.
//!
//! Ids come from lists of open orders, from events, and from the orders of the newest account
//! trades (`recent_orders`), because an instance may have no resting order. If the venue serves no
//! account trades, ids come from the newest orders (`newest_orders`).
//!
//! The operator may let a startup take over. Then an order that was placed before the startup
//! counts as an old order, even if a list that is behind shows it later.
//!
//! The order numbers of an instance only rise. So the highest number of each epoch separates old
//! ids from new ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windvane_model::doubt::Doubt;
use windvane_model::effect::Notice;
use windvane_model::ids::{ClientOrderId, OrderSeq, Time};
use windvane_model::order::{ExecutionType, OrderStatus, Surface};
use windvane_model::planted;
use windvane_model::protocol::OrderUpdate;
use windvane_model::truth::{OpenOrder, TradedOrder};

use super::Engine;

/// At most this many epochs are remembered; ids of earlier epochs count as ours.
const EPOCHS_MAX: usize = 4_096;
/// No own order is older than ten years. An epoch is the second in which a process started.
pub(super) const OLDEST_S: u64 = 10 * 366 * 24 * 60 * 60;
/// The clock of another instance is at most this far ahead of ours.
const AHEAD_S: u64 = 24 * 60 * 60;
/// A list of open orders may be behind the stream by this much.
const LIST_LAG_MS: i64 = 10_000;

/// Highest order numbers, by surface and epoch.
type Numbers = BTreeMap<(Surface, u64), OrderSeq>;

/// The order ids of this data folder, and those of other instances on the account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Instances {
    /// By epoch, the first number that an earlier process of this data folder did not issue.
    given_out: BTreeMap<u64, OrderSeq>,
    /// Ids of epochs up to this one count as issued, because it is not known which were.
    assumed: Option<u64>,
    /// The highest adopted id of each epoch of other instances; all lower ids are adopted too.
    adopted: Numbers,
    /// Ids that this folder did not issue and that were not adopted.
    seen: Numbers,
    /// The operator lets this instance take over at once.
    take_over: bool,
    /// Surfaces whose open orders were read since startup.
    listed: BTreeSet<Surface>,
    watch: Option<Watch>,
    /// An order of another live instance.
    other: Option<ClientOrderId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Watch {
    id: ClientOrderId,
    since: Time,
    until: Time,
    /// The requests that end the watch were sent.
    ends: bool,
}

/// A watch for another instance on the account. The engine does not trade during it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceWatch {
    /// The order that began the watch.
    pub id: ClientOrderId,
    /// When the watch ends, unless another order is placed.
    pub until: Time,
}

/// How an order id was seen.
enum Sighting {
    /// In the first list of open orders of this process.
    First,
    /// In a later list.
    Listed { status: OrderStatus, updated: Time },
    /// The venue accepted the order at this time.
    Accepted(Time),
    /// Account trades list a fill of an order that was placed at this time.
    Traded { placed: Time },
    /// Another change of the order.
    Changed,
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
    pub(super) fn unlisted() -> Self {
        Self {
            assumed: Some(u64::MAX),
            ..Self::default()
        }
    }

    /// The list for the next process. This process issued the ids below `next` of `epoch`.
    pub(super) fn succeed(&self, epoch: u64, next: OrderSeq) -> Self {
        let mut heir = Self {
            given_out: self.given_out.clone(),
            assumed: self.assumed.map(|up_to| up_to.min(epoch.saturating_sub(1))),
            adopted: self.adopted.clone(),
            ..Self::default()
        };
        heir.give_out(epoch, next);
        heir
    }

    fn give_out(&mut self, epoch: u64, next: OrderSeq) {
        let known = self.given_out.entry(epoch).or_default();
        *known = (*known).max(next);
        while self.given_out.len() > EPOCHS_MAX {
            let oldest = self.given_out.pop_first().map(|(epoch, _)| epoch);
            self.assumed = self.assumed.max(oldest);
            let assumed = self.assumed;
            self.adopted.retain(|(_, epoch), _| Some(*epoch) > assumed);
        }
    }

    /// Epoch and number of an id of our form that this folder did not issue and that was not
    /// adopted.
    fn unknown(
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
        let ours = self.given_out.get(&epoch).is_some_and(|end| number < *end)
            || self.assumed.is_some_and(|up_to| epoch <= up_to);
        let adopted = self.adopted.get(&(surface, epoch));
        let known = ours || adopted.is_some_and(|last| number <= *last);
        (!known).then_some((epoch, number))
    }
}

/// The epoch of a process that starts at this time: its second.
fn second_of(now: Time) -> u64 {
    u64::try_from(now.millis() / 1_000).unwrap_or_default()
}

/// The order ids that a data folder issued or adopted, for a check before startup.
#[derive(Clone, Debug)]
pub struct FolderIds {
    instances: Instances,
    now: Time,
}

impl FolderIds {
    /// The ids of a folder with this engine in its journal and this last reserved epoch.
    pub fn new(engine: Option<&Engine>, epoch: Option<u64>, now: Time) -> Self {
        let heir = |engine: &Engine| engine.instances.succeed(engine.epoch, engine.next_order);
        let mut instances = engine.map(heir).unwrap_or_default();
        if let Some(epoch) = epoch {
            instances.give_out(epoch, OrderSeq(u64::MAX));
        }
        Self { instances, now }
    }

    /// When the folder was read, by this host's clock.
    pub const fn read_at(&self) -> Time {
        self.now
    }

    /// Whether an order with this id makes a startup watch for another instance.
    pub fn is_of_another(&self, surface: Surface, id: &ClientOrderId) -> bool {
        let own = (second_of(self.now), self.now);
        self.instances.unknown(surface, id, own).is_some()
    }
}

impl Engine {
    /// Marks all orders of this epoch as ours, even if the journal is damaged: the data folder
    /// reserved the epoch. Called before any input.
    pub fn continue_folder(&mut self, epoch: u64) {
        self.instances.give_out(epoch, OrderSeq(u64::MAX));
    }

    /// Adopts orders of another instance at once, by the operator's command. Called before any
    /// input.
    pub fn take_over(&mut self) {
        self.instances.take_over = true;
    }

    /// The present watch for another instance.
    pub fn instance_watch(&self) -> Option<InstanceWatch> {
        let watch = self.instances.watch.as_ref()?;
        Some(InstanceWatch {
            id: watch.id,
            until: watch.until,
        })
    }

    /// An order of another live instance: this instance must end and change nothing.
    pub fn other_instance(&self) -> Option<ClientOrderId> {
        let watched = self.instances.watch.is_some();
        self.instances.other.filter(|_| watched)
    }

    /// The order of another instance for which the run is degraded.
    pub(super) fn order_of_another(&self) -> Option<ClientOrderId> {
        self.instances.other
    }

    /// Whether orders of another instance keep the run from trading.
    pub(super) fn is_watching_instances(&self) -> bool {
        self.instances.watch.is_some()
    }

    /// Epoch and number of an id of our form that no process of this folder issued and that was not
    /// adopted.
    fn number_of_another(&self, surface: Surface, id: &ClientOrderId) -> Option<(u64, OrderSeq)> {
        if self.live.is_none() || planted!(SecondInstanceAdopted) {
            return None;
        }
        let (_, epoch, number) = id.parse_own()?;
        if epoch == self.epoch && number < self.next_order {
            return None;
        }
        self.instances.unknown(surface, id, (self.epoch, self.now))
    }

    /// Whether another instance placed the order with this id.
    pub(super) fn is_of_another(&self, surface: Surface, id: &ClientOrderId) -> bool {
        self.number_of_another(surface, id).is_some()
    }

    /// Looks for orders of another instance in a list of open orders, before they are adopted.
    pub(super) fn look_for_instances(&mut self, surface: Surface, open: &[OpenOrder]) {
        let first = self.instances.listed.insert(surface);
        for order in open {
            let sighting = if first {
                Sighting::First
            } else {
                Sighting::Listed {
                    status: order.report.status,
                    updated: order.report.update_time,
                }
            };
            let report = &order.report;
            if self.must_ask_when_placed(surface, &report.client_order_id, &sighting) {
                self.note_recent_order(report.instrument, report.order_id);
            }
            self.sight(surface, &report.client_order_id, &sighting);
        }
    }

    /// Looks for another instance in an order whose trades are listed.
    pub(super) fn judge_traded_order(&mut self, surface: Surface, order: &TradedOrder) {
        let placed = order.placed;
        self.sight(
            surface,
            &order.client_order_id,
            &Sighting::Traded { placed },
        );
    }

    /// Looks for another instance in an event of an unknown order.
    pub(super) fn hear_of_instance(&mut self, update: &OrderUpdate) {
        let sighting = match update.execution {
            ExecutionType::New => Sighting::Accepted(update.transaction_time),
            _ => Sighting::Changed,
        };
        let (surface, id) = (self.surface_of(update.instrument), update.client_order_id);
        // The order may have filled at once, and the event of its acceptance may be lost.
        let may_be_new =
            update.fill.is_some() && self.is_first_seen(surface, &id) && !self.knows_account();
        if may_be_new || self.must_ask_when_placed(surface, &id, &sighting) {
            self.note_recent_order(update.instrument, update.order_id);
        }
        self.sight(surface, &id, &sighting);
    }

    /// Whether this is the newest order of another instance so far.
    fn is_first_seen(&self, surface: Surface, id: &ClientOrderId) -> bool {
        let new = self.number_of_another(surface, id);
        new.is_some_and(|(epoch, number)| {
            let known = self.instances.seen.get(&(surface, epoch));
            known.is_none_or(|known| number > *known)
        })
    }

    fn sight(&mut self, surface: Surface, id: &ClientOrderId, sighting: &Sighting) {
        let Some((epoch, number)) = self.number_of_another(surface, id) else {
            return;
        };
        let is_new = self.is_first_seen(surface, id);
        if is_new {
            self.instances.seen.insert((surface, epoch), number);
        }
        if self.knows_account() && self.instances.take_over {
            match self.is_older_than_this_run(surface, sighting) {
                Some(true) => {
                    self.adopt_number(surface, epoch, number);
                    self.adopt_listed();
                }
                Some(false) => self.degrade_for_another(*id),
                // The order is being queried.
                None => {}
            }
        } else if self.knows_account() {
            self.degrade_for_another(*id);
        } else if self.instances.take_over {
            self.adopt_seen();
        } else if self.instances.watch.is_none() {
            self.begin_instance_watch(*id);
        } else if self.shows_life(surface, sighting, is_new) {
            self.instances.other = Some(*id);
        }
    }

    fn degrade_for_another(&mut self, id: ClientOrderId) {
        if self.instances.other.replace(id).is_none() {
            let time = self.now;
            self.notices.push_back(Notice::AnotherInstance { time, id });
        }
        self.set_doubt(Doubt::AnotherInstance, true);
        self.update_state();
    }

    /// Whether an order was placed before this run began. After a take-over such an order is an old
    /// one, which a list that is behind shows late. `None` if the time of placement is not known.
    fn is_older_than_this_run(&self, surface: Surface, sighting: &Sighting) -> Option<bool> {
        let offset = self.clock_offset_ns(surface).unwrap_or_default();
        // Compared by the venue's clock, which has milliseconds.
        let began = self.began?.plus_ns(offset).millis();
        if matches!(sighting, Sighting::Traded { placed } if *placed == Time::default()) {
            return Some(false);
        }
        let is_older = sighting.placed_by()?.millis() < began;
        (is_older || sighting.is_exact()).then_some(is_older)
    }

    /// Whether the engine must query when an order was placed. After a take-over, an order counts
    /// as another instance's unless it was placed before, and only the order itself states its
    /// time.
    fn must_ask_when_placed(
        &self,
        surface: Surface,
        id: &ClientOrderId,
        sighting: &Sighting,
    ) -> bool {
        self.instances.take_over
            && self.knows_account()
            && self.instances.other.is_none()
            && self.is_of_another(surface, id)
            && self.is_older_than_this_run(surface, sighting).is_none()
    }

    fn adopt_seen(&mut self) {
        for ((surface, epoch), number) in std::mem::take(&mut self.instances.seen) {
            self.adopt_number(surface, epoch, number);
        }
    }

    fn adopt_number(&mut self, surface: Surface, epoch: u64, number: OrderSeq) {
        let known = self.instances.adopted.entry((surface, epoch)).or_default();
        *known = (*known).max(number);
        if epoch == self.epoch {
            // This process must not issue these ids a second time.
            self.next_order = self.next_order.max(OrderSeq(number.0 + 1));
        }
    }

    /// Whether an order of another instance was adopted.
    pub(super) fn was_adopted(&self, surface: Surface, id: &ClientOrderId) -> bool {
        id.parse_own().is_some_and(|(_, epoch, number)| {
            let adopted = self.instances.adopted.get(&(surface, epoch));
            adopted.is_some_and(|last| number <= *last)
        })
    }

    fn begin_instance_watch(&mut self, id: ClientOrderId) {
        let Some(live) = &self.live else { return };
        self.instances.watch = Some(Watch {
            id,
            since: self.now,
            until: self.now.plus_ms(2 * live.config.reconcile_ms),
            ends: false,
        });
        self.recent_orders.read_after_watch.clear();
        let until = self.instance_watch().map(|watch| watch.until);
        self.tell_instance_watch(id, until, 0);
    }

    fn tell_instance_watch(&mut self, id: ClientOrderId, until: Option<Time>, adopted: usize) {
        self.notices.push_back(Notice::InstanceWatch {
            time: self.now,
            id,
            until,
            adopted,
        });
    }

    /// Whether an order was placed since the watch began. If the time is not known, the order must
    /// not have been seen before.
    fn shows_life(&self, surface: Surface, sighting: &Sighting, is_new: bool) -> bool {
        let Some(watch) = &self.instances.watch else {
            return false;
        };
        let offset = self.clock_offset_ns(surface).unwrap_or_default();
        // Compared by the venue's clock, which has milliseconds.
        let since = watch.since.plus_ns(offset).millis();
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
                is_new && (dated || self.now > watch.since.plus_ms(LIST_LAG_MS))
            }
        }
    }

    /// At the end of a watch, reads open orders and account trades again. The watch ends unless
    /// they show a new order.
    pub(super) fn end_instance_watch(&mut self) {
        let now = self.now;
        let Some(watch) = &mut self.instances.watch else {
            return;
        };
        if watch.ends || now < watch.until || self.instances.other.is_some() {
            return;
        }
        watch.ends = true;
        let surfaces = self.live.iter().flat_map(|live| live.lines.keys());
        for surface in surfaces.copied().collect::<Vec<_>>() {
            let Some(line) = self.line_mut(surface) else {
                continue;
            };
            line.clean = None;
            let (is_up, no_trades) = (line.stream_up, line.no_trades);
            if no_trades {
                self.list_orders_for_trades(surface);
            }
            if is_up {
                self.begin_round(surface);
            }
        }
    }

    /// Ends a watch once every surface was read again without a new order of another instance.
    /// Adopts the resting orders of the other instance.
    pub(super) fn finish_instance_watch(&mut self) {
        let Some(live) = &self.live else { return };
        let read = &self.recent_orders.read_after_watch;
        let is_read = live.lines.keys().all(|surface| read.contains(surface));
        if !is_read || self.awaits_recent_orders() || self.instances.other.is_some() {
            return;
        }
        let Some(watch) = self.instances.watch.take() else {
            return;
        };
        let seen = self.instances.seen.iter();
        let seen: Vec<_> = seen.map(|((_, epoch), number)| (*epoch, *number)).collect();
        for (epoch, number) in seen {
            self.doubt_an_order_unheard_of(epoch, number);
        }
        self.adopt_seen();
        let before = self.next_order;
        self.adopt_listed();
        let adopted = self.orders.iter().filter(|order| order.seq >= before);
        let adopted = adopted.count();
        self.tell_instance_watch(watch.id, None, adopted);
        if self.holds_positions_of_nobody() {
            // The folder was wiped: a strategy may own these positions and would open them again.
            self.set_doubt(Doubt::Ownership, true);
        }
        self.update_state();
    }

    fn holds_positions_of_nobody(&self) -> bool {
        let mut external = self.ledgers.external.iter();
        external.any(|(.., holding)| holding.position.qty != 0)
    }

    /// Adopts the orders of another instance that were seen, because the operator resumed.
    pub(super) fn accept_instance(&mut self) {
        if self.instances.watch.is_some() || self.instances.other.is_none() {
            return;
        }
        self.instances.other = None;
        self.adopt_seen();
        self.set_doubt(Doubt::AnotherInstance, false);
        for surface in Surface::ALL {
            self.reconcile_soon(*surface);
        }
    }
}
