//! All symbols of both surfaces, driven by a source and by time. This module has no IO and no
//! clock.

use std::collections::{BTreeMap, BTreeSet};

use windvane_model::{AssetId, Instrument, InstrumentId, Level, MarketEvent, Side, Surface, Time};
use windvane_protocol::Assets;

use super::listing;
use super::past;
use super::recorded::{Playback, Recording};
use super::seeded::{Action, Flow};
use super::sink::{GRID_MS, Nobody, Sink};
use super::symbol::Symbol;
use windvane_model::random::SplitMix64;

/// The longest time that is caught up event by event. After a longer pause, for example because the
/// computer slept, the market continues from its last state.
const CATCH_UP_NS: i64 = 5_000_000_000;

/// The source of market data.
#[derive(Debug)]
pub enum Source {
    /// A market that the server generates from the seed.
    Seeded {
        /// Mean number of market actions per second and symbol. About a fifth of them are market
        /// orders.
        per_second: u32,
    },
    /// A recording.
    Recorded(Recording),
}

impl Default for Source {
    fn default() -> Self {
        Self::Seeded { per_second: 20 }
    }
}

#[derive(Debug)]
enum Feed {
    /// One flow per symbol, with the time of its next action.
    Seeded(Vec<Flow>),
    Recorded(Playback),
}

/// All public market data of the venue.
#[derive(Debug)]
pub struct Board {
    symbols: Vec<Symbol>,
    names: BTreeMap<(Surface, String), InstrumentId>,
    assets: Assets,
    feed: Feed,
    /// The next time on the grid.
    grid: Time,
    /// Symbols with changes that have not settled.
    pub(crate) dirty: BTreeSet<InstrumentId>,
    /// Buffers that are reused between events.
    pub(crate) prices: [Vec<i64>; 2],
    pub(crate) levels: [Vec<Level>; 2],
}

impl Board {
    /// A board that starts now, with a generated past.
    pub fn new(source: Source, seed: u64, now: Time) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut assets = Assets::default();
        let (instruments, feed) = match source {
            Source::Seeded { per_second } => {
                let mut flows = Vec::new();
                let mut instruments = Vec::new();
                for listed in listing::own(&mut assets) {
                    let flow = Flow::new(random.bits(), listed.character, now, per_second);
                    flows.push(flow);
                    instruments.push((listed.instrument, Some(listed.character)));
                }
                (instruments, Feed::Seeded(flows))
            }
            Source::Recorded(recording) => {
                assets = recording.assets.clone();
                let instruments = recording.instruments.iter().cloned();
                let completed = |stated| (listing::complete(stated, &assets), None);
                let instruments = instruments.map(completed).collect();
                (instruments, Feed::Recorded(Playback::new(recording, now)))
            }
        };
        let mut symbols = Vec::with_capacity(instruments.len());
        for (n, (instrument, character)) in instruments.into_iter().enumerate() {
            let mut symbol = Symbol::new(InstrumentId(n as u16), instrument);
            match character {
                Some(character) => {
                    past::fill(&mut symbol, SplitMix64::new(random.bits()), &character, now);
                }
                None => symbol.mark_by_mid(),
            }
            symbols.push(symbol);
        }
        let names = symbols.iter().map(|symbol| {
            let Instrument {
                surface,
                symbol: name,
                ..
            } = &symbol.instrument;
            ((*surface, name.clone()), symbol.id)
        });
        let mut board = Self {
            names: names.collect(),
            symbols,
            assets,
            feed,
            grid: Time::from_millis((now.millis().div_euclid(GRID_MS) + 1) * GRID_MS),
            dirty: BTreeSet::new(),
            prices: Default::default(),
            levels: Default::default(),
        };
        // The first events fill the books.
        board.advance(now, &mut Nobody);
        board
    }

    /// The instruments of both surfaces. The index in the list is the id.
    pub fn instruments(&self) -> Vec<Instrument> {
        let symbols = self.symbols.iter();
        symbols.map(|symbol| symbol.instrument.clone()).collect()
    }

    /// The names of the assets that instruments use.
    pub fn assets(&self) -> Assets {
        self.assets.clone()
    }

    /// The name of an asset.
    pub fn asset(&self, id: AssetId) -> &str {
        self.assets.name(id)
    }

    /// Continues trade ids at this value, unless a symbol has reached a higher one.
    pub fn continue_trades_at(&mut self, id: i64) {
        for symbol in &mut self.symbols {
            symbol.trades.continue_at(id);
        }
    }

    /// Whether trade ids are unique across symbols from now on.
    pub fn number_trades(&mut self, apart: bool) {
        let count = self.symbols.len() as i64;
        for (place, symbol) in (0..).zip(&mut self.symbols) {
            let (place, step) = if apart { (place, count) } else { (0, 1) };
            symbol.trades.number_apart(place, step);
        }
    }

    /// All symbols. The index in the list is the id.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The symbols of a surface.
    pub fn of(&self, surface: Surface) -> impl Iterator<Item = &Symbol> {
        let symbols = self.symbols.iter();
        symbols.filter(move |symbol| symbol.instrument.surface == surface)
    }

    /// The symbol with this name, upper case.
    pub fn find(&self, surface: Surface, name: &str) -> Option<&Symbol> {
        let id = self.names.get(&(surface, name.to_owned()))?;
        self.symbols.get(usize::from(id.0))
    }

    /// A symbol by its id.
    pub fn symbol(&self, id: InstrumentId) -> Option<&Symbol> {
        self.symbols.get(usize::from(id.0))
    }

    pub(crate) fn symbol_mut(&mut self, id: InstrumentId) -> Option<&mut Symbol> {
        self.symbols.get_mut(usize::from(id.0))
    }

    /// The rules of a symbol, for changes. Open orders stay as they are.
    pub fn instrument_mut(&mut self, id: InstrumentId) -> Option<&mut Instrument> {
        let symbol = self.symbols.get_mut(usize::from(id.0))?;
        Some(&mut symbol.instrument)
    }

    /// Applies an event that does not come from the source, as if it had happened now.
    pub fn inject(
        &mut self,
        now: Time,
        id: InstrumentId,
        event: &MarketEvent<'_>,
        sink: &mut impl Sink,
    ) {
        self.take(now, id, event, sink);
    }

    /// Advances the time: processes events of the source and timers, in order, up to `now`.
    pub fn advance(&mut self, now: Time, sink: &mut impl Sink) {
        self.skip_to(now.plus_ns(-CATCH_UP_NS));
        loop {
            let due = self.feed.due();
            if due.min(self.grid) > now {
                return;
            }
            if self.grid <= due {
                self.pass_grid(sink);
            } else {
                self.act(due, sink);
            }
        }
    }

    fn skip_to(&mut self, start: Time) {
        if self.grid < start {
            self.grid = Time::from_millis((start.millis().div_euclid(GRID_MS) + 1) * GRID_MS);
            match &mut self.feed {
                Feed::Seeded(flows) => flows.iter_mut().for_each(|flow| flow.skip_to(start)),
                Feed::Recorded(playback) => playback.skip_to(start),
            }
        }
    }

    fn pass_grid(&mut self, sink: &mut impl Sink) {
        let now = self.grid;
        for symbol in &mut self.symbols {
            symbol.pass(now, sink);
        }
        // Settle what the marks did to the accounts.
        self.settle(now, sink);
        if now.millis() % 1000 == 0 {
            sink.second(now, &self.symbols);
        }
        self.grid = now.plus_ms(GRID_MS);
    }

    fn act(&mut self, now: Time, sink: &mut impl Sink) {
        match &mut self.feed {
            Feed::Seeded(flows) => {
                let due = flows.iter_mut().zip(&self.symbols);
                let due = due.filter(|(flow, _)| flow.next() <= now);
                let actions: Vec<_> = due.map(|(flow, symbol)| (symbol.id, flow.act())).collect();
                for (id, action) in actions {
                    self.take_action(now, id, &action, sink);
                }
            }
            Feed::Recorded(playback) => {
                if let Some(recorded) = playback.take() {
                    self.take(now, recorded.instrument, &recorded.event.market(), sink);
                }
            }
        }
    }

    /// Applies an event of the source.
    fn take(&mut self, now: Time, id: InstrumentId, event: &MarketEvent<'_>, sink: &mut impl Sink) {
        match *event {
            MarketEvent::Trade {
                price,
                qty,
                buyer_is_maker,
                ..
            } => self.trade(now, id, (price, qty), buyer_is_maker, sink),
            MarketEvent::Mark {
                mark,
                index,
                funding_rate,
                ..
            } => {
                if let Some(symbol) = self.symbol_mut(id) {
                    symbol.state_mark(now, (mark, index), funding_rate, sink);
                }
                self.settle(now, sink);
            }
            MarketEvent::Top { .. } | MarketEvent::Depth { .. } | MarketEvent::Gap => {
                if let Some(symbol) = self.symbol_mut(id) {
                    symbol.change_book(event);
                    self.dirty.insert(id);
                }
                self.settle(now, sink);
                let symbol = self.symbol_mut(id);
                if symbol.is_some_and(|symbol| symbol.take_mid(now, sink)) {
                    self.settle(now, sink);
                }
            }
        }
    }

    fn take_action(&mut self, now: Time, id: InstrumentId, action: &Action, sink: &mut impl Sink) {
        for print in &action.prints {
            let event = MarketEvent::Trade {
                price: print.price,
                qty: print.qty,
                trade_id: 0,
                buyer_is_maker: print.taker == Side::Sell,
            };
            self.take(now, id, &event, sink);
        }
        if !(action.bids.is_empty() && action.asks.is_empty()) {
            let event = MarketEvent::Depth {
                update_id: i64::MAX,
                snapshot: false,
                bids: &action.bids,
                asks: &action.asks,
            };
            self.take(now, id, &event, sink);
        }
    }
}

impl Feed {
    fn due(&self) -> Time {
        match self {
            Self::Seeded(flows) => flows.iter().map(Flow::next).min().unwrap_or(Time::NEVER),
            Self::Recorded(playback) => playback.due(),
        }
    }
}

#[cfg(test)]
mod tests;
