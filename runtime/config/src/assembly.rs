//! Turns a configuration into the parts of a run: instruments with their rules, the engine's
//! configuration and the simulated venue's.

use std::fmt;

use serde_json::json;
use windvane_model::config::{EngineConfig, OnFault, StrategyConfig, StrategyTerms, Subscription};
use windvane_model::decimal::rescale;
use windvane_model::forced::OnLiquidation;
use windvane_model::risk::RiskLimits;
use windvane_model::{Amount, AssetId, Decimal, Instrument, InstrumentId, Surface};
use windvane_protocol::Assets;
use windvane_sim::{QueueModel, VenueConfig};

use crate::{Config, InstrumentName, Leave, Limits, Queue, Risk, Sim, Strategy};

/// The instruments that any strategy names, without duplicates, in the order of their first
/// mention.
pub fn instrument_names(config: &Config) -> Vec<InstrumentName> {
    let mut names: Vec<InstrumentName> = Vec::new();
    for name in config.strategies.iter().flat_map(|s| &s.instruments) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Start balances of the simulated account.
pub fn balances(sim: &Sim, assets: &mut Assets) -> Vec<(Surface, AssetId, Amount)> {
    sim.start_balance
        .iter()
        .map(|(holding, value)| {
            let asset = assets.id(&holding.asset);
            (holding.surface, asset, amount(*value))
        })
        .collect()
}

/// The configuration of the simulated venue.
pub fn venue_config(config: &Config, balances: &[(Surface, AssetId, Amount)]) -> VenueConfig {
    let sim = &config.sim;
    VenueConfig {
        start_balance: balances.to_vec(),
        leverage: sim.leverage,
        maintenance_rate: sim.maintenance_rate,
        maker_fee: sim.fees.maker,
        taker_fee: sim.fees.taker,
        queue: match sim.queue {
            Queue::RiskAverse => QueueModel::RiskAverse,
            Queue::Probabilistic => QueueModel::Probabilistic,
            Queue::None => QueueModel::None,
        },
        hedge_mode: hedge_mode(config),
        seed: sim.seed,
    }
}

/// The engine's configuration.
pub fn engine_config(
    config: &Config,
    names: &[InstrumentName],
    instruments: Vec<Instrument>,
    assets: &Assets,
    balances: Vec<(Surface, AssetId, Amount)>,
    epoch: u64,
) -> EngineConfig {
    EngineConfig {
        assets: assets.names().to_vec(),
        instruments,
        strategies: config
            .strategies
            .iter()
            .map(|strategy| strategy_config(strategy, names))
            .collect(),
        limits: risk_limits(&config.risk),
        hedge_mode: hedge_mode(config),
        epoch,
        balances,
        circumstances: circumstances(config),
        live: None,
        keep_journal: false,
    }
}

/// Limits and fault reactions of each strategy: the part of a configuration that a reload changes.
pub fn strategy_terms(config: &Config) -> Vec<StrategyTerms> {
    let strategies = config.strategies.iter();
    strategies
        .map(|strategy| StrategyTerms {
            limits: risk_limits(&strategy.limits.risk()),
            on_fault: on_fault(strategy.on_fault),
        })
        .collect()
}

/// Every setting outside the engine's own configuration that changes how a run goes, as text.
fn circumstances(config: &Config) -> String {
    let params: Vec<_> = config
        .strategies
        .iter()
        .map(|strategy| {
            (
                strategy.id.as_str(),
                strategy.params.to_string(),
                RecordedLimits(&strategy.limits),
            )
        })
        .collect();
    format!("{:?} {params:?}", config.sim)
}

/// The limits on which a backtest depends. Limits of time apply to live and paper runs only, so they must
/// not change a fingerprint.
struct RecordedLimits<'a>(&'a Limits);

impl fmt::Debug for RecordedLimits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits {
            fuel_per_event,
            memory_mb,
            callback_ms: _,
            cpu_percent: _,
            max_order_notional,
            max_position_notional,
            max_open_orders,
            max_orders_per_minute,
            price_collar,
            max_daily_loss,
            max_drawdown,
        } = self.0;
        f.debug_struct("Limits")
            .field("fuel_per_event", fuel_per_event)
            .field("memory_mb", memory_mb)
            .field("max_order_notional", max_order_notional)
            .field("max_position_notional", max_position_notional)
            .field("max_open_orders", max_open_orders)
            .field("max_orders_per_minute", max_orders_per_minute)
            .field("price_collar", price_collar)
            .field("max_daily_loss", max_daily_loss)
            .field("max_drawdown", max_drawdown)
            .finish()
    }
}

fn hedge_mode(config: &Config) -> bool {
    matches!(config.account.position_mode, crate::PositionMode::Hedge)
}

fn strategy_config(strategy: &Strategy, names: &[InstrumentName]) -> StrategyConfig {
    let (streams, bars_ms) = strategy.subscribed();
    let subscriptions = strategy
        .instruments
        .iter()
        .filter_map(|name| names.iter().position(|known| known == name))
        .map(|index| Subscription {
            instrument: InstrumentId(index as u16),
            streams,
            bars_ms: bars_ms.clone(),
        })
        .collect();
    StrategyConfig {
        name: strategy.id.clone(),
        subscriptions,
        limits: risk_limits(&strategy.limits.risk()),
        on_fault: on_fault(strategy.on_fault),
    }
}

/// The treatment of the orders and positions of a strategy that failed.
pub const fn on_fault(leave: Leave) -> OnFault {
    match leave {
        Leave::Cancel => OnFault::Cancel,
        Leave::Keep => OnFault::Keep,
        Leave::Flatten => OnFault::Flatten,
    }
}

/// The engine's reaction to a liquidation or an ADL.
pub const fn on_liquidation(risk: &Risk) -> OnLiquidation {
    match risk.on_liquidation {
        crate::OnLiquidation::Halt => OnLiquidation::Halt,
        crate::OnLiquidation::Pause => OnLiquidation::Pause,
        crate::OnLiquidation::Continue => OnLiquidation::Continue,
    }
}

/// Limits as the engine's integers.
pub fn risk_limits(risk: &Risk) -> RiskLimits {
    RiskLimits {
        max_order_notional: risk.max_order_notional.map(amount),
        max_position_notional: risk.max_position_notional.map(amount),
        max_open_orders: risk.max_open_orders,
        max_orders_per_minute: risk.max_orders_per_minute,
        price_collar_ppm: risk.price_collar.map(ppm),
        max_daily_loss: risk.max_daily_loss.map(amount),
        max_drawdown_ppm: risk.max_drawdown.map(ppm),
    }
}

/// An amount of the configuration. A value beyond 128 bits works like no limit.
fn amount(value: Decimal) -> Amount {
    Amount::from_decimal(value).unwrap_or(Amount(i128::MAX / 4))
}

/// A fraction in parts per million.
fn ppm(fraction: Decimal) -> u32 {
    rescale(fraction, 6)
        .and_then(|ppm| u32::try_from(ppm).ok())
        .unwrap_or(u32::MAX)
}

/// The JSON that a strategy's `start` receives: its instruments, in the order of its own
/// configuration, and the names of the assets (`sdk/wit`).
pub fn instruments_json(
    strategy: &Strategy,
    names: &[InstrumentName],
    instruments: &[Instrument],
    assets: &[String],
) -> Vec<u8> {
    let place = |own: &InstrumentName| names.iter().position(|name| name == own);
    let list: Vec<_> = strategy
        .instruments
        .iter()
        .filter_map(place)
        .map(|index| (index, &instruments[index]))
        .map(|(index, instrument)| {
            let filters = &instrument.filters;
            let price = filters.price.unwrap_or_default();
            let lot = filters.lot_size.unwrap_or_default();
            let min_notional = filters.least_notional().unwrap_or_default();
            json!({
                "index": index,
                "name": instrument.name(),
                "price_scale": instrument.price_scale,
                "qty_scale": instrument.qty_scale,
                "tick": price.tick_size,
                "step": lot.step_size,
                "min_price": price.min_price,
                "max_price": price.max_price,
                "min_qty": lot.min_qty,
                "max_qty": lot.max_qty,
                "min_notional": i64::try_from(min_notional.0).unwrap_or(i64::MAX),
            })
        })
        .collect();
    json!({ "instruments": list, "assets": assets })
        .to_string()
        .into_bytes()
}
