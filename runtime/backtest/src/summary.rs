//! The summary of a run.

use std::time::Duration;

use windvane_engine::Engine;
use windvane_model::risk::LossLimit;
use windvane_model::run_state::{KillSwitch, RunState};
use windvane_model::{InstrumentId, StrategyId};

use super::guests::HostedGuests;
use super::session::{Clock, Finished, Stopwatch};
use super::tally::{StrategyTally, Tally};
use windvane_config::{Config, Latency};
use windvane_recording::{Recording, RulesSource};
use windvane_report::{
    self as report, DataSummary, EngineVersions, InstrumentSummary, LatencySummary,
    QuarantineSummary, QueueSummary, ResultWriter, StrategySummary, Summary, TimeShare,
};

/// Wall times of a run.
pub struct Timing {
    /// From the first event to the last, in wall time.
    pub wall: Duration,
    /// The part of it that was spent reading decoded chunks.
    pub reading: Duration,
}

/// The fewest events of a run whose time shares are shown. With fewer, the sample is too small.
const TIMED_EVENTS_MIN: u64 = 50_000;

/// Creates the summary. It also returns the writer, which finishes the files.
pub fn summarize(
    config: &Config,
    recordings: &[Recording],
    sources: &[RulesSource],
    finished: Finished,
    timing: &Timing,
) -> (ResultWriter, Summary) {
    let Finished {
        mut engine,
        guests,
        tally,
        clock,
        ..
    } = finished;
    let totals = engine.totals().unwrap_or_default();
    let fingerprint = hex::encode(engine.fingerprint());
    let count = |of: fn(&StrategyTally) -> u64| tally.strategies.iter().map(of).sum::<u64>();
    let events = tally.events.total();
    let wall_seconds = timing.wall.as_secs_f64();
    let asset = engine.equity_asset();
    let summary = Summary {
        quarantined: quarantined(&engine, &guests),
        events,
        events_per_second: (events as f64 / wall_seconds.max(1e-9)) as u64,
        wall_seconds,
        orders_submitted: count(|s| s.submitted),
        orders_rejected: count(|s| s.rejected),
        orders_canceled: count(|s| s.canceled),
        fills: count(|s| s.fills) + tally.external.fills,
        volume_quote: tally
            .strategies
            .iter()
            .map(|s| s.volume_quote)
            .sum::<windvane_model::Amount>()
            + tally.external.volume_quote,
        fees: totals.fees,
        realized_pnl: totals.realized_pnl,
        unrealized_pnl: totals.unrealized_pnl,
        funding: totals.funding,
        start_equity: engine.start_equity().unwrap_or_default(),
        final_equity: totals.equity,
        max_drawdown: tally.writer().curve().max_drawdown(),
        sharpe: tally.writer().curve().sharpe(),
        start_time: tally.start_time,
        end_time: tally.end_time,
        module_sha256: module_hashes(&guests),
        engine: EngineVersions {
            windvane: env!("CARGO_PKG_VERSION").to_owned(),
            wasmtime: wasmtime_version(),
        },
        fingerprint,
        state: state(&engine, &tally),
        config: config.name.clone(),
        quote_asset: asset
            .map_or_else(String::new, |id| engine.assets()[usize::from(id.0)].clone()),
        rules: RulesSource::of_all(sources.iter().copied()),
        instruments: instruments(&engine, sources),
        strategies: strategies(&engine, &guests, &tally),
        rejections: tally.rejections(),
        latency: latency(config, &tally),
        queue: queue(config, &engine, &tally),
        data: data(recordings, &tally),
        time_share: (events >= TIMED_EVENTS_MIN && clock.was_read())
            .then(|| time_share(&clock, timing)),
    };
    (tally.into_writer(), summary)
}

fn quarantined(engine: &Engine, guests: &HostedGuests) -> Vec<QuarantineSummary> {
    let all = guests.guests().iter().enumerate();
    let row = |(index, guest): (usize, &windvane_build::modules::Guest)| {
        let strategy = StrategyId(index as u16);
        let since = engine.fault_since(strategy);
        Some(QuarantineSummary {
            strategy: guest.name.clone(),
            fault: engine.fault(strategy)?.as_str().to_owned(),
            time: since.map_or_else(String::new, report::utc::seconds_text),
        })
    };
    all.filter_map(row).collect()
}

/// The account's state at the end: ready, paused, or halted with its reason.
fn state(engine: &Engine, tally: &Tally) -> String {
    match (engine.run_state(), tally.halted) {
        (RunState::Halted, Some((time, limit))) => {
            let limit = limit.map_or("by command", LossLimit::key);
            format!("halted: {limit} at {}", report::utc::utc_text(time))
        }
        // The end of a normal run also stops the engine, but sets no kill switch.
        (RunState::Halted, None) if engine.kill_switch() == KillSwitch::Clear => "ready".to_owned(),
        (RunState::Halted, None) => "halted".to_owned(),
        (RunState::Paused, _) => "paused".to_owned(),
        (state, _) => state.as_str().to_owned(),
    }
}

fn module_hashes(guests: &HostedGuests) -> std::collections::BTreeMap<String, String> {
    let hash = |guest: &windvane_build::modules::Guest| {
        (guest.name.clone(), hex::encode(guest.strategy.sha256()))
    };
    guests.guests().iter().map(hash).collect()
}

fn instruments(engine: &Engine, sources: &[RulesSource]) -> Vec<InstrumentSummary> {
    let summary = |(index, source): (usize, &RulesSource)| {
        let id = InstrumentId(index as u16);
        let instrument = &engine.instruments()[index];
        let filters = &instrument.filters;
        let qty = engine
            .ledgers()
            .account
            .of(id)
            .iter()
            .map(|h| h.position.qty)
            .sum();
        let asset = |id: windvane_model::AssetId| engine.assets()[usize::from(id.0)].clone();
        let mid = engine
            .mid(id)
            .map(|mid| windvane_model::Amount(i128::from(mid)));
        InstrumentSummary {
            name: instrument.name(),
            base: asset(instrument.base),
            quote: asset(instrument.quote),
            rules: *source,
            tick: instrument
                .price(filters.price.unwrap_or_default().tick_size)
                .to_string(),
            step: instrument
                .qty(filters.lot_size.unwrap_or_default().step_size)
                .to_string(),
            final_position: instrument.qty(qty).to_string(),
            final_mid: mid.map_or_else(String::new, |mid| mid.to_string()),
        }
    };
    sources.iter().enumerate().map(summary).collect()
}

fn strategies(engine: &Engine, guests: &HostedGuests, tally: &Tally) -> Vec<StrategySummary> {
    let summary = |(index, guest): (usize, &windvane_build::modules::Guest)| {
        let counts = &tally.strategies[index];
        let ledger = &engine.ledgers().strategies[index];
        let described = guest.strategy.describe();
        let fault = engine.fault(StrategyId(index as u16));
        StrategySummary {
            id: guest.name.clone(),
            module: format!("{} {}", described.name, described.version),
            state: fault.map_or_else(
                || "running".to_owned(),
                |kind| format!("quarantined: {}", kind.as_str()),
            ),
            fault: guests
                .fault(StrategyId(index as u16))
                .unwrap_or_default()
                .to_owned(),
            events: counts.events,
            orders_submitted: counts.submitted,
            orders_rejected: counts.rejected,
            orders_canceled: counts.canceled,
            fills: counts.fills,
            maker_fills: counts.maker_fills,
            volume_quote: counts.volume_quote,
            fees: ledger.total(|p| p.fees),
            realized_pnl: ledger.total(|p| p.realized_pnl),
            unrealized_pnl: engine.unrealized(ledger).unwrap_or_default(),
            funding: ledger.total(|p| p.funding),
            fuel_used: Some(guest.strategy.fuel_used()),
        }
    };
    guests.guests().iter().enumerate().map(summary).collect()
}

fn latency(config: &Config, tally: &Tally) -> LatencySummary {
    LatencySummary {
        model: match config.sim.latency {
            Latency::Constant { .. } => "constant".to_owned(),
            Latency::Recorded => "recorded".to_owned(),
        },
        feed_ns: tally.feed_latency.quantiles(),
        order_ns: tally.order_latency.quantiles(),
    }
}

fn queue(config: &Config, engine: &Engine, tally: &Tally) -> QueueSummary {
    let fills: u64 = tally.strategies.iter().map(|s| s.fills).sum();
    let maker_fills: u64 = tally.strategies.iter().map(|s| s.maker_fills).sum();
    QueueSummary {
        model: config.sim.queue.as_str().to_owned(),
        rested: tally.rested,
        filled: tally.rested_filled,
        maker_fills,
        taker_fills: fills - maker_fills,
        time_to_fill_ns: tally.time_to_fill.quantiles(),
        ahead: tally.queue_ahead.quantiles(),
        ahead_unit: engine
            .instruments()
            .first()
            .map_or_else(String::new, |instrument| {
                let base = &engine.assets()[usize::from(instrument.base.0)];
                format!("{} {base}", instrument.qty(1))
            }),
    }
}

fn data(recordings: &[Recording], tally: &Tally) -> DataSummary {
    let surveys = || recordings.iter().map(Recording::survey);
    DataSummary {
        files: recordings
            .iter()
            .map(|r| r.path().display().to_string())
            .collect(),
        records: surveys().map(|survey| survey.lines).sum(),
        events: tally.events,
        damaged_lines: surveys().map(|survey| survey.damaged.count).sum(),
        cut: surveys().any(|survey| survey.cut.is_some()),
        from_cache: recordings.iter().all(Recording::from_cache),
    }
}

/// Shares of the wall time, estimated from the sampled events. The rest is the loop and the files.
fn time_share(clock: &Clock, timing: &Timing) -> TimeShare {
    let wall = timing.wall.as_secs_f64().max(1e-9);
    let percent = |part: Duration| 100.0 * part.as_secs_f64() / wall;
    let reading = Clock::reading();
    let sampled = |watch: &Stopwatch| percent(watch.estimate(reading));
    TimeShare {
        decode: percent(timing.reading),
        engine: sampled(&clock.engine),
        venue: sampled(&clock.venue),
        guest: sampled(&clock.guests),
        results: sampled(&clock.results),
    }
}

/// The version of wasmtime in this build. It determines the fuel cost of instructions.
fn wasmtime_version() -> String {
    let lock = include_str!("../../../Cargo.lock");
    let mut lines = lock
        .lines()
        .skip_while(|line| *line != "name = \"wasmtime\"");
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "));
    version.unwrap_or_default().trim_matches('"').to_owned()
}
