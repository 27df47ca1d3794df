//! Fixtures that several unit tests use.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use windvane_client_core::budget::Shares;
use windvane_client_core::gateway::Identity;
use windvane_client_core::nonce::Nonces;
use windvane_client_core::{Api, Gateway};
use windvane_model::live::{LiveConfig, OnStart, OnStop};
use windvane_model::{Surface, Time};
use windvane_protocol::Brand;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network};

use crate::exchange::{Documented, Signing};
use crate::requests::{RequestTerms, Requests};

/// A live run on the futures surface.
pub(crate) fn live_config() -> LiveConfig {
    LiveConfig {
        surfaces: vec![Surface::Futures],
        countdown_ms: 30_000,
        renew_ms: 10_000,
        reconcile_ms: 15_000,
        absence_ms: 10_000,
        copy_ms: 6_000,
        on_start: OnStart::Adopt,
        on_stop: OnStop::Cancel,
        multi_assets: false,
        fee_estimate_ppm: 400,
        watchdog: false,
    }
}

/// A gateway with an API key.
pub(crate) fn gateway() -> Gateway {
    let identity = Identity {
        dialect: Dialect {
            brand: Brand::new("svc").unwrap(),
            network: Network::Mainnet,
            recv_window_ms: None,
        },
        credentials: Credentials {
            api_key: Some(ApiKey::new("key", "secret".to_owned().into())),
            ..Credentials::default()
        },
        spot_api: Api::V1,
        futures_api: Api::V1,
        hosts: [const { None }; 4],
    };
    Gateway::new(identity, Shares::default(), Arc::new(Nonces::new()))
}

/// The requests of a run on one surface that begins now.
pub(crate) fn requests(
    gateway: Gateway,
    signing: Signing,
    now: Time,
    surface: Surface,
) -> Requests {
    let terms = RequestTerms {
        request: Duration::from_secs(10),
        countdown: Duration::from_secs(10),
    };
    let exchange = Box::new(Documented::new(gateway, false, signing));
    Requests::new(exchange, terms, now, vec![surface], 0)
}
