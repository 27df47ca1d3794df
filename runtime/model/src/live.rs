//! Types that only a run against a real clock uses: its safety settings, and inputs about
//! connections, clocks and the venue's availability. A backtest uses none of them.

use serde::{Deserialize, Serialize};

use crate::order::Surface;

/// Safety settings of a live run or a paper run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveConfig {
    /// Surfaces in use. Each has a user stream.
    pub surfaces: Vec<Surface>,
    /// `countdownTime` of the dead man's switch, milliseconds.
    pub countdown_ms: i64,
    /// Interval between renewals of the countdown, milliseconds.
    pub renew_ms: i64,
    /// Interval between reconciliations with the venue, milliseconds.
    pub reconcile_ms: i64,
    /// How long a lost order request may still arrive at the venue, milliseconds: `recvWindow` (v3:
    /// the nonce window) plus a margin. If the venue does not know the order after this time, the
    /// order never arrived.
    pub absence_ms: i64,
    /// How long a duplicate of a futures request may still take effect after the response to the
    /// first, milliseconds. It is `recvWindow` plus the second that a timestamp may be ahead
    /// (docs/interface/conventions.md#timestamps). It is 0 if each request has a nonce, because the
    /// venue accepts a nonce only once.
    pub copy_ms: i64,
    /// How own open orders that exist at the start are handled.
    pub on_start: OnStart,
    /// How own orders and positions are handled at the stop.
    pub on_stop: OnStop,
    /// Whether the configuration expects multi-assets margin.
    pub multi_assets: bool,
    /// Estimated fee of a fill that is known only from the totals of its order, in parts per
    /// million of its value.
    pub fee_estimate_ppm: i64,
    /// Whether spot orders need a watchdog process. They are then sent only while it has confirmed
    /// that it would cancel them (`docs/promises.md#4-dead-mans-switch`), because spot has no
    /// `countdownCancelAll`.
    pub watchdog: bool,
}

/// How own open orders are handled at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnStart {
    /// The engine adopts them.
    #[default]
    Adopt,
    /// The engine cancels them.
    Cancel,
}

/// How own orders and positions are handled at the stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnStop {
    /// Cancel orders.
    #[default]
    Cancel,
    /// Leave orders open and disarm the dead man's switch.
    Keep,
    /// Cancel orders, then close positions at market.
    Flatten,
}

/// Information from the driver about the environment, other than market and account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveInput {
    /// The state of the journal is restored, so reconciliation with the venue may begin.
    Begin,
    /// The user stream of a surface is connected and delivers every event from now on.
    StreamUp {
        /// Surface.
        surface: Surface,
    },
    /// The user stream of a surface may miss events.
    StreamDown {
        /// Surface.
        surface: Surface,
    },
    /// The user stream of a surface answered a PING or delivered an event.
    StreamAlive {
        /// Surface.
        surface: Surface,
    },
    /// The driver measured the venue's clock.
    Clock {
        /// Surface.
        surface: Surface,
        /// The venue's time minus ours, nanoseconds.
        offset_ns: i64,
        /// Half of the round trip, nanoseconds.
        error_ns: i64,
    },
    /// The health of the journal changed.
    Journal {
        /// Whether the journal writes fast enough.
        healthy: bool,
    },
    /// The run must end. The engine applies `on_stop`.
    Stop,
    /// The watchdog process of spot orders became ready, or is gone.
    Watchdog {
        /// Whether the watchdog is ready: the venue accepts its key, and it knows the venue's time.
        armed: bool,
    },
    /// The watchdog process acknowledged a heartbeat.
    HeartbeatAcknowledged {
        /// Number of the acknowledged [`Effect::Heartbeat`](crate::Effect::Heartbeat).
        number: u64,
    },
    /// The venue stopped accepting requests on a surface, or accepts them again.
    Stopped {
        /// Surface.
        surface: Surface,
        /// The reason.
        why: StopReason,
        /// Duration, milliseconds; 0 if it accepts requests again.
        for_ms: i64,
    },
    /// The venue rejected a request because of a rate limit. Requests of one kind must wait.
    VenueWait {
        /// Surface.
        surface: Surface,
        /// Kind of requests that must wait.
        kind: WaitKind,
        /// Duration, milliseconds.
        wait_ms: i64,
    },
    /// The next account snapshot lacks the account's modes, because they were not queried or the
    /// query failed. A later snapshot has them.
    ModesPending,
}

/// Requests that must wait after the venue rejected one because of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitKind {
    /// All requests: the limit applies to the IP address.
    All,
    /// Orders, including closes: the limit applies to the orders of the account.
    Orders,
    /// Same as `Orders`. Journals of earlier versions contain it where the venue stated the end.
    OrdersUntil,
}

/// Why the venue does not accept requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// HTTP 418.
    Ban,
    /// HTTP 403.
    Firewall,
    /// HTTP 429: request weight.
    Limit,
    /// -1016: the service is shutting down.
    Closing,
}
