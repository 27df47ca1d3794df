//! The user events of an account, written in the venue's own form and decoded again, equal the
//! events of the matching engine.

use proptest::prelude::*;
use windvane_model::protocol::{AccountUpdate, PositionUpdate};
use windvane_model::{
    ClientOrderId, Instrument, InstrumentId, Level, MarketEvent, NewOrder, OrderTerms, OrderType,
    PositionSide, Price, Qty, Request, Side, Time, TimeInForce, UserEvent,
};
use windvane_protocol::adapter::{Adapter, FuturesAccount, Names};
use windvane_protocol::user_stream::decode;
use windvane_sim::{Venue, VenueMessage};

use super::*;
use crate::accounts;
use crate::choices::Choices;
use crate::settings::Settings;
use windvane_sim_market::Source;

const ACCOUNT: AccountId = AccountId(0);
const START: Time = Time::from_millis(1_751_350_000_000);

/// A step of a test session.
#[derive(Clone, Debug)]
enum Step {
    Top {
        spot: bool,
        percent: i64,
    },
    Trade {
        spot: bool,
        percent: i64,
        seller: bool,
    },
    Mark {
        percent: i64,
    },
    Place {
        spot: bool,
        kind: u8,
        side: Side,
        percent: i64,
        units: i64,
    },
    Cancel {
        spot: bool,
        order: usize,
    },
    CancelAll {
        spot: bool,
    },
    Leverage {
        leverage: u32,
    },
    Mode {
        hedge: bool,
    },
    Assets {
        multi: bool,
    },
    Isolated {
        isolated: bool,
    },
    Liquidate,
    Deleverage {
        units: i64,
    },
    Fund {
        rate: i64,
    },
    Transfer {
        from: Surface,
        amount: i128,
    },
    Pass {
        ms: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let side = || prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    let near = || -6_i64..7;
    prop_oneof![
        8 => (any::<bool>(), near()).prop_map(|(spot, percent)| Step::Top { spot, percent }),
        4 => (any::<bool>(), near(), any::<bool>())
            .prop_map(|(spot, percent, seller)| Step::Trade { spot, percent, seller }),
        2 => near().prop_map(|percent| Step::Mark { percent }),
        12 => (any::<bool>(), 0_u8..8, side(), near(), 1_i64..400)
            .prop_map(|(spot, kind, side, percent, units)| Step::Place {
                spot, kind, side, percent, units,
            }),
        3 => (any::<bool>(), 0_usize..30).prop_map(|(spot, order)| Step::Cancel { spot, order }),
        1 => any::<bool>().prop_map(|spot| Step::CancelAll { spot }),
        1 => (1_u32..30).prop_map(|leverage| Step::Leverage { leverage }),
        1 => any::<bool>().prop_map(|hedge| Step::Mode { hedge }),
        1 => any::<bool>().prop_map(|multi| Step::Assets { multi }),
        1 => any::<bool>().prop_map(|isolated| Step::Isolated { isolated }),
        1 => Just(Step::Liquidate),
        1 => (1_i64..100).prop_map(|units| Step::Deleverage { units }),
        1 => (-50_000_i64..50_000).prop_map(|rate| Step::Fund { rate }),
        1 => (prop_oneof![Just(Surface::Spot), Just(Surface::Futures)], 1_i128..1_000_000_000_000)
            .prop_map(|(from, amount)| Step::Transfer { from, amount }),
        2 => (1_i64..5_000).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// The server's account, a twin matching engine, and the decoder for the account's events.
struct Pair {
    state: State,
    twin: Venue,
    adapter: Adapter,
    now: Time,
    placed: usize,
}

impl Pair {
    fn new() -> Self {
        let settings = Settings {
            source: Source::Seeded { per_second: 1 },
            // The twin reports flat positions too.
            choices: Choices::new([("flat-position", "listed")]).unwrap(),
            ..Settings::default()
        };
        let (state, _) = State::new(settings, START).unwrap();
        let instruments = state.board.instruments();
        let mut twin = accounts::venue(ACCOUNT.0, &instruments, &state.assets).unwrap();
        for symbol in state.board.symbols() {
            symbol.show(|event| twin.market(START, symbol.id, event));
        }
        let adapter = Adapter {
            names: Names::new(&instruments, state.assets.names()),
            futures_account: FuturesAccount::Routes,
            documented: false,
        };
        Self {
            state,
            twin,
            adapter,
            now: START,
            placed: 0,
        }
    }

    fn id(&self, spot: bool) -> InstrumentId {
        let surface = if spot {
            Surface::Spot
        } else {
            Surface::Futures
        };
        self.state.instrument(surface, "BTCUSDT").unwrap()
    }

    fn rules(&self, spot: bool) -> Instrument {
        self.state.rules(self.id(spot)).clone()
    }

    /// Does the same to both accounts.
    fn both(&mut self, act: impl Fn(&mut Venue, Time)) {
        self.now = self.now.plus_ms(1);
        act(&mut self.state.account_mut(ACCOUNT).venue, self.now);
        act(&mut self.twin, self.now);
    }

    fn request(&mut self, request: &Request) {
        self.both(|venue, now| venue.request(now, request));
    }

    /// A price that differs from 60,000 by so many percent.
    fn price(&self, spot: bool, percent: i64) -> i64 {
        let one = windvane_model::decimal::pow10(self.rules(spot).price_scale);
        (60_000 + 600 * percent) * one
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Top { spot, percent } => {
                let (id, price) = (self.id(spot), self.price(spot, percent));
                let qty = windvane_model::decimal::pow10(self.rules(spot).qty_scale);
                let tick = self.price(spot, 0) / 60_000;
                let level = |price| Level { price, qty };
                let event = MarketEvent::Top {
                    update_id: 0,
                    bid: level(price),
                    ask: level(price + tick),
                };
                self.both(|venue, now| venue.market(now, id, &event));
            }
            Step::Trade {
                spot,
                percent,
                seller,
            } => {
                let (id, price) = (self.id(spot), self.price(spot, percent));
                let event = MarketEvent::Trade {
                    price,
                    qty: 50,
                    trade_id: 1,
                    buyer_is_maker: seller,
                };
                self.both(|venue, now| venue.market(now, id, &event));
            }
            Step::Mark { percent } => {
                let event = MarketEvent::Mark {
                    mark: (60_000 + 600 * percent) * 100_000_000,
                    index: 0,
                    funding_rate: 10_000,
                    next_funding: self.now.plus_ms(2_000),
                };
                let id = self.id(false);
                self.both(|venue, now| venue.market(now, id, &event));
            }
            Step::Place {
                spot,
                kind,
                side,
                percent,
                units,
            } => {
                let terms = self.terms(spot, kind, side, percent, units);
                let client_order_id = named(self.placed);
                self.placed += 1;
                self.request(&Request::Place(NewOrder {
                    client_order_id,
                    terms,
                }));
            }
            Step::Cancel { spot, order } => self.request(&Request::Cancel {
                instrument: self.id(spot),
                client_order_id: named(order),
            }),
            Step::CancelAll { spot } => self.request(&Request::CancelAll {
                instrument: self.id(spot),
            }),
            Step::Leverage { leverage } => self.request(&Request::SetLeverage {
                instrument: self.id(false),
                leverage,
            }),
            Step::Mode { hedge } => self.request(&Request::SetPositionMode { hedge }),
            ref forced => self.force(forced),
        }
    }

    /// Steps that no request can cause.
    fn force(&mut self, step: &Step) {
        let id = self.id(false);
        let quote = self.rules(false).quote;
        self.both(|venue, now| match *step {
            Step::Assets { multi } => drop(venue.set_multi_assets(now, multi)),
            Step::Isolated { isolated } => drop(venue.set_margin_type(now, id, isolated)),
            Step::Liquidate => drop(venue.liquidate_now(now, id)),
            Step::Deleverage { units } => {
                for side in PositionSide::ALL {
                    drop(venue.deleverage(now, id, *side, Qty(units)));
                }
            }
            Step::Fund { rate } => drop(venue.fund_now(now, id, rate)),
            Step::Transfer { from, amount } => {
                drop(venue.transfer(now, from, quote, Amount(amount)));
            }
            Step::Pass { ms } => venue.timeout(now.plus_ms(ms)),
            _ => {}
        });
        if let Step::Pass { ms } = *step {
            self.now = self.now.plus_ms(ms);
        }
    }

    fn terms(&self, spot: bool, kind: u8, side: Side, percent: i64, units: i64) -> OrderTerms {
        let order_type = match kind {
            0..=3 => OrderType::Limit,
            4 | 5 => OrderType::Market,
            6 if spot => OrderType::TakeProfit,
            6 => OrderType::TrailingStopMarket,
            _ => OrderType::StopMarket,
        };
        let mut terms = OrderTerms::new(self.id(spot), side, order_type);
        let price = Some(Price(self.price(spot, percent)));
        terms.qty = Some(Qty(units));
        if self.twin.hedge_mode() && !spot {
            let sides = [PositionSide::Long, PositionSide::Short];
            terms.position_side = sides[(units % 2) as usize];
        }
        match order_type {
            OrderType::Limit => {
                terms.price = price;
                terms.time_in_force = Some(TimeInForce::ALL[usize::from(kind)]);
            }
            OrderType::Market if spot && side == Side::Buy => {
                terms.qty = None;
                terms.quote_qty = Some(Amount(i128::from(units) * 1_000_000_000));
            }
            OrderType::TrailingStopMarket => terms.callback_ppm = Some(10_000),
            OrderType::TakeProfit => (terms.price, terms.stop_price) = (price, price),
            OrderType::StopMarket => terms.stop_price = price,
            _ => {}
        }
        terms
    }

    /// The events of both accounts since the last call: decoded, and from the twin.
    fn events(&mut self) -> (Vec<UserEvent>, Vec<UserEvent>) {
        let mut read = Vec::new();
        let now_ms = self.now.millis();
        while let Some(event) = self.state.account_mut(ACCOUNT).venue.poll_stream() {
            let surface = surface_of(&event);
            let sent = Arranged {
                event,
                reason: None,
            };
            let text = record(&self.state, ACCOUNT, &sent, now_ms).to_string();
            let event = decode(surface, &text).unwrap();
            let events = self.adapter.user_event(&event).unwrap();
            assert!(events.notes.is_empty(), "{text}: {:?}", events.notes);
            read.extend(events.items);
        }
        while self.state.account_mut(ACCOUNT).venue.poll().is_some() {}
        let expected = std::iter::from_fn(|| self.twin.poll());
        let expected = expected.filter_map(|message| match message {
            VenueMessage::User(event) => Some(event),
            VenueMessage::Reply(_) => None,
        });
        (read, expected.collect())
    }
}

fn named(n: usize) -> ClientOrderId {
    ClientOrderId::new(&format!("mm.k2x.{n}")).unwrap()
}

/// Compares two account updates. Entry prices have eight decimals on the wire, so the cost of a
/// position is only known to half of the last decimal, times the quantity.
fn agree(read: &AccountUpdate, expected: &AccountUpdate, qty_one: i64) -> bool {
    let near = |(read, expected): (&PositionUpdate, &PositionUpdate)| {
        let wide = i128::from(expected.qty.0.abs() / qty_one) + 2;
        let rest = |position: &PositionUpdate| PositionUpdate {
            cost: Amount::ZERO,
            ..*position
        };
        (read.cost - expected.cost).0.abs() <= wide && rest(read) == rest(expected)
    };
    let rest = |update: &AccountUpdate| AccountUpdate {
        positions: Vec::new(),
        ..update.clone()
    };
    read.positions.len() == expected.positions.len()
        && read.positions.iter().zip(&expected.positions).all(near)
        && rest(read) == rest(expected)
}

/// Drops repeated modes: the venue's frame has both modes, while the matching engine reports only
/// the changed one.
fn without_doubled_modes(read: Vec<UserEvent>, expected: &[UserEvent]) -> Vec<UserEvent> {
    let is_mode = |event: &UserEvent| {
        matches!(
            event,
            UserEvent::PositionMode { .. } | UserEvent::AssetMode { .. }
        )
    };
    let events = read.into_iter();
    events
        .filter(|event| !is_mode(event) || expected.contains(event))
        .collect()
}

/// Checks that both accounts sent the same events.
fn compare(pair: &mut Pair, step: &Step) -> Vec<UserEvent> {
    let qty_one = windvane_model::decimal::pow10(pair.rules(false).qty_scale);
    let (read, expected) = pair.events();
    let read = without_doubled_modes(read, &expected);
    assert_eq!(
        read.len(),
        expected.len(),
        "{step:?}: {read:?} {expected:?}"
    );
    for (read, expected) in read.iter().zip(&expected) {
        match (read, expected) {
            (UserEvent::Account(read), UserEvent::Account(expected)) => {
                // The event's own time comes from the server's clock.
                let mut expected = expected.clone();
                expected.event_time = read.event_time;
                assert!(agree(read, &expected, qty_one), "{read:?} {expected:?}");
            }
            (UserEvent::Order(read), UserEvent::Order(expected)) => {
                // The event's own time comes from the server's clock.
                let mut expected = *expected;
                expected.event_time = read.event_time;
                assert_eq!(*read, expected);
            }
            _ => assert_eq!(read, expected),
        }
    }
    expected
}

#[test]
fn a_session_with_every_kind_of_event_is_reported_the_same() {
    let place = |spot, kind, side, percent, units| Step::Place {
        spot,
        kind,
        side,
        percent,
        units,
    };
    let mut pair = Pair::new();
    let mut seen = std::collections::BTreeSet::new();
    for step in [
        Step::Mark { percent: 0 },
        place(false, 4, Side::Buy, 0, 100),
        place(true, 0, Side::Buy, -5, 100),
        place(true, 1, Side::Buy, -5, 100),
        place(true, 4, Side::Buy, 0, 10),
        place(false, 0, Side::Buy, -5, 100),
        Step::Cancel {
            spot: false,
            order: 4,
        },
        place(false, 7, Side::Sell, -2, 10),
        Step::Trade {
            spot: false,
            percent: -3,
            seller: true,
        },
        Step::Fund { rate: 20_000 },
        Step::Deleverage { units: 20 },
        Step::Liquidate,
        Step::CancelAll { spot: false },
        Step::Leverage { leverage: 7 },
        Step::Isolated { isolated: true },
        Step::Isolated { isolated: false },
        Step::Mode { hedge: true },
        Step::Assets { multi: true },
        place(false, 4, Side::Sell, 0, 101),
        Step::Transfer {
            from: Surface::Spot,
            amount: 1,
        },
    ] {
        pair.step(&step);
        for event in compare(&mut pair, &step) {
            seen.insert(match event {
                UserEvent::Order(update) => {
                    format!("{} {}", update.execution, update.order_type)
                }
                UserEvent::Account(update) => format!("{:?}", update.reason),
                UserEvent::Leverage { .. } => "leverage".to_owned(),
                UserEvent::MarginType { .. } => "margin type".to_owned(),
                UserEvent::Stated(_) => "positions on other symbols".to_owned(),
                UserEvent::PositionMode { .. } => "position mode".to_owned(),
                UserEvent::AssetMode { .. } => "asset mode".to_owned(),
                UserEvent::MarginCall => "margin call".to_owned(),
            });
        }
    }
    let expected = [
        "CALCULATED LIQUIDATION",
        "CANCELED LIMIT",
        "EXPIRED LIMIT",
        "FundingFee",
        "NEW LIMIT",
        "NEW MARKET",
        "NEW STOP_MARKET",
        "Order",
        "Other",
        "TRADE MARKET",
        "TRADE STOP_MARKET",
        "asset mode",
        "leverage",
        "position mode",
    ];
    for kind in expected {
        assert!(seen.contains(kind), "{kind} is not in {seen:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn decoded_frames_equal_the_events_of_the_matching_engine(
        steps in prop::collection::vec(step(), 1..80)
    ) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.step(step);
            compare(&mut pair, step);
        }
    }
}
