//! Properties: with any market events and any requests, the books balance.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use common::ledger::Ledger;
use common::*;
use proptest::prelude::*;
use windvane_model::instrument::Filters;
use windvane_model::{
    Amount, Decimal, InstrumentId, OrderTerms, OrderType, Price, Qty, Request, Side, Surface,
    TimeInForce, WorkingType,
};
use windvane_sim::{QueueModel, Venue, VenueConfig};

#[derive(Clone, Debug)]
enum Step {
    Top(bool, i64, i64, i64, i64),
    Trade(bool, i64, i64, bool),
    Mark(i64, i64),
    Place(bool, usize, Side, i64, i64, bool, usize),
    Cancel(bool, usize),
    CancelAll(bool),
    Countdown(u64),
    Pass(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    let near = -30_i64..30;
    prop_oneof![
        8 => (any::<bool>(), near.clone(), 1_i64..20, 1_i64..60, 1_i64..60)
            .prop_map(|(s, m, w, b, a)| Step::Top(s, m, w, b, a)),
        8 => (any::<bool>(), near.clone(), 1_i64..80, any::<bool>())
            .prop_map(|(s, p, q, seller)| Step::Trade(s, p, q, seller)),
        1 => (near.clone(), -100_000_i64..100_000).prop_map(|(m, r)| Step::Mark(m, r)),
        8 => (any::<bool>(), 0_usize..12, side, near, 1_i64..90, any::<bool>(), 0_usize..5)
            .prop_map(|(s, k, side, p, q, r, t)| Step::Place(s, k, side, p, q, r, t)),
        3 => (any::<bool>(), 0_usize..80).prop_map(|(s, n)| Step::Cancel(s, n)),
        1 => any::<bool>().prop_map(Step::CancelAll),
        1 => (0_u64..50).prop_map(Step::Countdown),
        2 => (0_i64..60).prop_map(Step::Pass),
    ]
}

/// Prices move by whole percents, so that stops, trailing stops and margin levels are reached.
fn price(offset: i64) -> i64 {
    600_000 + offset * 1_500
}

fn terms(spot: bool, kind: usize, side: Side, offset: i64, qty: i64, tif: usize) -> OrderTerms {
    use OrderType::{Stop, StopMarket, TakeProfit, TakeProfitMarket, TrailingStopMarket};
    let at = if spot { SPOT } else { FUTURES };
    // Large enough to need most of the margin.
    let qty = if spot { qty } else { qty * 20 };
    let times = [
        TimeInForce::Gtc,
        TimeInForce::Ioc,
        TimeInForce::Fok,
        TimeInForce::Gtx,
        TimeInForce::Hidden,
    ];
    let conditional = match kind {
        8 => Some(Stop),
        9 => Some(if qty % 2 == 0 {
            StopMarket
        } else {
            TakeProfitMarket
        }),
        10 => Some(TakeProfit),
        11 if !spot => Some(TrailingStopMarket),
        _ => None,
    };
    let mut terms = match conditional {
        None if kind < 6 => return limit(at, side, price(offset), qty, times[tif]),
        None if spot && side == Side::Buy => {
            let mut terms = OrderTerms::new(at, side, OrderType::Market);
            terms.quote_qty = Some(Amount(i128::from(qty) * 70_0000_0000));
            return terms;
        }
        None => return market(at, side, qty),
        Some(order_type) => OrderTerms::new(at, side, order_type),
    };
    terms.qty = Some(Qty(qty));
    if terms.order_type == TrailingStopMarket {
        terms.callback_ppm = Some(1_000 * (1 + tif as u32));
        return terms;
    }
    terms.stop_price = Some(Price(price(offset)));
    if matches!(terms.order_type, Stop | TakeProfit) {
        terms.price = Some(Price(price(offset) + side.sign() * 50));
    }
    if !spot {
        terms.working_type = (tif == 0).then_some(WorkingType::MarkPrice);
        terms.close_position = tif == 1 && terms.order_type.is_market();
        terms.qty = terms.qty.filter(|_| !terms.close_position);
    }
    terms
}

struct Run {
    config: VenueConfig,
    bench: Bench,
    ledger: Ledger,
    names: usize,
    deep: bool,
}

impl Run {
    fn new(queue: QueueModel, deep: bool) -> Self {
        let mut config = config();
        config.queue = queue;
        config.maintenance_rate = Decimal::new(2, 2);
        Self {
            bench: Bench::new(config.clone()),
            config,
            ledger: Ledger::new(),
            names: 0,
            deep,
        }
    }

    /// A new process continues the venue, with the same configuration or unchanged.
    fn restart(&mut self, succeeded: bool) {
        let venue = Venue::restore(&self.bench.venue.snapshot()).unwrap();
        self.bench.venue = if succeeded {
            let rules = vec![instrument(Surface::Futures), instrument(Surface::Spot)];
            let terms = self.config.clone();
            venue.succeed(terms, rules, &[USDT, BTC]).unwrap()
        } else {
            venue
        };
    }

    fn check(&mut self) {
        self.ledger.check(&mut self.bench);
    }

    fn top(&mut self, at: InstrumentId, mid: i64, width: i64, bid_qty: i64, ask_qty: i64) {
        let (bid, ask) = (price(mid), price(mid) + width * 10);
        let depth = if self.deep { 5 } else { 1 };
        let ladder = |best: i64, step: i64, qty: i64| -> Vec<_> {
            let levels = 0..depth;
            levels.map(|n| level(best + n * step, qty * 10)).collect()
        };
        let bids = ladder(bid, -500, bid_qty);
        let asks = ladder(ask, 500, ask_qty);
        self.ledger.display(at, Side::Buy, &bids);
        self.ledger.display(at, Side::Sell, &asks);
        if self.deep {
            self.bench.depth(at, 1, true, &bids, &asks);
        } else {
            let first = |levels: &[windvane_model::Level]| (levels[0].price, levels[0].qty);
            self.bench.top(at, first(&bids), first(&asks));
        }
    }

    fn apply(&mut self, step: &Step) {
        let at = |spot: bool| if spot { SPOT } else { FUTURES };
        match *step {
            Step::Top(spot, mid, width, bid_qty, ask_qty) => {
                self.top(at(spot), mid, width, bid_qty, ask_qty);
            }
            Step::Trade(spot, offset, qty, seller) => {
                self.bench.trade(at(spot), price(offset), qty, seller);
                self.check();
                assert!(
                    self.ledger.made() <= qty,
                    "no quantity of a trade is used twice"
                );
            }
            Step::Mark(offset, rate) => {
                let due = self.bench.now.plus_ms(30);
                self.bench.mark(price(offset), rate, due);
            }
            Step::Place(spot, kind, side, offset, qty, reduce, tif) => {
                let mut terms = terms(spot, kind, side, offset, qty, tif);
                terms.reduce_only = reduce && !spot && !terms.close_position;
                self.names += 1;
                let name = self.names.to_string();
                let _ = self.bench.place(&name, terms);
            }
            Step::Cancel(spot, back) => {
                let name = self.names.saturating_sub(back).to_string();
                let _ = self.bench.cancel(at(spot), &name);
            }
            Step::CancelAll(spot) => {
                let instrument = at(spot);
                self.bench.request(&Request::CancelAll { instrument });
            }
            Step::Countdown(countdown_ms) => self.bench.request(&Request::Countdown {
                instrument: FUTURES,
                countdown_ms,
            }),
            Step::Pass(ms) => self.bench.pass_ms(ms),
        }
        self.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn messages_and_balances_agree(
        steps in proptest::collection::vec(step(), 1..150),
        model in 0_usize..3,
        deep: bool,
    ) {
        let queue = [QueueModel::RiskAverse, QueueModel::Probabilistic, QueueModel::None][model];
        let mut run = Run::new(queue, deep);
        run.top(FUTURES, 0, 1, 50, 50);
        run.top(SPOT, 0, 1, 50, 50);
        for step in &steps {
            run.apply(step);
        }
    }

    #[test]
    fn money_is_conserved_at_every_scale(
        scales in (0_u8..=12, 0_u8..=12),
        steps in proptest::collection::vec(
            (any::<bool>(), 1_i64..1_000_000_000, 1_i64..1_000_000_000, 1_i64..1_000_000), 1..40),
    ) {
        let mut config = config();
        config.start_balance = [Surface::Spot, Surface::Futures]
            .map(|surface| (surface, USDT, whole(1_000_000_000)))
            .to_vec();
        let rules = [Surface::Futures, Surface::Spot].map(|surface| {
            let mut rules = instrument(surface);
            (rules.price_scale, rules.qty_scale) = scales;
            rules.filters = Filters::default();
            rules
        });
        let mut bench = Bench::with(config, rules.to_vec());
        let mut wallet = whole(1_000_000_000);
        let (mut quote, mut base) = (wallet, Amount::ZERO);
        for (n, (buy, price, qty, spend)) in steps.into_iter().enumerate() {
            let side = if buy { Side::Buy } else { Side::Sell };
            for at in [FUTURES, SPOT] {
                bench.top(at, (price, qty), (price + 1, qty));
            }
            // A margin call or a liquidation may have happened by now, so only the messages count.
            let mut settle = |bench: &Bench| for fill in bench.fills() {
                wallet += fill.realized_pnl.unwrap_or_default() - fill.fee;
            };
            settle(&bench);
            let _ = bench.place(&format!("f{n}"), market(FUTURES, side, qty));
            settle(&bench);
            let mut terms = market(SPOT, side, qty / 2 + 1);
            if buy {
                terms.qty = None;
                terms.quote_qty = Some(whole(spend.into()));
            }
            if let Ok(report) = bench.place(&format!("s{n}"), terms)
                && let Some(spent) = terms.quote_qty
            {
                prop_assert!(report.cum_quote <= spent);
            }
            for fill in bench.fills() {
                let sign = i128::from(side.sign());
                quote += Amount(-sign * fill.quote_qty.0) - fill.fee;
                base += Amount(sign * Amount::notional(1, 0, fill.qty.0, scales.1).0);
            }
            bench.messages.clear();
            prop_assert_eq!(bench.wallet(), wallet);
            prop_assert_eq!(bench.balance(Surface::Spot, USDT).0, quote);
            prop_assert_eq!(bench.balance(Surface::Spot, BTC).0, base);
        }
    }

    #[test]
    fn the_same_session_gives_the_same_messages(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let session = || {
            let mut run = Run::new(QueueModel::Probabilistic, true);
            run.top(FUTURES, 0, 1, 50, 50);
            for step in &steps {
                run.apply(step);
            }
            run.ledger.story
        };
        prop_assert_eq!(session(), session());
    }

    #[test]
    fn a_restored_venue_gives_the_same_messages(
        steps in proptest::collection::vec(step(), 1..80),
        stop in 0_usize..80,
        succeeded: bool,
    ) {
        let session = |stop: Option<usize>| {
            let mut run = Run::new(QueueModel::Probabilistic, true);
            run.top(FUTURES, 0, 1, 50, 50);
            run.top(SPOT, 0, 1, 50, 50);
            for (n, step) in steps.iter().enumerate() {
                if stop == Some(n) {
                    run.restart(succeeded);
                }
                run.apply(step);
            }
            run.ledger.story
        };
        prop_assert_eq!(session(Some(stop)), session(None));
    }
}
