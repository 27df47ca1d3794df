//! What a recording holds, counted while it is decoded and kept in its cache.

use serde::{Deserialize, Serialize};
use windvane_model::{Decimal, Surface};

/// How many lines of a kind of fault are named.
const NAMED: usize = 16;

/// What a recording holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Lines of text.
    pub lines: u64,
    /// Events in the decoded cache.
    pub events: u64,
    /// Receive time of the first event, ns; 0 without events.
    pub first_recv_ns: i64,
    /// Receive time of the last event, ns.
    pub last_recv_ns: i64,
    /// Instruments in the order in which they first appeared.
    pub instruments: Vec<InstrumentSurvey>,
    /// Lines that are no recording lines or no valid frames.
    pub damaged: Faults,
    /// Lines whose receive time is before that of the line in front; it was raised to that.
    pub backwards: Faults,
    /// Depth snapshots that could not be assigned to an instrument.
    pub unassigned: Faults,
    /// Valid frames that carry nothing for a tape: klines, tickers, answers to commands.
    pub ignored: u64,
    /// The text broke off.
    pub cut: Option<Cut>,
}

/// What a recording holds of one instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstrumentSurvey {
    /// Surface.
    #[serde(with = "surface_word")]
    pub surface: Surface,
    /// Symbol, upper case.
    pub symbol: String,
    /// Trades.
    pub trades: u64,
    /// Best bids and asks.
    pub tops: u64,
    /// Depth differences that were applied to a book.
    pub depths: u64,
    /// Depth snapshots that started or replaced a book.
    pub snapshots: u64,
    /// Depth differences without a book: before the first snapshot, after a gap, or too old.
    pub depths_unused: u64,
    /// Mark prices.
    pub marks: u64,
    /// Trades of the second trade stream, where both `trade` and `aggTrade` were recorded: the
    /// stream that came first counts.
    pub trades_doubled: u64,
    /// Breaks in the depth sequence.
    pub gaps: Faults,
    /// Smallest receive time less event time, ns: what remains above it is latency, whatever
    /// the clocks' offset. `None` without event times.
    pub delay_min_ns: Option<i64>,
    /// Greatest common divisor of all prices; 0 without any.
    pub price_step: Decimal,
    /// Greatest common divisor of all quantities; 0 without any.
    pub qty_step: Decimal,
    /// The symbol's entry of an exchange information line, as JSON.
    pub exchange_info: Option<String>,
}

/// Faults of one kind: how many, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// How many.
    pub count: u64,
    /// The first: line number from 1, and what is wrong.
    pub first: Vec<(u64, String)>,
}

/// Where and why a text broke off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The last whole line before it.
    pub after_line: u64,
    /// The file goes on, but its compressed data is damaged; else the file just ends.
    pub corrupt: bool,
    /// What the decompressor said.
    pub reason: String,
}

impl Survey {
    /// What it holds of an instrument.
    pub fn instrument(&self, surface: Surface, symbol: &str) -> Option<&InstrumentSurvey> {
        let mut all = self.instruments.iter();
        all.find(|known| known.surface == surface && known.symbol == symbol)
    }

    /// Everything worth telling, a sentence each.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.damaged.count > 0 {
            notices.push(format!(
                "{} damaged lines skipped ({})",
                self.damaged.count, self.damaged
            ));
        }
        if self.backwards.count > 0 {
            notices.push(format!(
                "{} receive times went backwards and were raised ({})",
                self.backwards.count, self.backwards
            ));
        }
        if self.unassigned.count > 0 {
            notices.push(format!(
                "{} depth snapshots fit no instrument ({})",
                self.unassigned.count, self.unassigned
            ));
        }
        if let Some(cut) = &self.cut {
            let what = if cut.corrupt {
                "is damaged"
            } else {
                "is cut off"
            };
            notices.push(format!(
                "the file {what} after line {}: {}; everything before it counts",
                cut.after_line, cut.reason
            ));
        }
        notices.extend(self.instruments.iter().flat_map(InstrumentSurvey::notices));
        notices
    }

    /// The first damage that a strict reader refuses: a damaged line, or damaged compressed data.
    pub(super) fn first_damage(&self) -> Option<(u64, String)> {
        let line = self.damaged.first.first().cloned();
        let corrupt = self.cut.as_ref().filter(|cut| cut.corrupt);
        line.or_else(|| corrupt.map(|cut| (cut.after_line + 1, cut.reason.clone())))
    }
}

impl InstrumentSurvey {
    pub(super) fn new(surface: Surface, symbol: &str) -> Self {
        Self {
            surface,
            symbol: symbol.to_owned(),
            trades: 0,
            tops: 0,
            depths: 0,
            snapshots: 0,
            depths_unused: 0,
            marks: 0,
            trades_doubled: 0,
            gaps: Faults::default(),
            delay_min_ns: None,
            price_step: Decimal::ZERO,
            qty_step: Decimal::ZERO,
            exchange_info: None,
        }
    }

    /// Whether anything happens on its market.
    pub const fn has_events(&self) -> bool {
        self.trades + self.tops + self.depths + self.snapshots + self.marks > 0
    }

    /// `spot:SYMBOL` or `futures:SYMBOL`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.surface, self.symbol)
    }

    fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        let name = self.name();
        if self.gaps.count > 0 {
            notices.push(format!(
                "{} gaps in the depth of {name} ({})",
                self.gaps.count, self.gaps
            ));
        }
        if self.snapshots == 0 && self.depths_unused > 0 {
            notices.push(format!(
                "no depth snapshot of {name}: {} depth frames are not used, the book is its top",
                self.depths_unused
            ));
        }
        if self.trades_doubled > 0 {
            notices.push(format!(
                "trades of {name} came in two streams; {} of the second were not used",
                self.trades_doubled
            ));
        }
        notices
    }
}

impl Faults {
    pub(super) fn add(&mut self, line: u64, reason: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((line, reason()));
        }
    }
}

/// The first three by line.
impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (line, reason)) in self.first.iter().take(3).enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}line {line}: {reason}")?;
        }
        if self.count > 3 {
            f.write_str("; ...")?;
        }
        Ok(())
    }
}

mod surface_word {
    use serde::{Deserialize, Deserializer, Serializer};
    use windvane_model::Surface;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde asks for"
    )]
    pub(super) fn serialize<S: Serializer>(surface: &Surface, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(surface.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Surface, D::Error> {
        let word = String::deserialize(input)?;
        Surface::from_text(&word).ok_or_else(|| serde::de::Error::custom("no surface"))
    }
}
