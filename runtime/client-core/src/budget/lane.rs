//! Lanes: what a request is for decides which part of a limit it may use.

use windvane_protocol::route::Route;
use windvane_protocol::{constant, planted};

/// How many lanes there are.
pub(super) const LANES: usize = 7;

/// What a request is for, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Takes orders away.
    Cancel,
    /// Closes positions, and reads what a close still waits for.
    Close,
    /// Keeps the dead man's switch and the listen keys alive, and reads the clock.
    Heartbeat,
    /// Reads what a start needs before it trades: it may use what is reserved for other lanes.
    Start,
    /// Finds out what became of orders.
    Reconcile,
    /// Places orders and changes the account.
    Place,
    /// Everything else: market data, history.
    Query,
}

/// The part of every limit that is reserved for each lane, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares([u8; LANES]);

/// Shares that add up to more than the whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shares = {0:?} add up to {1} percent: lower them to 100 or less")]
pub struct SharesError([u8; LANES], u32);

impl Lane {
    /// All, the most urgent first.
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

    /// The lane that a route belongs to unless the caller says otherwise.
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

    /// Whether a request of this lane is sent whatever our own count says: it takes risk away, and a
    /// count that is too high must not keep it back. Only the venue's own word stops it.
    pub const fn is_emergency(self) -> bool {
        matches!(self, Self::Cancel | Self::Close | Self::Heartbeat)
    }

    /// No lane may use the reserve of a lane of the same rank.
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
    /// No reserve for anyone.
    pub const NONE: Self = Self([0; LANES]);

    /// Percent of each limit, in the order of [`Lane::ALL`]; what is left may be used by all.
    pub fn new(percent: [u8; LANES]) -> Result<Self, SharesError> {
        let sum = percent.iter().map(|share| u32::from(*share)).sum();
        if sum > 100 {
            return Err(SharesError(percent, sum));
        }
        Ok(Self(percent))
    }

    /// What of `limit` is reserved for `lane`.
    pub fn reserve(self, lane: Lane, limit: u32) -> u32 {
        let part = u64::from(limit) * u64::from(self.0[lane as usize]) / 100;
        u32::try_from(part).unwrap_or(limit)
    }

    /// What `lane` must leave free for others: the reserves, as far as they are not used up, of
    /// every lane that is more urgent, or as urgent. Emergencies have their part of the `limit`. Ordinary
    /// lanes have theirs of what others on the address leave `open`: or a lane that may wait would keep
    /// orders back.
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
        // Closes and renewals need readings: these may use more than half of what is reserved.
        if lane == Lane::Reconcile {
            held * 2 / 5
        } else {
            held
        }
    }
}

impl Default for Shares {
    /// 15 percent cancels and closes, 10 heartbeats, 15 reconciliation, 25 placing; the rest for all.
    fn default() -> Self {
        Self([constant!(LaneReserve, 15, changed: 45), 0, 10, 0, 15, 25, 0])
    }
}
