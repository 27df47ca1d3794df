//! The settings of a client: addresses, keys, dialect, timeouts. This module reads no file and no
//! environment variable.

use std::time::Duration;

use url::Url;
use windvane_protocol::route::{Route, Surface, Version};
use windvane_protocol::sign::{Credentials, Dialect};

use crate::budget::Shares;
use crate::clock::LocalTime;
use crate::streams::StreamSettings;
use crate::tls::Root;

use windvane_client_core::gateway::Identity;
pub(crate) use windvane_client_core::settings::is_market_data;
pub use windvane_client_core::settings::{Api, MarketData, default_version};

/// All settings of a [`crate::Client`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Base addresses.
    pub addresses: Addresses,
    /// Brand, network, `recvWindow`.
    pub dialect: Dialect,
    /// Keys. A client without keys may use the routes that need none.
    pub credentials: Credentials,
    /// How requests of the spot surface are signed, unless the caller chooses.
    pub spot_api: Api,
    /// How requests of the futures surface are signed, unless the caller chooses.
    pub futures_api: Api,
    /// The source of market data.
    pub market_data: MarketData,
    /// Trusted authorities in addition to the built-in ones, for a venue with a private authority.
    pub tls_roots: Vec<Root>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Reserved parts of the limits.
    pub shares: Shares,
    /// The local clock.
    pub local_time: LocalTime,
    /// Pings, reconnects and renewals of streams.
    pub streams: StreamSettings,
}

impl Settings {
    /// Default settings, except addresses, dialect and keys.
    pub fn new(addresses: Addresses, dialect: Dialect, credentials: Credentials) -> Self {
        Self {
            addresses,
            dialect,
            credentials,
            spot_api: Api::V1,
            futures_api: Api::V1,
            market_data: MarketData::Auto,
            tls_roots: Vec::new(),
            timeouts: Timeouts::default(),
            shares: Shares::default(),
            local_time: LocalTime::system(),
            streams: StreamSettings::default(),
        }
    }

    /// The version in which a route is called unless the caller chooses one; see
    /// [`default_version`].
    pub fn version(&self, route: &Route) -> Option<Version> {
        let api = match route.surface {
            Surface::Spot => self.spot_api,
            Surface::Futures | Surface::Chain | Surface::Rpc => self.futures_api,
        };
        default_version(route, api)
    }

    /// The identity for the gateway: dialect, keys, signing versions and hosts.
    pub fn identity(&self) -> Identity {
        let host = |surface| self.addresses.rest_of(surface).map(Url::authority);
        Identity {
            dialect: self.dialect.clone(),
            credentials: self.credentials.clone(),
            spot_api: self.spot_api,
            futures_api: self.futures_api,
            hosts: Surface::ALL.map(|surface| host(surface).map(str::to_owned)),
        }
    }
}

/// Base addresses of the surfaces. A surface without an address cannot be used.
///
/// ```
/// use windvane_client::Addresses;
/// use windvane_protocol::route::Surface;
///
/// let addresses = Addresses::default()
///     .rest(Surface::Spot, "http://127.0.0.1:18080")?
///     .ws(Surface::Spot, "ws://127.0.0.1:18080")?;
/// assert!(addresses.rest(Surface::Futures, "127.0.0.1").is_err());
/// # Ok::<(), windvane_client::AddressError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    rest: [Option<Url>; 4],
    ws: [Option<Url>; 4],
    user_ws: [Option<Url>; 4],
}

/// A base address is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{surface}.{part} = {value:?} must be {schemes} and a host, without query: {reason}")]
pub struct AddressError {
    surface: Surface,
    part: &'static str,
    value: String,
    schemes: &'static str,
    reason: String,
}

impl Addresses {
    /// Whether every address is this machine's: a loopback address or `localhost`.
    pub fn are_loopback(&self) -> bool {
        let all = [&self.rest, &self.ws, &self.user_ws];
        all.into_iter().flatten().flatten().all(is_loopback)
    }

    /// Sets the REST address of a surface: `https`, or `http` on this machine. The address may have a
    /// path, which comes before the path of every route.
    pub fn rest(mut self, surface: Surface, address: &str) -> Result<Self, AddressError> {
        self.rest[surface as usize] = Some(base(surface, "rest", address, ["http", "https"])?);
        Ok(self)
    }

    /// Sets the WebSocket address of a surface: `wss`, or `ws` on this machine.
    pub fn ws(mut self, surface: Surface, address: &str) -> Result<Self, AddressError> {
        self.ws[surface as usize] = Some(base(surface, "ws", address, ["ws", "wss"])?);
        Ok(self)
    }

    /// Sets the address of a surface's user stream, if the venue serves it elsewhere than its
    /// public streams.
    pub fn user_ws(mut self, surface: Surface, address: &str) -> Result<Self, AddressError> {
        let url = base(surface, "user_ws", address, ["ws", "wss"])?;
        self.user_ws[surface as usize] = Some(url);
        Ok(self)
    }

    /// The REST address of a surface.
    pub const fn rest_of(&self, surface: Surface) -> Option<&Url> {
        self.rest[surface as usize].as_ref()
    }

    /// The WebSocket address of a surface.
    pub const fn ws_of(&self, surface: Surface) -> Option<&Url> {
        self.ws[surface as usize].as_ref()
    }

    /// The address of a surface's user stream.
    pub fn user_ws_of(&self, surface: Surface) -> Option<&Url> {
        let own = self.user_ws[surface as usize].as_ref();
        own.or_else(|| self.ws_of(surface))
    }
}

fn base(
    surface: Surface,
    part: &'static str,
    address: &str,
    schemes: [&'static str; 2],
) -> Result<Url, AddressError> {
    let refuse = |reason: String| AddressError {
        surface,
        part,
        value: address.to_owned(),
        schemes: if part == "rest" {
            "http:// or https://"
        } else {
            "ws:// or wss://"
        },
        reason,
    };
    let url = Url::parse(address).map_err(|error| refuse(error.to_string()))?;
    if !schemes.contains(&url.scheme()) {
        return Err(refuse(format!("the scheme is {:?}", url.scheme())));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("it has a query or a fragment".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("it names a user".to_owned()));
    }
    if url.scheme() == schemes[0] && !is_loopback(&url) {
        let reason = format!(
            "without TLS anybody between could read and change orders and positions; only a host of this machine \
             (127.0.0.1, localhost) is reached without it, so use {}://",
            schemes[1]
        );
        return Err(refuse(reason));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For opening a connection, TLS included.
    pub connect: Duration,
    /// For a complete response, from the moment the request is written.
    pub request: Duration,
    /// How long unused connections are kept.
    pub idle: Duration,
}

impl Default for Timeouts {
    /// 5 seconds, 10 seconds, 50 seconds.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(10),
            idle: Duration::from_secs(50),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_when_they_are_set() {
        for bad in [
            "ftp://host",
            "http://host/?a=1",
            "http://user@host",
            "host",
            "ws://host",
            "http://host",
            "http://10.0.0.7:80",
        ] {
            let refused = Addresses::default().rest(Surface::Spot, bad).unwrap_err();
            assert!(refused.to_string().starts_with("spot.rest = "), "{refused}");
        }
        // A run may read its account there.
        let info = Addresses::default().rest(Surface::Rpc, "http://host");
        assert!(info.is_err());
        let refused = Addresses::default().user_ws(Surface::Spot, "http://host");
        let refused = refused.unwrap_err().to_string();
        assert!(refused.starts_with("spot.user_ws = "), "{refused}");
        assert!(refused.contains("must be ws:// or wss://"), "{refused}");
    }

    #[test]
    fn a_user_stream_uses_its_own_address_or_that_of_all_streams() {
        let surface = Surface::Futures;
        let addresses = Addresses::default().ws(surface, "wss://all").unwrap();
        assert_eq!(addresses.user_ws_of(surface), addresses.ws_of(surface));
        let addresses = addresses.user_ws(surface, "wss://own").unwrap();
        let host = |url: Option<&Url>| url.and_then(|url| url.host_str().map(str::to_owned));
        assert_eq!(host(addresses.user_ws_of(surface)).unwrap(), "own");
        assert_eq!(host(addresses.ws_of(surface)).unwrap(), "all");
        assert_eq!(addresses.user_ws_of(Surface::Spot), None);
    }
}
