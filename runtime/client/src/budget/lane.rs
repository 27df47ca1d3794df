//! Lanes: what a request is for decides which part of a limit it may use.

use windvane_venue::route::Route;

/// How many lanes there are.
pub(super) const LANES: usize = 5;

/// What a request is for, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Takes orders away.
    Cancel,
    /// Keeps the dead man's switch and the listen keys alive.
    Heartbeat,
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
        Self::Heartbeat,
        Self::Reconcile,
        Self::Place,
        Self::Query,
    ];

    /// One word for people and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Heartbeat => "heartbeat",
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

    /// Cancels and heartbeats stand beside each other; neither may eat the other's reserve.
    const fn rank(self) -> u8 {
        match self {
            Self::Cancel | Self::Heartbeat => 0,
            Self::Reconcile => 1,
            Self::Place => 2,
            Self::Query => 3,
        }
    }
}

impl Shares {
    /// No reserve for anyone.
    pub const NONE: Self = Self([0; LANES]);

    /// Percent of each limit for cancel, heartbeat, reconcile, place and query; what is left
    /// belongs to nobody and may be used by all.
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
    /// every lane that is more urgent, or as urgent.
    pub(super) fn held_back(self, lane: Lane, limit: u32, used: &[u32; LANES]) -> u32 {
        let others = Lane::ALL.into_iter();
        let others = others.filter(|other| *other != lane && other.rank() <= lane.rank());
        let unused = |other: Lane| {
            self.reserve(other, limit)
                .saturating_sub(used[other as usize])
        };
        others.map(unused).fold(0, u32::saturating_add)
    }
}

impl Default for Shares {
    /// 15 percent cancels, 10 heartbeats, 15 reconciliation, 25 placing; the rest for all.
    fn default() -> Self {
        Self([15, 10, 15, 25, 0])
    }
}
