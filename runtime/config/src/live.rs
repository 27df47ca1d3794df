//! Sections that a live or paper runtime uses: `[run]`, `[venue]`, `[account]`, `[heartbeat]`,
//! `[reconcile]`, `[journal]`, `[admin]`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use windvane_protocol::Brand;
use windvane_protocol::brand::BrandError;
use windvane_protocol::sign::sentence;

use super::secret::{KeySource, Secret};

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$item_doc])* $item,)* }
    };
}
pub(super) use choice;

choice! {
    /// With whose money orders are filled.
    Mode {
        /// Real public data, simulated fills.
        #[default]
        Paper,
        /// The venue.
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
    /// What to do with own open orders found at start.
    OnStart {
        /// Take them over.
        #[default]
        Adopt,
        /// Cancel them.
        Cancel,
    }
}

choice! {
    /// What to do with orders and positions when the runtime or a strategy ends.
    Leave {
        /// Cancel own orders.
        #[default]
        Cancel,
        /// Leave everything.
        Keep,
        /// Cancel own orders and close own positions.
        Flatten,
    }
}

/// `[run]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Paper or live.
    pub mode: Mode,
    /// Journal, recordings and run records; one instance at a time.
    #[serde(deserialize_with = "folder")]
    pub data_dir: PathBuf,
    /// Own open orders found at start.
    pub on_start: OnStart,
    /// Own orders and positions at stop.
    pub on_stop: Leave,
    /// The engine's thread never sleeps: costs one core, saves the wake-up.
    pub busy_poll: bool,
    /// No processor falls asleep while the run lasts: costs power, saves the wake-ups of an order's
    /// way. Linux; needs the right to write to `/dev/cpu_dma_latency`.
    pub keep_awake: bool,
    /// Orders leave before the journal is durable: for a bench that measures the rest of their way.
    /// No configuration can say so.
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
    /// Where public data come from.
    MarketData {
        /// Streams, falling back per topic to what is documented.
        #[default]
        Auto,
        /// Only what documents 1 to 3 show.
        Documented,
        /// The public streams of document 4.
        Streams,
    }
}

choice! {
    /// The signing chain and the network label.
    Network {
        /// Signing chain 1666.
        #[default]
        Mainnet,
        /// Signing chain 714.
        Testnet,
    }
}

/// `[venue]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Venue {
    /// The brand word from which names are derived (spec 4).
    pub brand: String,
    /// Spot addresses.
    pub spot: Endpoint,
    /// Futures addresses.
    pub futures: Endpoint,
    /// Chain API addresses.
    pub chain: Endpoint,
    /// JSON-RPC addresses.
    pub rpc: Endpoint,
    /// How requests are signed, unless a surface says otherwise.
    pub api: Api,
    /// `recvWindow`, milliseconds.
    #[serde(deserialize_with = "recv_window")]
    pub recv_window_ms: u32,
    /// Where public data come from.
    pub market_data: MarketData,
    /// Main or test network.
    pub network: Network,
    /// A PEM file with authorities that are trusted beside those built in.
    pub tls_roots: Option<PathBuf>,
    /// Names that are not derived from the brand.
    pub names: Names,
}

impl Default for Venue {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl Venue {
    /// The brand, with the names that are given instead of derived.
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
        Ok(brand)
    }
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
    /// `http://` or `https://`.
    #[serde(deserialize_with = "rest_address")]
    pub rest: Option<String>,
    /// `ws://` or `wss://`.
    #[serde(deserialize_with = "ws_address")]
    pub ws: Option<String>,
    /// How its requests are signed.
    pub api: Option<Api>,
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

/// `[venue.names]`: names that are given instead of derived from the brand (spec 4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Names {
    /// v3 signing domain name.
    pub signing_domain: Option<String>,
    /// Withdrawal domain name.
    pub withdrawal_domain: Option<String>,
    /// Withdrawal field name.
    pub withdrawal_field: Option<String>,
    /// Parameter of the management routes.
    pub chain_parameter: Option<String>,
    /// Path segment.
    pub path_segment: Option<String>,
    /// JSON-RPC method prefix.
    pub rpc_prefix: Option<String>,
    /// Sentence that is signed for API keys; it has no default.
    pub login_sentence: Option<String>,
}

choice! {
    /// One position per symbol, or a long and a short one.
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
    /// Its secret.
    pub api_secret: Option<Secret>,
    /// Address of the main wallet.
    #[serde(deserialize_with = "wallet_address")]
    pub user: Option<String>,
    /// Key of the agent that signs v3 requests.
    pub signer: Option<KeySource>,
    /// Key of the main wallet; `run` never reads it.
    pub wallet: Option<KeySource>,
    /// Key of the Solana wallet, base58; for withdrawals to Solana from the command line only.
    pub solana: Option<Secret>,
    /// The mode that the account must be in; never changed by the runtime.
    pub position_mode: PositionMode,
    /// Multi-assets margin.
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

/// A timer of a live run. One of hours would not go off before what it is for has happened.
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
    /// The venue cancels after this long without renewal, milliseconds.
    #[serde(deserialize_with = "timer_ms")]
    pub countdown_ms: u64,
    /// Renewed this often, milliseconds; at most half of the countdown, so that a renewal which is
    /// lost has a second try.
    #[serde(deserialize_with = "timer_ms")]
    pub interval_ms: u64,
}

impl Heartbeat {
    /// A renewal without an answer is given up after this, so that the next one leaves in its time:
    /// an interval, but at least one second.
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
    /// State is compared with the venue this often, milliseconds.
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

/// `[journal]`: what is kept of it. The last two segments always are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Journal {
    /// Bytes of all segments together.
    pub retain_bytes: u64,
    /// Days since a segment was last written.
    pub retain_days: u64,
    /// The same, for market data; orders, fills and saved states stay for `retain_days`.
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

/// `[admin]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// Address of status, commands, dashboard and metrics.
    #[serde(deserialize_with = "listen_address")]
    pub listen: Option<SocketAddr>,
    /// Token of the admin server; without one it is made in the data folder.
    pub token: Option<Secret>,
}

fn listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let rule = "must be an IP address and a port, such as 127.0.0.1:9800";
    let address: SocketAddr = text.parse().map_err(|_| D::Error::custom(rule))?;
    if !address.ip().is_loopback() {
        return Err(D::Error::custom(
            "must be a loopback address, 127.0.0.1 or [::1], for the admin server has no TLS; \
             reach it from elsewhere through ssh -L",
        ));
    }
    Ok(Some(address))
}
