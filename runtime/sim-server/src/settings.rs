//! What the server is told at its start. Nothing here is read later but by the room it concerns.

use std::time::Duration;

use windvane_model::Surface;
use windvane_protocol::Brand;

use crate::choices::Choices;
use crate::limits::LimitSettings;
use crate::stream::StreamLimits;
use windvane_sim_market::Source;

/// Settings of one simulated venue.
#[derive(Debug)]
pub struct Settings {
    /// The brand word and everything derived from it.
    pub brand: Brand,
    /// Test environment: the v3 signing chain is 714 instead of 1666, and the network label is
    /// `Testnet` (spec 4, section 1).
    pub testnet: bool,
    /// Seed of the keys that are made up, and of a market of the server's own.
    pub seed: u64,
    /// Accounts that are made up; at least 2, at most [`Settings::ACCOUNTS_MAX`].
    pub accounts: u16,
    /// First port: spot, futures, chain, rpc and control follow one another. 0: the system's
    /// choice for each.
    pub port: u16,
    /// Where the market comes from.
    pub source: Source,
    /// How far a v3 nonce may lie from the venue's clock, in milliseconds (spec 4, section 1).
    pub nonce_window_ms: i64,
    /// What it does where the documents leave something open.
    pub choices: Choices,
    /// Rate limits.
    pub limits: LimitSettings,
    /// How long a connection may be idle, or on its way with the head of a request.
    pub head_within: Duration,
    /// How long the body of a request may take after its head. A connection that is later is cut.
    pub body_within: Duration,
    /// What WebSocket connections of spot are held to.
    pub spot_streams: StreamLimits,
    /// What WebSocket connections of futures are held to.
    pub futures_streams: StreamLimits,
}

impl Settings {
    /// The most accounts: their number is part of each order id.
    pub const ACCOUNTS_MAX: u16 = 64;

    /// What WebSocket connections of a surface are held to.
    pub(crate) const fn streams(&self, surface: Surface) -> &StreamLimits {
        match surface {
            Surface::Spot => &self.spot_streams,
            Surface::Futures => &self.futures_streams,
        }
    }
}

impl Default for Settings {
    #[expect(
        clippy::expect_used,
        reason = "`svc` is a brand word; a test makes one of it"
    )]
    fn default() -> Self {
        Self {
            brand: Brand::new("svc").expect("a brand word"),
            testnet: false,
            seed: 1,
            accounts: 2,
            port: 0,
            source: Source::default(),
            nonce_window_ms: 10_000,
            choices: Choices::default(),
            limits: LimitSettings::default(),
            head_within: Duration::from_secs(75),
            body_within: Duration::from_secs(10),
            spot_streams: StreamLimits::of(Surface::Spot),
            futures_streams: StreamLimits::of(Surface::Futures),
        }
    }
}
