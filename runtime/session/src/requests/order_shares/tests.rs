use windvane_model::{
    ClientOrderId, Instrument, InstrumentId, NewOrder, OrderTerms, OrderType, Outcome, Qty, Reply,
    Side, Time,
};
use windvane_protocol::Assets;
use windvane_protocol::adapter::{FuturesAccount, Names};

use super::*;
use crate::exchange::Signing;
use crate::requests::Done;
use crate::testing;

const BTC: InstrumentId = InstrumentId(0);
const NOW: Time = Time(1_700_000_000_000_000_000);

/// The requests of a run with this many strategies and these limits.
fn requests(strategies: usize, weight: u32, orders: u32) -> Requests {
    let gateway = testing::gateway();
    let limit = |kind, limit| RateLimit {
        kind,
        interval_ms: 60_000,
        limit,
    };
    let limits = [
        limit(LimitKind::Weight, weight),
        limit(LimitKind::Orders, orders),
    ];
    gateway.with_budgets(|budgets| budgets.set_limits(Surface::Futures, &limits));
    let futures = windvane_model::Surface::Futures;
    let mut requests = testing::requests(gateway, Signing::Here, NOW, futures);
    let mut assets = Assets::default();
    let (base, quote) = (assets.id("BTC"), assets.id("USDT"));
    let instrument = Instrument::unrestricted(futures, "BTCUSDT", [base, quote], [1, 3]);
    let names = Names::new(&[instrument], assets.names());
    requests.configure(names, FuturesAccount::Routes);
    requests.share_between(strategies);
    requests
}

/// Asks to send a request. Returns the reason if it does not leave.
fn refusal(requests: &mut Requests, now: Time, request: Request) -> Option<String> {
    let purpose = windvane_engine::engine::Purpose::Ordinary;
    requests.start_request(now, (request, purpose), None, false);
    let mut reason = None;
    let mut has_left = false;
    while let Some(done) = requests.poll() {
        match done {
            Done::Send(_) => has_left = true,
            Done::Replies(replies) => {
                for reply in replies {
                    if let Reply::Placed {
                        outcome: Outcome::Refused(refusal),
                        ..
                    } = reply
                    {
                        assert!(refusal.is_not_sent());
                        reason = Some(refusal.msg);
                    }
                }
            }
            _ => {}
        }
    }
    assert_ne!(has_left, reason.is_some());
    reason
}

fn order(strategy: &str, number: u32, reduce_only: bool) -> Request {
    let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Market);
    terms.qty = Some(Qty(5));
    terms.reduce_only = reduce_only;
    Request::Place(NewOrder {
        client_order_id: ClientOrderId::new(&format!("{strategy}.a.{number}")).unwrap(),
        terms,
    })
}

fn cancel(strategy: &str, number: u32) -> Request {
    Request::Cancel {
        instrument: BTC,
        client_order_id: ClientOrderId::new(&format!("{strategy}.b.{number}")).unwrap(),
    }
}

/// Orders until one does not leave. Returns how many left.
fn flood(requests: &mut Requests, now: Time, strategy: &str, reduce_only: bool) -> u32 {
    for number in 1..10_000 {
        let order = order(strategy, number, reduce_only);
        if let Some(reason) = refusal(requests, now, order) {
            let known = [
                "share of the venue's request limits",
                "is used up",
                "is left",
            ];
            assert!(known.iter().any(|part| reason.contains(part)), "{reason}");
            return number - 1;
        }
    }
    panic!("every order leaves");
}

#[test]
fn a_flood_leaves_the_order_limit_of_another_strategy() {
    let mut requests = requests(2, 100_000, 200);
    assert_eq!(flood(&mut requests, NOW, "mm", false), 130);
    assert_eq!(flood(&mut requests, NOW, "mm", true), 0, "beyond its part");
    assert_eq!(flood(&mut requests, NOW, "other", false), 50);
    assert_eq!(flood(&mut requests, NOW, "other", true), 10, "for exits");
    assert_eq!(refusal(&mut requests, NOW, cancel("mm", 1)), None);
    // The interval is over.
    let later = NOW.plus_ms(62_000);
    assert_eq!(flood(&mut requests, later, "mm", false), 130);
}

#[test]
fn a_flood_leaves_the_request_weight_of_another_strategy() {
    let mut requests = requests(2, 1_000, 100_000);
    let steady = requests
        .gateway()
        .with_budgets(|budgets| budgets.of(Surface::Futures).steady_weight(Lane::Place));
    let share = steady / 4;
    let taken = flood(&mut requests, NOW, "mm", false);
    assert!(taken < steady - share, "{taken} of {steady}");
    let left = flood(&mut requests, NOW, "other", false);
    assert!(left >= share, "{left} of {share}");
}

#[test]
fn cancels_always_leave_and_count_for_their_strategy() {
    let mut requests = requests(2, 1_000, 100_000);
    for number in 0..400 {
        assert_eq!(refusal(&mut requests, NOW, cancel("mm", number)), None);
    }
    let few = flood(&mut requests, NOW, "mm", false);
    let more = flood(&mut requests, NOW, "other", false);
    assert!(few < more, "{few} and {more}");
}

#[test]
fn one_strategy_has_everything() {
    let mut requests = requests(1, 100_000, 200);
    assert_eq!(flood(&mut requests, NOW, "mm", false), 200);
}
