//! `windvane venue`: the simulated venue as a server on loopback.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rust_decimal::Decimal;
use serde::Serialize;
use windvane_model::Surface;
use windvane_protocol::sign::sentence;
use windvane_sim_server::{LimitSettings, Running, Settings, Source, StreamLimits, start};

use super::Failure;
use super::printing::print_json;
use super::progress::Terminal;
use crate::playback::Playback;
use windvane_config::{Config, Network};

/// The sentence that is signed for API keys, if the configuration has none.
const SENTENCE: &str = "Sign in to the simulated venue:";

#[derive(Debug, Args)]
pub(super) struct Venue {
    /// Configuration file; the profile, names, network, chain ids and limits of its [venue], its
    /// [[instrument]] and its [sim.choices] are used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a setting, such as venue.network=testnet; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Recording to use as the market, instead of a random market; can be repeated
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,
    /// Start the recording again at its end
    #[arg(long = "loop", requires = "data")]
    looped: bool,
    /// Speed of the recording: 2 is twice as fast; the venue's clock always runs in real time
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = permille)]
    speed: u32,
    /// Folder for decoded recordings
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// The venue's short name, instead of venue.brand
    #[arg(long, value_name = "WORD")]
    brand: Option<String>,
    /// Seed of the test keys and of the random market
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Market actions per second and symbol in the random market
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "data",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Request weight per minute on each surface, instead of the documents' example values
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    weight: Option<u32>,
    /// Port of spot; futures, chain, rpc and control use the next ports; 0: the system chooses each
    /// port
    #[arg(long, default_value_t = 18080)]
    port: u16,
}

/// Parses a factor. Returns it in thousandths.
fn permille(text: &str) -> Result<u32, String> {
    let factor: Option<Decimal> = text.parse().ok();
    let permille = factor.and_then(|factor| factor.checked_mul(Decimal::ONE_THOUSAND));
    let permille = permille.and_then(|permille| u32::try_from(permille.trunc()).ok());
    permille
        .filter(|permille| *permille > 0)
        .ok_or_else(|| "must be a number from 0.001 to 4000000".to_owned())
}

impl Venue {
    pub(super) fn run(self) -> Result<(), Failure> {
        let settings = self.settings()?;
        let sentence = settings.brand.login_sentence.as_deref();
        let sentence = sentence.map(sentence::with_space);
        super::block_on(async {
            let running = start(settings).await.map_err(Failure::failed)?;
            print_json(&ready_line(&running, sentence.as_deref())?)?;
            tokio::select! {
                () = running.wait() => Err(Failure::Failed("the server stopped".to_owned())),
                stopped = super::stop_signal() => stopped.map_err(Failure::failed),
            }
        })?
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let mut config = super::configuration(self.config.as_deref(), &self.set)?;
        if let Some(word) = &self.brand {
            config.venue.brand.clone_from(word);
        }
        let source = if self.data.is_empty() {
            Source::Seeded {
                per_second: self.rate,
            }
        } else {
            Source::Recorded(self.recording(&config)?)
        };
        let mut brand = config.venue.brand().map_err(Failure::usage)?;
        // The venue needs a sentence, because its clients sign it.
        brand
            .login_sentence
            .get_or_insert_with(|| SENTENCE.to_owned());
        let known = &config.venue.limits;
        let streams = |surface, most: u32| StreamLimits {
            streams_max: most as usize,
            messages_per_second: known.messages_per_second as usize,
            life: Duration::from_hours(u64::from(known.connection_hours)),
            ..StreamLimits::of(surface)
        };
        let mut limits = LimitSettings::default();
        if let Some(weight) = self.weight {
            (limits.spot_weight, limits.futures_weight) = (weight, weight);
        }
        Ok(Settings {
            limits,
            brand,
            testnet: config.venue.network == Network::Testnet,
            seed: self.seed,
            port: self.port,
            source,
            choices: config.sim.choices,
            nonce_window_ms: i64::try_from(known.nonce_window_ms).unwrap_or(i64::MAX),
            spot_streams: streams(Surface::Spot, known.spot_streams),
            futures_streams: streams(Surface::Futures, known.futures_streams),
            ..Settings::default()
        })
    }

    fn recording(&self, config: &Config) -> Result<windvane_sim_server::Recording, Failure> {
        let playback = Playback {
            files: self.data.clone(),
            cache: self.cache.clone(),
            speed_permille: self.speed,
            looped: self.looped,
        };
        let mut terminal = Terminal::new();
        let opened = playback.open(&config.instruments, &mut |done, of| {
            terminal.show("decoding", done, of);
        });
        terminal.clear();
        opened.map_err(Failure::usage)
    }
}

/// The line on stdout with all addresses and test keys.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadyLine<'a> {
    spot: Both,
    futures: Both,
    chain: String,
    rpc: String,
    control: String,
    accounts: Vec<AccountLine<'a>>,
    login_sentence: Option<&'a str>,
}

/// Addresses of one surface.
#[derive(Debug, Serialize)]
struct Both {
    rest: String,
    ws: String,
}

/// Test keys of one account.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountLine<'a> {
    api_key: &'a str,
    api_secret: &'a str,
    user: &'a str,
    user_key: &'a str,
    signer: &'a str,
    signer_key: &'a str,
}

impl Both {
    fn of(address: SocketAddr) -> Self {
        Self {
            rest: format!("http://{address}"),
            ws: format!("ws://{address}"),
        }
    }
}

fn ready_line(running: &Running, login_sentence: Option<&str>) -> Result<String, Failure> {
    let addresses = &running.addresses;
    let accounts = running.accounts.iter().map(|keys| AccountLine {
        api_key: &keys.api_key,
        api_secret: &keys.api_secret,
        user: &keys.user,
        user_key: &keys.user_key,
        signer: &keys.signer,
        signer_key: &keys.signer_key,
    });
    let line = ReadyLine {
        spot: Both::of(addresses.spot),
        futures: Both::of(addresses.futures),
        chain: format!("http://{}", addresses.chain),
        rpc: format!("http://{}", addresses.rpc),
        control: format!("http://{}", addresses.control),
        accounts: accounts.collect(),
        login_sentence,
    };
    serde_json::to_string(&line).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_positive_number() {
        assert_eq!(permille("1"), Ok(1000));
        assert_eq!(permille("0.25"), Ok(250));
        for wrong in ["0", "-1", "fast", "0.0001", "99999999"] {
            assert!(permille(wrong).is_err(), "{wrong}");
        }
    }
}
