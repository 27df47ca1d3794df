//! What a live run is made of, from the configuration and from what the venue says of itself.

use std::time::{Duration, Instant};

use windvane_client::budget::Lane;
use windvane_client::{BAN_MAX, Client, NotDone, Wait, WaitReason};
use windvane_engine::config::EngineConfig;
use windvane_engine::decimal::rescale;
use windvane_engine::live::{LiveConfig, OnStart, OnStop};
use windvane_engine::{Instrument, Surface};
use windvane_venue::market_stream::{Feed, Topic};
use windvane_venue::route;
use windvane_venue::speak::{FuturesAccount, Names, Speaker};
use windvane_venue::symbol_rules::RulesError;
use windvane_venue::wire::Parameters;
use windvane_venue::{Assets, exchange_info};

use super::quiet::Quiet;
use crate::assembly;
use crate::config::{self, Config, InstrumentName, Leave, MarketData, Stream};
use windvane_session::venue_surface;

/// An order may reach the venue so much later than its time allows, by clocks and by networks.
const ABSENCE_MARGIN_MS: i64 = 5_000;
/// A timestamp may be so far ahead of the venue's clock (spec 2, Authentication).
const AHEAD_MS: i64 = 1_000;
/// The widest window of nonces that spec 4, section 1, names.
const NONCE_WINDOW_MS: i64 = 60_000;
/// While the venue is away it is asked again, with pauses that grow from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// Readings of a clock of which the best counts.
const CLOCK_SAMPLES: u8 = 3;

/// Why a run cannot be made of what the venue says.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The venue refuses to say what it trades.
    #[error("{surface} exchange information: {not_done}")]
    Refused {
        /// Surface.
        surface: Surface,
        /// Why.
        not_done: NotDone,
    },
    /// What it says cannot be read.
    #[error("{surface}: {error}")]
    Unreadable {
        /// Surface.
        surface: Surface,
        /// Why.
        error: exchange_info::ExchangeInfoError,
    },
    /// The account of documents 1 to 3 is read by its address.
    #[error(
        "venue.market_data = \"documented\" reads the futures account by its wallet address: set \
         account.user"
    )]
    NoAddress,
    /// It does not trade an instrument.
    #[error("the venue does not list {0}: correct instruments of the strategy that names it")]
    NotListed(InstrumentName),
    /// An instrument's rules cannot be used.
    #[error("{name}: {error}")]
    Rules {
        /// The instrument.
        name: InstrumentName,
        /// Why.
        error: RulesError,
    },
}

/// The surfaces of these instruments.
pub fn surfaces(names: &[InstrumentName]) -> Vec<Surface> {
    let all = Surface::ALL.iter().copied();
    all.filter(|surface| names.iter().any(|name| name.surface == *surface))
        .collect()
}

/// Reads a surface's clock, and answers once it was read: what is signed carries its time.
pub async fn clock(surface: Surface, client: &Client) {
    let mut pause = RETRY.0;
    let mut trouble = Quiet::default();
    while let Err(error) = client
        .sync_clock(venue_surface(surface), CLOCK_SAMPLES)
        .await
    {
        if let Some(repeated) = trouble.again(Instant::now()) {
            tracing::warn!(
                %surface,
                %error,
                repeated,
                "the venue's clock was not read; it is asked again"
            );
        }
        tokio::time::sleep(named_wait(&error).unwrap_or(pause)).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

/// How long to wait where a limit says so: neither longer nor shorter.
fn named_wait(not_done: &NotDone) -> Option<Duration> {
    match not_done {
        NotDone::Wait(Wait {
            why: WaitReason::Venue(_) | WaitReason::Budget(_),
            after,
        }) => Some((*after).clamp(RETRY.0, BAN_MAX)),
        _ => None,
    }
}

/// The instruments as the venue lists them, asked for until it answers.
pub async fn instruments(
    client: &Client,
    names: &[InstrumentName],
    assets: &mut Assets,
) -> Result<Vec<Instrument>, StartError> {
    let mut texts = Vec::new();
    for surface in surfaces(names) {
        texts.push((surface, exchange_information(surface, client).await?));
    }
    let mut instruments = Vec::with_capacity(names.len());
    for name in names {
        let text = texts.iter().find(|(surface, _)| *surface == name.surface);
        let text = text.map_or("", |(_, text)| text.as_str());
        instruments.push(instrument(name, text, assets)?);
    }
    // The account may hold other assets, and pay commissions in them.
    for (_, text) in &texts {
        for asset in exchange_info::assets(text) {
            assets.id(&asset);
        }
    }
    Ok(instruments)
}

async fn exchange_information(surface: Surface, client: &Client) -> Result<String, StartError> {
    let name = format!("{surface}.exchange_info");
    let mut pause = RETRY.0;
    let mut trouble = Quiet::default();
    loop {
        let mut wait = None;
        let Some(route) = route::named(&name) else {
            // Both surfaces have this route (spec 1 and 2).
            return Ok(String::new());
        };
        let answer = client.call(route, None, &Parameters::new()).await;
        match answer.into_result() {
            Ok(answer) => match exchange_info::entries(&answer.text) {
                Ok(_) => return Ok(answer.text),
                // An empty or a half answer is that of a venue in trouble.
                Err(error) => {
                    tracing::warn!(%surface, %error, "the venue cannot be understood; it is asked again");
                }
            },
            Err(not_done @ NotDone::Refused(_)) => {
                return Err(StartError::Refused { surface, not_done });
            }
            Err(not_done) => {
                if let Some(repeated) = trouble.again(Instant::now()) {
                    tracing::warn!(
                        %surface,
                        %not_done,
                        repeated,
                        "the venue is away; it is asked again"
                    );
                }
                wait = named_wait(&not_done);
            }
        }
        tokio::time::sleep(wait.unwrap_or(pause)).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

/// An instrument, from exchange information.
///
/// # Errors
/// It is not listed, or its rules cannot be used.
pub fn instrument(
    name: &InstrumentName,
    text: &str,
    assets: &mut Assets,
) -> Result<Instrument, StartError> {
    let surface = name.surface;
    let unreadable = |error| StartError::Unreadable { surface, error };
    let entries = exchange_info::entries(text).map_err(unreadable)?;
    let entry = entries.iter().find(|(symbol, _)| *symbol == name.symbol);
    let (_, entry) = entry.ok_or_else(|| StartError::NotListed(name.clone()))?;
    let mut rules = exchange_info::symbol_rules(entry).map_err(unreadable)?;
    // An entry does not say its surface where it has no `contractType`; the route does.
    rules.surface = surface;
    rules.instrument(assets).map_err(|error| StartError::Rules {
        name: name.clone(),
        error,
    })
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

/// Whether a watchdog process watches spot orders: spot has no dead man's switch of its own.
pub fn is_watched(config: &Config, names: &[InstrumentName]) -> bool {
    config.run.mode == config::Mode::Live && surfaces(names).contains(&Surface::Spot)
}

/// What happens to own orders and positions at the stop.
pub const fn on_stop(config: &Config) -> OnStop {
    match config.run.on_stop {
        Leave::Cancel => OnStop::Cancel,
        Leave::Keep => OnStop::Keep,
        Leave::Flatten => OnStop::Flatten,
    }
}

/// When a request that was lost can no longer arrive (promise 2).
pub fn absence_ms(config: &Config) -> i64 {
    let venue = &config.venue;
    let apis = [venue.spot.api, venue.futures.api].map(|api| api.unwrap_or(venue.api));
    let window_ms = if apis.contains(&config::Api::V3) {
        NONCE_WINDOW_MS
    } else {
        i64::from(venue.recv_window_ms)
    };
    window_ms + ABSENCE_MARGIN_MS
}

/// When a copy of a futures request that was answered does nothing any more.
fn copy_ms(config: &Config) -> i64 {
    let venue = &config.venue;
    match venue.futures.api.unwrap_or(venue.api) {
        config::Api::V1 => i64::from(venue.recv_window_ms) + AHEAD_MS,
        config::Api::V3 => 0,
    }
}

/// Who says the engine's requests.
pub fn speaker(
    config: &Config,
    futures_account: FuturesAccount,
    instruments: &[Instrument],
    assets: &Assets,
) -> Speaker {
    Speaker {
        names: Names::new(instruments, assets.names()),
        futures_account,
        documented: config.venue.market_data == MarketData::Documented,
    }
}

/// Where the futures account is read: the routes of spec 4, section 4, where the venue has them and
/// they may be used, the info endpoint by wallet address otherwise. Asked for until the venue says whether it
/// has the route: a run that took a lost or a spoilt answer for a yes could not read its account.
pub async fn futures_account(
    config: &Config,
    client: &Client,
    names: &[InstrumentName],
) -> Result<FuturesAccount, StartError> {
    let address = client.settings().credentials.user;
    let info = address.map(|address| FuturesAccount::Info {
        address: address.to_string(),
    });
    if !surfaces(names).contains(&Surface::Futures) {
        return Ok(FuturesAccount::Routes);
    }
    if config.venue.market_data == MarketData::Documented {
        return info.ok_or(StartError::NoAddress);
    }
    let Some(route) = route::named("futures.account") else {
        return Ok(FuturesAccount::Routes);
    };
    let client = client.in_lane(Lane::Start);
    let Some(info) = info else {
        return Ok(FuturesAccount::Routes);
    };
    let mut pause = RETRY.0;
    loop {
        let answer = client.call(route, None, &Parameters::new()).await;
        let wait = match answer.into_result() {
            Err(NotDone::Refused(refusal)) if refusal.is_of_unserved_read() => {
                tracing::warn!("the venue has no account route: the info endpoint is asked");
                return Ok(info);
            }
            Err(NotDone::Refused(_)) => return Ok(FuturesAccount::Routes),
            Ok(answer) if is_record(&answer.text) => return Ok(FuturesAccount::Routes),
            Ok(_) => None,
            Err(not_done) => named_wait(&not_done),
        };
        tracing::warn!("the account route was not answered; it is asked again");
        tokio::time::sleep(wait.unwrap_or(pause)).await;
        pause = (pause * 2).min(RETRY.1);
    }
}

/// Whether an answer is a record, and not that of a venue in trouble: empty, cut off, or a page.
pub fn is_record(text: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok()
}

/// The public topics of a surface: what strategies are told, and what risk and equity need.
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
            // Collars and equity are measured from mid.
            add(Feed::BookTicker);
            if surface == Surface::Futures {
                add(Feed::MarkPrice { every_second: true });
            }
            // A simulated venue fills by all that is shown.
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
