//! The settings of the server at its start.

mod check;
mod limits;
mod streams;

use std::time::Duration;

use windvane_model::Surface;
use windvane_protocol::Brand;
use windvane_protocol::sign::Network;
use windvane_sim_market::Source;

pub use check::StartError;
pub(crate) use check::check_settings;
pub use limits::LimitSettings;
pub use streams::StreamLimits;

use crate::choices::Choices;

/// Settings of one simulated venue.
#[derive(Debug)]
pub struct Settings {
    /// The brand word, from which other names are derived.
    pub brand: Brand,
    /// Test environment: the v3 signing chain is 714 instead of 1666, unless the brand has its own,
    /// and the network label is `Testnet` (docs/interface/conventions.md#signing-with-a-wallet).
    pub testnet: bool,
    /// Seed of the generated keys, and of the server's own market.
    pub seed: u64,
    /// Number of generated accounts; at least 2, at most [`Settings::ACCOUNTS_MAX`].
    pub accounts: u16,
    /// First port. Spot, futures, chain, rpc and control use consecutive ports. With 0 the system
    /// chooses each port.
    pub port: u16,
    /// The source of market data.
    pub source: Source,
    /// How far a v3 nonce may differ from the venue's clock, in milliseconds
    /// (docs/interface/conventions.md#nonces).
    pub nonce_window_ms: i64,
    /// The venue's behaviour where the documents leave something open.
    pub choices: Choices,
    /// Rate limits.
    pub limits: LimitSettings,
    /// How long a connection may be idle, or take to send the head of a request.
    pub head_within: Duration,
    /// How long the body of a request may take after its head. After that the connection is cut.
    pub body_within: Duration,
    /// Limits of spot WebSocket connections.
    pub spot_streams: StreamLimits,
    /// Limits of futures WebSocket connections.
    pub futures_streams: StreamLimits,
}

impl Settings {
    /// Maximum number of accounts, because the account's number is part of each order id.
    pub const ACCOUNTS_MAX: u16 = 64;

    /// The network whose signatures are valid.
    pub(crate) const fn network(&self) -> Network {
        if self.testnet {
            Network::Testnet
        } else {
            Network::Mainnet
        }
    }

    /// Limits of a surface's WebSocket connections.
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
