//! Another instance on the account: the engine watches for it, adopts its orders or degrades the run.
//! `windvane_evidence::instances` decides which instance an order id belongs to.

use windvane_evidence::instances::{Instances, Run, Sighting, SightingResult, second_of};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::effect::Notice;
use windvane_model::ids::{ClientOrderId, OrderSeq, Time};
use windvane_model::order::{ExecutionType, Surface};
use windvane_model::planted;
use windvane_model::protocol::OrderUpdate;
use windvane_model::state_report::{OpenOrder, TradedOrder};

use super::Engine;

/// A watch for another instance on the account. The engine does not trade during it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceWatch {
    /// The order that began the watch.
    pub id: ClientOrderId,
    /// When the watch ends, unless another order is placed.
    pub until: Time,
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
            instances.mark_issued(epoch, OrderSeq(u64::MAX));
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
        self.instances.mark_issued(epoch, OrderSeq(u64::MAX));
    }

    /// Adopts orders of another instance at once, by the operator's command. Called before any
    /// input.
    pub fn take_over(&mut self) {
        self.instances.take_over();
    }

    /// The present watch for another instance.
    pub fn instance_watch(&self) -> Option<InstanceWatch> {
        let watch = self.instances.watch()?;
        Some(InstanceWatch {
            id: watch.id,
            until: watch.until,
        })
    }

    /// An order of another live instance: this instance must end and change nothing.
    pub fn other_instance(&self) -> Option<ClientOrderId> {
        let watched = self.instances.watch().is_some();
        self.instances.other().filter(|_| watched)
    }

    /// The order of another instance for which the run is degraded.
    pub(super) const fn order_of_another(&self) -> Option<ClientOrderId> {
        self.instances.other()
    }

    /// Whether orders of another instance keep the run from trading.
    pub(super) const fn is_watching_instances(&self) -> bool {
        self.instances.watch().is_some()
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
    pub(super) fn check_orders_for_instance(&mut self, surface: Surface, open: &[OpenOrder]) {
        let first = self.instances.note_listed(surface);
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
            self.note_sighting(surface, &report.client_order_id, &sighting);
        }
    }

    /// Looks for another instance in an order whose trades are listed.
    pub(super) fn check_traded_order(&mut self, surface: Surface, order: &TradedOrder) {
        let placed = order.placed;
        self.note_sighting(
            surface,
            &order.client_order_id,
            &Sighting::Traded { placed },
        );
    }

    /// Looks for another instance in an event of an unknown order.
    pub(super) fn check_event_for_instance(&mut self, update: &OrderUpdate) {
        let sighting = match update.execution {
            ExecutionType::New => Sighting::Accepted(update.transaction_time),
            _ => Sighting::Changed,
        };
        let (surface, id) = (self.surface_of(update.instrument), update.client_order_id);
        // The order may have filled at once, and the event of its acceptance may be lost.
        let number = self.number_of_another(surface, &id);
        let is_first = |number| self.instances.is_first_seen(surface, number);
        let may_be_new =
            update.fill.is_some() && number.is_some_and(is_first) && !self.knows_account();
        if may_be_new || self.must_ask_when_placed(surface, &id, &sighting) {
            self.note_recent_order(update.instrument, update.order_id);
        }
        self.note_sighting(surface, &id, &sighting);
    }

    fn run(&self, surface: Surface) -> Run {
        Run {
            knows_account: self.knows_account(),
            began: self.began,
            offset_ns: self.clock_offset_ns(surface).unwrap_or_default(),
            now: self.now,
        }
    }

    /// Whether the engine must query when an order was placed.
    fn must_ask_when_placed(
        &self,
        surface: Surface,
        id: &ClientOrderId,
        sighting: &Sighting,
    ) -> bool {
        let run = self.run(surface);
        self.instances.must_ask_when_placed(sighting, &run) && self.is_of_another(surface, id)
    }

    fn note_sighting(&mut self, surface: Surface, id: &ClientOrderId, sighting: &Sighting) {
        let Some(number) = self.number_of_another(surface, id) else {
            return;
        };
        let run = self.run(surface);
        match self
            .instances
            .note_sighting(surface, *id, number, sighting, &run)
        {
            SightingResult::Nothing => {}
            SightingResult::Adopt => {
                self.adopt_number(surface, number.0, number.1);
                self.adopt_listed();
            }
            SightingResult::AdoptSeen => self.adopt_seen(),
            SightingResult::Degrade => self.degrade_for_another(*id),
            SightingResult::BeginWatch => self.begin_instance_watch(*id),
        }
    }

    fn degrade_for_another(&mut self, id: ClientOrderId) {
        if self.instances.note_other(id) {
            let time = self.now;
            self.notices.push_back(Notice::AnotherInstance { time, id });
        }
        self.set_degraded(DegradedReason::AnotherInstance, true);
        self.update_state();
    }

    fn adopt_seen(&mut self) {
        for (surface, epoch, number) in self.instances.take_seen() {
            self.adopt_number(surface, epoch, number);
        }
    }

    fn adopt_number(&mut self, surface: Surface, epoch: u64, number: OrderSeq) {
        self.instances.adopt(surface, epoch, number);
        if epoch == self.epoch {
            // This process must not issue these ids a second time.
            self.next_order = self.next_order.max(OrderSeq(number.0 + 1));
        }
    }

    fn begin_instance_watch(&mut self, id: ClientOrderId) {
        let Some(live) = &self.live else { return };
        let until = self.now.plus_ms(2 * live.config.reconcile_ms);
        self.instances.begin_watch(id, self.now, until);
        self.recent_orders.begin_watch();
        self.notify_instance_watch(id, Some(until), 0);
    }

    fn notify_instance_watch(&mut self, id: ClientOrderId, until: Option<Time>, adopted: usize) {
        self.notices.push_back(Notice::InstanceWatch {
            time: self.now,
            id,
            until,
            adopted,
        });
    }

    /// At the end of a watch, reads the open orders and the list of the account's trades again. The
    /// watch ends unless they show a new order.
    pub(super) fn end_instance_watch(&mut self) {
        if !self.instances.is_watch_over(self.now) {
            return;
        }
        let surfaces = self.live.iter().flat_map(|live| live.connections.keys());
        for surface in surfaces.copied().collect::<Vec<_>>() {
            let Some(connection) = self.connection_mut(surface) else {
                continue;
            };
            connection.last_clean_round = None;
            let (is_up, no_trades) = (connection.stream_up, connection.no_trades);
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
        let recent = &self.recent_orders;
        let mut surfaces = live.connections.keys();
        let is_read = surfaces.all(|surface| recent.was_read_after_watch(*surface));
        if !is_read || self.awaits_recent_orders() {
            return;
        }
        let Some(watch) = self.instances.end_watch() else {
            return;
        };
        for (epoch, number) in self.instances.seen() {
            self.degrade_for_unknown_order(epoch, number);
        }
        self.adopt_seen();
        let before = self.next_order;
        self.adopt_listed();
        let adopted = self.orders.iter().filter(|order| order.seq >= before);
        let adopted = adopted.count();
        self.notify_instance_watch(watch.id, None, adopted);
        if self.has_unowned_positions() {
            // The folder was wiped: a strategy may own these positions and would open them again.
            self.set_degraded(DegradedReason::Ownership, true);
        }
        self.update_state();
    }

    fn has_unowned_positions(&self) -> bool {
        let mut external = self.ledgers.external.iter();
        external.any(|(.., holding)| holding.position.qty != 0)
    }

    /// Adopts the orders of another instance that were seen, because the operator resumed.
    pub(super) fn accept_instance(&mut self) {
        if !self.instances.accept_other() {
            return;
        }
        self.adopt_seen();
        self.set_degraded(DegradedReason::AnotherInstance, false);
        for surface in Surface::ALL {
            self.reconcile_soon(*surface);
        }
    }
}
