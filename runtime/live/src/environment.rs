//! The environment of a run: a venue with its account, a venue's public data with a simulated
//! account, or recordings with a simulated account. It provides instruments with their rules and
//! opens the sources of market data.

use std::sync::Arc;

use windvane_client::Client;
use windvane_client::streams::StreamStartError;
use windvane_journal::Directory;
use windvane_model::{Instrument, Time};
use windvane_protocol::Assets;

use windvane_protocol::adapter::{FuturesAccount, Names};
use windvane_session::{PublicStreams, Requests, weights};

use super::admin_bridge::StartProgress;
use super::blocking::blocking;
use super::clock::Clock;
use super::error::LiveError;
use super::market::{Market, Playing};
use super::player::Player;
use super::results::Results;
use super::signer::Keeping;
use super::{startup_steps, venue_wait};
use crate::bans;
use windvane_backtest::{Progress, load};
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, Latency, Mode};
use windvane_recording::{Recording, RulesSource};
use windvane_session::paper::{Links, Paper};

/// The environment of a run.
pub enum Environment {
    /// A venue. With `run.mode = "live"` the account is the venue's, else it is simulated.
    Venue(Client, Option<Arc<Keeping>>),
    /// Recordings.
    Recordings(Recorded),
}

/// The facts that a start learns from its environment.
pub struct Discovered {
    pub instruments: Vec<Instrument>,
    pub assets: Assets,
    /// The route that reads the futures account.
    pub futures_account: FuturesAccount,
    /// The session's requests, which leave through the gateway of the client; `None` on recordings.
    pub requests: Option<Requests>,
    /// The clock that the requests use.
    pub clock: Clock,
}

/// Recordings that serve as the market.
pub struct Recorded {
    recordings: Vec<Recording>,
    /// The source of each instrument's rules.
    sources: Vec<RulesSource>,
    playing: Playing,
}

impl Environment {
    /// Makes the environment of a run, and returns what a start learns from it.
    pub async fn prepare(
        config: &Config,
        market: Market,
        names: &[InstrumentName],
        (directory, progress): (&Arc<Directory>, &StartProgress),
    ) -> Result<(Self, Discovered), LiveError> {
        let (settings, signer) = match market {
            Market::Venue(settings, signer) => (*settings, signer),
            Market::Recordings(playing) => return recorded(config, playing, names).await,
        };
        let client = Client::new(settings)?;
        let signer = signer
            .map(|signer| signer.keep())
            .transpose()?
            .map(Arc::new);
        bans::keep(&client, directory);
        bans::heed(&client, &config.run.data_dir);
        bans::sit_out(&client, &startup_steps::surfaces(names), |text| {
            progress.report(text);
        })
        .await;
        progress.report("reading the venue's clock and instruments; no order is sent yet");
        let surfaces = startup_steps::surfaces(names);
        let wants = || {
            surfaces
                .iter()
                .map(|&surface| startup_steps::wants(config, surface))
        };
        let plan = || weights::keep(client.gateway(), wants()).map_err(LiveError::from);
        let terms = startup_steps::terms(config, names);
        let (known, clock) =
            startup_steps::find_out(config, &client, (terms, signer.as_deref()), plan).await?;
        let found = Discovered {
            instruments: known.instruments,
            assets: known.assets,
            futures_account: known.futures_account,
            requests: Some(known.requests),
            clock,
        };
        Ok((Self::Venue(client, signer), found))
    }

    /// The client of the venue; `None` on recordings.
    pub fn client(&self) -> Option<Client> {
        match self {
            Self::Venue(client, _) => Some(client.clone()),
            Self::Recordings(_) => None,
        }
    }

    /// The signer process; `None` if this process signs itself, or not at all.
    pub fn signer(&self) -> Option<&Arc<Keeping>> {
        match self {
            Self::Venue(_, signer) => signer.as_ref(),
            Self::Recordings(_) => None,
        }
    }

    /// The player of the recordings. It starts after the last event that the simulated account
    /// received.
    pub fn player(
        &self,
        config: &Config,
        instruments: &[Instrument],
        paper: Option<&Paper>,
    ) -> Result<Option<Player>, LiveError> {
        let Self::Recordings(recorded) = self else {
            return Ok(None);
        };
        let (recordings, pace) = (&recorded.recordings, recorded.playing.pace);
        let feed_ns = links(config)?.feed_ns;
        let last_market = paper.map_or((Time(i64::MIN), 0), Paper::last_market);
        let player = Player::new(recordings, instruments, feed_ns, pace, last_market)?;
        if player.time() == Time::NEVER {
            return Err(LiveError::Played {
                until: windvane_report::utc::utc_text(last_market.0),
                data_dir: config.run.data_dir.clone(),
            });
        }
        Ok(Some(player))
    }

    /// The collector of results for a run on recordings, from `start` on.
    pub fn results(&self, config: &Config, start: Time) -> Result<Option<Results>, LiveError> {
        let Self::Recordings(recorded) = self else {
            return Ok(None);
        };
        let out = recorded.playing.out.as_ref();
        let (recordings, sources) = (&recorded.recordings, &recorded.sources);
        Ok(Some(Results::new(config, recordings, sources, out, start)?))
    }

    /// The simulated account of a paper run. `paper` is the state that an earlier process saved.
    pub fn account(
        &self,
        config: &Config,
        instruments: &[Instrument],
        assets: &mut Assets,
        paper: Option<Paper>,
    ) -> Result<Option<Box<Paper>>, LiveError> {
        if config.run.mode == Mode::Live {
            return Ok(None);
        }
        let balances = assembly::balances(&config.sim, assets);
        let terms = assembly::venue_config(config, &balances);
        let mut links = links(config)?;
        links.gap_blinds = matches!(self, Self::Venue(..));
        let instruments = instruments.to_vec();
        let paper = match paper {
            Some(paper) => paper.succeed(terms, instruments, assets, links)?,
            None => Paper::new(terms, instruments, assets, links)?,
        };
        Ok(Some(Box::new(paper)))
    }

    /// The public streams of a run that starts at `now`; `None` on recordings.
    ///
    /// # Errors
    /// A topic that must be polled cannot be polled.
    pub fn public_streams(
        &self,
        config: &Config,
        names: &[InstrumentName],
        (adapter_names, now): (&Names, Time),
    ) -> Result<Option<PublicStreams>, LiveError> {
        let Self::Venue(client, _) = self else {
            return Ok(None);
        };
        let surfaces = startup_steps::surfaces(names);
        let with = (&client.settings().streams, client.gateway());
        let streams = startup_steps::public_streams(config, &surfaces, with, (adapter_names, now));
        Ok(Some(streams.map_err(StreamStartError::from)?))
    }

    /// Logs when the venue stops accepting requests, in a live run.
    pub fn watch_stops(&self, config: &Config, names: &[InstrumentName]) {
        if let (Self::Venue(client, _), Mode::Live) = (self, config.run.mode) {
            let surfaces = startup_steps::surfaces(names);
            tokio::spawn(venue_wait::watch(client.clone(), surfaces));
        }
    }
}

async fn recorded(
    config: &Config,
    playing: Playing,
    names: &[InstrumentName],
) -> Result<(Environment, Discovered), LiveError> {
    let opened = blocking({
        let config = config.clone();
        move || load::open_recordings(&config, &mut show)
    });
    let recordings = opened.await??;
    let mut assets = Assets::default();
    let market = load::resolve_instruments(config, names, &recordings, &mut assets)?;
    let recorded = Recorded {
        recordings,
        sources: market.sources,
        playing,
    };
    let found = Discovered {
        instruments: market.instruments,
        assets,
        futures_account: FuturesAccount::Routes,
        requests: None,
        clock: Clock::start(),
    };
    Ok((Environment::Recordings(recorded), found))
}

fn show(progress: Progress<'_>) {
    if let Progress::Notice(sentence) = progress {
        tracing::warn!("{sentence}");
    }
}

/// The latencies of messages between the engine and the simulated account.
fn links(config: &Config) -> Result<Links, LiveError> {
    match config.sim.latency {
        Latency::Constant { feed_ns, order_ns } => Ok(Links {
            feed_ns,
            order_ns,
            gap_blinds: false,
        }),
        Latency::Recorded => Err(LiveError::Latency),
    }
}
