//! The public streams of a process: the client's own machine, with the world for its sockets.

use windvane_client::streams::StreamSettings;
use windvane_client::streams::sans_io::{self, Action, Emit, Input, Machine};
use windvane_engine::Surface;

/// Which stream of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey {
    /// Surface.
    pub surface: Surface,
    /// The user stream; else public data.
    pub user: bool,
}

/// A stream.
pub struct Stream {
    /// Which.
    pub key: StreamKey,
    machine: Machine<String>,
    started_ns: i64,
    /// What a public stream is opened at.
    target: String,
}

/// What a stream wants of the process.
#[derive(Debug)]
pub enum Want {
    /// A connection.
    Open(u64, String),
    /// A message.
    Say(u64, String),
    /// A PING.
    Ping(u64),
    /// The end of a connection.
    Close(u64),
    /// A frame for the engine.
    Frame(String),
    /// It stands.
    Connected,
    /// It may miss events.
    Gap,
    /// The venue answered a PING.
    Alive,
}

impl Stream {
    /// A public stream of these topics.
    pub fn new(key: StreamKey, topics: &[String], seed: u64, now_ns: i64) -> Self {
        let settings = StreamSettings {
            seed,
            ..StreamSettings::default()
        };
        let rules = sans_io::rules(&settings, key.surface as u64 + 10);
        Self {
            key,
            machine: Machine::new(rules, 0),
            started_ns: now_ns,
            target: format!("/stream?streams={}", topics.join("/")),
        }
    }

    fn ms(&self, now_ns: i64) -> u64 {
        u64::try_from((now_ns - self.started_ns) / 1_000_000).unwrap_or(0)
    }

    /// Something happened.
    pub fn handle(&mut self, now_ns: i64, input: Input<String>) {
        let now_ms = self.ms(now_ns);
        self.machine.handle(now_ms, input);
    }

    /// What it wants next.
    pub fn poll(&mut self) -> Option<Want> {
        loop {
            return Some(match self.machine.poll_action()? {
                Action::Open(link, _) => Want::Open(link, self.target.clone()),
                Action::Send(link, text) => Want::Say(link, text),
                Action::Ping(link) => Want::Ping(link),
                Action::Close(link) => Want::Close(link),
                Action::Emit(Emit::Frame(text)) => Want::Frame(text),
                Action::Emit(Emit::Connected) => Want::Connected,
                Action::Emit(Emit::Gap(_)) => Want::Gap,
                Action::Emit(Emit::Alive(_)) => Want::Alive,
                // Public streams have no listen key.
                Action::CreateKey | Action::RenewKey(_) | Action::Emit(Emit::NotSubscribed(_)) => {
                    continue;
                }
            });
        }
    }

    /// When it wants to be told the time.
    pub fn wake_ns(&mut self, now_ns: i64) -> i64 {
        let now_ms = self.ms(now_ns);
        let due_ms = self.machine.timeout_ms(now_ms);
        let due_ms = i64::try_from(due_ms).unwrap_or(i64::MAX / 1_000_000);
        self.started_ns
            .saturating_add(due_ms.saturating_mul(1_000_000))
    }
}
