//! An engine as exact bytes, and an engine that takes over from one of another process, possibly
//! with a changed configuration.

use windvane_evidence::outside_closes::renamed;
use windvane_model::config::EngineConfig;
use windvane_model::decimal::{AMOUNT_SCALE, pow10};
use windvane_model::degraded_reason::DegradedReason;
use windvane_model::holding::Ledger;
use windvane_model::ids::StrategyId;
use windvane_model::instrument::Instrument;
use windvane_model::ledger::{Grains, Position};
use windvane_model::names::Names;
use windvane_model::order::Surface;
use windvane_model::order_state::{OrderMove, OrderState};
use windvane_model::orders::{Order, OrderQueries};
use windvane_model::planted;
use windvane_model::record::{Chain, Recorder};
use windvane_model::rules::{CompiledRules, InstrumentError};
use windvane_model::run_state::RunState;

use super::Engine;
use super::migrate::{OLDEST, SNAPSHOT_VERSION, migrate};

const MAGIC: &[u8; 8] = b"windvane";

/// Why bytes cannot be read as an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not an engine snapshot.
    #[error("this is not an engine snapshot: it is damaged, or of another program")]
    Format,
    /// This program cannot read their version.
    #[error(
        "the snapshot has version {0}, and this program reads versions {OLDEST} to \
         {SNAPSHOT_VERSION}: use the program that wrote it"
    )]
    Version(u32),
    /// The bytes are damaged.
    #[error("the snapshot cannot be read: {0}")]
    Content(String),
    /// The snapshot's instruments cannot be used.
    #[error("the snapshot's rules cannot be used: {0}")]
    Rules(#[from] InstrumentError),
}

/// Why an engine cannot take over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuccessionError {
    /// The new configuration cannot be used.
    #[error(transparent)]
    Rules(#[from] InstrumentError),
    /// The venue's rules have fewer decimals than a position.
    #[error(
        "{instrument}: the position {qty} has more decimals than the present rules; close the \
         position by hand and start with an empty data folder"
    )]
    Scale {
        /// The instrument.
        instrument: String,
        /// The quantity.
        qty: windvane_model::Decimal,
    },
}

impl Engine {
    /// The complete state, so that [`Engine::restore`] continues exactly from here. Effects and
    /// notices must have been polled to the end. This function seals (ends and hashes) the running
    /// block of records.
    pub fn snapshot(&mut self) -> Vec<u8> {
        debug_assert!(
            self.effects.is_empty() && self.notices.is_empty(),
            "effects and notices must be polled before a snapshot"
        );
        self.recorder.seal();
        self.report()
    }

    /// Like [`Engine::snapshot`], at any moment and without any change of the engine: for a bug
    /// report.
    pub fn report(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&SNAPSHOT_VERSION.to_le_bytes());
        // Writing to memory cannot fail, and every length in our types is known.
        bytes.extend(postcard::to_stdvec(self).unwrap_or_default());
        bytes
    }

    /// Restores the engine of a snapshot.
    pub fn restore(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (version, content) = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_first_chunk())
            .ok_or(SnapshotError::Format)?;
        let version = u32::from_le_bytes(*version);
        let content = migrate(version, content).ok_or(SnapshotError::Version(version))?;
        let mut engine: Self = postcard::from_bytes(&content)
            .map_err(|error| SnapshotError::Content(error.to_string()))?;
        engine.rules = engine
            .instruments
            .iter()
            .map(CompiledRules::new)
            .collect::<Result<_, _>>()?;
        Ok(engine)
    }

    /// The engine of a snapshot, for a strategy that starts beside the run. It answers questions as
    /// the engine did at the snapshot. It accepts no order, as at the start of a process: when the
    /// start ends, the engine has given the next order numbers to other strategies.
    ///
    /// # Errors
    /// See [`Engine::restore`].
    pub fn restore_for_start(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut engine = Self::restore(bytes)?;
        engine.state = RunState::Booting;
        Ok(engine)
    }

    /// Creates the engine of a new process that takes over from this one. It keeps the ledgers, the
    /// balances, the memory of the limits, the kill switch and the states that the operator must
    /// clear. It also keeps every live order, with an unknown outcome until the venue is queried.
    /// Positions of strategies that the configuration no longer names become unowned; instruments
    /// that it no longer names are dropped. The journal continues at `chain`: where the old journal
    /// ends, or further on if a part of it was lost.
    pub fn succeed(self, config: EngineConfig, chain: Chain) -> Result<Self, SuccessionError> {
        let recorder = Recorder::from_chain(chain, config.keep_journal);
        let mut heir = Self::with_recorder(config, recorder)?;
        let names = self.names_in(&heir);
        heir.now = self.now;
        heir.sequence = self.sequence;
        heir.kill_switch = self.kill_switch;
        for reason in [
            DegradedReason::MarginCall,
            DegradedReason::Ownership,
            DegradedReason::BrokenInvariant,
        ] {
            if self.degraded_reasons().contains(&reason) {
                heir.set_degraded(reason, true);
            }
        }
        if planted!(EpochReused) {
            heir.epoch = self.epoch;
        }
        heir.next_order = self.next_order;
        heir.instances = self.instances.succeed(self.epoch, self.next_order);
        heir.first_unknown_order = Some((self.epoch, self.next_order));
        heir.start_equity = self.start_equity;
        heir.losses = self.losses.clone();
        heir.rate = self.rate.clone();
        heir.recovered_fills = self.recovered_fills;
        heir.balances.clear();
        for ((surface, asset), balance) in &self.balances {
            if let Some(asset) = names.assets.get(asset) {
                heir.balances.insert((*surface, *asset), *balance);
            }
        }
        for (asset, fee) in &self.other_fees {
            if let Some(asset) = names.assets.get(asset) {
                heir.other_fees.insert(*asset, *fee);
            }
        }
        heir.inherit_trades(&self, &names);
        heir.inherit_ledgers(&self, &names)?;
        for (place, state) in self.strategies.iter().enumerate() {
            if let Some(strategy) = names.strategies.get(&StrategyId(place as u16)) {
                let own = &mut heir.strategies[usize::from(strategy.0)];
                own.fault = state.fault;
                own.kill_switch = state.kill_switch;
                own.flattening = state.flattening;
                own.losses = state.losses.clone();
                own.rate = state.rate.clone();
                own.unsaved_order_ends.clone_from(&state.unsaved_order_ends);
                if let Some(since) = self.fault_since(StrategyId(place as u16)) {
                    heir.trading_status.note_fault(*strategy, since);
                }
            }
        }
        heir.inherit_orders(&self, &names);
        heir.inherit_countdowns(&self, &names);
        heir.offsets_before = Surface::ALL
            .iter()
            .filter_map(|surface| Some((*surface, self.clock_offset_ns(*surface)?)))
            .collect();
        heir.outside_closes.inherit(&self.outside_closes, &names);
        let explained = renamed(&self.explained_closes, &names);
        heir.explained_closes.extend(explained);
        let listed = renamed(&self.listed_closes, &names);
        heir.listed_closes.extend(listed);
        heir.outside_orders.inherit(&self.outside_orders, &names);
        heir.recent_orders.inherit(&self.recent_orders, &names);
        heir.forced.inherit(&self.forced, &names);
        heir.due_gains.inherit(&self.due_gains, &names);
        heir.close_values.inherit(&self.close_values, &names);
        heir.inherit_modes(&self);
        heir.out_of_order.inherit(&self.out_of_order, &names);
        heir.rules_refresh.inherit(&self.rules_refresh, &names);
        heir.margins.inherit(&self.margins, &names);
        heir.incomes.inherit(&self.incomes, &names);
        heir.stated_payments.inherit(&self.stated_payments, &names);
        heir.unconfigured_positions
            .inherit(&self.unconfigured_positions);
        heir.fee_costs.inherit(&self.fee_costs, &names);
        heir.asset_prices.inherit(&self.asset_prices, &names);
        heir.late_fees.inherit(&self.late_fees, &names);
        if heir
            .fills_from_totals
            .inherit(&self.fills_from_totals, &heir.orders, &names)
        {
            heir.late_fees.want();
        }
        heir.inherit_order_waits(&self);
        heir.inherit_fill_times(&self);
        Ok(heir)
    }

    /// The indices of this process as those of its heir.
    fn names_in(&self, heir: &Self) -> Names {
        fn strategies(engine: &Engine) -> Vec<&str> {
            let states = engine.strategies.iter();
            states.map(|state| state.config.name.as_str()).collect()
        }
        Names::new(
            (&self.assets, &heir.assets),
            (&self.instruments, &heir.instruments),
            (&strategies(self), &strategies(heir)),
        )
    }

    /// Takes over countdowns: a disarm request of the old process may arrive after this process has
    /// armed its own.
    fn inherit_countdowns(&mut self, from: &Self, names: &Names) {
        let now = self.now;
        let (Some(live), Some(old_live)) = (&mut self.live, &from.live) else {
            return;
        };
        let absence_ms = live.config.absence_ms;
        for (old, new) in &names.instruments {
            let old = &old_live.countdowns[usize::from(old.0)];
            live.countdowns[usize::from(new.0)].inherit(old, now, absence_ms);
        }
    }

    fn inherit_trades(&mut self, from: &Self, names: &Names) {
        for (old, new) in &names.instruments {
            let (old, new) = (usize::from(old.0), usize::from(new.0));
            self.external_trades[new].clone_from(&from.external_trades[old]);
            self.verified_trades[new] = from.verified_trades[old];
            self.newest_trades[new] = from.newest_trades[old];
        }
    }

    /// Takes over all positions: the account's, those of strategies that still exist, and the rest
    /// as unowned.
    fn inherit_ledgers(&mut self, from: &Self, names: &Names) -> Result<(), SuccessionError> {
        for (old, new) in &names.instruments {
            let rescale = Rescale {
                from: &from.instruments[usize::from(old.0)],
                to: &self.instruments[usize::from(new.0)],
            };
            let inherit = |to: &mut Ledger, from: &Ledger| -> Result<(), SuccessionError> {
                for (holding, side) in from.of(*old).iter().zip(windvane_model::PositionSide::ALL) {
                    let position = rescale.position(&holding.position)?;
                    let heir = &mut to.at_mut(*new, *side).position;
                    heir.add(&position);
                    rescale.gather_dust(heir);
                }
                Ok(())
            };
            for ledger in [&mut self.ledgers.account, &mut self.ledgers.external] {
                for holding in ledger.of_mut(*new) {
                    holding.position = Position::default();
                }
            }
            inherit(&mut self.ledgers.account, &from.ledgers.account)?;
            inherit(&mut self.ledgers.external, &from.ledgers.external)?;
            for (place, own) in from.ledgers.strategies.iter().enumerate() {
                let owner = names.strategies.get(&StrategyId(place as u16)).copied();
                inherit(self.ledgers.owner(owner), own)?;
            }
        }
        Ok(())
    }

    /// Takes over orders of strategies that still exist. Live orders of other strategies will be
    /// found among the venue's open orders and cancelled.
    fn inherit_orders(&mut self, from: &Self, names: &Names) {
        let (live, ended) = from.orders.all();
        for (order, is_live) in ended.map(|o| (o, false)).chain(live.map(|o| (o, true))) {
            let instrument = names.instruments.get(&order.instrument());
            let strategy = names.strategies.get(&order.strategy);
            let (Some(instrument), Some(strategy)) = (instrument, strategy) else {
                continue;
            };
            let mut order: Order = order.clone();
            order.strategy = *strategy;
            order.terms.instrument = *instrument;
            if !is_live {
                self.orders.insert_ended(order);
                continue;
            }
            let rests = matches!(order.state, OrderState::New | OrderState::PartiallyFilled);
            if planted!(ForgetInFlight) && !rests {
                continue;
            }
            // Requests that were in flight when the process ended may have arrived, and so may
            // orders that were held.
            order.held = false;
            order.apply(OrderMove::MayBeCanceled);
            order.lost = Some(self.now);
            order.denied = None;
            order.queries = OrderQueries::default();
            order.confirmed = None;
            order.missing_since = None;
            order.trade_reads = 0;
            self.count_open(&order);
            self.orders.insert_foreign(order);
        }
    }
}

/// Converts quantities from one scale to another.
struct Rescale<'a> {
    from: &'a Instrument,
    to: &'a Instrument,
}

impl Rescale<'_> {
    fn position(&self, old: &Position) -> Result<Position, SuccessionError> {
        let mut position = *old;
        match self.exact(old.qty) {
            Some(qty) if old.dust == 0 => position.qty = qty,
            _ if self.to.surface == Surface::Spot => {
                let held = self.held(old).ok_or_else(|| self.error(old))?;
                position.settle(held, Grains::of(self.to));
            }
            _ => return Err(self.error(old)),
        }
        Ok(position)
    }

    /// The dust of two positions may add up to a whole step.
    fn gather_dust(&self, position: &mut Position) {
        if position.dust != 0 {
            let grains = Grains::of(self.to);
            position.settle(position.held(grains), grains);
        }
    }

    fn exact(&self, qty: i64) -> Option<i64> {
        if self.to.qty_scale >= self.from.qty_scale {
            return qty.checked_mul(pow10(self.to.qty_scale - self.from.qty_scale));
        }
        let unit = pow10(self.from.qty_scale - self.to.qty_scale);
        (qty % unit == 0).then_some(qty / unit)
    }

    /// The held quantity in the grains of the present rules.
    fn held(&self, old: &Position) -> Option<i128> {
        let held = old.held(Grains::of(self.from));
        let scale = |instrument: &Instrument| instrument.qty_scale.max(AMOUNT_SCALE);
        let (from, to) = (scale(self.from), scale(self.to));
        if to >= from {
            return held.checked_mul(pow10(to - from).into());
        }
        let unit = i128::from(pow10(from - to));
        (held % unit == 0).then_some(held / unit)
    }

    fn error(&self, old: &Position) -> SuccessionError {
        SuccessionError::Scale {
            instrument: self.from.name(),
            qty: self.from.qty(old.qty),
        }
    }
}
