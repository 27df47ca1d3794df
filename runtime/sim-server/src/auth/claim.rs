//! A request before its authentication, and the rights that it needs.

use std::net::IpAddr;

use windvane_protocol::route::{Route, Security, Surface};

use crate::accounts::Grants;
use crate::request::{Params, Received, Refusal};
use crate::settings::Settings;

/// A request and the route that it claims to use, before authentication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) settings: &'a Settings,
    pub(super) route: &'static Route,
    pub(super) received: &'a Received<'a>,
    pub(super) params: &'a Params,
    /// The venue's clock, with the skew of a fault switch.
    pub(super) clock_ms: i64,
}

/// An invalid key, or one without the permission (-2015).
pub(super) fn rejected() -> Refusal {
    let msg = "Invalid API-key, IP, or permissions for action.";
    Refusal::new(-2015, msg).with_status(401)
}

/// Whether the grants allow the route.
pub(super) fn granted(route: &Route, grants: Grants) -> bool {
    match (route.security, route.surface) {
        (Security::None, _) => true,
        (Security::UserData | Security::UserStream | Security::MarketData, _) => grants.read,
        (Security::Withdraw, _) => grants.withdraw,
        (_, Surface::Spot) => grants.spot_trade,
        (_, Surface::Futures) => grants.perp_trade,
        (_, Surface::Chain | Surface::Rpc) => grants.spot_trade && grants.perp_trade,
    }
}

/// Whether a comma-separated whitelist contains this address. An empty list allows every address.
pub(super) fn whitelisted(list: &str, ip: IpAddr) -> bool {
    let mut entries = list
        .split(',')
        .map(str::trim)
        .filter(|e| !e.is_empty())
        .peekable();
    entries.peek().is_none() || entries.any(|entry| entry.parse() == Ok(ip))
}
