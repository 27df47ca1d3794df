use windvane_client_core::budget::Cost;
use windvane_client_core::gateway::{Answer, Unsigned};
use windvane_client_core::outcome::Refusal;
use windvane_client_core::{CalledRoute, Lost};
use windvane_model::refusal::Blame;
use windvane_model::{
    ClientOrderId, Instrument, InstrumentId, NewOrder, OrderTerms, OrderType, Outcome, Qty, Reply,
    Side, Surface,
};
use windvane_protocol::Assets;
use windvane_protocol::adapter::{FuturesAccount, Names};
use windvane_protocol::error::{Judgement, Limit, judge};
use windvane_protocol::route;

use super::*;
use crate::exchange::Signing;
use crate::requests::{CallAnswer, CallId};
use crate::testing;

const BTC: InstrumentId = InstrumentId(0);
const NOW: Time = Time(1_700_000_000_000_000_000);

fn names() -> Names {
    let mut assets = Assets::default();
    let (base, quote) = (assets.id("BTC"), assets.id("USDT"));
    let instrument = Instrument::unrestricted(Surface::Futures, "BTCUSDT", [base, quote], [1, 3]);
    Names::new(&[instrument], assets.names())
}

fn requests(signing: Signing) -> Requests {
    let mut requests = testing::requests(testing::gateway(), signing, NOW, Surface::Futures);
    requests.configure(names(), FuturesAccount::Routes);
    requests
}

fn id() -> ClientOrderId {
    ClientOrderId::new("mm.a.1").unwrap()
}

fn place() -> Request {
    let mut terms = OrderTerms::new(BTC, Side::Buy, OrderType::Market);
    terms.qty = Some(Qty(5));
    Request::Place(NewOrder {
        client_order_id: id(),
        terms,
    })
}

fn cancel() -> Request {
    Request::Cancel {
        instrument: BTC,
        client_order_id: id(),
    }
}

/// An order that was sent, and a cancel that waits for it.
fn with_order() -> (Requests, CallId) {
    let mut requests = requests(Signing::Here);
    for request in [place(), cancel()] {
        let purpose = EnginePurpose::Ordinary;
        requests.start_request(NOW, (request, purpose), None, false);
    }
    let [order] = sent(&mut requests)[..] else {
        panic!("only the order leaves")
    };
    (requests, order)
}

fn sent(requests: &mut Requests) -> Vec<CallId> {
    let done = std::iter::from_fn(|| requests.poll());
    let sent = done.filter_map(|done| match done {
        Done::Send(call) => Some(call.id),
        _ => None,
    });
    sent.collect()
}

#[test]
fn a_cancel_follows_the_answer_to_its_order() {
    let (mut requests, order) = with_order();
    let answer = CallAnswer::Received(Answer {
        status: 400,
        headers: &[],
        text: r#"{"code":-2019,"msg":"Margin is insufficient."}"#,
    });
    requests.handle_answer(NOW, (order, answer));
    assert_eq!(sent(&mut requests).len(), 1);
}

#[test]
fn a_cancel_follows_its_order_after_a_second_without_an_answer() {
    let (mut requests, _) = with_order();
    requests.timeout(NOW.plus_ms(FOLLOW_MS - 1));
    assert!(sent(&mut requests).is_empty());
    requests.timeout(NOW.plus_ms(FOLLOW_MS));
    assert_eq!(sent(&mut requests).len(), 1);
}

#[test]
fn an_unsent_order_is_refused_and_its_cancel_is_not_sent() {
    let (mut requests, order) = with_order();
    // The process was suspended: the response timeout and the second of the cancel are over.
    let later = NOW.plus_ms(60_000);
    requests.timeout(later);
    let given_up = requests.poll();
    assert!(
        matches!(given_up, Some(Done::Abandon(id)) if id == order),
        "{given_up:?}"
    );
    assert!(
        sent(&mut requests).is_empty(),
        "the order's result comes before the cancel"
    );
    let late = CallAnswer::Late(Duration::from_secs(59));
    requests.handle_answer(later, (order, late));
    let mut replies = Vec::new();
    while let Some(done) = requests.poll() {
        match done {
            Done::Replies(some) => replies.extend(some),
            Done::Send(call) => panic!("{:?} leaves", call.route.name),
            _ => {}
        }
    }
    let [Reply::Placed { outcome, .. }, Reply::Canceled { .. }] = &replies[..] else {
        panic!("{replies:?}")
    };
    assert!(
        matches!(outcome, Outcome::Refused(refusal) if refusal.is_not_sent()),
        "{outcome:?}"
    );
    assert!(requests.is_idle());
}

#[test]
fn a_read_that_did_not_leave_has_an_unknown_outcome() {
    let mut requests = requests(Signing::Here);
    let surface = Surface::Futures;
    let read = Request::Read(Subject::OpenOrders { surface });
    requests.start_request(NOW, (read, EnginePurpose::Ordinary), None, false);
    let calls = sent(&mut requests);
    let late = CallAnswer::Late(Duration::from_secs(59));
    requests.handle_answer(NOW.plus_ms(60_000), (calls[0], late));
    let replies = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
        Done::Replies(replies) => Some(replies),
        _ => None,
    });
    let replies = replies.unwrap();
    let [Reply::Read { outcome, .. }] = &replies[..] else {
        panic!("{replies:?}")
    };
    assert!(matches!(outcome, Outcome::Unknown), "{outcome:?}");
}

/// Reads the futures account with this response. Returns the route of the request.
fn read_account(requests: &mut Requests, status: u16, text: &str) -> &'static str {
    let surface = Surface::Futures;
    let read = Request::Read(Subject::Account { surface });
    requests.start_request(NOW, (read, EnginePurpose::Ordinary), None, false);
    let call = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
        Done::Send(call) => Some(call),
        _ => None,
    });
    let call = call.unwrap();
    let headers = &[];
    let answer = CallAnswer::Received(Answer {
        status,
        headers,
        text,
    });
    requests.handle_answer(NOW, (call.id, answer));
    while requests.poll().is_some() {}
    call.route.name
}

#[test]
fn the_first_clear_response_decides_where_the_account_is() {
    let not_served = r#"{"code":-1020,"msg":"This operation is not supported."}"#;
    let cut = r#"{"code":-1020,"msg":"This o"#;
    let address = "0x1".to_owned();
    let other = FuturesAccount::Info { address };
    let mut not_here = requests(Signing::Here);
    not_here.end_start(Some(other.clone()));
    assert_eq!(read_account(&mut not_here, 400, cut), "futures.account");
    let call = read_account(&mut not_here, 400, not_served);
    assert_eq!(call, "futures.account");
    assert_ne!(read_account(&mut not_here, 200, "{}"), "futures.account");

    let mut here = requests(Signing::Here);
    here.end_start(Some(other));
    // Once the account was read there, a refusal is a temporary problem of the venue.
    for (status, text) in [(200, "{}"), (400, not_served), (200, "{}")] {
        assert_eq!(read_account(&mut here, status, text), "futures.account");
    }
}

/// A call of a request that waits for its signature.
fn signing(requests: &mut Requests, request: Request) -> (CallId, Unsigned) {
    requests.start_request(NOW, (request, EnginePurpose::Ordinary), None, false);
    let unsigned_call = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
        Done::Sign(id, unsigned) => Some((id, unsigned)),
        Done::Send(call) => panic!("{} leaves without its signature", call.route.name),
        _ => None,
    });
    unsigned_call.unwrap()
}

#[test]
fn a_call_leaves_once_a_signer_elsewhere_signed_it() {
    let mut requests = requests(Signing::Elsewhere);
    let (id, unsigned) = signing(&mut requests, cancel());
    assert!(!requests.is_idle());
    let prepared = requests.gateway().sign(&unsigned);
    requests.signed(NOW.plus_ms(400), id, prepared.clone());
    assert_eq!(sent(&mut requests), [id]);
    // A second result of the signer has no effect.
    requests.signed(NOW.plus_ms(500), id, prepared);
    assert!(sent(&mut requests).is_empty());
}

#[test]
fn a_read_without_a_signature_has_an_unknown_outcome() {
    let mut requests = requests(Signing::Elsewhere);
    let surface = Surface::Futures;
    let read = Request::Read(Subject::OpenOrders { surface });
    signing(&mut requests, read);
    requests.timeout(requests.next().unwrap());
    let replies = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
        Done::Replies(replies) => Some(replies),
        _ => None,
    });
    let replies = replies.unwrap();
    let [Reply::Read { outcome, .. }] = &replies[..] else {
        panic!("{replies:?}")
    };
    assert!(matches!(outcome, Outcome::Unknown), "{outcome:?}");
}

#[test]
fn a_call_signed_during_a_ban_does_not_leave() {
    let mut requests = requests(Signing::Elsewhere);
    let (id, unsigned) = signing(&mut requests, cancel());
    let ban = (Limit::Ban, Some(60_000));
    let surface = route::Surface::Futures;
    let gateway = requests.gateway();
    gateway.heed_refusal(0, surface, ban, &Cost::default());
    let prepared = gateway.sign(&unsigned);
    requests.signed(NOW.plus_ms(300), id, prepared);
    let mut reported_end = false;
    while let Some(done) = requests.poll() {
        match done {
            Done::Send(_) => panic!("a cancel leaves into a ban"),
            Done::Replies(_) => reported_end = true,
            _ => {}
        }
    }
    assert!(reported_end && requests.is_idle());
}

#[test]
fn an_order_signed_too_late_is_refused_and_does_not_leave() {
    for is_signed in [true, false] {
        let mut requests = requests(Signing::Elsewhere);
        let (id, unsigned) = signing(&mut requests, place());
        let later = NOW.plus_ns(fresh_ns() + 1);
        assert!(requests.next().unwrap() < later, "it is given up in time");
        if is_signed {
            let prepared = requests.gateway().sign(&unsigned);
            requests.signed(later, id, prepared);
        } else {
            requests.timeout(later);
        }
        let mut refused = false;
        while let Some(done) = requests.poll() {
            match done {
                Done::Send(_) => panic!("an order leaves late"),
                Done::Replies(replies) => {
                    let not_sent = |reply: &Reply| {
                        matches!(reply, Reply::Placed { outcome: Outcome::Refused(refusal), .. }
                            if refusal.is_not_sent())
                    };
                    refused |= replies.iter().any(not_sent);
                }
                _ => {}
            }
        }
        assert!(refused, "the engine must receive the refusal");
        assert!(requests.is_idle());
    }
}

#[test]
fn a_heartbeat_without_a_signature_is_given_up_and_reported() {
    let mut requests = requests(Signing::Elsewhere);
    let countdown = Request::Countdown {
        instrument: BTC,
        countdown_ms: 30_000,
    };
    signing(&mut requests, countdown);
    let given_up = NOW.plus_ms(3_000);
    assert_eq!(
        requests.next(),
        Some(given_up),
        "there must be time for another heartbeat"
    );
    requests.timeout(given_up);
    let reported_end =
        std::iter::from_fn(|| requests.poll()).any(|done| matches!(done, Done::Replies(_)));
    assert!(reported_end);
    assert!(requests.is_idle());
}

#[test]
fn an_order_without_a_response_has_an_unknown_outcome() {
    let (mut requests, order) = with_order();
    let lost = CallAnswer::Lost(Lost::Timeout(Duration::from_secs(10)));
    requests.handle_answer(NOW, (order, lost));
    let replies = std::iter::from_fn(|| requests.poll()).find_map(|done| match done {
        Done::Replies(replies) => Some(replies),
        _ => None,
    });
    let replies = replies.unwrap();
    let is_unknown = |reply: &Reply| {
        matches!(
            reply,
            Reply::Placed {
                outcome: Outcome::Unknown,
                ..
            }
        )
    };
    assert!(replies.iter().any(is_unknown), "{replies:?}");
}

#[test]
fn only_an_ordinary_disarm_of_a_countdown_is_not_urgent() {
    let countdown = |countdown_ms| Request::Countdown {
        instrument: BTC,
        countdown_ms,
    };
    let urgent = |ms, purpose| lane(&countdown(ms), purpose).is_emergency();
    assert!(urgent(30_000, EnginePurpose::Ordinary));
    assert!(urgent(0, EnginePurpose::Close), "the stop waits for it");
    assert!(!urgent(0, EnginePurpose::Ordinary));
}

/// The venue's refusal of a request.
fn refused_with(code: i32, msg: &str) -> NotDone {
    let body = format!(r#"{{"code":{code},"msg":"{msg}"}}"#);
    let Judgement::Refused {
        complaint,
        is_fatal,
    } = judge(400, None, &body)
    else {
        panic!("the request is refused")
    };
    NotDone::Refused(Refusal::Venue {
        called_route: CalledRoute {
            route: route::named("spot.new_order").unwrap(),
            version: Some(route::Version::V1),
        },
        complaint,
        is_fatal,
    })
}

#[test]
fn only_the_expected_refusal_of_a_test_cancel_is_quiet() {
    let requests = requests(Signing::Here);
    let is_quiet = |id: &str, code| {
        let request = Request::Cancel {
            instrument: BTC,
            client_order_id: ClientOrderId::new(id).unwrap(),
        };
        is_passed_test(&*requests.exchange, &request, &refused_with(code, "x"))
    };
    for test_id in ["mm.a.0", "mm.a.3w5e11264sgsf"] {
        assert!(is_quiet(test_id, -2011) && is_quiet(test_id, -2013));
        assert!(!is_quiet(test_id, -2015), "the key may not trade");
    }
    assert!(!is_quiet("mm.a.1", -2011), "the cancel of an order");
    let query = Request::Query {
        instrument: BTC,
        client_order_id: ClientOrderId::new("mm.a.0").unwrap(),
    };
    assert!(!is_passed_test(
        &*requests.exchange,
        &query,
        &refused_with(-2011, "x")
    ));
}

#[test]
fn our_own_advice_is_not_taken_for_a_balance_refusal() {
    let refused = |msg: &str| CallOutcome::Not(refused_with(-2010, msg));
    let blame = |msg: &str| {
        let result = refused(msg);
        let text = outcome_text(&result);
        assert!(text.contains("balance"), "{text}");
        let CallResult::Refused {
            msg,
            code: Some(-2010),
        } = call_result(&result, &text)
        else {
            panic!("the code is passed on")
        };
        let (code, msg) = (-2010, msg.to_owned());
        windvane_model::protocol::Refusal { code, msg }.blame()
    };
    assert_eq!(blame("Order would immediately match."), Blame::Order);
    assert_eq!(blame("Account has insufficient balance."), Blame::Funds);
}
