//! The order that the policy reads is the order in the signed bytes. The test has its own reader of
//! forms, which knows nothing of the policy.

use secrecy::SecretString;
use windvane_protocol::Brand;
use windvane_protocol::sign::{ApiKey, Credentials, Dialect, Network, prepare};

use super::*;
use crate::batch;

/// Reads a form strictly: pairs with one `=`, in which a byte is itself or `%` and two capital digits.
fn strict_form(text: &str) -> Option<Vec<(String, String)>> {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, more @ ..] = rest {
            rest = match (first, more) {
                (b'%', [high, low, more @ ..]) => {
                    let digit = |byte: &u8| "0123456789ABCDEF".find(char::from(*byte));
                    bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                    more
                }
                (b'%' | b'+' | b'=' | b';' | b' ', _) => return None,
                _ => {
                    bytes.push(*first);
                    more
                }
            };
        }
        String::from_utf8(bytes).ok()
    };
    let pairs = text.split('&').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((decoded(name)?, decoded(value)?))
    });
    pairs.collect()
}

/// The signed text of a request, read strictly, without the parameters of the authentication.
fn as_signed(request: &Unsigned) -> Vec<(String, String)> {
    let dialect = Dialect {
        brand: Brand::new("svc").unwrap(),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    let credentials = Credentials {
        api_key: Some(ApiKey::new("name", SecretString::from("secret"))),
        ..Credentials::default()
    };
    let called = request.called_route;
    let prepared = prepare(
        called.route,
        called.version,
        &request.parameters,
        &dialect,
        &credentials,
        request.stamp,
    );
    let mut pairs = strict_form(&prepared.unwrap().body.unwrap()).unwrap();
    let authentication = pairs.split_off(pairs.len() - 3);
    let names: Vec<_> = authentication.iter().map(|pair| pair.0.as_str()).collect();
    assert_eq!(names, ["recvWindow", "timestamp", "signature"]);
    pairs
}

/// Valid and invalid parameters of an order.
fn parameter() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec![
        "positionSide",
        "reduceOnly",
        "closePosition",
        "quantity",
        "quoteOrderQty",
        "price",
        "stopPrice",
        "activationPrice",
        "newClientOrderId",
        "reduceonly",
        "Quantity",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "true", "false", "LONG", "SHORT", "BOTH", "1", "0.5", "900", "1e3", "", "a&b=c",
            "1%2E5", "+1", "x y",
        ])
        .prop_map(str::to_owned),
        ".{0,8}",
        "[0-9]{1,4}(\\.[0-9]{1,4})?",
    ];
    (name.prop_map(str::to_owned), value)
}

fn order() -> impl Strategy<Value = Vec<(String, String)>> {
    let side = prop::sample::select(vec!["BUY", "SELL", "buy"]);
    let kind = prop::sample::select(vec!["LIMIT", "MARKET", "STOP_MARKET", "market"]);
    let more = prop::collection::vec(parameter(), 0..5);
    (side, kind, more, any::<prop::sample::Index>()).prop_map(|(side, kind, more, at)| {
        let mut pairs = more;
        for (name, value) in [("symbol", "BTCUSDT"), ("side", side), ("type", kind)] {
            let at = at.index(pairs.len() + 1);
            pairs.insert(at, (name.to_owned(), value.to_owned()));
        }
        pairs
    })
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// The value of the one pair with this name, without regard to case.
fn only<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = pairs
        .iter()
        .filter(|pair| pair.0.eq_ignore_ascii_case(name));
    let value = found.next().map(|pair| pair.1.as_str());
    assert!(found.next().is_none(), "{name} occurs twice");
    value
}

/// An allowed order has each parameter once in any spelling, and the values that the policy read.
fn agrees(order: &Order<'_>, pairs: &[(String, String)]) {
    let number = |name| only(pairs, name).map(|text| text.parse::<Decimal>().unwrap());
    let flag = |name| only(pairs, name) == Some("true");
    assert_eq!(Some(order.symbol), only(pairs, "symbol"));
    let side = if order.side == Side::Buy {
        "BUY"
    } else {
        "SELL"
    };
    assert_eq!(Some(side), only(pairs, "side"));
    assert_eq!(order.quantity, number("quantity"));
    assert_eq!(order.quote_quantity, number("quoteOrderQty"));
    assert_eq!(order.price, number("price"));
    let trigger = number("stopPrice").max(number("activationPrice"));
    assert_eq!(order.trigger, trigger);
    assert_eq!(order.reduce_only, flag("reduceOnly"));
    assert_eq!(order.close_position, flag("closePosition"));
    let position_side = only(pairs, "positionSide").unwrap_or("BOTH");
    let read = format!("{:?}", order.position_side).to_uppercase();
    assert_eq!(read, position_side);
}

proptest! {
    #[test]
    fn the_policy_reads_what_is_signed(pairs in order(), is_spot in any::<bool>()) {
        let (name, surface) = if is_spot {
            ("spot.new_order", Surface::Spot)
        } else {
            ("futures.new_order", Surface::Futures)
        };
        let request = request(name, &borrowed(&pairs));
        let signed = as_signed(&request);
        prop_assert_eq!(&signed, &pairs);
        let mut policy = policy_of(surface, Limits::default());
        if policy.judge(at(0), &request).is_ok() {
            let read = Order::read(Form::One(surface), request.parameters.iter()).unwrap();
            agrees(&read, &signed);
        }
    }

    #[test]
    fn the_policy_reads_the_batch_that_is_signed(orders in prop::collection::vec(order(), 1..4)) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let entries = orders.iter().map(|pairs| {
            let pairs = pairs.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(" ,"))
        });
        let text = format!("[{}]", entries.collect::<Vec<_>>().join(", "));
        let request = batch(&text);
        let signed = as_signed(&request);
        let [(name, list)] = &signed[..] else { panic!("{signed:?}") };
        prop_assert_eq!(name, "batchOrders");
        let mut policy = policy_of(Surface::Futures, Limits::default());
        policy.opening_per_minute = None;
        if policy.judge(at(0), &request).is_ok() {
            let list: Vec<serde_json::Map<String, serde_json::Value>> = serde_json::from_str(list).unwrap();
            let entries = batch::read(&text).unwrap();
            prop_assert_eq!(list.len(), entries.len());
            for (signed, entry) in list.iter().zip(&entries) {
                let read = Order::read(Form::BatchEntry, entry.0.iter().copied()).unwrap();
                let pairs: Vec<_> = signed
                    .iter()
                    .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
                    .collect();
                prop_assert_eq!(pairs.len(), entry.0.len());
                agrees(&read, &pairs);
            }
        }
    }
}
