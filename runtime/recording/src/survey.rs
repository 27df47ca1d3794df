//! The contents of a recording, counted while it is decoded and stored in its cache.

use serde::{Deserialize, Serialize};
use windvane_model::{Decimal, Surface};

/// How many lines are listed per kind of fault.
const NAMED: usize = 16;

/// The contents of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Number of lines.
    pub lines: u64,
    /// Number of events in the decoded cache.
    pub events: u64,
    /// Receive time of the first event, nanoseconds; 0 without events.
    pub first_recv_ns: i64,
    /// Receive time of the last event, nanoseconds.
    pub last_recv_ns: i64,
    /// Instruments in order of first appearance.
    pub instruments: Vec<InstrumentSurvey>,
    /// Lines that are not valid recording lines or contain invalid frames.
    pub damaged: Faults,
    /// Lines whose receive time is before that of the previous line. It was raised to that time.
    pub backwards: Faults,
    /// Depth snapshots that could not be assigned to an instrument.
    pub unassigned: Faults,
    /// Valid frames that contain no tape event: klines, tickers, responses to commands.
    pub ignored: u64,
    /// Where the text breaks off, if it does.
    pub cut: Option<Cut>,
}

/// The contents of a recording for one instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstrumentSurvey {
    /// Surface.
    #[serde(with = "surface_word")]
    pub surface: Surface,
    /// Symbol, upper case.
    pub symbol: String,
    /// Trades.
    pub trades: u64,
    /// Book tops (best bid and ask).
    pub tops: u64,
    /// Depth differences that were applied to a book.
    pub depths: u64,
    /// Depth snapshots that started or replaced a book.
    pub snapshots: u64,
    /// Depth differences that were not applied: before the first snapshot, after a gap, or too old.
    pub depths_unused: u64,
    /// Mark prices.
    pub marks: u64,
    /// Trades of the second trade stream, if both `trade` and `aggTrade` were recorded. Only the
    /// stream that came first is used.
    pub trades_doubled: u64,
    /// Gaps in the depth sequence.
    pub gaps: Faults,
    /// Smallest difference of receive time and event time, nanoseconds. A larger difference shows
    /// latency, independent of the clocks' offset. `None` without event times.
    pub delay_min_ns: Option<i64>,
    /// Greatest common divisor of all prices; 0 without prices.
    pub price_step: Decimal,
    /// Greatest common divisor of all quantities; 0 without quantities.
    pub qty_step: Decimal,
    /// The symbol's entry in an exchange information line, as JSON.
    pub exchange_info: Option<String>,
}

/// Faults of one kind: their number and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// Number of faults.
    pub count: u64,
    /// The first faults: line number from 1, and the reason.
    pub first: Vec<(u64, String)>,
}

/// Where and why the text breaks off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The last complete line before the break.
    pub after_line: u64,
    /// True if the compressed data is damaged before the end of the file. False if the file just
    /// ends.
    pub corrupt: bool,
    /// The decompressor's error text.
    pub reason: String,
}

impl Survey {
    /// The counts of an instrument.
    pub fn instrument(&self, surface: Surface, symbol: &str) -> Option<&InstrumentSurvey> {
        let mut all = self.instruments.iter();
        all.find(|known| known.surface == surface && known.symbol == symbol)
    }

    /// Everything that the user needs to know, one sentence each.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.damaged.count > 0 {
            notices.push(format!(
                "{} damaged lines were skipped ({})",
                self.damaged.count, self.damaged
            ));
        }
        if self.backwards.count > 0 {
            notices.push(format!(
                "{} receive times were before the previous line's and were raised to it ({})",
                self.backwards.count, self.backwards
            ));
        }
        if self.unassigned.count > 0 {
            notices.push(format!(
                "{} depth snapshots do not match any instrument ({})",
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
                "the file {what} after line {}: {}; everything before it is used",
                cut.after_line, cut.reason
            ));
        }
        notices.extend(self.instruments.iter().flat_map(InstrumentSurvey::notices));
        notices
    }

    /// The first damage that `on_damage = "fail"` refuses: a damaged line, or damaged compressed
    /// data.
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

    /// Whether the instrument has any market event.
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
                "no depth snapshot of {name}: {} depth frames are not used; the \
                 book is only its best prices",
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

/// Shows the first three faults with their lines.
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
