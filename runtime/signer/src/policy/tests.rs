use proptest::prelude::*;
use windvane_client_core::CalledRoute;
use windvane_protocol::route::{self, Version};
use windvane_protocol::sign::Stamp;

use super::*;
use crate::order::{Kind, PositionSide};

mod wire;

/// The time of requests.
const UNIX_MS: i64 = 1_700_000_000_000;

/// The given time after the start of the signer. The clock of the machine agrees with the requests.
fn at(since_start_ms: u64) -> Now {
    Now {
        since_start_ms,
        unix_ms: UNIX_MS,
    }
}

fn request(name: &str, pairs: &[(&str, &str)]) -> Unsigned {
    Unsigned {
        called_route: CalledRoute {
            route: route::named(name).unwrap(),
            version: Some(Version::V1),
        },
        parameters: pairs.iter().copied().collect(),
        stamp: Stamp {
            timestamp_ms: UNIX_MS,
            nonce_us: UNIX_MS as u64 * 1_000,
            inner_nonce_us: 1,
        },
    }
}

const BOTH: Limits = Limits {
    max_quantity: Some(Decimal::ONE),
    max_notional: Some(Decimal::ONE_THOUSAND),
    allow_unpriced: false,
};

fn policy() -> Policy {
    let symbol = |surface| ((surface, "BTCUSDT".to_owned()), BOTH);
    Policy::new([symbol(Surface::Spot), symbol(Surface::Futures)], Some(3))
}

/// A policy without spot, or with spot alone.
fn policy_of(surface: Surface, limits: Limits) -> Policy {
    Policy::new([((surface, "BTCUSDT".to_owned()), limits)], Some(3))
}

/// The rule that refuses a request; empty if it is allowed.
fn rule_of(mut policy: Policy, request: &Unsigned) -> &'static str {
    let judged = policy.judge(at(0), request);
    judged.map_or_else(|refused| refused.rule, |_| "")
}

fn rule(name: &str, pairs: &[(&str, &str)]) -> &'static str {
    rule_of(policy(), &request(name, pairs))
}

/// The pairs of a query without escapes.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap()).collect()
}

const BUY: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT";
const SELL: &str = "symbol=BTCUSDT&side=SELL&type=MARKET";

#[test]
fn each_rule_refuses_what_it_forbids() {
    for (name, base, more, expected) in [
        ("futures.new_order", BUY, "&quantity=0.01&price=50000", ""),
        ("spot.new_order", BUY, "&quantity=0.01&price=50000", ""),
        (
            "futures.new_order",
            BUY,
            "&quantity=0.03&price=50000",
            "max_notional",
        ),
        (
            "futures.new_order",
            BUY,
            "&quantity=1.1&price=1",
            "max_quantity",
        ),
        ("futures.new_order", SELL, "&quantity=1", ""),
        ("futures.new_order", SELL, "&quantity=1.1", "max_quantity"),
        (
            "spot.new_order",
            BUY,
            "&quantity=1.1&price=1",
            "max_quantity",
        ),
        (
            "futures.new_order",
            "symbol=ETHUSDT&side=BUY&type=LIMIT",
            "&quantity=1&price=1",
            "symbols",
        ),
        // Closes have no limit of size.
        (
            "futures.new_order",
            SELL,
            "&quantity=900&reduceOnly=true",
            "",
        ),
        (
            "futures.new_order",
            SELL,
            "&quantity=900&reduceOnly=false",
            "max_quantity",
        ),
        (
            "futures.new_order",
            SELL,
            "&quantity=900&positionSide=LONG",
            "",
        ),
        (
            "futures.new_order",
            SELL,
            "&quantity=900&positionSide=SHORT",
            "max_quantity",
        ),
        (
            "futures.new_order",
            BUY,
            "&price=1&quantity=900&positionSide=SHORT",
            "",
        ),
        (
            "futures.new_order",
            BUY,
            "&price=1&quantity=900&positionSide=LONG&reduceOnly=true",
            "max_quantity",
        ),
        (
            "futures.new_order",
            "symbol=BTCUSDT&side=SELL&type=STOP_MARKET",
            "&stopPrice=1&closePosition=true",
            "",
        ),
        ("futures.cancel_order", "symbol=ANY&orderId=1", "", ""),
        ("futures.cancel_all_orders", "symbol=ANY", "", ""),
        (
            "futures.countdown_cancel_all",
            "symbol=ANY&countdownTime=0",
            "",
            "",
        ),
        ("futures.account", "", "", ""),
        ("spot.create_listen_key", "", "", ""),
        (
            "futures.change_leverage",
            "symbol=BTCUSDT&leverage=9",
            "",
            "routes",
        ),
        ("futures.wallet_transfer", "", "", "routes"),
        ("spot.withdraw", "", "", "routes"),
        ("spot.send_to_address", "", "", "routes"),
        ("futures.approve_agent", "", "", "routes"),
        ("spot.create_api_key", "", "", "routes"),
        ("chain.perp_withdraw", "", "", "routes"),
        // A read with parameters of an order, to be sent as an order.
        (
            "futures.open_orders",
            BUY,
            "&quantity=0.01&price=50000",
            "parameters",
        ),
    ] {
        let text = format!("{base}{more}");
        assert_eq!(rule(name, &pairs(&text)), expected, "{name} {text}");
    }
}

#[test]
fn no_parameter_makes_an_order_look_smaller_or_like_a_close() {
    let market = "symbol=BTCUSDT&side=BUY&type=MARKET";
    let stop = "symbol=BTCUSDT&side=BUY&type=STOP_MARKET";
    for (base, more) in [
        // A price that the venue ignores.
        (market, "&quantity=0.5&price=1"),
        (stop, "&quantity=0.5&stopPrice=1&price=1"),
        (
            "symbol=BTCUSDT&side=BUY&type=TRAILING_STOP_MARKET",
            "&quantity=0.5&callbackRate=1&price=1",
        ),
        (market, "&quantity=0.5&stopPrice=1"),
        (market, "&quantity=0.5&activationPrice=1"),
        (BUY, "&quantity=0.5"),
        (BUY, "&quantity=0.5&price=1&stopPrice=1"),
        (market, "&quoteOrderQty=1"),
        // Numbers.
        (BUY, "&quantity=1e1&price=1"),
        (BUY, "&quantity=-1&price=1"),
        (BUY, "&quantity=0.5&price=0"),
        (BUY, "&quantity=1_0&price=1"),
        (BUY, "&quantity= 1&price=1"),
        (BUY, "&quantity=&price=1"),
        (BUY, "&price=1"),
        // Words in another spelling, twice, or with another case of the name.
        ("symbol=BTCUSDT&side=buy&type=MARKET", "&quantity=0.5"),
        ("symbol=BTCUSDT&side=BUY&type=market", "&quantity=0.5"),
        ("symbol=BTCUSDT&side=BUY&type=LIQUIDATION", "&quantity=0.5"),
        (SELL, "&quantity=0.5&reduceOnly=TRUE"),
        (SELL, "&quantity=0.5&reduceOnly=1"),
        (SELL, "&quantity=0.5&reduceonly=true"),
        (SELL, "&quantity=0.5&positionSide=long"),
        (SELL, "&quantity=0.5&reduceOnly=false&reduceOnly=true"),
        (SELL, "&quantity=0.5&quantity=900"),
        // A close of the whole position that would not close.
        (SELL, "&quantity=900&closePosition=true"),
        (SELL, "&closePosition=true"),
        (stop, "&stopPrice=1&quantity=900&closePosition=true"),
        (stop, "&stopPrice=1&closePosition=true&reduceOnly=true"),
        // The authentication is the signer's alone.
        (SELL, "&quantity=0.5&timestamp=9"),
        (SELL, "&quantity=0.5&recvWindow=60000"),
        (SELL, "&quantity=0.5&nonce=9"),
        (SELL, "&quantity=0.5&signature=00"),
        (SELL, "&quantity=0.5&builder=0x00"),
    ] {
        let text = format!("{base}{more}");
        assert_eq!(
            rule("futures.new_order", &pairs(&text)),
            "parameters",
            "{text}"
        );
    }
    for more in [
        "&quoteOrderQty=1&quantity=0.5",
        "&quoteOrderQty=1&price=1",
        "&quantity=0.5&positionSide=LONG",
        "&quantity=0.5&reduceOnly=true",
    ] {
        let text = format!("{market}{more}");
        assert_eq!(
            rule("spot.new_order", &pairs(&text)),
            "parameters",
            "{text}"
        );
    }
    let quote = |quote: &str| format!("{market}&quoteOrderQty={quote}");
    assert_eq!(rule("spot.new_order", &pairs(&quote("1000"))), "");
    assert_eq!(
        rule("spot.new_order", &pairs(&quote("1001"))),
        "max_notional"
    );
}

#[test]
fn an_order_of_a_market_type_is_limited_by_its_quantity_alone() {
    let notional = Limits {
        max_quantity: None,
        ..BOTH
    };
    for (kind, more) in [
        ("MARKET", ""),
        ("STOP_MARKET", "&stopPrice=1"),
        ("TAKE_PROFIT_MARKET", "&stopPrice=1"),
        ("TRAILING_STOP_MARKET", "&callbackRate=1&activationPrice=1"),
    ] {
        let order = |quantity: &str| {
            let text = format!("symbol=BTCUSDT&side=BUY&type={kind}&quantity={quantity}{more}");
            request("futures.new_order", &pairs(&text))
        };
        // A trigger price in the request does not show the value of the order.
        let of = |limits| policy_of(Surface::Futures, limits);
        assert_eq!(
            rule_of(of(notional), &order("900")),
            "max_notional",
            "{kind}"
        );
        assert_eq!(rule_of(of(BOTH), &order("1.1")), "max_quantity", "{kind}");
        assert_eq!(rule_of(of(BOTH), &order("1")), "", "{kind}");
        let unpriced = Limits {
            allow_unpriced: true,
            ..notional
        };
        assert_eq!(rule_of(of(unpriced), &order("1")), "", "{kind}");
    }
    let high = format!(
        "{}&quantity=0.01&stopPrice=200000",
        SELL.replace("MARKET", "STOP_MARKET")
    );
    assert_eq!(rule("futures.new_order", &pairs(&high)), "max_notional");
}

#[test]
fn a_spot_sell_that_could_open_on_futures_has_the_limit_of_size() {
    let sell = request("spot.new_order", &pairs(&format!("{SELL}&quantity=900")));
    assert_eq!(rule_of(policy(), &sell), "max_quantity");
    assert_eq!(rule_of(policy_of(Surface::Spot, BOTH), &sell), "");
    let spot = route::named("spot.new_order").unwrap();
    let only_spot = policy().with_routes([spot]).unwrap();
    assert_eq!(rule_of(only_spot, &sell), "");
    // The larger limit of both symbols of a name holds.
    let wide = Limits {
        max_quantity: Some(Decimal::ONE_THOUSAND),
        ..Limits::default()
    };
    let symbols = |futures: &str| {
        let spot = ((Surface::Spot, "BTCUSDT".to_owned()), wide);
        Policy::new(
            [spot, ((Surface::Futures, futures.to_owned()), BOTH)],
            Some(3),
        )
    };
    let larger = request("spot.new_order", &pairs(&format!("{SELL}&quantity=1001")));
    for futures in ["BTCUSDT", "ETHUSDT"] {
        assert_eq!(rule_of(symbols(futures), &sell), "");
        assert_eq!(rule_of(symbols(futures), &larger), "max_quantity");
    }
    // Without a largest quantity, it has no limit.
    let by_value = Limits {
        max_notional: Some(Decimal::ONE),
        ..Limits::default()
    };
    let of = |surface, limits| ((surface, "BTCUSDT".to_owned()), limits);
    let both = [of(Surface::Spot, by_value), of(Surface::Futures, BOTH)];
    let unlimited = Policy::new(both, Some(3));
    assert!(unlimited.has_unlimited_spot_sells());
    assert_eq!(rule_of(unlimited, &larger), "");
    assert!(!policy().has_unlimited_spot_sells());
    // It has no limit of rate, and does not depend on a clock.
    let mut policy = policy().of_replacement(None);
    let mut small = request("spot.new_order", &pairs(&format!("{SELL}&quantity=1")));
    small.stamp.timestamp_ms = 1;
    for _ in 0..100 {
        policy.judge(at(0), &small).unwrap();
    }
}

#[test]
fn no_signed_request_can_be_sent_as_a_transfer_or_setting() {
    let names = |route: &Route| -> Vec<String> {
        // A venue may read names without regard to case.
        let params = route.params.iter();
        params.map(|param| param.name.to_lowercase()).collect()
    };
    for signed in routes::default_routes() {
        let mut given = names(signed);
        if routes::class(signed) == Class::Order {
            // No order with a builder is signed.
            given.retain(|name| name != "builder" && name != "feerate");
        }
        for other in route::all().filter(|other| {
            other.changes
                && matches!(routes::class(other), Class::Never | Class::Setting)
                && other.name != "spot.noop"
        }) {
            let mut required = routes::required(other);
            let is_enough = required.all(|name| given.contains(&name.to_lowercase()));
            assert!(!is_enough, "{} as {}", signed.name, other.name);
        }
    }
}

#[test]
fn only_opening_orders_depend_on_the_clock() {
    let open = request("futures.new_order", &pairs(&format!("{SELL}&quantity=1")));
    let close = request(
        "futures.new_order",
        &pairs(&format!("{SELL}&quantity=9&reduceOnly=true")),
    );
    let cancel = request("futures.cancel_all_orders", &[("symbol", "BTCUSDT")]);
    let countdown = request(
        "futures.countdown_cancel_all",
        &[("symbol", "BTCUSDT"), ("countdownTime", "9000")],
    );
    for (version, off_ms) in [
        (Version::V1, 300_001),
        (Version::V1, -300_001),
        (Version::V3, 300_001),
        (Version::V3, -300_001),
    ] {
        let moved = |request: &Unsigned, by: i64| {
            let mut request = request.clone();
            request.called_route.version = Some(version);
            // Only the time that is signed counts.
            let later = UNIX_MS + by;
            match version {
                Version::V1 => request.stamp.timestamp_ms = later,
                _ => request.stamp.nonce_us = later as u64 * 1_000,
            }
            request
        };
        assert_eq!(rule_of(policy(), &moved(&open, off_ms)), "clock");
        assert_eq!(
            rule_of(policy(), &moved(&open, off_ms.signum() * 300_000)),
            ""
        );
        for other in [&close, &cancel, &countdown] {
            assert_eq!(rule_of(policy(), &moved(other, off_ms)), "");
        }
        let refused = policy().judge(at(0), &moved(&open, off_ms)).unwrap_err();
        let place = if off_ms > 0 {
            "300 s after"
        } else {
            "300 s before"
        };
        assert!(refused.what.contains(place), "{refused}");
        assert!(refused.what.contains("timedatectl"), "{refused}");
    }
}

#[test]
fn a_replaced_signer_begins_with_an_empty_allowance() {
    let open = request("futures.new_order", &pairs(&format!("{SELL}&quantity=1")));
    let close = request(
        "futures.new_order",
        &pairs(&format!("{SELL}&quantity=9&reduceOnly=true")),
    );
    let cancel = request("futures.cancel_all_orders", &[("symbol", "BTCUSDT")]);
    let mut policy = policy().of_replacement(None);
    for since in [0, COUNTED_MS - 1] {
        let refused = policy.judge(at(since), &open).unwrap_err();
        assert_eq!(refused.rule, "opening_orders_per_minute");
        assert!(refused.what.contains("replaced"), "{refused}");
        policy.judge(at(since), &close).unwrap();
        policy.judge(at(since), &cancel).unwrap();
    }
    for _ in 0..3 {
        policy.judge(at(COUNTED_MS), &open).unwrap();
    }
    assert!(policy.judge(at(COUNTED_MS), &open).is_err());
    // With the count of the earlier signer, only the difference is allowed.
    let mut policy = self::policy().of_replacement(Some(&[(58_000, 1), (1_000, 1)]));
    assert_eq!(policy.judge(at(0), &open), Ok(1));
    assert!(policy.judge(at(999), &open).is_err());
    assert_eq!(policy.judge(at(1_001), &open), Ok(1));
    assert!(policy.judge(at(57_999), &open).is_err());
    assert_eq!(policy.judge(at(58_001), &open), Ok(1));
    let mut full = self::policy().of_replacement(Some(&[(1_000, u32::MAX), (0, u32::MAX)]));
    assert!(full.judge(at(57_999), &open).is_err());
    // Without a limit per minute nothing was counted.
    let symbol = ((Surface::Futures, "BTCUSDT".to_owned()), BOTH);
    let mut unlimited = Policy::new([symbol], None).of_replacement(None);
    assert_eq!(unlimited.judge(at(0), &open), Ok(0));
}

#[test]
fn no_withdrawal_is_signed_with_any_routes() {
    for route in route::all().filter(|route| routes::class(route) == Class::Never) {
        assert!(policy().with_routes([route]).is_err(), "{}", route.name);
        let mut policy = policy();
        policy.routes.insert(route.name);
        let request = Unsigned {
            called_route: CalledRoute {
                route,
                version: route.listings[0].version,
            },
            ..request("spot.account", &[])
        };
        assert_eq!(policy.judge(at(0), &request).unwrap_err().rule, "routes");
    }
}

#[test]
fn only_opening_orders_are_counted() {
    let mut policy = policy();
    let open = request(
        "futures.new_order",
        &pairs(&format!("{SELL}&quantity=0.01")),
    );
    let close = request(
        "futures.new_order",
        &pairs(&format!("{SELL}&quantity=9&reduceOnly=true")),
    );
    let cancel = request("futures.cancel_all_orders", &[("symbol", "BTCUSDT")]);
    for since in [0, 10, 20] {
        policy.judge(at(since), &open).unwrap();
    }
    let refused = policy.judge(at(30), &open).unwrap_err();
    assert_eq!(refused.rule, "opening_orders_per_minute");
    for _ in 0..100 {
        policy.judge(at(30), &close).unwrap();
        policy.judge(at(30), &cancel).unwrap();
    }
    policy.judge(at(COUNTED_MS + 1), &open).unwrap();
    assert!(policy.judge(at(COUNTED_MS + 2), &open).is_err());
}

/// A batch of orders, as it is on the wire.
fn batch(orders: &str) -> Unsigned {
    request("futures.batch_orders", &[("batchOrders", orders)])
}

#[test]
fn each_order_of_a_batch_is_judged() {
    let open = r#"{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","quantity":"0.01","price":"5"}"#;
    let large = open.replace("0.01", "1.01");
    let close = large.replace('}', ",\"reduceOnly\":\"true\"}");
    let twice = open.replace("\"side\":\"BUY\"", "\"side\":\"BUY\",\"side\":\"SELL\"");
    let number = open.replace("\"0.01\"", "0.01");
    let other = open.replace("BTCUSDT", "ETHUSDT");
    // A batch has no such orders, so the venue may ignore these words.
    let whole = r#"{"symbol":"BTCUSDT","side":"SELL","type":"STOP_MARKET","stopPrice":"1","closePosition":"true"}"#;
    let quote = open.replace("\"price\"", "\"quoteOrderQty\"");
    let null = large.replace('}', ",\"positionSide\":null}");
    let escaped = large.replace('}', ",\"reduceOnl\\u0079\":\"true\"}");
    for (orders, expected) in [
        (format!("[{open},{close}]"), ""),
        (format!("[{open},{large}]"), "max_quantity"),
        (format!("[{open},{other}]"), "symbols"),
        (format!("[{twice}]"), "parameters"),
        (format!("[{number}]"), "parameters"),
        (format!("[{open}"), "parameters"),
        (format!("[{whole}]"), "parameters"),
        (format!("[{quote}]"), "parameters"),
        (format!("[{null}]"), "parameters"),
        (format!("[{escaped}]"), "parameters"),
        ("[]".to_owned(), "parameters"),
        (
            r#"[["BTCUSDT","SELL","MARKET",null,"true",null,"900"]]"#.to_owned(),
            "parameters",
        ),
        (
            format!("[{}]", [open; 4].join(",")),
            "opening_orders_per_minute",
        ),
        (format!("[{}]", [close.as_str(); 5].join(",")), ""),
        (format!("[{}]", [close.as_str(); 6].join(",")), "parameters"),
    ] {
        assert_eq!(rule_of(policy(), &batch(&orders)), expected, "{orders}");
    }
    // A refused batch counts for nothing.
    let mut policy = policy();
    let refused = policy.judge(at(0), &batch(&format!("[{open},{large}]")));
    assert!(refused.is_err());
    let three = batch(&format!("[{open},{open},{open}]"));
    policy.judge(at(0), &three).unwrap();
}

/// An account after an order was filled completely: the test's own rules, from
/// docs/interface/orders.md#futures-order. Exposure is what a fall or a rise of the price can cost.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// One-way position, or the two sides of hedge mode.
    position: Result<i64, (i64, i64)>,
    coins: i64,
}

impl Account {
    fn exposure(self) -> i64 {
        let position = match self.position {
            Ok(position) => position.abs(),
            Err((long, short)) => long + short,
        };
        position + self.coins
    }

    fn fill(mut self, surface: Surface, order: &Order<'_>, quantity: i64) -> Self {
        let signed = if order.side == Side::Buy {
            quantity
        } else {
            -quantity
        };
        if surface == Surface::Spot {
            let next = self.coins + signed;
            // The venue refuses to sell coins that the account does not hold.
            self.coins = if next < 0 { self.coins } else { next };
            return self;
        }
        let is_reduce = order.reduce_only || order.close_position;
        match (&mut self.position, order.position_side) {
            (Ok(position), PositionSide::Both) => {
                let next = *position + signed;
                let grows = next.abs() > position.abs() || next.signum() == -position.signum();
                *position = match (is_reduce, grows) {
                    // A reduce-only order is cut to the position, or refused.
                    (true, true) if signed.signum() == -position.signum() => 0,
                    (true, true) => *position,
                    _ => next,
                };
            }
            (Err((long, _)), PositionSide::Long) => *long = (*long + signed).max(0),
            (Err((_, short)), PositionSide::Short) => *short = (*short - signed).max(0),
            // The venue refuses an order of the other position mode.
            _ => {}
        }
        self
    }
}

proptest! {
    #[test]
    fn a_close_never_increases_the_exposure(
        is_spot in any::<bool>(),
        side in prop::sample::select(vec![Side::Buy, Side::Sell]),
        position_side in prop::sample::select(vec![
            PositionSide::Long, PositionSide::Short, PositionSide::Both,
        ]),
        reduce_only in any::<bool>(),
        close_position in any::<bool>(),
        quantity in 1_i64..50,
        position in -20_i64..20,
        sides in (0_i64..20, 0_i64..20),
        is_hedged in any::<bool>(),
        coins in 0_i64..20,
    ) {
        let surface = if is_spot { Surface::Spot } else { Surface::Futures };
        let order = Order {
            symbol: "BTCUSDT",
            side,
            kind: Kind::Market,
            position_side,
            reduce_only,
            close_position,
            quantity: Some(quantity.into()),
            quote_quantity: None,
            price: None,
            trigger: None,
        };
        let position = if is_hedged { Err(sides) } else { Ok(position) };
        let before = Account { position, coins };
        if order.is_close(surface) {
            let after = before.fill(surface, &order, quantity);
            prop_assert!(after.exposure() <= before.exposure(), "{order:?} {before:?} {after:?}");
        }
    }

    #[test]
    fn any_parameters_are_judged_without_a_panic(
        names in prop::collection::vec("[a-zA-Z]{0,12}", 0..8),
        value in ".{0,40}",
        batch_text in ".{0,200}",
    ) {
        let mut policy = policy();
        let pairs: Vec<_> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        for name in ["futures.new_order", "spot.new_order", "futures.batch_orders"] {
            let _ = policy.judge(at(0), &request(name, &pairs));
        }
        let _ = policy.judge(at(0), &batch(&batch_text));
        let _ = policy.judge(at(0), &request("futures.new_order", &[
            ("symbol", "BTCUSDT"), ("side", "BUY"), ("type", "LIMIT"),
            ("quantity", &value), ("price", &value),
        ]));
    }
}
