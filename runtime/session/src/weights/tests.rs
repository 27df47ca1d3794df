use proptest::prelude::*;
use windvane_client_core::budget::documented;

use super::*;
use crate::exchange::Documented;

fn wants(symbols: u32, renew_ms: u64, reconcile_ms: u64) -> Wants {
    let streams = ["bookTicker", "depth@100ms", "markPrice@1s"];
    let topics = (0..symbols).flat_map(|at| streams.map(|one| format!("a{at}usdt@{one}")));
    Wants {
        surface: Surface::Futures,
        symbols,
        renew_ms,
        reconcile_ms,
        topics: topics.map(|topic| topic.parse().unwrap()).collect(),
        market_data: MarketData::Auto,
        is_live: true,
        weight: Documented::CAPABILITIES.weight,
    }
}

fn plan(wants: &Wants) -> Plan {
    wants
        .plans(&documented(venue_surface(wants.surface)))
        .remove(0)
}

#[test]
fn a_heartbeat_weighs_ten_for_each_symbol_and_renewal() {
    let plan = plan(&wants(2, 10_000, 15_000));
    let of = |what| plan.uses.iter().find(|one| one.what == what).unwrap();
    assert_eq!((of("heartbeats").times, of("heartbeats").weight), (12, 10));
    assert_eq!((of("open orders").times, of("open orders").weight), (4, 40));
    assert_eq!(of("account").sum(), 40);
    assert_eq!(of("position and asset mode").sum(), 60);
    assert_eq!(of("trades after a gap").sum(), 10);
    assert_eq!(of("depth snapshots").sum(), 40);
    assert_eq!(
        of("reserve: cancels").sum() + of("reserve: orders").sum(),
        960
    );
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn a_plan_with_too_many_symbols_is_refused() {
    let mut many = wants(40, 10_000, 15_000);
    many.topics.clear();
    let refused = plan(&many).check().unwrap_err();
    // 40 * (60 + 5), 4 * (40 + 10), 60, 3 clock, 1 key, 4 rules, 960 reserved.
    assert_eq!(refused.sum, 40 * 65 + 200 + 60 + 8 + 960);
    assert_eq!(refused.symbols_max, (2_400 - 1_228) / 65);
    let text = refused.to_string();
    assert!(
        text.contains("heartbeats 2400") && text.contains("at most 18 symbols"),
        "{text}"
    );
    many.symbols = 18;
    assert_eq!(plan(&many).check(), Ok(()));
    many.symbols = 19;
    assert!(plan(&many).check().is_err());
}

#[test]
fn paper_needs_only_public_data() {
    let mut paper = wants(500, 10_000, 15_000);
    paper.topics.clear();
    paper.is_live = false;
    let plan = plan(&paper);
    assert_eq!(plan.uses.len(), 1);
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn spot_and_documented_plans_omit_unsupported_calls() {
    let mut wants = wants(3, 10_000, 15_000);
    wants.market_data = MarketData::Documented;
    let names = |plan: &Plan| plan.uses.iter().map(|one| one.what).collect::<Vec<_>>();
    let futures = plan(&wants);
    assert!(!names(&futures).contains(&"trades after a gap"));
    assert!(matches!(futures.polling, Polling::Always(weight) if weight > 0));
    wants.surface = Surface::Spot;
    wants.topics.clear();
    let spot = plan(&wants);
    assert!(!names(&spot).contains(&"heartbeats"));
    assert!(spot.uses.iter().all(|one| one.weight > 0));
}

proptest! {
    #[test]
    fn more_symbols_or_shorter_intervals_never_cost_less(
        symbols in 0_u32..40, more in 0_u32..20, renew in 1_u64..60_000,
        reconcile in 1_u64..120_000, shorter in 0_u64..60_000,
    ) {
        let base = plan(&wants(symbols, renew, reconcile)).sum();
        prop_assert!(plan(&wants(symbols + more, renew, reconcile)).sum() >= base);
        let renew = renew.saturating_sub(shorter).max(1);
        prop_assert!(plan(&wants(symbols, renew, reconcile)).sum() >= base);
        let reconcile = reconcile.saturating_sub(shorter).max(1);
        prop_assert!(plan(&wants(symbols, renew, reconcile)).sum() >= base);
    }

    #[test]
    fn symbols_max_fits_and_one_more_does_not(
        renew in 1_000_u64..60_000, reconcile in 5_000_u64..120_000, symbols in 1_u32..100,
    ) {
        let mut wants = wants(symbols, renew, reconcile);
        wants.topics.clear();
        let most = plan(&wants).symbols_max();
        for (symbols, fits) in [(most, true), (most + 1, false)] {
            wants.symbols = u32::try_from(symbols).unwrap();
            let fixed_fits = symbols > 0 || plan(&wants).check().is_ok();
            prop_assert_eq!(plan(&wants).check().is_ok(), fits && fixed_fits);
        }
    }

    #[test]
    fn shares_cover_every_lane_of_a_plan_that_fits(
        symbols in 1_u32..40, renew in 2_000_u64..60_000, reconcile in 5_000_u64..120_000,
    ) {
        let mut wants = wants(symbols, renew, reconcile);
        wants.topics.clear();
        let plan = plan(&wants);
        prop_assume!(plan.check().is_ok());
        let shares = shares(std::slice::from_ref(&plan)).unwrap();
        for lane in [Lane::Heartbeat, Lane::Reconcile, Lane::Cancel] {
            let uses = plan.uses.iter().filter(|one| one.lane == lane);
            let need: u64 = uses.map(Use::sum).sum();
            prop_assert!(u64::from(shares.reserve(lane, plan.limit)) >= need);
        }
    }
}
