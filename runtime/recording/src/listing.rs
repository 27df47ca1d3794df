//! The instruments of a recording while it is decoded: names, books being joined, counts.

use std::collections::BTreeMap;

use windvane_model::Surface;
use windvane_protocol::exchange_info::{self, ExchangeInfoError};
use windvane_protocol::{BookLevels, Joiner, Number, Pending, TakerSide};

use super::survey::InstrumentSurvey;

/// Depth differences of one instrument that wait for a snapshot. A snapshot is asked for when the
/// stream starts and comes within seconds; a stream has at most 50 frames a second.
const WAITING_MAX: usize = 1024;

/// A depth difference that waits.
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
    /// Depth differences were seen, so that snapshots are joined to them.
    pub(super) has_diffs: bool,
    /// Which trade stream came first and counts.
    pub(super) trade_stream: Option<TradeStream>,
    pub(super) last_price: Option<Number>,
    /// For trades that do not tell who crossed.
    pub(super) taker_side: TakerSide,
}

/// The streams that tell a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradeStream {
    Trade,
    Aggregate,
    TradePro,
}

impl Listed {
    /// Takes note of how long a frame was on its way; times in milliseconds, 0 where absent.
    pub(super) fn delay(&mut self, recv: i64, event_time: i64) {
        if event_time == 0 {
            return;
        }
        let delay = recv.saturating_sub(event_time);
        let least = self.survey.delay_min_ns.get_or_insert(delay);
        *least = delay.min(*least);
    }

    /// A price this near to the last one can be of the same instrument.
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

/// All instruments, in the order in which they first appeared.
#[derive(Debug, Default)]
pub(super) struct Listing {
    all: Vec<Listed>,
    by_symbol: [BTreeMap<String, usize>; 2],
    /// Entries of exchange information lines, of all symbols.
    entries: BTreeMap<(Surface, String), String>,
    last: usize,
}

impl Listing {
    /// The index of an instrument, which is added if it is new.
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

    /// Keeps the entries of an exchange information line.
    pub(super) fn exchange_info(&mut self, text: &str) -> Result<(), ExchangeInfoError> {
        for (symbol, entry) in exchange_info::entries(text)? {
            let surface = exchange_info::surface(entry)?;
            self.entries.insert((surface, symbol), entry.to_owned());
        }
        Ok(())
    }

    /// What was counted, each instrument with its exchange information.
    pub(super) fn into_surveys(mut self) -> Vec<InstrumentSurvey> {
        let mut surveys: Vec<_> = self.all.into_iter().map(|listed| listed.survey).collect();
        for survey in &mut surveys {
            let key = (survey.surface, survey.symbol.clone());
            survey.exchange_info = self.entries.remove(&key);
        }
        surveys
    }
}
