//! Binds the ports, starts the tasks, and returns the addresses. It contains no logic of the venue.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::accounts::AccountKeys;
use crate::advance::advance;
use crate::http::{self, Shared};
use crate::request::Port;
use crate::settings::{Settings, StartError, check_settings};
use crate::state::State;

/// Interval at which the time advances. Countdowns are checked about every 10 ms
/// (docs/interface/futures.md#countdowncancelall).
const TICK: Duration = Duration::from_millis(10);

/// The addresses of the server, as `host:port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Spot: REST and WebSocket.
    pub spot: SocketAddr,
    /// Futures: REST and WebSocket. It also serves the Chain API and the info endpoint.
    pub futures: SocketAddr,
    /// Chain API.
    pub chain: SocketAddr,
    /// JSON-RPC info endpoint.
    pub rpc: SocketAddr,
    /// Fault switches and the exact state.
    pub control: SocketAddr,
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct Running {
    /// The addresses of the server.
    pub addresses: Addresses,
    /// The accounts that it generated.
    pub accounts: Vec<AccountKeys>,
    tasks: JoinSet<()>,
}

impl Running {
    /// Runs until the tasks end, which they do not do by themselves.
    pub async fn wait(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Starts a server on loopback. Must be called inside a tokio runtime.
pub async fn start(settings: Settings) -> Result<Running, StartError> {
    check_settings(&settings)?;
    let mut listeners = Vec::with_capacity(Port::ALL.len());
    for (offset, port) in (0_u16..).zip(Port::ALL) {
        listeners.push((*port, bind(settings.port, offset).await?));
    }
    let address = |wanted: Port| {
        let found = listeners.iter().find(|(port, _)| *port == wanted);
        found.map_or((Ipv4Addr::LOCALHOST, 0).into(), |(_, (_, address))| {
            *address
        })
    };
    let addresses = Addresses {
        spot: address(Port::Spot),
        futures: address(Port::Futures),
        chain: address(Port::Chain),
        rpc: address(Port::Rpc),
        control: address(Port::Control),
    };
    let now = settings.choices.venue_time(http::now());
    let (state, accounts) = State::new(settings, now)?;
    let shared = Arc::new(Shared::new(state));
    let mut tasks = JoinSet::new();
    for (port, (listener, _)) in listeners {
        tasks.spawn(http::serve(listener, port, Arc::clone(&shared)));
    }
    tasks.spawn(tick(shared));
    Ok(Running {
        addresses,
        accounts,
        tasks,
    })
}

async fn bind(first: u16, offset: u16) -> Result<(TcpListener, SocketAddr), StartError> {
    let port = match first {
        0 => 0,
        _ => first.checked_add(offset).ok_or(StartError::Port(first))?,
    };
    let failed = |source| StartError::Bind { port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

async fn tick(shared: Arc<Shared>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        shared.at_present(advance);
    }
}
