use proptest::prelude::*;
use windvane_model::{
    ClientOrderId, NewOrder, OrderTerms, OrderType, OwnedMarketEvent, Price, Qty, Request, Surface,
    TimeInForce,
};
use windvane_protocol::Assets;

use super::*;
use crate::account_id::AccountId;
use crate::accounts::TradeRecord;
// Not the function of the same name in `audience`.
use crate::advance::advance;
use crate::settings::Settings;
use crate::state::State;
use crate::user_events;
use windvane_model::market::Level;
use windvane_sim_market::listing;
use windvane_sim_market::{Recorded, RecordedEvents, Recording, Source};

const START: Time = Time(1_723_161_253_000_000_000);
/// Futures BTCUSDT: prices in 0.01 with a tick of 0.10, quantities in 0.001.
const BTC: InstrumentId = InstrumentId(0);

const fn level(price: i64, qty: i64) -> Level {
    Level { price, qty }
}

const BIDS: [Level; 2] = [level(6_000_000, 50), level(5_999_900, 50)];
const ASKS: [Level; 2] = [level(6_000_500, 50), level(6_000_600, 50)];

/// A market that never moves by itself; only the test changes it.
fn still() -> Recording {
    let mut assets = Assets::default();
    let listed = listing::own(&mut assets).into_iter();
    let mut instruments = listed.map(|listed| listed.instrument);
    let futures = instruments.find(|i| i.surface == Surface::Futures);
    let open = || -> Option<RecordedEvents> {
        let book = OwnedMarketEvent::of(&MarketEvent::Depth {
            update_id: 1,
            snapshot: true,
            bids: &BIDS,
            asks: &ASKS,
        });
        Some(Box::new(std::iter::once(Recorded {
            time: Time(0),
            instrument: BTC,
            event: book,
        })))
    };
    Recording {
        instruments: futures.into_iter().collect(),
        assets,
        open: Box::new(open),
        speed_permille: 1000,
        looped: false,
    }
}

struct SharedMarket {
    state: State,
    now: Time,
    orders: u64,
}

fn shared_market(accounts: u16) -> SharedMarket {
    let settings = Settings {
        source: Source::Recorded(still()),
        accounts,
        ..Settings::default()
    };
    let (state, _) = State::new(settings, START).unwrap();
    SharedMarket {
        state,
        now: START,
        orders: 0,
    }
}

fn limit(side: Side, price: i64, qty: i64, time_in_force: TimeInForce) -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, side, OrderType::Limit);
    terms.price = Some(Price(price));
    terms.qty = Some(Qty(qty));
    terms.time_in_force = Some(time_in_force);
    terms
}

fn gtc(side: Side, price: i64, qty: i64) -> OrderTerms {
    limit(side, price, qty, TimeInForce::Gtc)
}

fn market(side: Side, qty: i64) -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, side, OrderType::Market);
    terms.qty = Some(Qty(qty));
    terms
}

fn stop(side: Side, price: i64, qty: i64) -> OrderTerms {
    let mut terms = OrderTerms::new(BTC, side, OrderType::StopMarket);
    terms.qty = Some(Qty(qty));
    terms.stop_price = Some(Price(price));
    terms
}

impl SharedMarket {
    fn request(&mut self, account: u16, request: &Request) {
        self.now = self.now.plus_ms(3);
        advance(&mut self.state, self.now);
        let venue = &mut self.state.account_mut(AccountId(account)).venue;
        venue.request(self.now, request);
        while venue.poll().is_some() {}
        user_events::publish_all(&mut self.state);
    }

    fn place(&mut self, account: u16, terms: OrderTerms) {
        self.orders += 1;
        let client_order_id = ClientOrderId::new(&format!("o{}", self.orders)).unwrap();
        let order = NewOrder {
            client_order_id,
            terms,
        };
        self.request(account, &Request::Place(order));
    }

    fn happens(&mut self, event: &MarketEvent<'_>) {
        self.now = self.now.plus_ms(3);
        advance(&mut self.state, self.now);
        inject(&mut self.state, self.now, BTC, event);
        user_events::publish_all(&mut self.state);
    }

    fn trades(&mut self, price: i64, qty: i64, buyer_is_maker: bool) {
        self.happens(&MarketEvent::Trade {
            price,
            qty,
            trade_id: 0,
            buyer_is_maker,
        });
    }

    fn symbol(&self) -> &Symbol {
        self.state.board.symbol(BTC).unwrap()
    }

    fn book(&self, side: Side) -> Vec<(i64, i64)> {
        let levels = self.symbol().book.levels(side);
        levels.map(|l| (l.price, l.qty)).collect()
    }

    /// Id minus the first id, price, quantity, and whether the buyer was the maker.
    fn tape(&self) -> Vec<(i64, i64, i64, bool)> {
        let singles = self.symbol().trades.singles().iter();
        let plain = singles.map(|t| (t.id - 10_000_000, t.price, t.qty, t.buyer_is_maker));
        plain.collect()
    }

    fn fills(&self, account: u16) -> impl Iterator<Item = &TradeRecord> {
        self.state.account(AccountId(account)).history.trades.iter()
    }

    /// Id minus the first id, price and quantity of an account's fills.
    fn filled(&self, account: u16) -> Vec<(i64, i64, i64)> {
        let fills = self.fills(account).map(|record| record.fill);
        let plain = fills.map(|f| (f.trade_id.0 - 10_000_000, f.price.0, f.qty.0));
        plain.collect()
    }
}

const SOURCE_BIDS: [(i64, i64); 2] = [(6_000_000, 50), (5_999_900, 50)];
const SOURCE_ASKS: [(i64, i64); 2] = [(6_000_500, 50), (6_000_600, 50)];

#[test]
fn a_resting_order_is_in_the_book_from_its_start_to_its_end() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, gtc(Side::Buy, 6_000_100, 7));
    shared_market.place(1, gtc(Side::Buy, 6_000_000, 3));
    assert_eq!(
        shared_market.book(Side::Buy),
        [(6_000_100, 7), (6_000_000, 53), (5_999_900, 50)]
    );
    shared_market.trades(6_000_100, 2, true);
    assert_eq!(shared_market.book(Side::Buy)[0], (6_000_100, 5));
    shared_market.request(0, &Request::CancelAll { instrument: BTC });
    shared_market.request(1, &Request::CancelAll { instrument: BTC });
    assert_eq!(shared_market.book(Side::Buy), SOURCE_BIDS);
}

#[test]
fn waiting_and_hidden_orders_are_not_in_the_book() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, limit(Side::Buy, 6_000_100, 7, TimeInForce::Hidden));
    shared_market.place(0, stop(Side::Buy, 6_010_000, 7));
    assert_eq!(shared_market.state.accounts[0].venue.open(None).len(), 2);
    assert_eq!(shared_market.book(Side::Buy), SOURCE_BIDS);
    assert_eq!(shared_market.book(Side::Sell), SOURCE_ASKS);
}

#[test]
fn a_taken_quantity_is_printed_and_removed_for_everybody() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, gtc(Side::Buy, 6_000_600, 60));
    let tape = [(0, 6_000_500, 50, false), (1, 6_000_600, 10, false)];
    assert_eq!(shared_market.tape(), tape);
    assert_eq!(
        shared_market.filled(0),
        tape.map(|(id, price, qty, _)| (id, price, qty))
    );
    assert_eq!(shared_market.book(Side::Sell), [(6_000_600, 40)]);
    shared_market.place(1, market(Side::Buy, 60));
    assert_eq!(shared_market.filled(1), [(2, 6_000_600, 40)]);
    assert_eq!(shared_market.book(Side::Sell), []);
    // The source changes the level, so it has its full quantity again.
    shared_market.happens(&MarketEvent::Top {
        update_id: 2,
        bid: BIDS[0],
        ask: level(6_000_500, 51),
    });
    assert_eq!(shared_market.book(Side::Sell), [(6_000_500, 51)]);
}

#[test]
fn two_accounts_trade_with_each_other_inside_the_spread() {
    let mut shared_market = shared_market(3);
    shared_market.place(0, gtc(Side::Sell, 6_000_300, 5));
    shared_market.place(1, gtc(Side::Sell, 6_000_300, 5));
    assert_eq!(shared_market.book(Side::Sell)[0], (6_000_300, 10));
    shared_market.place(2, gtc(Side::Buy, 6_000_400, 12));
    assert_eq!(
        shared_market.tape(),
        [(0, 6_000_300, 5, false), (1, 6_000_300, 5, false)]
    );
    assert_eq!(shared_market.filled(0), [(0, 6_000_300, 5)]);
    assert_eq!(shared_market.filled(1), [(1, 6_000_300, 5)]);
    // One fill met both accounts, and has the id of the last trade.
    assert_eq!(shared_market.filled(2), [(1, 6_000_300, 10)]);
    assert_eq!(shared_market.book(Side::Buy)[0], (6_000_400, 2));
    assert_eq!(shared_market.book(Side::Sell), SOURCE_ASKS);
    assert!(shared_market.fills(0).all(|record| record.fill.maker));
    assert!(shared_market.fills(2).all(|record| !record.fill.maker));
}

#[test]
fn other_accounts_at_a_level_come_before_the_source() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, gtc(Side::Sell, 6_000_500, 7));
    shared_market.place(1, market(Side::Buy, 20));
    assert_eq!(
        shared_market.tape(),
        [(0, 6_000_500, 7, false), (1, 6_000_500, 13, false)]
    );
    assert_eq!(shared_market.filled(0), [(0, 6_000_500, 7)]);
    assert_eq!(shared_market.filled(1), [(1, 6_000_500, 20)]);
    assert_eq!(shared_market.book(Side::Sell)[0], (6_000_500, 37));
}

#[test]
fn a_trade_of_the_source_is_printed_as_the_fills_that_it_causes() {
    let mut shared_market = shared_market(3);
    shared_market.place(0, gtc(Side::Buy, 6_000_100, 5));
    shared_market.place(1, gtc(Side::Buy, 6_000_200, 5));
    shared_market.trades(6_000_000, 12, true);
    // The better price fills first, and the total does not exceed the source's trade.
    assert_eq!(
        shared_market.tape(),
        [
            (0, 6_000_200, 5, true),
            (1, 6_000_100, 5, true),
            (2, 6_000_000, 2, true)
        ]
    );
    assert_eq!(shared_market.filled(1), [(0, 6_000_200, 5)]);
    assert_eq!(shared_market.filled(0), [(1, 6_000_100, 5)]);
    shared_market.place(2, gtc(Side::Buy, 6_000_100, 5));
    shared_market.place(0, gtc(Side::Buy, 6_000_100, 5));
    shared_market.trades(6_000_100, 4, true);
    assert_eq!(
        shared_market.filled(0).len() + shared_market.filled(2).len(),
        2
    );
    assert_eq!(shared_market.tape()[3..], [(3, 6_000_100, 4, true)]);
    assert_eq!(shared_market.book(Side::Buy)[0], (6_000_100, 6));
}

#[test]
fn an_order_fills_when_the_sources_book_reaches_it() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, gtc(Side::Buy, 6_000_400, 8));
    shared_market.happens(&MarketEvent::Top {
        update_id: 2,
        bid: BIDS[1],
        ask: level(6_000_300, 5),
    });
    assert_eq!(shared_market.tape(), [(0, 6_000_400, 5, true)]);
    assert_eq!(shared_market.filled(0), [(0, 6_000_400, 5)]);
    assert_eq!(shared_market.book(Side::Buy)[0], (6_000_400, 3));
    assert_eq!(shared_market.book(Side::Sell), SOURCE_ASKS);
}

#[test]
fn a_public_trade_of_an_account_triggers_the_stops_of_others() {
    let mut shared_market = shared_market(3);
    shared_market.trades(6_000_500, 1, false);
    shared_market.place(0, stop(Side::Buy, 6_000_600, 3));
    shared_market.place(1, market(Side::Buy, 60));
    assert_eq!(shared_market.filled(0), [(3, 6_000_600, 3)]);
    assert_eq!(shared_market.book(Side::Sell), [(6_000_600, 37)]);
}

#[test]
fn the_insurance_fund_prints_no_trade() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, market(Side::Buy, 10));
    let venue = &mut shared_market.state.accounts[0].venue;
    let position = windvane_model::PositionSide::Both;
    venue
        .deleverage(shared_market.now, BTC, position, Qty(4))
        .unwrap();
    user_events::publish_all(&mut shared_market.state);
    shared_market.place(0, market(Side::Buy, 1));
    assert_eq!(
        shared_market.tape(),
        [(0, 6_000_500, 10, false), (2, 6_000_500, 1, false)]
    );
    assert_eq!(shared_market.filled(0)[1].0, 1);
    let since: Vec<_> = shared_market
        .symbol()
        .trades
        .since(Some(10_000_001), 9)
        .collect();
    assert_eq!((since.len(), since[0].id), (1, 10_000_002));
}

#[test]
fn orders_of_one_account_that_cross_trade_with_each_other() {
    let mut shared_market = shared_market(2);
    shared_market.place(0, gtc(Side::Buy, 6_000_300, 5));
    shared_market.place(0, gtc(Side::Sell, 6_000_200, 7));
    assert_eq!(shared_market.tape(), [(0, 6_000_300, 5, true)]);
    assert_eq!(
        shared_market.filled(0),
        [(0, 6_000_300, 5), (0, 6_000_300, 5)]
    );
    let makers = shared_market
        .fills(0)
        .map(|record| (record.side, record.fill.maker));
    let makers: Vec<_> = makers.collect();
    assert_eq!(makers, [(Side::Buy, true), (Side::Sell, false)]);
    assert_eq!(shared_market.book(Side::Buy), SOURCE_BIDS);
    assert_eq!(shared_market.book(Side::Sell)[0], (6_000_200, 2));
}

/// One step of a random test.
#[derive(Clone, Debug)]
enum Step {
    Place(u16, OrderTerms),
    Cancel(u16),
    Trade(i64, i64, bool),
    Top(i64, i64, i64),
    Depth(bool, i64, i64),
    Time,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    let force = prop_oneof![
        6 => Just(TimeInForce::Gtc),
        1 => Just(TimeInForce::Ioc),
        1 => Just(TimeInForce::Fok),
        1 => Just(TimeInForce::Gtx),
        1 => Just(TimeInForce::Hidden),
    ];
    let price = (0_i64..12).prop_map(|n| 5_999_700 + 100 * n);
    let qty = 1_i64..60;
    let limits = (0_u16..3, side.clone(), price.clone(), qty.clone(), force)
        .prop_map(|(of, side, price, qty, force)| Step::Place(of, limit(side, price, qty, force)));
    let markets = (0_u16..3, side.clone(), qty.clone())
        .prop_map(|(of, side, qty)| Step::Place(of, market(side, qty)));
    let stops = (0_u16..3, side, price.clone(), qty.clone())
        .prop_map(|(of, side, price, qty)| Step::Place(of, stop(side, price, qty)));
    let step = prop_oneof![
        8 => limits,
        3 => markets,
        1 => stops,
        1 => (0_u16..3).prop_map(Step::Cancel),
        3 => (price.clone(), qty.clone(), any::<bool>())
            .prop_map(|(price, qty, maker)| Step::Trade(price, qty, maker)),
        2 => (price.clone(), qty.clone(), qty.clone())
            .prop_map(|(price, bid, ask)| Step::Top(price, bid, ask)),
        3 => (any::<bool>(), price, 0_i64..60)
            .prop_map(|(bids, price, qty)| Step::Depth(bids, price, qty)),
        1 => Just(Step::Time),
    ];
    prop::collection::vec(step, 1..60)
}

impl SharedMarket {
    fn step(&mut self, n: usize, step: &Step) {
        let update_id = 10 + n as i64;
        match step {
            Step::Place(account, terms) => self.place(*account, *terms),
            Step::Cancel(account) => {
                self.request(*account, &Request::CancelAll { instrument: BTC });
            }
            Step::Trade(price, qty, maker) => self.trades(*price, *qty, *maker),
            Step::Top(price, bid, ask) => self.happens(&MarketEvent::Top {
                update_id,
                bid: level(*price, *bid),
                ask: level(*price + 100, *ask),
            }),
            Step::Depth(bids, price, qty) => {
                let levels = [level(*price, *qty)];
                let (bids, asks): (&[_], &[_]) = match bids {
                    true => (&levels, &[]),
                    false => (&[], &levels),
                };
                self.happens(&MarketEvent::Depth {
                    update_id,
                    snapshot: false,
                    bids,
                    asks,
                });
            }
            Step::Time => {
                self.now = self.now.plus_ms(120);
                advance(&mut self.state, self.now);
            }
        }
    }

    /// Checks that the public data is consistent.
    fn check(&self) -> Result<(), TestCaseError> {
        let book = &self.symbol().book;
        let (bid, ask) = book.top();
        prop_assert!(bid.qty == 0 || ask.qty == 0 || bid.price < ask.price);
        for side in [Side::Buy, Side::Sell] {
            let mut shown = 0;
            for (n, account) in self.state.accounts.iter().enumerate() {
                for own in account.venue.shown(BTC, side) {
                    prop_assert!(book.accounts_at(side, own.price).contains(&n));
                    shown += own.qty;
                }
            }
            let own: i64 = book
                .levels(side)
                .map(|l| l.qty - book.left(side, l.price))
                .sum();
            prop_assert_eq!(own, shown);
        }
        Ok(())
    }

    /// Checks that every fill is on the tape, under an id that no other fill of the account has.
    fn check_tape(&self) -> Result<(), TestCaseError> {
        let tape = self.tape();
        prop_assert!(tape.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for account in 0..3 {
            let mut last = (-1, Side::Buy);
            for record in self.fills(account) {
                let (fill, id) = (record.fill, record.fill.trade_id.0 - 10_000_000);
                // An account that traded with itself has the trade twice, once from each side.
                let itself = id == last.0 && record.side != last.1;
                prop_assert!(id > last.0 || itself, "{} after {}", id, last.0);
                last = (id, record.side);
                let print = tape.iter().find(|print| print.0 == id);
                let liquidated = record.fill.fee == windvane_model::Amount::ZERO;
                let Some((_, price, qty, buyer_is_maker)) = print else {
                    prop_assert!(liquidated, "{:?} is not on the tape", fill);
                    continue;
                };
                prop_assert_eq!(*price, fill.price.0);
                prop_assert_eq!(*buyer_is_maker, fill.maker == (record.side == Side::Buy));
                if fill.maker {
                    prop_assert_eq!(*qty, fill.qty.0);
                } else {
                    prop_assert!(*qty <= fill.qty.0);
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// After any actions of the accounts and the source: the book is never shown crossed, shown
    /// orders exist, every fill is on the tape, and the same steps make the same market.
    #[test]
    fn the_market_stays_consistent(steps in steps()) {
        let mut shared_market = shared_market(3);
        for (n, step) in steps.iter().enumerate() {
            shared_market.step(n, step);
            shared_market.check()?;
        }
        shared_market.check_tape()?;
        let mut again = self::shared_market(3);
        for (n, step) in steps.iter().enumerate() {
            again.step(n, step);
        }
        prop_assert_eq!(shared_market.tape(), again.tape());
        prop_assert_eq!(shared_market.symbol().book.update_id(), again.symbol().book.update_id());
    }
}
