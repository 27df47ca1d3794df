//! Builds the settings of a venue client from the configuration: addresses, dialect, keys. A key is
//! read only for a request that needs it, so a missing key cannot fail any other request.
//!
//! This module sends no requests and makes no decisions about them.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use windvane_client::tls::{RootsError, roots_file};
use windvane_client::{AddressError, Addresses, MarketData, Settings};
use windvane_protocol::brand::BrandError;
use windvane_protocol::route::{InnerSignature, Listing, Scheme, Surface};
use windvane_protocol::sign::{
    ApiKey, Credentials, Dialect, KeyError, Network, SolanaKey, Wallet, sentence,
};
use windvane_session::{surfaces, venue_surface};
use zeroize::Zeroizing;

use windvane_config::{
    self as config, Account, Config, KeySource, Mode, Profile, Secret, SecretError, assembly,
};

/// How long to wait until a file contains its first line.
const LINE_WITHIN: Duration = Duration::from_secs(5);
/// Longest file of a venue's line, bytes. The line has some 300 bytes for each account.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Pause between two reads of that file.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why the configuration gives no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The brand word is not valid.
    #[error("venue.{0}")]
    Brand(#[from] BrandError),
    /// A base address is not valid.
    #[error("venue.{0}")]
    Address(#[from] AddressError),
    /// Neither the configuration nor the profile has an address of a surface.
    #[error(transparent)]
    NoAddress(#[from] NoAddress),
    /// The certificates of the configured authorities cannot be read.
    #[error("venue.tls_roots: {0}")]
    Roots(#[from] RootsError),
    /// A secret cannot be read.
    #[error("account.{setting}: {source}")]
    Secret {
        /// The setting that names it.
        setting: &'static str,
        /// Why.
        source: SecretError,
    },
    /// A secret was read but is not a valid key.
    #[error("account.{setting}: {source}")]
    Key {
        /// The setting that names it.
        setting: &'static str,
        /// Why.
        source: KeyError,
    },
    /// A keystore cannot be opened.
    #[error("account.{setting}: {reason}")]
    Keystore {
        /// The setting that names it.
        setting: &'static str,
        /// Why.
        reason: String,
    },
    /// The file of a simulated venue's addresses cannot be used.
    #[error("--venue {file}: {reason}; it must hold the line that `windvane venue` printed")]
    Line {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
}

/// A part of a surface that has its own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Requests.
    Rest,
    /// Streams.
    Ws,
}

impl Part {
    const fn key(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::Ws => "ws",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Rest => "REST",
            Self::Ws => "WebSocket",
        }
    }
}

/// A surface has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no {} address of {surface} is configured, and the profile \"{profile}\" has none: set \
     venue.{surface}.{}",
    part.name(),
    part.key()
)]
pub struct NoAddress {
    /// The profile of the configuration.
    pub profile: Profile,
    /// The surface.
    pub surface: Surface,
    /// The missing part.
    pub part: Part,
}

/// Requires an address of this part of a surface.
///
/// # Errors
/// The settings have none.
pub fn require(
    config: &Config,
    addresses: &Addresses,
    surface: Surface,
    part: Part,
) -> Result<(), NoAddress> {
    let address = match part {
        Part::Rest => addresses.rest_of(surface),
        Part::Ws => addresses.ws_of(surface),
    };
    address.map(|_| ()).ok_or(NoAddress {
        profile: config.venue.profile,
        surface,
        part,
    })
}

/// Requires every address that a run of this configuration uses.
///
/// # Errors
/// The settings lack one of them.
pub fn require_for_run(config: &Config, addresses: &Addresses) -> Result<(), NoAddress> {
    for surface in surfaces(&assembly::instrument_names(config)) {
        let venue = venue_surface(surface);
        require(config, addresses, venue, Part::Rest)?;
        require(config, addresses, venue, Part::Ws)?;
        if reads_info(config, venue) {
            require(config, addresses, Surface::Rpc, Part::Rest)?;
        }
    }
    Ok(())
}

/// Whether a run reads the account of this surface from the info endpoint only.
pub fn reads_info(config: &Config, surface: Surface) -> bool {
    let documented = config.venue.market_data == config::MarketData::Documented;
    documented && config.run.mode == Mode::Live && surface == Surface::Futures
}

/// Which keys a request needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// API key and secret.
    pub api_key: bool,
    /// The agent's key. Without one, the main wallet's key signs.
    pub signer: bool,
    /// The main wallet's key.
    pub wallet: bool,
    /// The Solana wallet's key.
    pub solana: bool,
}

impl Needs {
    /// The keys that a request of this listing needs. `is_given` answers whether the caller
    /// supplied a parameter of that name.
    pub fn of(listing: &Listing, is_given: impl Fn(&str) -> bool) -> Self {
        let mut needs = Self::default();
        let signed = is_given("signature");
        match listing.scheme {
            Scheme::Open => {}
            Scheme::ApiKey | Scheme::Hmac => needs.api_key = true,
            Scheme::Message => needs.signer = !signed || !is_given("signer"),
            Scheme::WalletMessage | Scheme::Typed(_) => {
                needs.wallet = !signed || !is_given("user");
            }
        }
        match listing.inner {
            _ if is_given("userSignature") => {}
            None => {}
            Some(InnerSignature::SolanaWithdrawal) => needs.solana = true,
            Some(InnerSignature::Withdrawal { .. } | InnerSignature::Sentence) => {
                needs.wallet = true;
            }
        }
        needs
    }
}

/// A client's settings without keys.
pub fn settings(config: &Config) -> Result<Settings, ConnectionError> {
    let venue = &config.venue;
    let mut addresses = Addresses::default();
    for (surface, endpoint) in [
        (Surface::Spot, &venue.spot),
        (Surface::Futures, &venue.futures),
        (Surface::Chain, &venue.chain),
        (Surface::Rpc, &venue.rpc),
    ] {
        if let Some(rest) = &endpoint.rest {
            addresses = addresses.rest(surface, rest)?;
        }
        if let Some(ws) = &endpoint.ws {
            addresses = addresses.ws(surface, ws)?;
        }
        if let Some(ws) = &endpoint.user_ws {
            addresses = addresses.user_ws(surface, ws)?;
        }
    }
    let dialect = Dialect {
        brand: venue.brand()?,
        network: match venue.network {
            config::Network::Mainnet => Network::Mainnet,
            config::Network::Testnet => Network::Testnet,
        },
        recv_window_ms: Some(venue.recv_window_ms),
    };
    let mut settings = Settings::new(addresses, dialect, Credentials::default());
    settings.spot_api = api(venue.spot.api.unwrap_or(venue.api));
    settings.futures_api = api(venue.futures.api.unwrap_or(venue.api));
    settings.market_data = market_data(venue.market_data);
    if let Some(file) = &venue.tls_roots {
        settings.tls_roots = roots_file(file)?;
    }
    // Processes that lost the venue at the same time must not reconnect at the same time. The seed
    // only changes the length of pauses.
    settings.streams.seed = RandomState::new().hash_one(std::process::id());
    let limits = &venue.limits;
    let streams = &mut settings.streams;
    streams.messages_per_s = limits.messages_per_second;
    streams.spot_streams_max = limits.spot_streams as usize;
    streams.futures_streams_max = limits.futures_streams as usize;
    streams.age_max = limits.connection_age();
    Ok(settings)
}

/// The sources that public data may come from.
pub const fn market_data(configured: config::MarketData) -> MarketData {
    match configured {
        config::MarketData::Auto => MarketData::Auto,
        config::MarketData::Documented => MarketData::Documented,
        config::MarketData::Streams => MarketData::Streams,
    }
}

fn api(api: config::Api) -> windvane_client::Api {
    match api {
        config::Api::V1 => windvane_client::Api::V1,
        config::Api::V3 => windvane_client::Api::V3,
    }
}

/// Reads the needed keys that the configuration names.
pub fn credentials(account: &Account, needs: Needs) -> Result<Credentials, ConnectionError> {
    let mut credentials = Credentials {
        // The configuration has checked that it is an address.
        user: account.user.as_deref().and_then(|user| user.parse().ok()),
        ..Credentials::default()
    };
    if let Some(name) = account.api_key.as_ref().filter(|_| needs.api_key) {
        let key = read("api_key", name)?;
        // USER_STREAM and MARKET_DATA routes need no secret
        // (docs/interface/conventions.md#security-labels).
        let secret = account.api_secret.as_ref();
        let secret = secret
            .map(|secret| read("api_secret", secret))
            .transpose()?;
        let secret = secret.unwrap_or_else(|| SecretString::from(""));
        credentials.api_key = Some(ApiKey { key, secret });
    }
    if let Some(source) = account.signer.as_ref().filter(|_| needs.signer) {
        credentials.signer = Some(wallet("signer", source)?);
    }
    let stands_in = needs.signer && credentials.signer.is_none();
    if let Some(source) = account
        .wallet
        .as_ref()
        .filter(|_| needs.wallet || stands_in)
    {
        credentials.wallet = Some(wallet("wallet", source)?);
    }
    if let Some(source) = account.solana.as_ref().filter(|_| needs.solana) {
        let setting = "solana";
        let key = SolanaKey::from_base58(&read(setting, source)?);
        credentials.solana = Some(key.map_err(|source| ConnectionError::Key { setting, source })?);
    }
    Ok(credentials)
}

fn read(setting: &'static str, source: &Secret) -> Result<SecretString, ConnectionError> {
    let text = source.read();
    text.map_err(|source| ConnectionError::Secret { setting, source })
}

fn wallet(setting: &'static str, source: &KeySource) -> Result<Wallet, ConnectionError> {
    match source {
        KeySource::Plain(secret) => {
            let key = Wallet::from_hex(&read(setting, secret)?);
            key.map_err(|source| ConnectionError::Key { setting, source })
        }
        KeySource::Keystore { file, password } => {
            let password = read(setting, password)?;
            let opened = windvane_client::keys::keystore(file, &password);
            opened.map_err(|error| ConnectionError::Keystore {
                setting,
                reason: error.to_string(),
            })
        }
    }
}

/// The line that a simulated venue prints when it is ready: its addresses and accounts.
#[derive(Clone, Debug)]
pub struct VenueLine {
    file: String,
    public: PublicLine,
    accounts: Vec<LineAccount>,
}

/// The part of the line that contains no keys.
#[derive(Clone, Debug, Deserialize)]
struct PublicLine {
    spot: LineAddresses,
    futures: LineAddresses,
    chain: String,
    rpc: String,
    #[serde(rename = "loginSentence")]
    login_sentence: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LineAccounts {
    accounts: Vec<LineAccount>,
}

#[derive(Clone, Debug, Deserialize)]
struct LineAddresses {
    rest: String,
    ws: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineAccount {
    #[serde(deserialize_with = "secret")]
    api_key: SecretString,
    #[serde(deserialize_with = "secret")]
    api_secret: SecretString,
    user: String,
    #[serde(deserialize_with = "secret")]
    user_key: SecretString,
    #[serde(deserialize_with = "secret")]
    signer_key: SecretString,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    let text = Zeroizing::new(String::deserialize(deserializer)?);
    Ok(SecretString::from(text.as_str()))
}

/// Reads the first line of a file. Waits a moment for it, because a venue that has just started may
/// not have written it yet.
fn first_line<T>(
    file: &Path,
    read: impl FnOnce(&str) -> serde_json::Result<T>,
) -> Result<T, ConnectionError> {
    let refuse = |reason: String| ConnectionError::Line {
        file: file.display().to_string(),
        reason,
    };
    let begin = Instant::now();
    let text = loop {
        let read = windvane_files::read_text_bounded(file, LINE_BYTES_MAX);
        let text = Zeroizing::new(read.map_err(|error| refuse(error.to_string()))?);
        if text.contains('\n') || text.ends_with('}') || begin.elapsed() >= LINE_WITHIN {
            break text;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let line = text.lines().next().unwrap_or_default();
    read(line).map_err(|error| refuse(error.to_string()))
}

/// Settings to connect to the simulated venue of this line, without any key: a process that does not
/// sign must not keep one.
pub fn line_settings(file: &Path, config: &Config) -> Result<Settings, ConnectionError> {
    let line: PublicLine = first_line(file, |line| serde_json::from_str(line))?;
    line.settings(config)
}

impl PublicLine {
    fn settings(&self, config: &Config) -> Result<Settings, ConnectionError> {
        let mut config = config.clone();
        let venue = &mut config.venue;
        for (endpoint, line) in [
            (&mut venue.spot, &self.spot),
            (&mut venue.futures, &self.futures),
        ] {
            endpoint.rest = Some(line.rest.clone());
            endpoint.ws = Some(line.ws.clone());
            // No stream may leave for the profile's venue.
            endpoint.user_ws = None;
        }
        venue.chain.rest = Some(self.chain.clone());
        venue.rpc.rest = Some(self.rpc.clone());
        let mut settings = settings(&config)?;
        let given = &mut settings.dialect.brand.login_sentence;
        let own = self.login_sentence.as_deref();
        let own = own.map(|text| sentence::without_space(text).to_owned());
        *given = given.take().or(own);
        Ok(settings)
    }
}

impl VenueLine {
    /// Reads the first line of a file.
    pub fn read(file: &Path) -> Result<Self, ConnectionError> {
        let (public, LineAccounts { accounts }) = first_line(file, |line| {
            Ok((serde_json::from_str(line)?, serde_json::from_str(line)?))
        })?;
        Ok(Self {
            file: file.display().to_string(),
            public,
            accounts,
        })
    }

    /// Settings to connect to that venue with one of its accounts, numbered from 0.
    pub fn settings(&self, config: &Config, account: usize) -> Result<Settings, ConnectionError> {
        let mut settings = self.public.settings(config)?;
        settings.credentials = self.credentials(account)?;
        Ok(settings)
    }

    fn credentials(&self, account: usize) -> Result<Credentials, ConnectionError> {
        let keys = self.accounts.get(account);
        let keys = keys.ok_or_else(|| ConnectionError::Line {
            file: self.file.clone(),
            reason: format!(
                "it has {} accounts, numbered from 0, and none is number {account}",
                self.accounts.len()
            ),
        })?;
        let key = |setting, text: &SecretString| {
            Wallet::from_hex(text).map_err(|source| ConnectionError::Key { setting, source })
        };
        Ok(Credentials {
            api_key: Some(ApiKey {
                key: keys.api_key.clone(),
                secret: keys.api_secret.clone(),
            }),
            user: keys.user.parse().ok(),
            signer: Some(key("signer", &keys.signer_key)?),
            wallet: Some(key("wallet", &keys.user_key)?),
            solana: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use windvane_protocol::route::{self, Version};

    use super::*;

    fn needs(name: &str, version: Version, given: &[&str]) -> Needs {
        let route = route::named(name).unwrap();
        let listing = route.listing(Some(version)).unwrap();
        Needs::of(listing, |name| given.contains(&name))
    }

    #[test]
    fn a_request_needs_the_keys_that_sign_it_and_no_other() {
        let none = Needs::default();
        let api_key = Needs {
            api_key: true,
            ..none
        };
        let signer = Needs {
            signer: true,
            ..none
        };
        let wallet = Needs {
            wallet: true,
            ..none
        };
        let both = Needs {
            wallet: true,
            ..signer
        };
        assert_eq!(needs("spot.depth", Version::V3, &[]), none);
        assert_eq!(needs("spot.new_order", Version::V1, &[]), api_key);
        assert_eq!(needs("spot.new_order", Version::V3, &[]), signer);
        assert_eq!(
            needs("futures.create_listen_key", Version::V1, &[]),
            api_key
        );
        assert_eq!(needs("futures.approve_agent", Version::V3, &[]), wallet);
        assert_eq!(needs("chain.transfer", Version::V3, &[]), wallet);
        assert_eq!(needs("chain.perp_withdraw", Version::V3, &[]), both);
        let given = ["userSignature"];
        assert_eq!(needs("chain.perp_withdraw", Version::V3, &given), signer);
        let given = ["signature", "signer"];
        assert_eq!(needs("spot.account", Version::V3, &given), none);
    }

    #[test]
    fn pauses_of_two_clients_differ() {
        let config = Config::parse("", "test", &config::Overrides::default()).unwrap();
        let seed = || settings(&config).unwrap().streams.seed;
        assert_ne!(seed(), seed());
    }

    fn config(text: &str) -> Config {
        Config::parse(text, "test", &config::Overrides::default()).unwrap()
    }

    #[test]
    fn the_default_profile_changes_no_setting_of_streams() {
        let streams = settings(&config("")).unwrap().streams;
        let usual = windvane_client::streams::StreamSettings {
            seed: streams.seed,
            ..Default::default()
        };
        assert_eq!(streams, usual);
    }

    #[test]
    fn a_profile_gives_addresses_names_chain_and_limits() {
        let settings = settings(&config("[venue]\nprofile = \"aster-testnet\"")).unwrap();
        let addresses = &settings.addresses;
        let streams = addresses.ws_of(Surface::Futures).unwrap();
        assert_eq!(streams.host_str(), Some("fstream5.asterdex-testnet.com"));
        let user = addresses.user_ws_of(Surface::Futures).unwrap();
        assert_eq!(user.host_str(), Some("fstream.asterdex-testnet.com"));
        assert_eq!(addresses.rest_of(Surface::Chain), None);
        assert_eq!(settings.dialect.network, Network::Testnet);
        let brand = &settings.dialect.brand;
        assert_eq!(brand.signing_chain(settings.dialect.network), 714);
        assert_eq!(brand.withdrawal_domain, "Aster");
        assert_eq!(settings.streams.spot_streams_max, 200);
    }

    #[test]
    fn a_missing_address_names_profile_surface_and_key() {
        let file = "[venue]\nprofile = \"aster-testnet\"\nmarket_data = \"documented\"\n[run]\n\
                    mode = \"live\"\n[[strategy]]\nid = \"a\"\nmodule = \"a.wasm\"\n\
                    instruments = [\"futures:BTCUSDT\"]\n";
        let refused = |text: &str| {
            let config = config(text);
            let addresses = settings(&config).unwrap().addresses;
            require_for_run(&config, &addresses).map_err(|error| error.to_string())
        };
        let sentence = refused(file).unwrap_err();
        assert_eq!(
            sentence,
            "no REST address of rpc is configured, and the profile \"aster-testnet\" has none: \
             set venue.rpc.rest"
        );
        assert_eq!(refused(&file.replace("documented", "auto")), Ok(()));
        assert_eq!(refused(&file.replace("\"live\"", "\"paper\"")), Ok(()));
        let none = file.replace("aster-testnet", "simulated");
        assert!(refused(&none).unwrap_err().ends_with("venue.futures.rest"));
        let rest = "market_data = \"auto\"\nfutures.rest = \"http://127.0.0.1:1\"";
        let rest = none.replace("market_data = \"documented\"", rest);
        let sentence = refused(&rest).unwrap_err();
        assert!(
            sentence.contains("no WebSocket address of futures") && sentence.contains("simulated"),
            "{sentence}"
        );
    }

    #[test]
    fn a_venue_line_replaces_every_address_of_the_profile() {
        let both = |port: u16| LineAddresses {
            rest: format!("http://127.0.0.1:{port}"),
            ws: format!("ws://127.0.0.1:{port}"),
        };
        let key = || SecretString::from("01".repeat(32));
        let line = VenueLine {
            file: String::new(),
            public: PublicLine {
                spot: both(1),
                futures: both(2),
                chain: "http://127.0.0.1:3".to_owned(),
                rpc: "http://127.0.0.1:4".to_owned(),
                login_sentence: None,
            },
            accounts: vec![LineAccount {
                api_key: key(),
                api_secret: key(),
                user: format!("0x{}", "1".repeat(40)),
                user_key: key(),
                signer_key: key(),
            }],
        };
        for profile in Profile::ALL {
            let config = config(&format!("[venue]\nprofile = \"{profile}\""));
            let addresses = line.settings(&config, 0).unwrap().addresses;
            for surface in Surface::ALL {
                let all = [
                    addresses.rest_of(surface),
                    addresses.ws_of(surface),
                    addresses.user_ws_of(surface),
                ];
                for address in all.into_iter().flatten() {
                    assert_eq!(address.host_str(), Some("127.0.0.1"), "{profile} {address}");
                }
            }
        }
    }

    #[test]
    fn an_invalid_venue_line_is_reported_with_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("venue.json");
        std::fs::write(&file, "{}\n").unwrap();
        let sentence = VenueLine::read(&file).unwrap_err().to_string();
        assert!(
            sentence.contains("venue.json") && sentence.contains("spot"),
            "{sentence}"
        );
    }
}
