//! Lanes: the purpose of a request decides which part of a limit it may use.

use windvane_protocol::route::Route;
use windvane_protocol::{constant, planted};

/// Number of lanes.
pub(super) const LANES: usize = 7;

/// The purpose of a request, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Cancels orders.
    Cancel,
    /// Closes positions, and reads what a pending close needs.
    Close,
    /// Renews the dead man's switch and the listen keys, and reads the venue's clock.
    Heartbeat,
    /// Reads what startup needs before trading begins. It may use the reserves of other lanes.
    Start,
    /// Finds out the state of orders.
    Reconcile,
    /// Places orders and changes the account.
    Place,
    /// Everything else: market data, history.
    Query,
}

/// The percentage of every limit that is reserved for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares([u8; LANES]);

/// The shares add up to more than 100 percent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shares = {0:?} add up to {1} percent: lower them to 100 or less")]
pub struct SharesError([u8; LANES], u32);

impl Lane {
    /// All lanes, the most urgent first.
    pub const ALL: [Self; LANES] = [
        Self::Cancel,
        Self::Close,
        Self::Heartbeat,
        Self::Start,
        Self::Reconcile,
        Self::Place,
        Self::Query,
    ];

    /// One word for people and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Close => "close",
            Self::Heartbeat => "heartbeat",
            Self::Start => "start",
            Self::Reconcile => "reconcile",
            Self::Place => "place",
            Self::Query => "query",
        }
    }

    /// The default lane of a route. The caller may choose another one.
    pub fn of(route: &Route) -> Self {
        let (_, name) = route.name.split_once('.').unwrap_or(("", route.name));
        if name.starts_with("cancel_") {
            Self::Cancel
        } else if name == "countdown_cancel_all" || name.ends_with("_listen_key") {
            Self::Heartbeat
        } else if matches!(name, "query_order" | "open_order" | "open_orders") {
            Self::Reconcile
        } else if route.changes {
            Self::Place
        } else {
            Self::Query
        }
    }

    /// Whether a request of this lane ignores our own count. Such a request reduces risk, and a
    /// count that is too high must not delay it. Only a stop by the venue holds it back.
    pub const fn is_emergency(self) -> bool {
        matches!(self, Self::Cancel | Self::Close | Self::Heartbeat)
    }

    /// Priority; 0 is the most urgent. Lanes of the same rank keep their reserves from each other.
    const fn rank(self) -> u8 {
        match self {
            Self::Cancel | Self::Close | Self::Heartbeat => 0,
            Self::Start | Self::Reconcile => 1,
            Self::Place => 2,
            Self::Query => 3,
        }
    }
}

impl Shares {
    /// No reserve for any lane.
    pub const NONE: Self = Self([0; LANES]);

    /// Shares in percent of each limit, in the order of [`Lane::ALL`]. All lanes may use the rest.
    pub fn new(percent: [u8; LANES]) -> Result<Self, SharesError> {
        let sum = percent.iter().map(|share| u32::from(*share)).sum();
        if sum > 100 {
            return Err(SharesError(percent, sum));
        }
        Ok(Self(percent))
    }

    /// The part of `limit` that is reserved for `lane`.
    pub fn reserve(self, lane: Lane, limit: u32) -> u32 {
        let part = u64::from(limit) * u64::from(self.0[lane as usize]) / 100;
        u32::try_from(part).unwrap_or(limit)
    }

    /// The amount that `lane` must leave free for other lanes: the unused reserves of every lane
    /// that is as urgent or more urgent.
    ///
    /// Reserves of emergency lanes are a part of `limit`. Reserves of ordinary lanes are a part of
    /// `open`, which is what other programs on the address leave. Otherwise a lane that may wait
    /// would delay orders.
    pub(super) fn held_back(
        self,
        lane: Lane,
        (limit, open): (u32, u32),
        used: &[u32; LANES],
    ) -> u32 {
        if lane == Lane::Start && !planted!(StartReadsUnplanned) {
            return 0;
        }
        let others = Lane::ALL.into_iter();
        let others = others.filter(|other| *other != lane && other.rank() <= lane.rank());
        let unused = |other: Lane| {
            let of = if other.is_emergency() { limit } else { open };
            self.reserve(other, of).saturating_sub(used[other as usize])
        };
        let held = others.map(unused).fold(0, u32::saturating_add);
        // Closes and renewals depend on snapshots, so this lane may use more than half of their
        // reserves.
        if lane == Lane::Reconcile {
            held * 2 / 5
        } else {
            held
        }
    }
}

impl Default for Shares {
    /// 15 percent for cancels and closes, 10 for heartbeats, 15 for reconciliation and 25 for
    /// placing. All lanes may use the rest.
    fn default() -> Self {
        Self([constant!(LaneReserve, 15, changed: 45), 0, 10, 0, 15, 25, 0])
    }
}
