use std::collections::BTreeMap;

use windvane_model::{Level, OwnedMarketEvent};

use super::*;
use crate::book::Speed;
use crate::interval::{DAY_MS, Interval};
use crate::recorded::{Recorded, RecordedEvents};
use crate::ticker::Ticker;
use crate::{Deed, Update};

/// 2024-08-08 23:54:13 UTC.
const START: Time = Time(1_723_161_253_000_000_000);

/// A sink that records everything it receives.
#[derive(Default)]
struct Ears {
    text: Vec<String>,
    updates: Vec<(InstrumentId, Update)>,
    books: BTreeMap<InstrumentId, [BTreeMap<i64, i64>; 2]>,
    marks: usize,
    seconds: usize,
}

impl Sink for Ears {
    fn accounts(&self) -> usize {
        1
    }

    fn feed(&mut self, now: Time, _: usize, id: InstrumentId, event: &MarketEvent<'_>) {
        self.text.push(format!("{now:?} {id:?} {event:?}"));
        match event {
            MarketEvent::Depth {
                snapshot,
                bids,
                asks,
                ..
            } => {
                let book = self.books.entry(id).or_default();
                if *snapshot {
                    *book = Default::default();
                }
                for (side, levels) in [bids, asks].into_iter().enumerate() {
                    for level in *levels {
                        book[side].insert(level.price, level.qty);
                    }
                    book[side].retain(|_, qty| *qty > 0);
                }
            }
            MarketEvent::Mark { .. } => self.marks += 1,
            _ => {}
        }
    }

    fn poll(&mut self, _: usize) -> Option<Deed> {
        None
    }

    fn number(&mut self, _: usize, _: usize, _: i64) {}

    fn meet(
        &mut self,
        _: Time,
        _: usize,
        _: InstrumentId,
        _: (Side, i64),
        _: i64,
        _: windvane_sim::Deal,
    ) -> i64 {
        0
    }

    fn best(&self, _: usize, _: InstrumentId, _: Side) -> Option<(i64, i64)> {
        None
    }

    fn update(&mut self, _: Time, symbol: &Symbol, update: &Update) {
        self.updates.push((symbol.id, update.clone()));
    }

    fn refresh(&mut self, _: Time, _: &Symbol) {}

    fn second(&mut self, _: Time, _: &[Symbol]) {
        self.seconds += 1;
    }
}

fn seeded(seed: u64) -> Board {
    Board::new(Source::Seeded { per_second: 50 }, seed, START)
}

#[test]
fn the_same_steps_make_the_same_market() {
    let run = |seed| {
        let (mut board, mut ears) = (seeded(seed), Ears::default());
        for step in 1..200 {
            board.advance(START.plus_ms(step * 7), &mut ears);
        }
        ears.text
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_new_board_has_a_past() {
    let board = seeded(1);
    for symbol in board.symbols() {
        let (bid, ask) = symbol.book.top();
        assert!(
            bid.qty > 0 && ask.price > bid.price,
            "{}",
            symbol.instrument.name()
        );
        let minutes = symbol.klines.of(Interval::M1).bars();
        assert!(minutes.len() > 1440);
        assert!(
            minutes
                .iter()
                .rev()
                .take(1440)
                .all(|bar| bar.count > 0 || bar.open > 0)
        );
        assert!(symbol.klines.of(Interval::H1).bars().len() > 1000);
        let ticker = Ticker::of(symbol, START.millis());
        assert!(ticker.count > 3_000 && ticker.low < ticker.high);
        assert!(ticker.open_ms <= START.millis() - DAY_MS);
        let traded = symbol.trades.singles().back().unwrap();
        assert!(traded.time_ms <= START.millis());
        assert_eq!(traded.id, ticker.last_id);
        if let Some(funded) = &symbol.funded {
            assert_eq!(funded.select(None, None, 1000).count(), 270);
            assert!(funded.next_ms > START.millis());
        }
    }
    let futures = board.of(Surface::Futures);
    assert!(futures.into_iter().all(|symbol| symbol.funded.is_some()));
}

#[test]
fn accounts_receive_the_public_book() {
    let (mut board, mut ears) = (seeded(3), Ears::default());
    for symbol in board.symbols() {
        symbol.show(|event| ears.feed(START, 0, symbol.id, event));
    }
    board.advance(START.plus_ms(4_000), &mut ears);
    for symbol in board.symbols() {
        for side in [Side::Buy, Side::Sell] {
            let book = symbol.book.levels(side).map(|l| (l.price, l.qty)).collect();
            assert_eq!(ears.books[&symbol.id][side as usize], book);
        }
    }
    assert_eq!(ears.seconds, 4);
    assert!(ears.marks >= 3 * 4, "{}", ears.marks);
}

#[test]
fn every_change_is_reported_once_and_ids_have_no_gaps() {
    let (mut board, mut ears) = (seeded(4), Ears::default());
    board.advance(START.plus_ms(4_900), &mut ears);
    let id = board.find(Surface::Futures, "BTCUSDT").unwrap().id;
    let own = || {
        ears.updates
            .iter()
            .filter(|(of, _)| *of == id)
            .map(|(_, u)| u)
    };
    let trades: Vec<_> = own()
        .filter_map(|u| {
            if let Update::Trade(t) = u {
                Some(t.id)
            } else {
                None
            }
        })
        .collect();
    assert!(trades.len() > 20, "{}", trades.len());
    assert!(trades.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let aggregates: Vec<_> = own()
        .filter_map(|u| {
            if let Update::AggTrade(a) = u {
                Some(*a)
            } else {
                None
            }
        })
        .collect();
    for pair in aggregates.windows(2) {
        assert_eq!(pair[1].id, pair[0].id + 1);
        assert_eq!(pair[1].first_id, pair[0].last_id + 1);
    }
    for speed in Speed::of(Surface::Futures) {
        let differences: Vec<_> = own()
            .filter_map(|u| {
                if let Update::Depth(d) = u {
                    Some(d)
                } else {
                    None
                }
            })
            .filter(|d| d.speed == *speed)
            .collect();
        assert!(differences.len() as i64 >= 4_000 / speed.millis() - 1);
        assert!(
            differences
                .windows(2)
                .all(|pair| pair[1].previous_id == pair[0].last_id)
        );
    }
}

#[test]
fn minutes_close_on_time() {
    let (mut board, mut ears) = (seeded(5), Ears::default());
    for second in 1..60 {
        board.advance(START.plus_ms(second * 1000), &mut ears);
    }
    let closed = ears.updates.iter().filter_map(|(id, update)| match update {
        Update::Closed(interval, bar) if *id == InstrumentId(0) => Some((*interval, bar.close_ms)),
        _ => None,
    });
    // The bars of one minute and of five minutes, which close at 23:54:59.999.
    assert_eq!(
        closed.collect::<Vec<_>>(),
        [
            (Interval::M1, 1_723_161_299_999),
            (Interval::M5, 1_723_161_299_999)
        ]
    );
}

#[test]
fn a_long_pause_is_skipped_and_not_replayed() {
    let (mut board, mut ears) = (seeded(6), Ears::default());
    board.advance(START.plus_ms(DAY_MS * 3), &mut ears);
    assert!(ears.text.len() < 50_000, "{}", ears.text.len());
    assert!(
        board
            .symbols()
            .iter()
            .all(|s| s.klines.of(Interval::M1).bars().len() < 1_600)
    );
    let funded = board
        .find(Surface::Futures, "BTCUSDT")
        .unwrap()
        .funded
        .as_ref();
    assert!(funded.unwrap().next_ms > START.millis() + DAY_MS * 3);
}

fn recorded(events: Vec<(i64, OwnedMarketEvent)>, looped: bool) -> Board {
    let mut assets = Assets::default();
    let listed = listing::own(&mut assets);
    let futures = listed
        .into_iter()
        .find(|l| l.instrument.name() == "futures:BTCUSDT")
        .unwrap();
    let open = move || -> Option<RecordedEvents> {
        let events = events.clone().into_iter().map(|(ms, event)| Recorded {
            time: Time::from_millis(ms),
            instrument: InstrumentId(0),
            event,
        });
        Some(Box::new(events))
    };
    let recording = Recording {
        instruments: vec![futures.instrument],
        assets,
        open: Box::new(open),
        speed_permille: 1000,
        looped,
    };
    Board::new(Source::Recorded(recording), 1, START)
}

fn level(price: i64, qty: i64) -> Level {
    Level { price, qty }
}

#[test]
fn a_recording_with_tops_alone_has_a_book_of_one_level() {
    let top = |bid, ask| {
        OwnedMarketEvent::of(&MarketEvent::Top {
            update_id: 7,
            bid: level(bid, 1),
            ask: level(ask, 1),
        })
    };
    let mut board = recorded(
        vec![(0, top(100, 110)), (10, top(105, 106)), (20, top(90, 91))],
        false,
    );
    let mut ears = Ears::default();
    board.advance(START.plus_ms(30), &mut ears);
    let symbol = &board.symbols()[0];
    assert_eq!(symbol.book.top(), (level(90, 1), level(91, 1)));
    assert_eq!(symbol.book.levels(Side::Buy).count(), 1);
}

#[test]
fn the_mid_is_the_mark_until_a_recording_states_one() {
    let top = |bid, ask| {
        OwnedMarketEvent::of(&MarketEvent::Top {
            update_id: 7,
            bid: level(bid, 1),
            ask: level(ask, 1),
        })
    };
    let mark = OwnedMarketEvent::of(&MarketEvent::Mark {
        mark: 97_000_000,
        index: 0,
        funding_rate: 0,
        next_funding: Time(0),
    });
    let events = vec![
        (0, top(100, 110)),
        (10, top(90, 91)),
        (20, mark),
        (30, top(200, 201)),
    ];
    let mut board = recorded(events, false);
    let mut marks = Vec::new();
    for ms in [0, 10, 20, 30, 2_000] {
        board.advance(START.plus_ms(ms), &mut Ears::default());
        let symbol = &board.symbols()[0];
        let shown = symbol.funded.as_ref().map(|funded| funded.mark);
        let unit = symbol.at_mark_scale(1);
        marks.push((shown, unit));
    }
    let unit = marks[0].1;
    let shown: Vec<_> = marks.into_iter().map(|(mark, _)| mark.unwrap()).collect();
    let stated = 97_000_000;
    assert_eq!(
        shown,
        [105 * unit, 90 * unit + unit / 2, stated, stated, stated]
    );
}

#[test]
fn a_looped_recording_keeps_its_marks_and_ids_keep_rising() {
    let trade = OwnedMarketEvent::of(&MarketEvent::Trade {
        price: 6_180_030,
        qty: 6,
        trade_id: 5_266_583_935,
        buyer_is_maker: false,
    });
    let mark = OwnedMarketEvent::of(&MarketEvent::Mark {
        mark: 6_180_000_000_000,
        index: 6_180_100_000_000,
        funding_rate: 12_345,
        next_funding: Time(0),
    });
    let depth = OwnedMarketEvent::Depth {
        update_id: 9,
        snapshot: true,
        bids: vec![level(6_180_020, 5)],
        asks: vec![level(6_180_030, 5)],
    };
    let mut board = recorded(vec![(0, depth), (500, trade), (900, mark)], true);
    let mut ears = Ears::default();
    for step in 1..100 {
        board.advance(START.plus_ms(step * 100), &mut ears);
    }
    let symbol = &board.symbols()[0];
    let ids: Vec<_> = symbol.trades.singles().iter().map(|t| t.id).collect();
    assert!(ids.len() >= 5 && ids.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let funded = symbol.funded.as_ref().unwrap();
    assert_eq!((funded.mark, funded.rate), (6_180_000_000_000, 12_345));
    assert!(funded.next_ms > START.millis(), "the venue's own cycle");
}
