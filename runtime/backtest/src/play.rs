//! Plays one strategy on a market in memory, without files. It shows what the strategy would have
//! done.

use serde::Serialize;
use windvane_engine::Engine;
use windvane_model::config::EngineConfig;
use windvane_model::{Amount, Decimal, Instrument, Time};
use windvane_sim::Venue;

use super::feed::{Feed, FeedLatency};
use super::guests::HostedGuests;
use super::session::Session;
use super::tally::{Names, StrategyTally, Tally};
use super::{BacktestError, order_latency};
use windvane_build::modules::Guest;
use windvane_config::assembly;
use windvane_config::{Config, Latency};
use windvane_recording::Chunks;
use windvane_report::ResultWriter;

/// The results of a strategy. Amounts are in the quote asset of the first instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Played {
    /// Market events.
    pub events: u64,
    /// Accepted orders.
    pub orders_submitted: u64,
    /// Orders refused by a local rule or by the simulated venue.
    pub orders_rejected: u64,
    /// Cancelled orders.
    pub orders_canceled: u64,
    /// Fills.
    pub fills: u64,
    /// Sum of price times quantity over all fills.
    pub volume_quote: Decimal,
    /// Fees, positive when paid.
    pub fees: Decimal,
    /// Realized profit, before fees.
    pub realized_pnl: Decimal,
    /// Profit of open positions.
    pub unrealized_pnl: Decimal,
    /// Funding, positive when received.
    pub funding: Decimal,
    /// Realized and unrealized profit, minus fees, plus funding.
    pub net_pnl: Decimal,
}

/// Plays a market to its end with one strategy and the settings of `[sim]`. Returns `None` if the
/// market has no event.
///
/// # Errors
/// The strategy refuses its parameters, the settings cannot be used, or the market cannot be read.
pub fn play(
    config: &Config,
    engine: EngineConfig,
    guest: Guest,
    market: impl Chunks + 'static,
) -> Result<Option<Played>, BacktestError> {
    let venue = assembly::venue_config(config, &engine.balances);
    let venue = Venue::new(venue, engine.instruments.clone())?;
    let id = guest.name.clone();
    let names = Names {
        strategies: vec![id.clone()],
        instruments: engine.instruments.iter().map(Instrument::name).collect(),
    };
    let feed_ns = match config.sim.latency {
        Latency::Constant { feed_ns, .. } => feed_ns,
        Latency::Recorded => 0,
    };
    let mut feed = Feed::new(market, FeedLatency::Constant(feed_ns))?;
    let start = feed.engine_time();
    if start == Time::NEVER {
        return Ok(None);
    }
    let tally = Tally::new(ResultWriter::discard(), names);
    let guests = HostedGuests::new(vec![guest]);
    let mut session = Session::new(
        Engine::new(engine)?,
        venue,
        guests,
        order_latency(config),
        tally,
    );
    session
        .start(start)
        .map_err(|(_, reason)| BacktestError::Refused {
            strategy: id,
            reason,
        })?;
    let finished = session.run(&mut feed, &mut |_| {})?;
    let totals = finished.engine.totals().unwrap_or_default();
    let count = |of: fn(&StrategyTally) -> u64| finished.tally.strategies.iter().map(of).sum();
    let volume: Amount = finished
        .tally
        .strategies
        .iter()
        .map(|one| one.volume_quote)
        .sum();
    let money = |amount: Amount| amount.to_decimal().normalize();
    Ok(Some(Played {
        events: finished.tally.events.total(),
        orders_submitted: count(|one| one.submitted),
        orders_rejected: count(|one| one.rejected),
        orders_canceled: count(|one| one.canceled),
        fills: count(|one| one.fills),
        volume_quote: money(volume),
        fees: money(totals.fees),
        realized_pnl: money(totals.realized_pnl),
        unrealized_pnl: money(totals.unrealized_pnl),
        funding: money(totals.funding),
        net_pnl: money(totals.realized_pnl + totals.unrealized_pnl - totals.fees + totals.funding),
    }))
}
