//! Properties of a budget, tested with random requests.

use proptest::prelude::*;

use super::*;

const MINUTE: RateLimit = RateLimit {
    kind: LimitKind::Weight,
    interval_ms: 60_000,
    limit: 100,
};
const ORDERS: RateLimit = RateLimit {
    kind: LimitKind::Orders,
    interval_ms: 10_000,
    limit: 6,
};

const ORDERS_A_MINUTE: RateLimit = RateLimit {
    interval_ms: 60_000,
    limit: 20,
    ..ORDERS
};
const ORDER: Cost = Cost {
    weight: 1,
    orders: 1,
    own: None,
};

fn lane() -> impl Strategy<Value = Lane> {
    (0..Lane::ALL.len()).prop_map(|at| Lane::ALL[at])
}

/// Elapsed time, lane, weight, orders.
fn requests() -> impl Strategy<Value = Vec<(u64, Lane, u32, u32)>> {
    proptest::collection::vec((0_u64..4_000, lane(), 1_u32..12, 0_u32..3), 1..400)
}

const fn used(used: u32) -> Used {
    Used {
        kind: LimitKind::Weight,
        interval_ms: 60_000,
        used,
    }
}

fn sum(log: &[(u64, u32)], from_ms: u64, interval_ms: u64) -> u32 {
    let within = log
        .iter()
        .filter(|(at, _)| *at >= from_ms && *at < from_ms + interval_ms);
    within.map(|(_, cost)| cost).sum()
}

proptest! {
    #[test]
    fn no_interval_ever_holds_more_than_its_limit(requests in requests()) {
        let mut budget = Budget::new(&[MINUTE, ORDERS], Shares::default());
        let (mut weights, mut orders, mut now) = (Vec::new(), Vec::new(), 0);
        for (passed, lane, weight, count) in requests {
            now += passed;
            let cost = Cost { weight, orders: count, own: None };
            if !lane.is_emergency() && budget.acquire(now, lane, &cost).is_ok() {
                weights.push((now, weight));
                orders.push((now, count));
            }
        }
        for (at, _) in &weights {
            prop_assert!(sum(&weights, *at, 60_000) <= 100);
            prop_assert!(sum(&orders, *at, 10_000) <= 6);
        }
    }

    #[test]
    fn emergency_requests_ignore_the_counts(
        requests in requests(), others in 0_u32..500, weight in 1_u32..1_000,
    ) {
        let mut budget = Budget::new(&[MINUTE, ORDERS], Shares::default());
        let mut now = 0;
        for (passed, lane, weight, orders) in requests {
            now += passed;
            let cost = Cost { weight, orders, own: None };
            let granted = budget.acquire(now, lane, &cost).is_ok();
            prop_assert!(granted || !lane.is_emergency(), "{lane:?}");
        }
        budget.used(now, &used(others));
        for lane in [Lane::Cancel, Lane::Close, Lane::Heartbeat] {
            prop_assert!(budget.acquire(now, lane, &Cost::weight(weight)).is_ok());
        }
    }

    #[test]
    fn ordinary_requests_leave_the_reserves_free(requests in requests(), others in 0_u32..100) {
        let shares = Shares::default();
        let mut budget = Budget::new(&[MINUTE], shares);
        budget.used(0, &used(others));
        let mut now = 0;
        for (passed, lane, weight, _) in requests {
            now += passed / 100;
            let ordinary = !lane.is_emergency() && lane != Lane::Start;
            if ordinary && budget.acquire(now, lane, &Cost::weight(weight)).is_ok() {
                let (_, sum, limit) = budget.weights(now).next().unwrap();
                let reserve = shares.reserve(Lane::Cancel, limit)
                    + shares.reserve(Lane::Heartbeat, limit);
                let reserve = if lane == Lane::Reconcile { reserve * 2 / 5 } else { reserve };
                prop_assert!(sum + reserve <= limit, "{sum} and {reserve}");
            }
        }
    }

    #[test]
    fn a_denied_request_fits_exactly_at_the_stated_time(
        requests in requests(), lane in lane(), weight in 1_u32..30
    ) {
        let mut budget = Budget::new(&[MINUTE], Shares::default());
        let mut now = 0;
        for (passed, lane, weight, _) in requests {
            now += passed / 8;
            if !lane.is_emergency() {
                let _ = budget.acquire(now, lane, &Cost::weight(weight));
            }
        }
        let cost = Cost::weight(weight);
        if let Err(denied) = budget.clone().acquire(now, lane, &cost) {
            let until = denied.until_ms.expect("the cost fits every lane");
            prop_assert!(budget.clone().acquire(until - 1, lane, &cost).is_err());
            prop_assert!(budget.acquire(until, lane, &cost).is_ok());
        }
    }

    #[test]
    fn a_ban_is_neither_prolonged_nor_shortened(
        ban_s in 1_u64..10_000, stop_s in 1_u64..10_000, lane in lane()
    ) {
        let mut budget = Budget::new(&[MINUTE], Shares::default());
        budget.refused(0, Limit::Ban, Some(ban_s * 1_000), &Cost::weight(1));
        // A response to a request that was in flight when the ban began.
        budget.refused(5, Limit::Weight, Some(stop_s * 1_000), &Cost::weight(1));
        let end = (ban_s * 1_000).max(5 + stop_s * 1_000);
        for now in [6, end / 2, end - 1] {
            let denied = budget.acquire(now, lane, &Cost::weight(1)).unwrap_err();
            prop_assert_eq!(denied.until_ms, Some(end));
        }
        prop_assert!(budget.acquire(end, lane, &Cost::weight(1)).is_ok());
    }
}

#[test]
fn an_order_limit_stops_orders_only() {
    let mut budget = Budget::new(&[MINUTE, ORDERS], Shares::default());
    budget.refused(0, Limit::Orders, None, &ORDER);
    let denied = budget.acquire(1, Lane::Place, &ORDER).unwrap_err();
    assert_eq!(denied.until_ms, Some(10_000));
    assert_eq!(denied.why, Denial::Orders);
    assert!(budget.acquire(1, Lane::Cancel, &Cost::weight(1)).is_ok());
    assert!(budget.acquire(1, Lane::Reconcile, &Cost::weight(1)).is_ok());
    // Closes must wait too, because more orders lead to a ban.
    assert!(budget.acquire(9_999, Lane::Close, &ORDER).is_err());
    assert!(budget.acquire(10_000, Lane::Close, &ORDER).is_ok());
}

#[test]
fn a_stated_end_of_an_order_refusal_applies_to_closes_too() {
    let mut budget = Budget::new(&[MINUTE, ORDERS], Shares::NONE);
    budget.refused(0, Limit::Orders, Some(57_000), &ORDER);
    // A later refusal without a stated end does not shorten the stop.
    budget.refused(1, Limit::Orders, None, &ORDER);
    for lane in [Lane::Place, Lane::Close] {
        let denied = budget.acquire(56_999, lane, &ORDER).unwrap_err();
        assert_eq!(
            (denied.why, denied.until_ms > Some(56_999)),
            (Denial::Orders, true)
        );
    }
    assert_eq!(budget.orders_stopped_until(2), Some(57_000));
    assert!(budget.acquire(2, Lane::Cancel, &Cost::weight(1)).is_ok());
    assert!(budget.acquire(57_000, Lane::Close, &ORDER).is_ok());
}

#[test]
fn orders_wait_for_the_end_of_the_used_up_interval() {
    let mut budget = Budget::new(&[MINUTE, ORDERS, ORDERS_A_MINUTE], Shares::NONE);
    let count = Used {
        kind: LimitKind::Orders,
        interval_ms: 60_000,
        used: 20,
    };
    budget.used(0, &count);
    budget.refused(0, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(0), Some(60_000));

    // No count shows which interval is used up, so the longest one counts.
    let mut budget = Budget::new(&[MINUTE, ORDERS, ORDERS_A_MINUTE], Shares::NONE);
    budget.refused(0, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(0), Some(60_000));

    // The counts show that the shorter interval is used up.
    let mut budget = Budget::new(&[MINUTE, ORDERS, ORDERS_A_MINUTE], Shares::NONE);
    let count = Used {
        interval_ms: 10_000,
        used: 6,
        ..count
    };
    budget.used(0, &count);
    budget.refused(0, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(0), Some(10_000));

    // The client does not wait for the end of a day unless a count shows that the day's limit is
    // used up.
    let day = RateLimit {
        interval_ms: 86_400_000,
        ..ORDERS_A_MINUTE
    };
    let mut budget = Budget::new(&[MINUTE, ORDERS_A_MINUTE, day], Shares::NONE);
    budget.refused(0, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(0), Some(60_000));
}

#[test]
fn an_order_interval_ends_by_the_venues_clock() {
    let mut budget = Budget::new(&[MINUTE, ORDERS_A_MINUTE], Shares::NONE);
    // 40 s of the venue's minute have passed.
    budget.set_venue_time(5_000, Some(1_000_000_000_000));
    budget.refused(5_000, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(5_000), Some(25_500));
    // A refusal of an order that was sent before the first refusal.
    budget.refused(5_010, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(5_010), Some(25_500));
    // The refusal shows that the venue's interval is not aligned with its minute.
    budget.refused(25_600, Limit::Orders, None, &ORDER);
    assert_eq!(budget.orders_stopped_until(25_600), Some(85_600));
}

#[test]
fn startup_may_use_the_reserves_of_other_lanes() {
    let mut budget = Budget::new(&[MINUTE], Shares::default());
    budget.used(0, &used(90));
    assert!(
        budget
            .acquire(0, Lane::Reconcile, &Cost::weight(5))
            .is_err()
    );
    assert_eq!(budget.weight_left(0, Lane::Start), 10);
    assert!(budget.acquire(0, Lane::Start, &Cost::weight(5)).is_ok());
    assert_eq!(budget.weight_left(0, Lane::Start), 5);
    assert!(budget.acquire(0, Lane::Start, &Cost::weight(6)).is_err());
}

#[test]
fn a_429_without_retry_after_elsewhere_stops_everything() {
    let mut budget = Budget::new(&[MINUTE], Shares::default());
    budget.refused(0, Limit::Orders, None, &Cost::weight(1));
    let denied = budget.acquire(1, Lane::Cancel, &Cost::weight(1));
    assert_eq!(denied.unwrap_err().until_ms, Some(60_000));
}

#[test]
fn bans_without_retry_after_grow_from_two_minutes() {
    let mut budget = Budget::new(&[MINUTE], Shares::default());
    budget.refused(0, Limit::Ban, None, &Cost::weight(1));
    assert_eq!(budget.stopped_until(0), Some(120_000));
    budget.refused(120_000, Limit::Ban, None, &Cost::weight(1));
    assert_eq!(budget.stopped_until(120_000), Some(360_000));
}

#[test]
fn orders_leave_where_others_use_1400_of_2400() {
    let minute = RateLimit {
        limit: 2_400,
        ..MINUTE
    };
    let mut budget = Budget::new(&[minute], Shares::default());
    budget.used(0, &used(1_400));
    // The requests for account snapshots in one minute, and one renewal every ten seconds.
    assert!(
        budget
            .acquire(0, Lane::Reconcile, &Cost::weight(150))
            .is_ok()
    );
    for _ in 0..200 {
        assert!(budget.acquire(1, Lane::Place, &Cost::weight(1)).is_ok());
    }
    // The reserve of cancels and renewals is untouched.
    assert!(budget.acquire(1, Lane::Place, &Cost::weight(100)).is_err());
}

#[test]
fn use_by_others_reduces_ordinary_lanes_first() {
    let mut budget = Budget::new(&[MINUTE], Shares::default());
    budget.used(0, &used(59));
    let one = Cost::weight(1);
    assert!(budget.acquire(0, Lane::Query, &one).is_err());
    assert!(budget.acquire(0, Lane::Place, &one).is_ok());
    budget.used(1, &used(72));
    assert!(budget.acquire(1, Lane::Place, &one).is_err());
    assert!(budget.acquire(1, Lane::Reconcile, &one).is_ok());
    budget.used(2, &used(90));
    assert!(budget.acquire(2, Lane::Reconcile, &one).is_err());
    assert!(budget.acquire(2, Lane::Cancel, &Cost::weight(50)).is_ok());
    let other_interval = Used {
        interval_ms: 1_000,
        ..used(1_000_000)
    };
    let before = budget.weights(3).next();
    budget.used(3, &other_interval);
    assert_eq!(budget.weights(3).next(), before);
}

#[test]
fn limits_of_the_venue_replace_the_documents_and_keep_counts() {
    let mut budget = Budget::new(&[MINUTE], Shares::NONE);
    budget.acquire(0, Lane::Query, &Cost::weight(90)).unwrap();
    budget.set_limits(&[
        RateLimit {
            limit: 95,
            ..MINUTE
        },
        ORDERS,
    ]);
    assert!(budget.acquire(1, Lane::Query, &Cost::weight(6)).is_err());
    assert!(budget.acquire(1, Lane::Query, &Cost::weight(5)).is_ok());
}

#[test]
fn a_routes_own_limit_is_respected() {
    let mut budget = Budget::new(&[MINUTE], Shares::NONE);
    let cost = Cost {
        weight: 1,
        orders: 0,
        own: Some(("spot.create_api_key", 2)),
    };
    assert!(budget.acquire(0, Lane::Place, &cost).is_ok());
    assert!(budget.acquire(0, Lane::Place, &cost).is_ok());
    let denied = budget.acquire(0, Lane::Place, &cost).unwrap_err();
    assert_eq!(denied.why, Denial::Own);
}

#[test]
fn batches_count_each_of_their_orders() {
    assert_eq!(entries(Some(r#"[{"a":1},{"b":[2,3]}]"#)), 2);
    assert_eq!(entries(Some("no list")), 1);
    assert_eq!(entries(None), 1);
}
