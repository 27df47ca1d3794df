//! The shares of strategies in the limits of the account.

use proptest::prelude::*;
use windvane_model::config::EngineConfig;
use windvane_model::input::Input;
use windvane_model::protocol::UserEvent;
use windvane_model::risk::RiskLimits;
use windvane_model::rules::Rule;
use windvane_model::{
    OrderSeq, OrderStatus, OrderTerms, OrderType, Price, Side, StrategyId, Surface,
};

use super::support::{Account, BTC, MM, OTHER, USDT, limit, market, strategy, update};
use super::{hold, refusal, usdt, with};

fn buy() -> OrderTerms {
    limit(Side::Buy, 990, 1)
}

fn stop() -> OrderTerms {
    let mut terms = market(Side::Buy, 1);
    terms.order_type = OrderType::StopMarket;
    terms.stop_price = Some(Price(1010));
    terms
}

/// Submits the order until it is refused. Returns the number of accepted orders and the refusal.
fn flood(account: &mut Account, strategy: StrategyId, terms: OrderTerms) -> (u32, Option<Rule>) {
    for accepted in 0..1_000 {
        let rule = refusal(account, strategy, terms);
        if rule.is_some() {
            return (accepted, rule);
        }
    }
    (1_000, None)
}

fn end(account: &mut Account, strategy: StrategyId, order: OrderSeq) {
    let id = account.id(strategy, order);
    account.update(update(id, Side::Buy, OrderStatus::Canceled, 0));
}

fn max_orders(config: &mut EngineConfig) {
    config.limits.max_open_orders = Some(200);
}

#[test]
fn a_flood_of_orders_leaves_the_share_of_another_strategy() {
    type Change = fn(&mut EngineConfig);
    let cases: [(Change, OrderTerms, Rule); 4] = [
        (max_orders, buy(), Rule::QuotaOpenOrders),
        (
            |config| config.limits.max_orders_per_minute = Some(200),
            buy(),
            Rule::QuotaOrdersPerMinute,
        ),
        (
            |config| config.instruments[0].filters.max_num_orders = Some(200),
            buy(),
            Rule::QuotaInstrumentOrders,
        ),
        (
            |config| config.instruments[0].filters.max_num_algo_orders = Some(200),
            stop(),
            Rule::QuotaInstrumentAlgoOrders,
        ),
    ];
    for (change, terms, rule) in cases {
        let mut account = with(change);
        assert_eq!(flood(&mut account, MM, terms), (130, Some(rule)));
        let others = flood(&mut account, OTHER, terms);
        assert_eq!(others, (50, Some(rule)), "its share, of 200 in all");
    }
}

#[test]
fn one_callback_cannot_take_more_than_many() {
    let mut account = with(max_orders);
    let accepted = account.call(MM, |callback, engine| {
        let orders = (0..300).map(|_| callback.submit(engine, buy()).is_ok());
        orders.filter(|accepted| *accepted).count()
    });
    assert_eq!(accepted, 130);
}

#[test]
fn the_refusal_names_the_share_and_what_to_do() {
    let mut account = with(max_orders);
    flood(&mut account, MM, buy());
    let answer = account.call(MM, |callback, engine| callback.submit(engine, buy()));
    let text = answer.unwrap_err().to_string();
    for part in [
        "open orders: 131, share: 50",
        "end open orders, or raise risk.max_open_orders",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn one_strategy_has_everything() {
    let mut account = with(|config| {
        max_orders(config);
        config.strategies.truncate(1);
    });
    let all = (200, Some(Rule::RiskOpenOrders));
    assert_eq!(flood(&mut account, MM, buy()), all);
}

#[test]
fn a_strategy_that_may_order_less_needs_a_smaller_share() {
    let mut account = with(|config| {
        max_orders(config);
        config.strategies[1].limits.max_open_orders = Some(3);
    });
    let (accepted, _) = flood(&mut account, MM, buy());
    assert_eq!(accepted, 200 - 3 - 20, "20 are for orders that only reduce");
}

#[test]
fn an_order_that_only_reduces_passes_a_full_common_part() {
    for terms in [market(Side::Sell, 1), limit(Side::Sell, 1010, 1)] {
        let mut account = with(max_orders);
        hold(&mut account, OTHER, 100, 1);
        flood(&mut account, OTHER, buy());
        flood(&mut account, MM, buy());
        assert_eq!(
            refusal(&mut account, OTHER, buy()),
            Some(Rule::QuotaOpenOrders)
        );
        // The other strategy has used the common part, and more than its own.
        assert!(refusal(&mut account, MM, buy()).is_some());
        let mut account = with(max_orders);
        hold(&mut account, OTHER, 100, 1);
        flood(&mut account, MM, buy());
        flood(&mut account, OTHER, buy());
        let exits = flood(&mut account, OTHER, terms);
        assert_eq!(exits, (10, Some(Rule::QuotaOpenOrders)));
    }
}

#[test]
fn an_ended_order_gives_its_part_back() {
    let mut account = with(max_orders);
    let first = account.submit(MM, buy());
    flood(&mut account, MM, buy());
    end(&mut account, MM, first);
    assert_eq!(flood(&mut account, MM, buy()).0, 1);
}

#[test]
fn position_notional_is_shared_like_orders() {
    let mut account = with(|config| config.limits.max_position_notional = Some(usdt(8)));
    let rule = Some(Rule::QuotaPositionNotional);
    let large = |qty| limit(Side::Buy, 1000, qty);
    assert_eq!(refusal(&mut account, MM, large(61)), rule, "8 - 2");
    assert_eq!(refusal(&mut account, MM, large(60)), None);
    assert_eq!(refusal(&mut account, MM, large(1)), rule);
    assert_eq!(refusal(&mut account, OTHER, large(20)), None);
    let full = Some(Rule::RiskPositionNotional);
    assert_eq!(refusal(&mut account, OTHER, large(1)), full);
}

#[test]
fn hedged_strategies_may_exceed_their_shares() {
    let mut account = with(|config| config.limits.max_position_notional = Some(usdt(8)));
    hold(&mut account, MM, 60, 1);
    hold(&mut account, OTHER, -60, 2);
    // The account holds nothing, so nothing of its limit is used.
    assert_eq!(refusal(&mut account, MM, market(Side::Buy, 5)), None);
}

/// An account of 10 USDT, with the leverage that an event of the venue states.
fn with_funds(leverage: u32, change: impl FnOnce(&mut EngineConfig)) -> Account {
    let mut account = with(|config| {
        config.balances = vec![(Surface::Futures, USDT, usdt(10))];
        change(config);
    });
    let event = UserEvent::Leverage {
        instrument: BTC,
        leverage,
    };
    account.handle(Input::User(&event));
    account
}

/// An order with a notional of one USDT for each ten.
fn opening(qty: i64) -> OrderTerms {
    limit(Side::Buy, 1000, qty)
}

#[test]
fn margin_is_shared_without_any_configured_limit() {
    let rule = Some(Rule::QuotaMargin);
    let mut account = with_funds(1, |_| {});
    assert_eq!(refusal(&mut account, MM, opening(76)), rule, "10 - 2.5");
    assert_eq!(refusal(&mut account, MM, opening(75)), None);
    assert_eq!(refusal(&mut account, MM, opening(1)), rule);
    assert_eq!(refusal(&mut account, OTHER, opening(25)), None);
    assert_eq!(refusal(&mut account, OTHER, opening(1)), rule);
}

#[test]
fn orders_of_one_callback_count_for_the_margin() {
    let mut account = with_funds(1, |_| {});
    let accepted = account.call(MM, |callback, engine| {
        let orders = (0..10).map(|_| callback.submit(engine, opening(10)).is_ok());
        orders.filter(|accepted| *accepted).count()
    });
    assert_eq!(accepted, 7);
}

#[test]
fn a_larger_leverage_needs_less_margin() {
    let mut account = with_funds(5, |_| {});
    assert_eq!(
        refusal(&mut account, MM, opening(376)),
        Some(Rule::QuotaMargin)
    );
    assert_eq!(refusal(&mut account, MM, opening(375)), None);
}

#[test]
fn margin_is_not_shared_where_it_is_unknown_or_one_strategy_has_it_alone() {
    let mut unknown = with(|config| config.balances = vec![(Surface::Futures, USDT, usdt(10))]);
    assert_eq!(refusal(&mut unknown, MM, opening(100)), None);
    let mut alone = with_funds(1, |config| config.strategies.truncate(1));
    assert_eq!(refusal(&mut alone, MM, opening(100)), None);
}

#[test]
fn an_exit_needs_no_share_of_the_margin() {
    let mut account = with_funds(1, |_| {});
    hold(&mut account, OTHER, 50, 1);
    assert_eq!(refusal(&mut account, OTHER, opening(24)), None);
    assert_eq!(
        refusal(&mut account, OTHER, opening(1)),
        Some(Rule::QuotaMargin)
    );
    assert_eq!(refusal(&mut account, OTHER, market(Side::Sell, 50)), None);
}

#[test]
fn a_strategy_that_never_trades_leaves_its_share_of_the_margin() {
    let mut account = with_funds(1, |config| {
        config.strategies[1].limits.max_open_orders = Some(0);
    });
    assert_eq!(refusal(&mut account, MM, opening(100)), None);
}

/// The strategies' open orders, as the test knows them.
type Open = Vec<Vec<OrderSeq>>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn strategies_always_have_their_shares_and_the_account_keeps_its_limit(
        limit in 4_u32..24,
        count in 2_usize..5,
        by_instrument in any::<bool>(),
        steps in prop::collection::vec((0_usize..5, 0_u8..4), 1..120),
    ) {
        let mut account = with(|config| {
            if by_instrument {
                config.instruments[0].filters.max_num_orders = Some(limit);
            } else {
                config.limits.max_open_orders = Some(limit);
            }
            let own = RiskLimits::default();
            let names = ["a", "b", "c", "d"].iter().take(count);
            let on_fault = config.strategies[0].on_fault;
            let strategies = names.map(|name| strategy(name, own.clone(), on_fault));
            config.strategies = strategies.collect();
        });
        let share = (limit as usize / 2 / count).max(1);
        let mut open: Open = vec![Vec::new(); count];
        for (who, kind) in steps {
            let who = who % count;
            let id = StrategyId(who as u16);
            if kind == 0 {
                if let Some(order) = open[who].pop() {
                    end(&mut account, id, order);
                }
                continue;
            }
            let answer = account.call(id, |callback, engine| callback.submit(engine, buy()));
            if share * count <= limit as usize && open[who].len() < share {
                prop_assert!(answer.is_ok(), "{answer:?}, {} of {share}", open[who].len());
            }
            open[who].extend(answer.ok());
            let total: usize = open.iter().map(Vec::len).sum();
            prop_assert!(total <= limit as usize);
        }
    }
}
