//! The instruments of a recording while it is decoded: names, books and counts.

use std::collections::BTreeMap;

use windvane_model::Surface;
use windvane_protocol::exchange_info::{self, ExchangeInfoError};
use windvane_protocol::{BookLevels, Joiner, Number, Pending, TakerSide};

use super::survey::InstrumentSurvey;

/// How many depth differences of one instrument may wait for a snapshot. A collector requests a
/// snapshot when the stream starts, and it arrives within seconds. A stream has at most 50 frames
/// per second.
const WAITING_MAX: usize = 1024;

/// A depth difference that waits for a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) line: u64,
    pub(super) event_time: i64,
    pub(super) levels: BookLevels,
}

/// One instrument.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) survey: InstrumentSurvey,
    pub(super) joiner: Joiner,
    pub(super) waiting: Pending<Held>,
    /// Whether depth differences were seen, to which snapshots are joined.
    pub(super) has_diffs: bool,
    /// The trade stream that came first. Only its trades are counted.
    pub(super) trade_stream: Option<TradeStream>,
    pub(super) last_price: Option<Number>,
    /// Estimates the aggressor's side of trades that do not state it.
    pub(super) taker_side: TakerSide,
}

/// The streams that contain trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradeStream {
    Trade,
    Aggregate,
    TradePro,
}

impl Listed {
    /// Records how long a frame was under way. Times in nanoseconds; an event time of 0 means
    /// missing.
    pub(super) fn delay(&mut self, recv: i64, event_time: i64) {
        if event_time == 0 {
            return;
        }
        let delay = recv.saturating_sub(event_time);
        let least = self.survey.delay_min_ns.get_or_insert(delay);
        *least = delay.min(*least);
    }

    /// Whether a price is near enough to the last one to belong to this instrument.
    pub(super) fn is_near(&self, price: Option<Number>) -> bool {
        let (Some(last), Some(price)) = (self.last_price, price) else {
            return true;
        };
        let scale = last.scale.max(price.scale);
        let (Ok(last), Ok(price)) = (last.at(scale), price.at(scale)) else {
            return true;
        };
        price / 2 <= last && last / 2 <= price
    }
}

/// All instruments, in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Listing {
    all: Vec<Listed>,
    by_symbol: [BTreeMap<String, usize>; 2],
    /// Entries of exchange information lines, for all symbols.
    entries: BTreeMap<(Surface, String), String>,
    last: usize,
}

impl Listing {
    /// The index of an instrument. A new instrument is added.
    #[inline]
    pub(super) fn index(&mut self, surface: Surface, symbol: &str) -> usize {
        if let Some(listed) = self.all.get(self.last)
            && listed.survey.surface == surface
            && listed.survey.symbol == symbol
        {
            return self.last;
        }
        self.last = self.find_or_add(surface, symbol);
        self.last
    }

    fn find_or_add(&mut self, surface: Surface, symbol: &str) -> usize {
        let by_symbol = &mut self.by_symbol[usize::from(surface.code())];
        if let Some(&index) = by_symbol.get(symbol) {
            return index;
        }
        by_symbol.insert(symbol.to_owned(), self.all.len());
        self.all.push(Listed {
            survey: InstrumentSurvey::new(surface, symbol),
            joiner: Joiner::new(surface),
            waiting: Pending::new(WAITING_MAX),
            has_diffs: false,
            trade_stream: None,
            last_price: None,
            taker_side: TakerSide::default(),
        });
        self.all.len() - 1
    }

    pub(super) fn at(&mut self, index: usize) -> &mut Listed {
        &mut self.all[index]
    }

    pub(super) fn all(&self) -> &[Listed] {
        &self.all
    }

    /// Stores the entries of an exchange information line.
    pub(super) fn exchange_info(&mut self, text: &str) -> Result<(), ExchangeInfoError> {
        for (symbol, entry) in exchange_info::entries(text)? {
            let surface = exchange_info::surface(entry)?;
            self.entries.insert((surface, symbol), entry.to_owned());
        }
        Ok(())
    }

    /// The counts of each instrument, with its exchange information.
    pub(super) fn into_surveys(mut self) -> Vec<InstrumentSurvey> {
        let mut surveys: Vec<_> = self.all.into_iter().map(|listed| listed.survey).collect();
        for survey in &mut surveys {
            let key = (survey.surface, survey.symbol.clone());
            survey.exchange_info = self.entries.remove(&key);
        }
        surveys
    }
}
