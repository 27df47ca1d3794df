//! What a run trades on: a venue with its account, a venue's public data with a simulated account,
//! or recordings with one. Brings instruments and their rules, and opens what speaks of the market.

use std::sync::Arc;

use windvane_client::Client;
use windvane_client::streams::StreamStartError;
use windvane_journal::Directory;
use windvane_model::{Instrument, Time};
use windvane_protocol::Assets;

use windvane_protocol::speak::{FuturesAccount, Names};
use windvane_session::{PublicStreams, Requests, weights};

use super::clock::Clock;
use super::desk::Counter;
use super::player::Player;
use super::results::Results;
use super::{LiveError, Market, Playing, start, venue_wait};
use crate::bans;
use windvane_backtest::{Progress, load};
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, Latency, Mode};
use windvane_recording::{Recording, RulesSource};
use windvane_session::paper::{Links, Paper};

/// What a run trades on.
pub enum Stage {
    /// A venue; whose account it is, `run.mode` says.
    Venue(Client),
    /// Recordings.
    Recordings(Recorded),
}

/// What a start learns of its stage.
pub struct Found {
    pub instruments: Vec<Instrument>,
    pub assets: Assets,
    /// Where the futures account is read.
    pub futures_account: FuturesAccount,
    /// The session's requests, which leave through the gateway of the client; none beside recordings.
    pub requests: Option<Requests>,
    /// The shell's clock, which the requests go by.
    pub clock: Clock,
}

/// Recordings as a market.
pub struct Recorded {
    recordings: Vec<Recording>,
    /// Where the rules of each instrument come from.
    sources: Vec<RulesSource>,
    playing: Playing,
}

impl Stage {
    /// The stage of a run, and what a start learns there.
    pub async fn set(
        config: &Config,
        market: Market,
        names: &[InstrumentName],
        (directory, counter): (&Arc<Directory>, &Counter),
    ) -> Result<(Self, Found), LiveError> {
        let settings = match market {
            Market::Venue(settings) => *settings,
            Market::Recordings(playing) => return recorded(config, playing, names).await,
        };
        let client = Client::new(settings)?;
        bans::keep(&client, directory);
        bans::heed(&client, &config.run.data_dir);
        bans::sit_out(&client, &start::surfaces(names), |words| counter.say(words)).await;
        counter.say("the venue is asked for its clock and its instruments");
        let surfaces = start::surfaces(names);
        let wants = || {
            surfaces
                .iter()
                .map(|&surface| start::wants(config, surface))
        };
        let plan = || weights::keep(client.gateway(), wants()).map_err(LiveError::from);
        let terms = start::terms(config, names);
        let (known, clock) = start::find_out(config, &client, terms, plan).await?;
        let found = Found {
            instruments: known.instruments,
            assets: known.assets,
            futures_account: known.futures_account,
            requests: Some(known.requests),
            clock,
        };
        Ok((Self::Venue(client), found))
    }

    /// The client of the venue, if there is one.
    pub fn client(&self) -> Option<Client> {
        match self {
            Self::Venue(client) => Some(client.clone()),
            Self::Recordings(_) => None,
        }
    }

    /// The recordings, to be played behind what a simulated account has heard.
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
        let heard = paper.map_or((Time(i64::MIN), 0), Paper::heard);
        let player = Player::new(recordings, instruments, feed_ns, pace, heard)?;
        if player.time() == Time::NEVER {
            return Err(LiveError::Played {
                until: windvane_report::utc::utc_text(heard.0),
                data_dir: config.run.data_dir.clone(),
            });
        }
        Ok(Some(player))
    }

    /// What a run on recordings comes to, from `start` on.
    pub fn results(&self, config: &Config, start: Time) -> Result<Option<Results>, LiveError> {
        let Self::Recordings(recorded) = self else {
            return Ok(None);
        };
        let out = recorded.playing.out.as_ref();
        let (recordings, sources) = (&recorded.recordings, &recorded.sources);
        Ok(Some(Results::new(config, recordings, sources, out, start)?))
    }

    /// The account of this stage: `paper` is what an earlier process left of a simulated one.
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
        links.gap_blinds = matches!(self, Self::Venue(_));
        let instruments = instruments.to_vec();
        let paper = match paper {
            Some(paper) => paper.succeed(terms, instruments, assets, links)?,
            None => Paper::new(terms, instruments, assets, links)?,
        };
        Ok(Some(Box::new(paper)))
    }

    /// The public streams of a run that begins `now`; none beside recordings.
    ///
    /// # Errors
    /// What has to be polled cannot be.
    pub fn public_streams(
        &self,
        config: &Config,
        names: &[InstrumentName],
        (spoken, now): (&Names, Time),
    ) -> Result<Option<PublicStreams>, LiveError> {
        let Self::Venue(client) = self else {
            return Ok(None);
        };
        let surfaces = start::surfaces(names);
        let with = (&client.settings().streams, client.gateway());
        let streams = start::public_streams(config, &surfaces, with, (spoken, now));
        Ok(Some(streams.map_err(StreamStartError::from)?))
    }

    /// Tells people of stops of the venue.
    pub fn watch_stops(&self, config: &Config, names: &[InstrumentName]) {
        if let (Self::Venue(client), Mode::Live) = (self, config.run.mode) {
            let surfaces = start::surfaces(names);
            tokio::spawn(venue_wait::watch(client.clone(), surfaces));
        }
    }
}

async fn recorded(
    config: &Config,
    playing: Playing,
    names: &[InstrumentName],
) -> Result<(Stage, Found), LiveError> {
    let opened = super::begin::blocking({
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
    let found = Found {
        instruments: market.instruments,
        assets,
        futures_account: FuturesAccount::Routes,
        requests: None,
        clock: Clock::start(),
    };
    Ok((Stage::Recordings(recorded), found))
}

fn show(progress: Progress<'_>) {
    if let Progress::Notice(sentence) = progress {
        tracing::warn!("{sentence}");
    }
}

/// How long messages of a simulated account travel.
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
