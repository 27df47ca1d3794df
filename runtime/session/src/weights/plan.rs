//! The plan of one limit of a surface: its uses, their sum, and whether they fit.

use std::fmt;

use windvane_client_core::budget::Lane;
use windvane_client_core::budget::polling::PollingError;
use windvane_model::Surface;

/// One use of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// For what.
    pub what: &'static str,
    /// The lane of the budget that it goes through.
    pub lane: Lane,
    /// Times in an interval.
    pub times: u64,
    /// Weight of each.
    pub weight: u32,
}

impl Use {
    /// Weight in an interval.
    pub const fn sum(&self) -> u64 {
        self.times.saturating_mul(self.weight as u64)
    }
}

/// How market data are polled where they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Never: `market_data = "streams"`.
    Never,
    /// Always, for this weight (`documented`).
    Always(u64),
    /// While the venue does not stream, for this weight (`auto`).
    InPlaceOfStreams(u64),
    /// There is no plan that keeps what is left.
    TooLittle(PollingError),
}

/// The plan of one limit of a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Surface.
    pub surface: Surface,
    /// The limit's interval, milliseconds.
    pub interval_ms: u64,
    /// Its weight.
    pub limit: u32,
    /// What must have its place, and, in the lane of questions, what takes what is left.
    pub uses: Vec<Use>,
    /// Weight of a symbol: its heartbeats, and its trades after a gap.
    pub(super) per_symbol: u64,
    pub(super) symbols: u32,
    /// Out of what is left.
    pub polling: Polling,
}

/// A plan that does not fit its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{surface}: {} are {sum} of {limit} weight in {interval_ms} ms: at most {symbols_max} symbols \
     fit; trade fewer, lengthen heartbeat.interval_ms (and countdown_ms with it), or lengthen \
     reconcile.interval_ms", words.join(" + ")
)]
pub struct Overbooked {
    /// Surface.
    pub surface: Surface,
    /// Its uses, in words.
    words: Vec<String>,
    /// What they come to.
    pub sum: u64,
    /// The limit.
    pub limit: u32,
    /// Its interval.
    interval_ms: u64,
    /// The largest number of symbols that fits.
    pub symbols_max: u64,
}

impl Plan {
    /// The weight of everything that must have its place.
    pub fn sum(&self) -> u64 {
        self.binding().map(Use::sum).fold(0, u64::saturating_add)
    }

    /// What must have its place.
    pub fn binding(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|one| one.lane != Lane::Query)
    }

    /// What takes what is left, beside polling.
    pub fn beside(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|one| one.lane == Lane::Query)
    }

    /// The largest number of symbols that fits: arithmetic, for each symbol costs the same.
    pub fn symbols_max(&self) -> u64 {
        let own = self.per_symbol.saturating_mul(u64::from(self.symbols));
        let fixed = self.sum().saturating_sub(own);
        let left = u64::from(self.limit).saturating_sub(fixed);
        left.checked_div(self.per_symbol).unwrap_or_default()
    }

    /// Whether everything has its place.
    ///
    /// # Errors
    /// The sum, and how many symbols would fit.
    pub fn check(&self) -> Result<(), Overbooked> {
        let sum = self.sum();
        if sum <= u64::from(self.limit) {
            return Ok(());
        }
        let word = |one: &Use| format!("{} {}", one.what, one.sum());
        Err(Overbooked {
            surface: self.surface,
            words: self.binding().map(word).collect(),
            sum,
            limit: self.limit,
            interval_ms: self.interval_ms,
            symbols_max: self.symbols_max(),
        })
    }
}

impl fmt::Display for Polling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("market data are streamed"),
            Self::Always(weight) => write!(f, "market data are polled for {weight}"),
            Self::InPlaceOfStreams(weight) => {
                write!(
                    f,
                    "market data that the venue does not stream are polled for up to {weight}"
                )
            }
            Self::TooLittle(error) => write!(f, "{error}"),
        }
    }
}
