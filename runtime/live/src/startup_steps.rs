//! Builds the parts of a live run from the configuration and from what the venue reports about
//! itself.

use std::time::Duration;

use tokio::runtime::Handle;
use windvane_client::Client;
use windvane_client_core::Gateway;
use windvane_client_core::budget::{Budgets, Lane};
use windvane_client_core::streams::StreamSettings;
use windvane_client_core::streams::feed::{FeedError, FeedTerms};
use windvane_model::config::EngineConfig;
use windvane_model::decimal::rescale;
use windvane_model::live::{LiveConfig, OnStart, OnStop};
use windvane_model::{Instrument, Surface, Time};
use windvane_protocol::Assets;
use windvane_protocol::adapter::Names;
use windvane_protocol::market_stream::{Feed, Topic};
use windvane_session::watchdog::WatchdogPlan;
use windvane_session::weights::Wants;
use windvane_session::{
    CallId, FindAccount, PublicStreams, RequestTerms, Requests, Startup, StartupError,
    StartupInput, StartupOutput, StartupResult, StartupTerms, venue_surface,
};

use super::clock::Clock;
use super::exchange;
use super::http::{self, Http, RuntimeClient};
use super::mailbox::{self, CallOutcome, LoopEvent, Wake};
use super::signer::{self, Keeping};
use crate::connection::market_data;
use windvane_config::assembly;
use windvane_config::{self as config, Config, InstrumentName, Leave, MarketData, Stream};

pub use windvane_session::surfaces;

/// How much later than its time window an order may still reach the venue, because of clocks and
/// networks.
const ABSENCE_MARGIN_MS: i64 = 5_000;
/// How far a timestamp may be ahead of the venue's clock
/// (docs/interface/conventions.md#timestamps).
const AHEAD_MS: i64 = 1_000;
/// The widest window of nonces (docs/interface/conventions.md#nonces).
const NONCE_WINDOW_MS: i64 = 60_000;

/// The facts that a run must learn from the venue when it starts.
pub fn terms(config: &Config, names: &[InstrumentName]) -> StartupTerms {
    let trades = config.run.mode == config::Mode::Live;
    StartupTerms {
        instruments: names.to_vec(),
        reads_clocks: trades,
        futures_account: find_account(config, names).filter(|_| trades),
    }
}

/// How to find the route that reads the futures account; `None` if no futures are traded.
pub fn find_account(config: &Config, names: &[InstrumentName]) -> Option<FindAccount> {
    let find = match config.venue.market_data {
        MarketData::Documented => FindAccount::Documented,
        MarketData::Auto | MarketData::Streams => FindAccount::TryRoute,
    };
    Some(find).filter(|_| surfaces(names).contains(&Surface::Futures))
}

/// Queries the venue until all that `terms` lists is known: instruments, clocks, the route of the
/// futures account. Returns it with the clock that the requests use. Calls `limits_known` once the
/// venue reported its limits. Without a signer, the client's keys sign.
///
/// # Errors
/// A response of the venue cannot be used, or `limits_known` failed.
pub async fn find_out<E: From<StartupError>>(
    config: &Config,
    client: &Client,
    (terms, signer): (StartupTerms, Option<&Keeping>),
    limits_known: impl FnMut() -> Result<(), E>,
) -> Result<(StartupResult, Clock), E> {
    let clock = Clock::of(client.clock().local_us());
    let requests = Requests::new(
        exchange::signed(
            config,
            client.gateway().clone(),
            signer::place(signer.is_some()),
        ),
        RequestTerms {
            request: client.settings().timeouts.request,
            countdown: config.heartbeat.answer_within(),
        },
        clock.at(client.began()),
        surfaces(&terms.instruments),
        0,
    );
    let startup = Startup::new(clock.now(), terms, requests);
    let known = perform(startup, client, (clock, signer), limits_known).await?;
    Ok((known, clock))
}

/// Performs the outputs of a start until it has its result.
async fn perform<E: From<StartupError>>(
    mut startup: Startup,
    client: &Client,
    (clock, signer): (Clock, Option<&Keeping>),
    mut limits_known: impl FnMut() -> Result<(), E>,
) -> Result<StartupResult, E> {
    let way = RuntimeClient {
        handle: Handle::current(),
        client: client.clone(),
    };
    let (mailbox, mut inbox) = mailbox::mailbox();
    let signer = signer.map(|signer| signer.client(&way.handle, &mailbox));
    let mut http = Http::new((way.clone(), way), mailbox, clock);
    loop {
        while let Some(output) = startup.poll_output() {
            match output {
                StartupOutput::Sign(id, unsigned) => {
                    if let Some(signer) = &signer {
                        signer.sign(id, &unsigned);
                    } else {
                        let prepared = client.gateway().sign(&unsigned);
                        startup.handle(clock.now(), StartupInput::Signed(id, prepared));
                    }
                }
                StartupOutput::Send(call) => http.send(call),
                StartupOutput::Abandon(id) => {
                    if let Some(outcome) = http.abandon(id) {
                        pass_result(&mut startup, clock, id, outcome);
                    }
                }
                StartupOutput::LimitsKnown => limits_known()?,
                StartupOutput::CallEnded(ended) => http::count(&ended),
            }
        }
        if let Some(result) = startup.take_result() {
            return Ok(result?);
        }
        let due = startup.poll_timeout().unwrap_or_else(|| clock.now());
        let pause_ns = due.0.saturating_sub(clock.now().0).max(0);
        let wake = inbox
            .wait(Duration::from_nanos(pause_ns.unsigned_abs()))
            .await;
        match wake {
            Wake::Event(LoopEvent::CallEnded(id, outcome)) => {
                http.remove(id);
                pass_result(&mut startup, clock, id, outcome);
            }
            Wake::Signed((id, prepared)) => {
                startup.handle(clock.now(), StartupInput::Signed(id, prepared));
            }
            _ => startup.handle(clock.now(), StartupInput::Timeout),
        }
    }
}

/// Passes the result of a request to the startup.
fn pass_result(startup: &mut Startup, clock: Clock, id: CallId, outcome: CallOutcome) {
    outcome.with_answer(|answer| startup.handle(clock.now(), StartupInput::Answer(id, answer)));
}

/// The engine's configuration of a live run.
pub fn engine_config(
    config: &Config,
    names: &[InstrumentName],
    instruments: Vec<Instrument>,
    assets: &Assets,
    epoch: u64,
) -> EngineConfig {
    let made = assembly::engine_config(config, names, instruments, assets, Vec::new(), epoch);
    EngineConfig {
        live: Some(live_config(config, names)),
        keep_journal: true,
        ..made
    }
}

fn live_config(config: &Config, names: &[InstrumentName]) -> LiveConfig {
    let ms = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    let fee = rescale(config.sim.fees.taker, 6).and_then(|ppm| i64::try_from(ppm).ok());
    LiveConfig {
        surfaces: surfaces(names),
        countdown_ms: ms(config.heartbeat.countdown_ms),
        renew_ms: ms(config.heartbeat.interval_ms),
        reconcile_ms: ms(config.reconcile.interval_ms),
        absence_ms: absence_ms(config),
        copy_ms: copy_ms(config),
        on_start: match config.run.on_start {
            config::OnStart::Adopt => OnStart::Adopt,
            config::OnStart::Cancel => OnStart::Cancel,
        },
        on_stop: on_stop(config),
        multi_assets: config.account.multi_assets,
        fee_estimate_ppm: fee.unwrap_or_default(),
        watchdog: is_watched(config, names),
    }
}

/// Whether a watchdog process must protect spot orders, which have no dead man's switch at the
/// venue.
pub fn is_watched(config: &Config, names: &[InstrumentName]) -> bool {
    let countdown = exchange::capabilities(config).countdown;
    let has_countdown = |surface: &Surface| countdown.contains(surface);
    config.run.mode == config::Mode::Live && !surfaces(names).iter().all(has_countdown)
}

/// The treatment of own orders and positions at the stop.
pub const fn on_stop(config: &Config) -> OnStop {
    match config.run.on_stop {
        Leave::Cancel => OnStop::Cancel,
        Leave::Keep => OnStop::Keep,
        Leave::Flatten => OnStop::Flatten,
    }
}

/// How long a lost request may still arrive at the venue, in milliseconds
/// (`docs/promises.md#2-unknown-is-a-state`).
pub fn absence_ms(config: &Config) -> i64 {
    let venue = &config.venue;
    let apis = [venue.spot.api, venue.futures.api].map(|api| api.unwrap_or(venue.api));
    let window_ms = if apis.contains(&config::Api::V3) {
        let own = i64::try_from(venue.limits.nonce_window_ms).unwrap_or(i64::MAX);
        own.max(NONCE_WINDOW_MS)
    } else {
        i64::from(venue.recv_window_ms)
    };
    window_ms + ABSENCE_MARGIN_MS
}

/// How long a second copy of an answered futures request may still take effect, in milliseconds.
fn copy_ms(config: &Config) -> i64 {
    let venue = &config.venue;
    match venue.futures.api.unwrap_or(venue.api) {
        config::Api::V1 => i64::from(venue.recv_window_ms) + AHEAD_MS,
        config::Api::V3 => 0,
    }
}

/// The public streams of a run that starts at `now`. The gateway's budgets state how much request
/// weight polling may use per minute.
///
/// # Errors
/// A topic that must be polled cannot be polled.
pub fn public_streams(
    config: &Config,
    surfaces: &[Surface],
    (settings, gateway): (&StreamSettings, &Gateway),
    (names, now): (&Names, Time),
) -> Result<PublicStreams, FeedError> {
    let feeds = surfaces.iter().map(|surface| {
        let venue = venue_surface(*surface);
        let weight = |budgets: &mut Budgets| budgets.of(venue).steady_weight(Lane::Query);
        let terms = FeedTerms {
            surface: venue,
            topics: topics(config, *surface),
            mode: market_data(config.venue.market_data),
            settings: settings.clone(),
            polling_weight: gateway.with_budgets(weight),
        };
        let feed = exchange::public_feed(config, *surface, (terms, names.clone()))?;
        Ok((*surface, feed))
    });
    let feeds: Vec<_> = feeds.collect::<Result<_, FeedError>>()?;
    Ok(PublicStreams::new(now, feeds))
}

/// The request weight that a configuration needs on a surface.
pub fn wants(config: &Config, surface: Surface) -> Wants {
    let names = assembly::instrument_names(config);
    let symbols = names.iter().filter(|name| name.surface == surface).count();
    Wants {
        surface,
        symbols: u32::try_from(symbols).unwrap_or(u32::MAX),
        renew_ms: config.heartbeat.interval_ms,
        reconcile_ms: config.reconcile.interval_ms,
        topics: topics(config, surface),
        market_data: market_data(config.venue.market_data),
        is_live: config.run.mode == config::Mode::Live,
        weight: exchange::capabilities(config).weight,
    }
}

/// Which spot orders the watchdog process must watch for the run of this epoch.
pub fn watchdog_plan(config: &Config, names: &[InstrumentName], epoch: u64) -> WatchdogPlan {
    let spot = names.iter().filter(|name| name.surface == Surface::Spot);
    let strategies = config.strategies.iter();
    WatchdogPlan {
        strategies: strategies
            .map(|strategy| strategy.id.as_str().to_owned())
            .collect(),
        symbols: spot.map(|name| name.symbol.clone()).collect(),
        epoch,
        countdown_ms: config.heartbeat.countdown_ms,
        absence_ms: absence_ms(config).unsigned_abs(),
        orders_may_rest: false,
    }
}

/// The public topics of a surface that strategies, risk limits and equity need.
pub fn topics(config: &Config, surface: Surface) -> Vec<Topic> {
    let documented = config.venue.market_data == MarketData::Documented;
    let mut topics = Vec::new();
    for strategy in &config.strategies {
        for name in strategy
            .instruments
            .iter()
            .filter(|name| name.surface == surface)
        {
            let mut add = |feed| topics.push(Topic::of(&name.symbol, feed));
            // Price collars and equity use the mid price.
            add(Feed::BookTicker);
            if surface == Surface::Futures {
                add(Feed::MarkPrice { every_second: true });
            }
            // The simulated venue needs the whole public book and all trades to fill orders.
            let paper = config.run.mode == config::Mode::Paper;
            let bars = |stream: &Stream| matches!(stream, Stream::Bar { .. });
            let trades =
                strategy.streams.contains(&Stream::Trade) || strategy.streams.iter().any(bars);
            if trades || paper {
                add(if documented {
                    Feed::TradePro
                } else {
                    Feed::Trade
                });
            }
            if strategy.streams.contains(&Stream::Book) || paper {
                add(Feed::Depth { fast: true });
            }
        }
    }
    topics
}
