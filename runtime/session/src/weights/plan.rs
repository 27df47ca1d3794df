//! The plan for one limit of a surface: its uses, their sum, and whether they fit.

use std::fmt;

use windvane_client_core::budget::Lane;
use windvane_client_core::budget::polling::PollingError;
use windvane_model::Surface;

/// One use of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The purpose.
    pub what: &'static str,
    /// The budget lane that it uses.
    pub lane: Lane,
    /// How often the run makes the call in one interval of the limit.
    pub times: u64,
    /// Weight of one call.
    pub weight: u32,
}

impl Use {
    /// Total weight in one interval.
    pub const fn sum(&self) -> u64 {
        self.times.saturating_mul(self.weight as u64)
    }
}

/// Whether market data are polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Never: `market_data = "streams"`.
    Never,
    /// Always, for this weight (`documented`).
    Always(u64),
    /// While the venue does not stream, for this weight (`auto`).
    InPlaceOfStreams(u64),
    /// The remaining weight is too small for polling.
    TooLittle(PollingError),
}

/// The plan of one limit of a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Surface.
    pub surface: Surface,
    /// The limit's interval, in milliseconds.
    pub interval_ms: u64,
    /// Largest weight that the venue permits in one interval.
    pub limit: u32,
    /// The uses. Those in the query lane get only the weight that the others leave.
    pub uses: Vec<Use>,
    /// Weight of one symbol: its heartbeats, and its trades after a gap.
    pub(super) per_symbol: u64,
    pub(super) symbols: u32,
    /// Polling, with the remaining weight.
    pub polling: Polling,
}

/// A plan that does not fit its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{surface}: {} need weight {sum}, the limit is {limit} in {interval_ms} ms: at most \
     {symbols_max} symbols fit; trade fewer symbols, or raise heartbeat.interval_ms (and \
     countdown_ms with it) or reconcile.interval_ms", words.join(" + ")
)]
pub struct Overbooked {
    /// Surface.
    pub surface: Surface,
    /// Its uses, as text.
    words: Vec<String>,
    /// Their total weight.
    pub sum: u64,
    /// The limit.
    pub limit: u32,
    /// The limit's interval, in milliseconds.
    interval_ms: u64,
    /// The largest number of symbols that fits.
    pub symbols_max: u64,
}

impl Plan {
    /// The total weight of all uses that must be guaranteed.
    pub fn sum(&self) -> u64 {
        self.binding().map(Use::sum).fold(0, u64::saturating_add)
    }

    /// The uses that must be guaranteed.
    pub fn binding(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|one| one.lane != Lane::Query)
    }

    /// The uses that get only the remaining weight, apart from polling.
    pub fn on_spare_weight(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|one| one.lane == Lane::Query)
    }

    /// The largest number of symbols that fits. Each symbol costs the same.
    pub fn symbols_max(&self) -> u64 {
        let own = self.per_symbol.saturating_mul(u64::from(self.symbols));
        let fixed = self.sum().saturating_sub(own);
        let left = u64::from(self.limit).saturating_sub(fixed);
        left.checked_div(self.per_symbol).unwrap_or_default()
    }

    /// Checks whether all guaranteed uses fit.
    ///
    /// # Errors
    /// The total weight, and how many symbols would fit.
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
