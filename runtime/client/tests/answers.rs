//! The outcomes of responses that real services send: good ones, limits, HTML, empty and partial
//! ones. Each test also counts the requests, because none may be sent twice.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use common::{Scripted, Step, answer, settings};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windvane_client::budget::{Denial, Lane};
use windvane_client::call::{Call, Options};
use windvane_client::clock::LocalTime;
use windvane_client::{
    Addresses, Client, Lost, Outcome, RawAnswer, Refusal, UnknownReason, WaitReason,
};
use windvane_protocol::error::Limit;
use windvane_protocol::route::{self, Route, Surface};
use windvane_protocol::sign::{Wallet, sentence, signer_of};
use windvane_protocol::wire::Parameters;

fn order() -> (&'static Route, Parameters) {
    let mut parameters = Parameters::new();
    for (name, value) in [
        ("symbol", "BTCUSDT"),
        ("side", "BUY"),
        ("type", "LIMIT"),
        ("timeInForce", "GTC"),
        ("quantity", "1"),
        ("price", "9000"),
        ("newClientOrderId", "mm:1"),
    ] {
        parameters.push(name, value);
    }
    (route::named("spot.new_order").unwrap(), parameters)
}

fn depth() -> (&'static Route, Parameters) {
    let mut parameters = Parameters::new();
    parameters.push("symbol", "BTCUSDT");
    (route::named("spot.depth").unwrap(), parameters)
}

async fn send(client: &Client, what: (&'static Route, Parameters)) -> Outcome<RawAnswer> {
    client.call(what.0, None, &what.1).await
}

/// Both outcomes of one response: for an order, and for a read.
async fn both(step: impl Fn() -> Step) -> (Outcome<RawAnswer>, Outcome<RawAnswer>) {
    let mut outcomes = Vec::new();
    for what in [order(), depth()] {
        let server = Scripted::start(vec![step()]).await;
        let mut settings = server.settings();
        settings.timeouts.request = Duration::from_secs(5);
        let client = Client::new(settings).unwrap();
        outcomes.push(send(&client, what).await);
        assert_eq!(server.requests().len(), 1, "sent once");
    }
    let poll = outcomes.pop().unwrap();
    (outcomes.pop().unwrap(), poll)
}

#[tokio::test]
async fn prepared_bytes_are_sent_unchanged() {
    let server = Scripted::start(vec![answer(200, "", "{}"), answer(200, "", "{}")]).await;
    let client = Client::new(server.settings()).unwrap();
    assert!(matches!(send(&client, order()).await, Outcome::Done(_)));
    let account = route::named("spot.account").unwrap();
    let done = client.call(account, None, &Parameters::new()).await;
    assert!(matches!(done, Outcome::Done(_)));

    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /api/v1/order HTTP/1.1\r\n"),
        "{head}"
    );
    let head = head.to_ascii_lowercase();
    assert!(head.contains("\r\nx-mbx-apikey: key"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/x-www-form-urlencoded"));
    let start = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=9000\
                 &newClientOrderId=mm%3A1&recvWindow=5000&timestamp=";
    let rest = body.strip_prefix(start).unwrap();
    let (timestamp, signature) = rest.split_once("&signature=").unwrap();
    assert!(timestamp.parse::<u64>().is_ok());
    assert_eq!(signature.len(), 64);
    assert!(requests[1].starts_with("GET /api/v1/account?recvWindow=5000&timestamp="));
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_an_order_unknown() {
    let (order, poll) = both(|| Step::WriteAndCut(String::new())).await;
    assert!(matches!(
        order,
        Outcome::Unknown(UnknownReason::NoAnswer(Lost::Cut(_)))
    ));
    let Outcome::Wait(wait) = poll else {
        panic!("{poll:?}")
    };
    assert!(matches!(wait.why, WaitReason::NoAnswer(Lost::Cut(_))));
}

#[tokio::test]
async fn a_partial_response_counts_as_no_response() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"orderId\":";
    let (order, poll) = both(|| Step::WriteAndCut(half.to_owned())).await;
    assert!(matches!(
        order,
        Outcome::Unknown(UnknownReason::NoAnswer(Lost::Cut(_)))
    ));
    assert!(matches!(poll, Outcome::Wait(_)));
}

#[tokio::test]
async fn a_non_http_response_counts_as_no_response() {
    let (order, poll) = both(|| Step::WriteAndCut("garbage\r\n\r\n".to_owned())).await;
    assert!(matches!(
        order,
        Outcome::Unknown(UnknownReason::NoAnswer(_))
    ));
    assert!(matches!(poll, Outcome::Wait(_)));
}

#[tokio::test]
async fn a_late_response_leaves_an_order_unknown() {
    let server = Scripted::start(vec![Step::Silence]).await;
    let mut settings = server.settings();
    settings.timeouts.request = Duration::from_millis(200);
    let client = Client::new(settings).unwrap();
    let outcome = send(&client, order()).await;
    let Outcome::Unknown(UnknownReason::NoAnswer(Lost::Timeout(after))) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(after, Duration::from_millis(200));
}

#[tokio::test]
async fn a_failed_connection_sends_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::new(settings(address)).unwrap();
    let outcome = send(&client, order()).await;
    let Outcome::Wait(wait) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(matches!(wait.why, WaitReason::NoConnection(_)), "{wait}");
}

#[tokio::test]
async fn html_with_5xx_leaves_an_order_unknown() {
    let html = "<html><body>502 Bad Gateway</body></html>";
    let (order, poll) = both(|| answer(502, "Content-Type: text/html\r\n", html)).await;
    let Outcome::Unknown(UnknownReason::Venue(complaint)) = order else {
        panic!("{order:?}")
    };
    assert_eq!(complaint.status, 502);
    assert!(complaint.excerpt.contains("Bad Gateway"));
    assert!(matches!(poll, Outcome::Wait(_)));
}

#[tokio::test]
async fn a_503_leaves_an_order_unknown_whatever_its_body() {
    let body = r#"{"code":-2010,"msg":"rejected"}"#;
    let (order, poll) = both(|| answer(503, "", body)).await;
    assert!(matches!(order, Outcome::Unknown(UnknownReason::Venue(_))));
    assert!(matches!(poll, Outcome::Wait(_)));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (order, poll) = both(|| answer(302, "Location: /elsewhere\r\n", "")).await;
    assert!(matches!(order, Outcome::Unknown(_)), "{order:?}");
    assert!(matches!(poll, Outcome::Wait(_)));
}

#[tokio::test]
async fn an_error_payload_is_a_definite_refusal() {
    let body = r#"{"code":"-1121","msg":"Invalid symbol."}"#;
    let (order, poll) = both(|| answer(400, "", body)).await;
    for outcome in [order, poll] {
        let Outcome::Refused(refusal) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(refusal.code(), Some(-1121));
        assert!(matches!(refusal, Refusal::Venue { .. }));
    }
}

#[tokio::test]
async fn a_response_without_error_code_leaves_an_order_unknown() {
    for (status, body) in [
        (400, ""),
        (404, "<html>Not Found</html>"),
        (409, "{}"),
        (401, "who are you"),
    ] {
        let (order, poll) = both(|| answer(status, "", body)).await;
        assert!(
            matches!(order, Outcome::Unknown(UnknownReason::Venue(_))),
            "{status}"
        );
        assert!(matches!(poll, Outcome::Refused(_)), "{status}");
    }
}

#[tokio::test]
async fn after_429_nothing_is_sent_until_retry_after() {
    let limited = answer(429, "Retry-After: 30\r\n", r#"{"code":-1003,"msg":"slow"}"#);
    let server = Scripted::start(vec![limited]).await;
    let client = Client::new(server.settings()).unwrap();
    let Outcome::Wait(wait) = send(&client, depth()).await else {
        panic!("no wait")
    };
    assert!(wait.after > Duration::from_secs(29) && wait.after <= Duration::from_secs(30));
    // A cancel, and a request of the other surface on the same address, must not pass either.
    for name in ["spot.cancel_order", "futures.ping"] {
        let outcome = client
            .call(route::named(name).unwrap(), None, &Parameters::new())
            .await;
        let Outcome::Wait(wait) = outcome else {
            panic!("{outcome:?}")
        };
        let WaitReason::Budget(denied) = wait.why else {
            panic!("{wait}")
        };
        assert_eq!(denied.why, Denial::Stopped(Limit::Weight));
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn the_order_limit_stops_orders_and_lets_cancels_pass() {
    let limited = answer(429, "", r#"{"code":-1015,"msg":"too many orders"}"#);
    let server = Scripted::start(vec![limited, answer(200, "", "{}")]).await;
    let client = Client::new(server.settings()).unwrap();
    let Outcome::Wait(wait) = send(&client, order()).await else {
        panic!("no wait")
    };
    let WaitReason::Venue(pause) = &wait.why else {
        panic!("{wait}")
    };
    assert_eq!(pause.limit, Limit::Orders);
    assert!(matches!(send(&client, order()).await, Outcome::Wait(_)));
    let cancel = route::named("spot.cancel_order").unwrap();
    let done = client.call(cancel, None, &Parameters::new()).await;
    assert!(matches!(done, Outcome::Done(_)));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn during_a_ban_nothing_is_sent() {
    let banned = answer(418, "Retry-After: 259200\r\n", "");
    let server = Scripted::start(vec![banned]).await;
    let client = Client::new(server.settings()).unwrap();
    let Outcome::Wait(wait) = send(&client, depth()).await else {
        panic!("no wait")
    };
    assert!(wait.after > Duration::from_hours(71));
    // Patience does not help: the ban ends later than the patience.
    let patient = client.with_patience(Duration::from_mins(1));
    let Outcome::Wait(wait) = send(&patient, depth()).await else {
        panic!("no wait")
    };
    assert!(wait.advice().contains("ban"));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn headers_and_exchange_information_correct_the_budget() {
    let used = answer(200, "X-MBX-USED-WEIGHT-1M: 700\r\n", "{}");
    let info = r#"{"rateLimits":[
        {"rateLimitType":"REQUEST_WEIGHT","interval":"MINUTE","intervalNum":1,"limit":6000},
        {"rateLimitType":"ORDERS","interval":"SECOND","intervalNum":10,"limit":1}]}"#;
    let server = Scripted::start(vec![used, answer(200, "", info), answer(200, "", "{}")]).await;
    let client = Client::new(server.settings()).unwrap();
    let weight = |client: &Client| {
        client.with_budget(Surface::Spot, |budget, now_ms| {
            budget.weights(now_ms).next().unwrap()
        })
    };
    assert!(matches!(send(&client, depth()).await, Outcome::Done(_)));
    assert_eq!(weight(&client), (60_000, 700, 1_200));
    // 700 and the reserves leave nothing for reads; reconciliation still passes.
    assert!(matches!(send(&client, depth()).await, Outcome::Wait(_)));
    let info = (
        route::named("spot.exchange_info").unwrap(),
        Parameters::new(),
    );
    let reconcile = client.in_lane(Lane::Reconcile);
    assert!(matches!(send(&reconcile, info).await, Outcome::Done(_)));
    assert_eq!(weight(&client), (60_000, 701, 6_000));
    // The venue allows one order per ten seconds.
    assert!(matches!(send(&client, order()).await, Outcome::Done(_)));
    let Outcome::Wait(wait) = send(&client, order()).await else {
        panic!("no wait")
    };
    assert!(matches!(wait.why, WaitReason::Budget(denied) if denied.why == Denial::Orders));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn surfaces_behind_one_host_keep_their_own_limits() {
    let info = r#"{"rateLimits":[
        {"rateLimitType":"REQUEST_WEIGHT","interval":"MINUTE","intervalNum":1,"limit":6000},
        {"rateLimitType":"ORDERS","interval":"SECOND","intervalNum":10,"limit":1}]}"#;
    let used = answer(200, "X-MBX-USED-WEIGHT-1M: 700\r\n", info);
    let server = Scripted::start(vec![used]).await;
    let client = Client::new(server.settings()).unwrap();
    let budget = |surface| {
        client.with_budget(surface, |budget, now_ms| {
            budget.weights(now_ms).next().unwrap()
        })
    };
    let info = route::named("futures.exchange_info").unwrap();
    let done = client.call(info, None, &Parameters::new()).await;
    assert!(matches!(done, Outcome::Done(_)));
    assert_eq!(budget(Surface::Futures), (60_000, 700, 6_000));
    // The documents do not state whether they share a counter. So our own requests count for both,
    // and foreign use counts only for the surface whose header showed it.
    assert_eq!(budget(Surface::Spot), (60_000, 1, 1_200));
    assert_eq!(budget(Surface::Rpc), (60_000, 1, 6_000));
}

#[tokio::test]
async fn a_patient_client_waits_for_the_budget() {
    let limited = answer(429, "Retry-After: 1\r\n", "");
    let server = Scripted::start(vec![limited, answer(200, "", "{}")]).await;
    let client = Client::new(server.settings()).unwrap();
    assert!(matches!(send(&client, depth()).await, Outcome::Wait(_)));
    let patient = client.with_patience(Duration::from_secs(5));
    assert!(matches!(send(&patient, depth()).await, Outcome::Done(_)));
}

#[tokio::test]
async fn a_ban_ends_at_retry_after_despite_a_slow_local_clock() {
    let until = r#"{"code":-1003,"msg":"Way too many requests; IP banned until 1723163184210."}"#;
    let server = Scripted::start(vec![answer(418, "Retry-After: 10\r\n", until)]).await;
    let mut settings = server.settings();
    settings.local_time = LocalTime::from_fn(|| 1_723_159_584_210_000);
    let client = Client::new(settings).unwrap();
    let Outcome::Wait(wait) = send(&client, depth()).await else {
        panic!("banned");
    };
    assert!(wait.after <= Duration::from_secs(10), "{:?}", wait.after);
}

#[tokio::test]
async fn the_clock_is_estimated_from_the_time_route() {
    let time = || answer(200, "", r#"{"serverTime":5010}"#);
    let server = Scripted::start(vec![time()]).await;
    let mut settings = server.settings();
    // Each clock read is 10 ms after the previous one. A time request reads the clock four times:
    // before it is sent, when it is stamped, when its response is judged, and after its response.
    let now_us = AtomicI64::new(0);
    settings.local_time = LocalTime::from_fn(move || now_us.fetch_add(10_000, Ordering::Relaxed));
    let client = Client::new(settings).unwrap();
    let offset = client.sync_clock(Surface::Spot, 1).await.unwrap();
    assert_eq!(offset.round_trip_us, 30_000);
    assert!((offset.offset_us - 5_000_000).abs() <= offset.error_us);
    let stamp = client.stamp(Surface::Spot);
    assert_eq!(stamp.timestamp_ms, (40_000 + offset.offset_us) / 1_000);
    assert!(stamp.nonce_us >= 5_030_000);
}

#[tokio::test]
async fn an_api_key_is_created_with_the_nonce_of_the_venue() {
    let key = r#"{"apiKey":"a","apiSecret":"b"}"#;
    let server = Scripted::start(vec![answer(200, "", "1755"), answer(200, "", key)]).await;
    let mut settings = server.settings();
    settings.dialect.brand.login_sentence = Some("You are signing into Svc".to_owned());
    let main = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
    let wallet = Wallet::from_hex(&SecretString::from(main)).unwrap();
    settings.credentials.wallet = Some(wallet);
    let arguments = ["userOperationType=CREATE_API_KEY", "desc=bot"];
    let call = Call::parse("create_api_key", &arguments, &settings, &Options::default()).unwrap();
    let client = Client::new(settings).unwrap();
    let Outcome::Done(raw) = call.run(&client).await else {
        panic!("not done")
    };
    assert_eq!(raw.text, key);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].starts_with("POST /api/v1/getNonce"));
    assert!(requests[0].contains("address=0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"));
    // The signature covers the sentence with the venue's number at its end.
    let (_, body) = requests[1].split_once("\r\n\r\n").unwrap();
    let signature = body
        .split('&')
        .find_map(|pair| pair.strip_prefix("userSignature="));
    let digest = sentence::digest("You are signing into Svc 1755");
    let signer = signer_of(&digest, signature.unwrap()).unwrap();
    assert_eq!(
        signer.to_string(),
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    );
}

#[tokio::test]
async fn https_does_not_connect_to_a_server_without_tls() {
    // It answers the TLS greeting in plain text, like a wrong port.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut greeting = [0; 16];
            let _ = stream.read(&mut greeting).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let mut settings = settings(address);
    settings.addresses = Addresses::default()
        .rest(Surface::Spot, &format!("https://{address}"))
        .unwrap();
    let client = Client::new(settings).unwrap();
    let Outcome::Wait(wait) = send(&client, order()).await else {
        panic!("no wait")
    };
    assert!(matches!(wait.why, WaitReason::NoConnection(_)), "{wait}");
}

#[tokio::test]
async fn an_empty_response_is_success_only_where_documented() {
    let order = [
        "symbol=BTCUSDT",
        "side=BUY",
        "type=LIMIT",
        "timeInForce=GTC",
        "quantity=1",
        "price=9000",
    ];
    let builder = ["builder=0x2222222222222222222222222222222222222222"];
    for (name, arguments, is_done) in [
        ("spot.new_order", &order[..], false),
        ("futures.delete_builder", &builder[..], true),
    ] {
        let server = Scripted::start(vec![answer(200, "", "")]).await;
        let mut settings = server.settings();
        let key = SecretString::from(format!("0x{}", "11".repeat(32)));
        settings.credentials.wallet = Some(Wallet::from_hex(&key).unwrap());
        let client = Client::new(settings).unwrap();
        let call = Call::parse(name, arguments, client.settings(), &Options::default()).unwrap();
        match call.run(&client).await {
            Outcome::Done(_) => assert!(is_done, "{name}"),
            Outcome::Unknown(reason) => {
                assert!(!is_done, "{name}");
                assert!(reason.to_string().contains("its body is empty"), "{reason}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}
