//! The library part of `windvane call ROUTE k=v ...`: any route by its name, with parameters as
//! text, checked against the route table.
//!
//! This module must never ask a person, print, or read a configuration.

mod arguments;
mod error;
mod list;
mod order_type;
mod value;

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use windvane_protocol::json_text::{self, DEPTH_MAX};
use windvane_protocol::route::{self, InnerSignature, Route, Scheme, Surface, Version};
use windvane_protocol::sign::Stamp;
use windvane_protocol::wire::{Parameters, Whole};

use crate::client::Client;
use crate::outcome::{Outcome, Refusal, RequestError, UnknownReason};
use crate::settings::{Api, Settings};
use crate::transport::RawAnswer;

pub use error::CallError;

/// The options of the command line in addition to route and parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Chooses the surface if the short name exists on several surfaces (`new_order`).
    pub surface: Option<Surface>,
    /// How to sign if the route has a choice; by default the settings decide.
    pub api: Option<Api>,
    /// Overrides the venue's time.
    pub timestamp_ms: Option<i64>,
    /// Overrides the fresh nonces: of the request, and of the inner signature of a withdrawal.
    pub nonce_us: Option<u64>,
}

/// A call that is well formed.
///
/// ```
/// use windvane_client::call::{Call, Options};
/// use windvane_client::{Addresses, Settings};
/// use windvane_protocol::Brand;
/// use windvane_protocol::route::Surface;
/// use windvane_protocol::sign::{Credentials, Dialect, Network};
///
/// let dialect = Dialect {
///     brand: Brand::new("svc")?,
///     network: Network::Mainnet,
///     recv_window_ms: None,
/// };
/// let addresses = Addresses::default().rest(Surface::Spot, "http://127.0.0.1:18080")?;
/// let settings = Settings::new(addresses, dialect, Credentials::default());
///
/// let arguments = ["symbol=BTCUSDT", "limt=5"];
/// let refused = Call::parse("spot.depth", &arguments, &settings, &Options::default());
/// assert_eq!(
///     refused.unwrap_err().to_string(),
///     "spot.depth has no parameter limt; did you mean limit?"
/// );
///
/// let options = Options { surface: Some(Surface::Spot), ..Options::default() };
/// let call = Call::parse("depth", &["symbol=BTCUSDT"], &settings, &options)?;
/// let client = windvane_client::Client::new(settings)?;
/// assert_eq!(
///     call.dry_run(&client)?.url,
///     "http://127.0.0.1:18080/api/v3/depth?symbol=BTCUSDT"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    route: &'static Route,
    version: Option<Version>,
    parameters: Parameters,
    options: Options,
}

/// A request as it would be sent, for output as JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// Method.
    pub method: String,
    /// The complete address.
    pub url: String,
    /// Headers by name.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: Option<String>,
    /// The text that the signature covers, or the typed data as JSON.
    pub signed_string: Option<String>,
}

impl fmt::Debug for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Show no key and no signature; the query contains the signature.
        let url = self.url.split('?').next().unwrap_or_default();
        write!(f, "{} {url}", self.method)
    }
}

impl Call {
    /// Parses a route name and `k=v` arguments. Every value is checked against the rules of the
    /// route table.
    pub fn parse<T: AsRef<str>>(
        name: &str,
        arguments: &[T],
        settings: &Settings,
        options: &Options,
    ) -> Result<Self, CallError> {
        let brand = &settings.dialect.brand;
        let route = arguments::route(name, options.surface, brand)?;
        let version = match options.api {
            Some(api) => arguments::version(route, api)?,
            None => settings.version(route),
        };
        let parameters = arguments::parameters(route, version, arguments, brand)?;
        Ok(Self {
            route,
            version,
            parameters,
            options: *options,
        })
    }

    /// The route of the call.
    pub const fn route(&self) -> &'static Route {
        self.route
    }

    /// The version in which the call is sent.
    pub const fn version(&self) -> Option<Version> {
        self.version
    }

    /// Whether the venue checks a time of this call that options and parameters do not give. Then
    /// the venue's clock should be known before the call ([`Client::sync_clock`]).
    pub fn needs_time(&self) -> bool {
        let Some(listing) = self.route.listing(self.version) else {
            return false;
        };
        let outer = match listing.scheme {
            Scheme::Hmac => Some("timestamp"),
            Scheme::Message | Scheme::WalletMessage | Scheme::Typed(_) => Some("nonce"),
            Scheme::Open | Scheme::ApiKey => None,
        };
        let inner = match listing.inner {
            Some(InnerSignature::Withdrawal { nonce }) => Some(nonce),
            Some(InnerSignature::SolanaWithdrawal) => Some("userNonce"),
            Some(InnerSignature::Sentence) | None => None,
        };
        let has_option = |name| match name {
            "timestamp" => self.options.timestamp_ms.is_some(),
            _ => self.options.nonce_us.is_some(),
        };
        let mut times = outer.into_iter().chain(inner);
        times.any(|name| self.parameters.get(name).is_none() && !has_option(name))
    }

    /// A description of the call if a person should confirm it first. This covers withdrawals,
    /// transfers, and calls that grant or extend rights (API keys, agents, builders).
    pub fn confirmation(&self) -> Option<String> {
        let (_, name) = self.route.name.split_once('.')?;
        let moves =
            name.ends_with("withdraw") || name.ends_with("transfer") || name == "send_to_address";
        let grants = matches!(
            name,
            "create_api_key"
                | "approve_agent"
                | "update_agent"
                | "approve_builder"
                | "update_builder"
        );
        if !(self.route.changes && (moves || grants)) {
            return None;
        }
        let what: Vec<_> = self
            .parameters
            .iter()
            .filter(|(name, _)| !name.to_ascii_lowercase().contains("signature"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Some(format!("{} {}", self.route.name, what.join(" ")))
    }

    /// The exact bytes that would be sent, without opening a socket.
    pub fn dry_run(&self, client: &Client) -> Result<DryRun, CallError> {
        if self.needs_venue_nonce() {
            return Err(CallError::VenueNonce);
        }
        let stamp = Some(self.stamp(client));
        let ready = client.prepare(self.route, self.version, &self.parameters, stamp)?;
        let headers = ready.headers.into_iter();
        Ok(DryRun {
            method: ready.method.to_string(),
            url: ready.url.into(),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            body: ready.body,
            signed_string: ready.signed,
        })
    }

    /// Sends the call once. `createApiKey` first requests the nonce that it signs, unless it was
    /// given.
    pub async fn run(&self, client: &Client) -> Outcome<RawAnswer> {
        let mut call = self.clone();
        if self.needs_venue_nonce() {
            match self.venue_nonce(client).await {
                Outcome::Done(nonce_us) => call.options.nonce_us = Some(nonce_us),
                Outcome::Refused(refusal) => return Outcome::Refused(refusal),
                Outcome::Unknown(reason) => return Outcome::Unknown(reason),
                Outcome::Wait(wait) => return Outcome::Wait(wait),
            }
        }
        let has_stamp = call.options.timestamp_ms.is_some() || call.options.nonce_us.is_some();
        let stamp = has_stamp.then(|| call.stamp(client));
        let answer = client
            .call_stamped(call.route, call.version, &call.parameters, stamp)
            .await;
        match answer {
            Outcome::Done(raw) if raw.text.trim().is_empty() => self.answered_nothing(raw),
            Outcome::Done(raw) if json_text::depth(&raw.text) > DEPTH_MAX => {
                self.unreadable(format!(
                    "it nests {} levels of arrays and objects, and at most {DEPTH_MAX} are accepted",
                    json_text::depth(&raw.text)
                ))
            }
            answer => answer,
        }
    }

    /// An empty body is a success if the documents allow it (builders and agents:
    /// docs/interface/futures.md#agent-and-builder-routes), or if the response has no content
    /// anyway. Otherwise it is not a valid response.
    fn answered_nothing(&self, raw: RawAnswer) -> Outcome<RawAnswer> {
        let (_, name) = self.route.name.split_once('.').unwrap_or_default();
        let is_grant = name.ends_with("_agent") || name.ends_with("_builder");
        let says_nothing = matches!(name, "ping" | "keepalive_listen_key" | "close_listen_key");
        if is_grant || says_nothing {
            return Outcome::Done(raw);
        }
        self.unreadable("its body is empty".to_owned())
    }

    /// A response that is not valid. What the request did is unknown if it changes something.
    fn unreadable(&self, error: String) -> Outcome<RawAnswer> {
        let excerpt = String::new();
        if self.route.changes {
            Outcome::Unknown(UnknownReason::Unreadable { error, excerpt })
        } else {
            Outcome::Refused(Refusal::Unreadable { error, excerpt })
        }
    }

    fn stamp(&self, client: &Client) -> Stamp {
        let mut stamp = client.stamp(self.route.surface);
        stamp.timestamp_ms = self.options.timestamp_ms.unwrap_or(stamp.timestamp_ms);
        stamp.nonce_us = self.options.nonce_us.unwrap_or(stamp.nonce_us);
        stamp.inner_nonce_us = self.options.nonce_us.unwrap_or(stamp.inner_nonce_us);
        stamp
    }

    /// The sentence for an API key ends with a number that only the venue knows
    /// (docs/interface/conventions.md#signing-the-api-key-sentence).
    fn needs_venue_nonce(&self) -> bool {
        let listing = self.route.listing(self.version);
        listing.is_some_and(|listing| listing.inner == Some(InnerSignature::Sentence))
            && self.parameters.get("userSignature").is_none()
            && self.options.nonce_us.is_none()
    }

    async fn venue_nonce(&self, client: &Client) -> Outcome<u64> {
        let Some(route) = route::named("spot.get_nonce") else {
            return RequestError::NoRoute("spot.get_nonce".to_owned()).into();
        };
        let mut poll = Parameters::new();
        let wallet = client.settings().credentials.wallet.as_ref();
        let own = wallet.map(|wallet| wallet.address().to_string());
        let address = self.parameters.get("address").map(str::to_owned).or(own);
        for (name, value) in [
            ("address", address.as_deref()),
            (
                "userOperationType",
                self.parameters.get("userOperationType"),
            ),
            ("network", self.parameters.get("network")),
        ] {
            if let Some(value) = value {
                poll.push(name, value);
            }
        }
        let answer = client.call(route, None, &poll).await;
        let Outcome::Done(raw) = answer else {
            return answer.map(|_| 0);
        };
        let nonce: Result<Whole, _> = serde_json::from_str(raw.text.trim());
        match nonce.map(|nonce| u64::try_from(nonce.0)) {
            Ok(Ok(nonce)) => Outcome::Done(nonce),
            _ => Outcome::Refused(Refusal::Unreadable {
                error: "spot.get_nonce must return a bare number".to_owned(),
                excerpt: raw.text.chars().take(80).collect(),
            }),
        }
    }
}
