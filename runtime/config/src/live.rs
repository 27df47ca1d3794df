//! Sections that a live or paper runtime uses: `[run]`, `[venue]`, `[account]`, `[heartbeat]`,
//! `[reconcile]`, `[journal]`, `[admin]`, `[signer]`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use windvane_protocol::Brand;
use windvane_protocol::brand::BrandError;
use windvane_protocol::sign::sentence;

use super::choice::choice;
use super::profile::Profile;
use super::secret::{KeySource, Secret};

choice! {
    /// Paper or live trading.
    Mode {
        /// Real market data, simulated fills.
        #[default]
        Paper,
        /// Orders go to the venue.
        Live,
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Live => "live",
        })
    }
}

choice! {
    /// Action for own orders that are open at startup.
    OnStart {
        /// Take them over.
        #[default]
        Adopt,
        /// Cancel them.
        Cancel,
    }
}

choice! {
    /// Action for orders and positions when the run or a strategy ends.
    Leave {
        /// Cancel own orders.
        #[default]
        Cancel,
        /// Change nothing.
        Keep,
        /// Cancel own orders and close own positions.
        Flatten,
    }
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Paper or live trading.
    pub mode: Mode,
    /// Folder of the journal and all other state. Only one instance at a time may use it.
    #[serde(deserialize_with = "folder")]
    pub data_dir: PathBuf,
    /// Action for own orders that are open at startup.
    pub on_start: OnStart,
    /// Action for own orders and positions at stop.
    pub on_stop: Leave,
    /// The event loop never sleeps. It saves its wake-up time and uses one core fully.
    pub busy_poll: bool,
    /// CPUs do not enter sleep states during the run. This saves wake-up time on the path of an
    /// order and uses more power. Linux only; needs write access to `/dev/cpu_dma_latency`.
    pub keep_awake: bool,
    /// The trading process confines itself at its start: it keeps access only to the files that it
    /// needs, and drops privileges and system calls. Linux only.
    pub confine: bool,
    /// On an exchange that is not on loopback, accept folders with sources as modules. Their build
    /// scripts run on this machine, beside the keys.
    pub allow_source: bool,
    /// Send orders before the journal is durable. Only a benchmark sets it, to measure the rest of
    /// the path; the configuration has no key for it.
    #[serde(skip)]
    pub unwaited: bool,
}

fn folder<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    if path.as_os_str().is_empty() {
        return Err(D::Error::custom("must name a folder, such as \"var/live\""));
    }
    Ok(path)
}

impl Default for Run {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            data_dir: PathBuf::from("var/paper"),
            on_start: OnStart::default(),
            on_stop: Leave::default(),
            busy_poll: false,
            keep_awake: false,
            confine: true,
            allow_source: false,
            unwaited: false,
        }
    }
}

choice! {
    /// How requests are signed.
    Api {
        /// HMAC with an API key.
        #[default]
        V1,
        /// Wallet signature.
        V3,
    }
}

choice! {
    /// Where public market data comes from.
    MarketData {
        /// Streams. A topic that the venue does not stream comes from `documented` sources.
        #[default]
        Auto,
        /// Only the core interface (docs/interface/README.md#core-and-public-facts).
        Documented,
        /// The public streams of docs/interface/market-data.md#public-streams.
        Streams,
    }
}

choice! {
    /// The network, which selects the signing chain and the network label.
    Network {
        /// Production.
        #[default]
        Mainnet,
        /// The test environment.
        Testnet,
    }
}

/// `[venue]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Venue {
    /// The profile, which has the values of all keys that the configuration does not set.
    pub profile: Profile,
    /// The venue's short name, from which other names are derived
    /// (docs/interface/conventions.md#brand-words).
    pub brand: String,
    /// Spot addresses.
    pub spot: Endpoint,
    /// Futures addresses.
    pub futures: Endpoint,
    /// Chain API addresses.
    pub chain: Endpoint,
    /// JSON-RPC addresses.
    pub rpc: Endpoint,
    /// How requests are signed, unless a surface has its own setting.
    pub api: Api,
    /// `recvWindow`, milliseconds.
    #[serde(deserialize_with = "recv_window")]
    pub recv_window_ms: u32,
    /// Where public market data comes from.
    pub market_data: MarketData,
    /// Main or test network.
    pub network: Network,
    /// A PEM file with certificate authorities that are trusted in addition to the built-in ones.
    pub tls_roots: Option<PathBuf>,
    /// Names that replace the derived ones.
    pub names: Names,
    /// Chain ids in the domain of v3 signatures.
    pub signing_chain: SigningChain,
    /// Limits that the venue does not report itself.
    pub limits: VenueLimits,
}

impl Default for Venue {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            brand: "svc".to_owned(),
            spot: Endpoint::default(),
            futures: Endpoint::default(),
            chain: Endpoint::default(),
            rpc: Endpoint::default(),
            api: Api::default(),
            recv_window_ms: 5000,
            market_data: MarketData::default(),
            network: Network::default(),
            tls_roots: None,
            names: Names::default(),
            signing_chain: SigningChain::default(),
            limits: VenueLimits::default(),
        }
    }
}

impl Venue {
    /// Whether every configured address is a loopback address.
    pub fn is_on_this_machine(&self) -> bool {
        let endpoints = [&self.spot, &self.futures, &self.chain, &self.rpc];
        let addresses = endpoints
            .into_iter()
            .flat_map(|of| [&of.rest, &of.ws, &of.user_ws]);
        addresses.flatten().all(|address| is_loopback(address))
    }

    /// The brand. Names from the configuration replace the derived ones.
    pub fn brand(&self) -> Result<Brand, BrandError> {
        let mut brand = Brand::new(&self.brand)?;
        let names = self.names.clone();
        for (name, given) in [
            (&mut brand.signing_domain, names.signing_domain),
            (&mut brand.withdrawal_domain, names.withdrawal_domain),
            (&mut brand.withdrawal_field, names.withdrawal_field),
            (&mut brand.chain_parameter, names.chain_parameter),
            (&mut brand.path_segment, names.path_segment),
            (&mut brand.rpc_prefix, names.rpc_prefix),
        ] {
            if let Some(given) = given {
                *name = given;
            }
        }
        brand.login_sentence = names
            .login_sentence
            .map(|sentence| sentence::without_space(&sentence).to_owned());
        brand.signing_chain = Some(match self.network {
            Network::Mainnet => self.signing_chain.mainnet,
            Network::Testnet => self.signing_chain.testnet,
        });
        Ok(brand)
    }
}

/// `[venue.signing_chain]`: chain ids in the domain of v3 signatures. `network` selects one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SigningChain {
    /// Of production.
    #[serde(deserialize_with = "chain_id")]
    pub mainnet: u64,
    /// Of the test environment.
    #[serde(deserialize_with = "chain_id")]
    pub testnet: u64,
}

impl Default for SigningChain {
    fn default() -> Self {
        Self {
            mainnet: windvane_protocol::sign::Network::Mainnet.signing_chain(),
            testnet: windvane_protocol::sign::Network::Testnet.signing_chain(),
        }
    }
}

fn chain_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom(
            "must be a chain id, a whole number over 0",
        )),
        id => Ok(id),
    }
}

/// `[venue.limits]`: limits that the venue does not report itself. Weights and orders are not here:
/// the venue reports them in its exchange information.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VenueLimits {
    /// Streams of one spot connection. More streams use more connections.
    #[serde(deserialize_with = "streams")]
    pub spot_streams: u32,
    /// Streams of one futures connection.
    #[serde(deserialize_with = "streams")]
    pub futures_streams: u32,
    /// Messages per second from the client, on one connection of either surface.
    #[serde(deserialize_with = "messages")]
    pub messages_per_second: u32,
    /// The venue ends a connection after this time, hours. It is replaced half an hour before.
    #[serde(deserialize_with = "hours")]
    pub connection_hours: u32,
    /// How far a v3 nonce may differ from the venue's clock, milliseconds.
    #[serde(deserialize_with = "timer_ms")]
    pub nonce_window_ms: u64,
}

impl Default for VenueLimits {
    fn default() -> Self {
        Self {
            spot_streams: 1024,
            futures_streams: 200,
            messages_per_second: 5,
            connection_hours: 24,
            nonce_window_ms: 10_000,
        }
    }
}

impl VenueLimits {
    /// Age at which a connection is replaced.
    pub fn connection_age(&self) -> Duration {
        Duration::from_mins(u64::from(self.connection_hours) * 60 - 30)
    }
}

fn whole<'de, D: Deserializer<'de>>(
    deserializer: D,
    (least, most): (u32, u32),
    what: &str,
) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        let rule = format!("must be {what} from {least} to {most}");
        Err(D::Error::custom(rule))
    }
}

fn streams<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, (1, 100_000), "a whole number")
}

/// One message per second is kept for pongs, so at least one more is needed.
fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, (2, 1_000), "a whole number")
}

fn hours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    whole(deserializer, (1, 8_760), "hours")
}

fn recv_window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = u32::deserialize(deserializer)?;
    if (1..=60_000).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom("must be milliseconds from 1 to 60000"))
    }
}

/// Addresses of one surface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Endpoint {
    /// `https://`, or `http://` on this machine.
    #[serde(deserialize_with = "rest_address")]
    pub rest: Option<String>,
    /// `wss://`, or `ws://` on this machine.
    #[serde(deserialize_with = "ws_address")]
    pub ws: Option<String>,
    /// The address of the user stream, if it is not `ws`.
    #[serde(deserialize_with = "ws_address")]
    pub user_ws: Option<String>,
    /// How requests to this surface are signed.
    pub api: Option<Api>,
}

/// Whether the host of an address with a scheme is this machine.
fn is_loopback(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if let Some((ip, _)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return ip
            .parse()
            .is_ok_and(|ip: std::net::Ipv6Addr| ip.is_loopback());
    }
    let host = host.split(':').next().unwrap_or_default();
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
}

fn rest_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    address(deserializer, ["http://", "https://"])
}

fn ws_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    address(deserializer, ["ws://", "wss://"])
}

fn address<'de, D: Deserializer<'de>>(
    deserializer: D,
    schemes: [&str; 2],
) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if schemes
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme))
    {
        Ok(Some(text))
    } else {
        let [plain, secure] = schemes;
        Err(D::Error::custom(format!(
            "must be an address that starts with {plain} or {secure}"
        )))
    }
}

/// `[venue.names]`: protocol names of the venue, such as signing domains and path segments. A name
/// that is not set is derived from the brand (docs/interface/conventions.md#brand-words).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// EIP-712 domain name of v3 signatures.
    pub signing_domain: Option<String>,
    /// EIP-712 domain name of withdrawals.
    pub withdrawal_domain: Option<String>,
    /// EIP-712 field of withdrawals that holds the chain's name.
    pub withdrawal_field: Option<String>,
    /// Network parameter of the agent and builder routes.
    pub chain_parameter: Option<String>,
    /// Path segment of the venue's name.
    pub path_segment: Option<String>,
    /// Prefix of JSON-RPC methods.
    pub rpc_prefix: Option<String>,
    /// Sentence that is signed to create an API key; no default.
    pub login_sentence: Option<String>,
}

choice! {
    /// One position per symbol, or a long and a short position.
    PositionMode {
        /// One position per symbol.
        #[default]
        OneWay,
        /// A long and a short position per symbol.
        Hedge,
    }
}

/// `[account]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// API key for v1.
    pub api_key: Option<Secret>,
    /// Secret of the API key.
    pub api_secret: Option<Secret>,
    /// Address of the main wallet.
    #[serde(deserialize_with = "wallet_address")]
    pub user: Option<String>,
    /// Key of the agent that signs v3 requests.
    pub signer: Option<KeySource>,
    /// Key of the main wallet. `run` reads it only with v3 and without `signer`: it then signs every
    /// request with it.
    pub wallet: Option<KeySource>,
    /// Key of the Solana wallet, base58. Only command-line withdrawals to Solana use it.
    pub solana: Option<Secret>,
    /// The position mode that the account must have. The runtime never changes it.
    pub position_mode: PositionMode,
    /// Whether the account must use multi-assets margin.
    pub multi_assets: bool,
}

fn wallet_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text.strip_prefix("0x").unwrap_or_default();
    if digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(Some(text))
    } else {
        Err(D::Error::custom(
            "must be a wallet address: 0x and 40 hexadecimal digits",
        ))
    }
}

/// Reads the interval of a live run's timer, in milliseconds. More than an hour is refused: the
/// timer would come too late.
fn timer_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = u64::deserialize(deserializer)?;
    if (1..=3_600_000).contains(&value) {
        Ok(value)
    } else {
        Err(D::Error::custom("must be milliseconds from 1 to 3600000"))
    }
}

/// `[heartbeat]`: the dead man's switch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Heartbeat {
    /// The venue cancels all orders after this time without renewal, milliseconds.
    #[serde(deserialize_with = "timer_ms")]
    pub countdown_ms: u64,
    /// Time between renewals, milliseconds. At most half of the countdown, so that a second renewal
    /// is in time if one is lost.
    #[serde(deserialize_with = "timer_ms")]
    pub interval_ms: u64,
}

impl Heartbeat {
    /// How long to wait for the response to a renewal, so that the next renewal is sent on time:
    /// one interval, but at least one second.
    pub fn answer_within(&self) -> Duration {
        Duration::from_millis(self.interval_ms.max(1_000))
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            countdown_ms: 30_000,
            interval_ms: 10_000,
        }
    }
}

/// `[reconcile]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reconcile {
    /// Time between comparisons of the engine's state with the venue's, milliseconds.
    #[serde(deserialize_with = "timer_ms")]
    pub interval_ms: u64,
}

impl Default for Reconcile {
    fn default() -> Self {
        Self {
            interval_ms: 30_000,
        }
    }
}

/// `[journal]`: how much of the journal is kept. The last two segments are always kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Journal {
    /// Total size of all segments, bytes.
    pub retain_bytes: u64,
    /// Days since the last write to a segment after which it is deleted.
    pub retain_days: u64,
    /// Days since the last write to a segment after which its market data is deleted. Its orders,
    /// fills and saved states are kept for `retain_days`.
    pub retain_market_days: u64,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            retain_bytes: 4 << 30,
            retain_days: 30,
            retain_market_days: 30,
        }
    }
}

/// `[compile]`: limits of the process that compiles modules, and of the cache of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compile {
    /// Memory of the process, MiB.
    #[serde(deserialize_with = "compile_memory")]
    pub memory_mb: u32,
    /// Time of the process, seconds: wall-clock time and CPU time each.
    #[serde(deserialize_with = "compile_seconds")]
    pub seconds: u32,
    /// Total size of the cache of native code, MiB. The code that was used longest ago is deleted.
    pub cache_mb: u32,
    /// Native code that was not used for this number of days is deleted.
    pub cache_days: u32,
}

impl Default for Compile {
    fn default() -> Self {
        Self {
            memory_mb: 4096,
            seconds: 180,
            cache_mb: 2048,
            cache_days: 30,
        }
    }
}

fn compile_memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let memory_mb = u32::deserialize(deserializer)?;
    if memory_mb < 64 {
        return Err(D::Error::custom(
            "must be at least 64: the compiler itself needs that much, in MiB",
        ));
    }
    Ok(memory_mb)
}

fn compile_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let seconds = u32::deserialize(deserializer)?;
    if !(1..=86_400).contains(&seconds) {
        return Err(D::Error::custom("must be from 1 to 86400 seconds"));
    }
    Ok(seconds)
}

/// `[admin]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// TCP address for status, commands and metrics, in addition to the Unix socket in the data
    /// folder.
    #[serde(deserialize_with = "listen_address")]
    pub listen: Option<SocketAddr>,
    /// Token of the TCP address. Without one, each start makes a new token in the data folder.
    pub token: Option<Secret>,
    /// `/metrics` needs no token over TCP.
    pub open_metrics: bool,
}

/// `[signer]`: the process that holds the keys of a live run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Signer {
    /// Policy file: what the signer may sign. Without one, the policy follows from the instruments and
    /// the limits of this configuration.
    pub policy: Option<PathBuf>,
    /// The trading process holds the keys and signs itself; no signer process is started.
    pub in_process: bool,
}

fn listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let rule = "must be an IP address and a port, such as 127.0.0.1:9800";
    let address: SocketAddr = text.parse().map_err(|_| D::Error::custom(rule))?;
    if !address.ip().is_loopback() {
        return Err(D::Error::custom(
            "must be a loopback address, 127.0.0.1 or [::1], because the admin server has no TLS; \
             to reach it from another machine, use ssh -L",
        ));
    }
    Ok(Some(address))
}
