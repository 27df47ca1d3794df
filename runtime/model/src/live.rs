//! What only a run against a real clock has: a configuration of its safety, and inputs that say
//! how much of the outside can be trusted. A backtest has none of it.

use serde::{Deserialize, Serialize};

use crate::order::Surface;

/// How a live run (or one on paper) keeps safe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveConfig {
    /// Surfaces in use, each with a user stream.
    pub surfaces: Vec<Surface>,
    /// `countdownTime` of the dead man's switch, milliseconds.
    pub countdown_ms: i64,
    /// It is renewed this often, milliseconds.
    pub renew_ms: i64,
    /// State is compared with the venue this often, milliseconds.
    pub reconcile_ms: i64,
    /// An order that the venue does not know so long after its outcome was lost never arrived:
    /// recvWindow (v3: the nonce window) and a margin, milliseconds.
    pub absence_ms: i64,
    /// A copy of a futures request that a link delivers a second time does nothing so long after
    /// the first was answered, milliseconds: recvWindow, and the second that a timestamp may be
    /// ahead (spec 2, Authentication); 0 where each has a nonce, which is used up.
    pub copy_ms: i64,
    /// What happens to own open orders that are found at the start.
    pub on_start: OnStart,
    /// What happens to own orders and positions at the stop.
    pub on_stop: OnStop,
    /// Multi-assets margin, as configured.
    pub multi_assets: bool,
    /// What a fill costs that only an order's totals tell of, parts per million of its value.
    pub fee_estimate_ppm: i64,
    /// Spot orders leave only while a watchdog process has confirmed that it would cancel them
    /// (promise 4): spot has no `countdownCancelAll`.
    pub watchdog: bool,
}

/// Own open orders at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnStart {
    /// They are taken over.
    #[default]
    Adopt,
    /// They are cancelled.
    Cancel,
}

/// Own orders and positions at the stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnStop {
    /// Orders are cancelled.
    #[default]
    Cancel,
    /// Orders stay; the dead man's switch is let go.
    Keep,
    /// Orders are cancelled, then positions closed at market.
    Flatten,
}

/// What a driver learns of the world beside the market and the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveInput {
    /// What the journal held is restored: the state may be compared with the venue.
    Begin,
    /// The user stream of a surface is connected and misses nothing from here on.
    StreamUp {
        /// Surface.
        surface: Surface,
    },
    /// The user stream of a surface may miss events.
    StreamDown {
        /// Surface.
        surface: Surface,
    },
    /// The user stream of a surface answered a PING or brought an event.
    StreamAlive {
        /// Surface.
        surface: Surface,
    },
    /// The venue's clock was read.
    Clock {
        /// Surface.
        surface: Surface,
        /// The venue's time minus ours, nanoseconds.
        offset_ns: i64,
        /// Half the round trip, nanoseconds.
        error_ns: i64,
    },
    /// The journal writes in time, or it does not.
    Journal {
        /// It does.
        healthy: bool,
    },
    /// The run shall end: `on_stop` is applied.
    Stop,
    /// The watchdog process of spot orders can do its work, or it is gone.
    Watchdog {
        /// It has shown that the venue takes its key, and knows the venue's time.
        armed: bool,
    },
    /// The watchdog process heard a sign of health.
    BeatHeard {
        /// [`Effect::Beat`](crate::Effect::Beat) that it answers.
        number: u64,
    },
    /// The venue accepts no request on a surface, or accepts requests again.
    Stopped {
        /// Surface.
        surface: Surface,
        /// Why.
        why: StopReason,
        /// For so long, milliseconds; 0 where it accepts requests again.
        for_ms: i64,
    },
    /// The venue refused a request for a limit, and nothing of a kind may be sent for some time.
    VenueWait {
        /// Surface.
        surface: Surface,
        /// What may not be sent.
        kind: WaitKind,
        /// For how long, milliseconds.
        wait_ms: i64,
    },
    /// The account's modes are left out of the answer that follows, because they were not asked for, or had
    /// no answer: a later reading tells them.
    ModesPending,
}

/// What may not be sent after a refusal for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitKind {
    /// Nothing at all: the limit is of the address.
    All,
    /// No order, closes included: the limit is of the account's orders.
    Orders,
    /// The same. Journals of earlier versions have it where the venue stated the end.
    OrdersUntil,
}

/// Why the venue accepts no request.
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
