//! Checks the account at the venue: whether the keys are accepted and may trade, the account's
//! modes, its open orders, and which routes of its state exist.

use std::borrow::Cow;

use windvane_client::{CalledRoute, NotDone, Refusal};
use windvane_engine::engine::{FolderIds, newest_orders};
use windvane_model::protocol::{MarginTerms, Outcome, Reply};
use windvane_model::refusal::Blame;
use windvane_model::state_report::{
    AccountSnapshot, AccountTrade, OpenOrder, StateReport, Subject, TradedOrder,
};
use windvane_model::{ClientOrderId, Instrument, InstrumentId, Request, Surface, Time};
use windvane_protocol::adapter::{FuturesAccount, Note};
use windvane_session::{Exchange, Query};

use super::query::{QueryClient, QueryResult};
use super::report::Report;
use windvane_config::{Config, MarketData, PositionMode};
use windvane_report::utc::seconds_text;

/// Checks the account of a surface.
pub(super) async fn look(
    config: &Config,
    surface: Surface,
    queries: QueryClient<'_>,
    (futures_account, ids): (&FuturesAccount, &FolderIds),
    report: &mut Report,
) {
    if config.venue.market_data == MarketData::Documented
        && surface == Surface::Futures
        && *futures_account == FuturesAccount::Routes
    {
        let found = "the core interface shows the futures account only by wallet address";
        report.wrong(
            "account",
            found,
            "set account.user to the main wallet's address",
        );
        return;
    }
    let answered = queries.read(Subject::Account { surface }).await;
    match answered.state_report() {
        Some(StateReport::Account(account)) => {
            let from = match futures_account {
                FuturesAccount::Info { .. } if surface == Surface::Futures => {
                    "the info endpoint by wallet address, which may be behind"
                }
                _ => "account information",
            };
            report.ok("account", format!("{surface}: read from {from}"));
            permissions(surface, account, report);
            if surface == Surface::Futures {
                let exchange = queries.exchange;
                let failed = answered.failed_later.as_ref();
                modes(config, account, (failed, exchange), report);
                leverage(&answered.replies, exchange, report);
            }
        }
        _ => not_read(surface, &answered, queries.exchange, report),
    }
    trading_right(surface, queries, report).await;
    let is_alone = orders(config, surface, (queries, ids), report).await;
    let traded = trades(surface, queries, report).await;
    if is_alone {
        filled_orders(config, (queries, ids), (surface, &traded), report).await;
    }
}

/// Checks whether the key may trade. An account snapshot does not show that, because a key may be
/// limited to some types of routes (docs/interface/conventions.md#security-labels). It sends a
/// cancel of an order that does not exist. Of all routes that need the trading right, only this
/// request can have no effect: a countdown would cancel orders from outside, and every other
/// request places or changes something.
async fn trading_right(surface: Surface, queries: QueryClient<'_>, report: &mut Report) {
    let Some(instrument) = instruments(queries.exchange, surface).next() else {
        return;
    };
    let request = Request::Cancel {
        instrument,
        client_order_id: ClientOrderId::from_venue(NEVER_GIVEN_OUT),
    };
    let Some(answered) = queries.request(&request).await else {
        return;
    };
    let refused = answered.replies.iter().find_map(|reply| match reply {
        Reply::Canceled {
            outcome: Outcome::Refused(refusal),
            ..
        } => Some(refusal),
        _ => None,
    });
    match (&answered.failed, refused) {
        (None, _) => report.ok("permissions", format!("{surface}: the key may trade")),
        (Some(failed), _) if queries.exchange.is_nothing_to_cancel(failed) => report.ok(
            "permissions",
            format!(
                "{surface}: the key may trade; the test cancel was answered with `no such \
                     order`"
            ),
        ),
        (Some(failed), Some(refusal)) if refusal.blame() == Blame::Key => report.no_go(
            "permissions",
            format!("{surface}: the key or agent cannot trade: {failed}"),
            "give the key or agent the trading right of this surface, put this address on its \
             list, and check its expiry; reading the account does not need that right",
        ),
        (Some(failed), _) => report.warn(
            "permissions",
            format!("{surface}: could not find out whether the key may trade: {failed}"),
            "run windvane check again; a run tests the key itself and shows the result in windvane \
             status",
        ),
    }
}

/// An order id that no run and no person uses.
const NEVER_GIVEN_OUT: &str = "windvane-check-no-such-order";

fn not_read(
    surface: Surface,
    answered: &QueryResult,
    exchange: &dyn Exchange,
    report: &mut Report,
) {
    let unreadable = answered.notes.iter().find_map(|note| match note {
        Note::Unreadable { error, .. } => Some(error.to_string()),
        _ => None,
    });
    if let Some(error) = unreadable {
        let mend = "a run cannot work with an account that hides its state: make the account \
                    public, or use the futures account routes \
                    (docs/interface/account.md#futures-account-routes)";
        report.no_go("account", format!("{surface}: {error}"), mend);
        return;
    }
    let Some(failed) = &answered.failed else {
        report.no_go(
            "account",
            format!("{surface}: the account cannot be queried"),
            "",
        );
        return;
    };
    let found = format!("{surface}: {failed}");
    report.no_go("account", found, &mend(failed, exchange));
}

/// The advice after a failed read.
fn mend(failed: &NotDone, exchange: &dyn Exchange) -> String {
    match failed {
        NotDone::Refused(refusal @ Refusal::Venue { called_route, .. })
            if refusal.is_of_unserved_read() =>
        {
            without_route(*called_route, exchange)
        }
        NotDone::Refused(refusal) => mend_of(refusal).into_owned(),
        NotDone::Unknown(reason) => reason.advice().to_owned(),
        NotDone::Wait(wait) => wait.advice().to_owned(),
    }
}

/// The advice if the venue does not serve a route. Only the futures account can be read from
/// another route.
fn without_route(called_route: CalledRoute, exchange: &dyn Exchange) -> String {
    let account = exchange.encode_query(Query::FuturesAccount);
    if account.is_some_and(|call| call.route == called_route.route) {
        return "the venue has no such route: set account.user to the main wallet's address; then \
                the account is read from the info endpoint"
            .to_owned();
    }
    called_route.advice_where_not_served()
}

/// The advice after a rejected read (docs/interface/errors.md#classes).
fn mend_of(refusal: &Refusal) -> Cow<'static, str> {
    let mend = match refusal.code() {
        Some(-2014 | -2015) => {
            "correct account.api_key, or give the key the permission and put this address on its \
             list at the venue"
        }
        Some(-1022) => "correct account.api_secret or account.signer, and venue.brand",
        Some(-1021) => "set this machine's clock, or raise venue.recv_window_ms",
        _ => return refusal.advice(),
    };
    mend.into()
}

fn permissions(surface: Surface, account: &AccountSnapshot, report: &mut Report) {
    match account.can_trade {
        Some(true) => report.ok("permissions", format!("{surface}: canTrade")),
        Some(false) => report.no_go(
            "permissions",
            format!("{surface}: canTrade is false"),
            "give the key or agent the trading right, or ask the venue why the account may not \
             trade",
        ),
        None => report.warn(
            "permissions",
            format!("{surface}: the venue does not report whether the account may trade"),
            "",
        ),
    }
    let held = account
        .balances
        .iter()
        .filter(|balance| balance.total.0 > 0);
    if held.count() == 0 {
        let found = format!("{surface}: no balance in any asset of the configured instruments");
        report.warn(
            "balances",
            found,
            "deposit or transfer before the first order",
        );
    }
}

fn modes(
    config: &Config,
    account: &AccountSnapshot,
    (failed, exchange): (Option<&NotDone>, &dyn Exchange),
    report: &mut Report,
) {
    // Show the cause: with wrong keys, only the keys need a fix.
    let not_read = |what: &str, report: &mut Report| match failed {
        Some(failed) => {
            let found = format!("the {what} cannot be read: {failed}");
            report.no_go("modes", found, &mend(failed, exchange));
        }
        None => report.no_go(
            "modes",
            format!("the {what} cannot be read"),
            "try the check again",
        ),
    };
    let hedge = config.account.position_mode == PositionMode::Hedge;
    let word = |hedge: bool| if hedge { "hedge" } else { "one-way" };
    match account.hedge_mode {
        Some(found) if found == hedge => {
            report.ok("modes", format!("the position mode is {}", word(found)));
        }
        Some(found) => report.no_go(
            "modes",
            format!(
                "account.position_mode = \"{}\", but the account's mode is {}",
                word(hedge),
                word(found)
            ),
            "correct the setting, or change the account's mode while no position or order is open; \
             a run never changes it",
        ),
        None => not_read("position mode", report),
    }
    match account.multi_assets {
        Some(found) if found == config.account.multi_assets => {
            report.ok(
                "modes",
                format!("multi-assets margin is {found}, as configured"),
            );
        }
        Some(found) => report.no_go(
            "modes",
            format!(
                "account.multi_assets = {}, but the account's setting is {found}",
                config.account.multi_assets
            ),
            "correct the setting, or change the account's mode",
        ),
        None => not_read("multi-assets mode", report),
    }
}

/// Reports the leverage of each instrument. It is never a problem, because no setting configures
/// it.
fn leverage(replies: &[Reply], exchange: &dyn Exchange, report: &mut Report) {
    let all = replies.iter().filter_map(|reply| match reply {
        Reply::Margins(terms) => Some(terms),
        _ => None,
    });
    let mut all: Vec<&MarginTerms> = all.flatten().collect();
    all.sort_by_key(|terms| terms.instrument);
    for terms in all {
        let rules = exchange.names().rules(terms.instrument);
        if let Some((rules, leverage)) = rules.zip(terms.leverage) {
            report.ok("leverage", format!("{}: {leverage}", rules.name()));
        }
    }
}

fn instruments(exchange: &dyn Exchange, surface: Surface) -> impl Iterator<Item = InstrumentId> {
    let ids = (0..=u16::MAX).map(InstrumentId);
    let known = ids.map_while(|id| Some((id, exchange.names().rules(id)?.surface)));
    known.filter_map(move |(id, of)| (of == surface).then_some(id))
}

/// Checks the open orders. Returns whether no open order shows another instance.
async fn orders(
    config: &Config,
    surface: Surface,
    (queries, ids): (QueryClient<'_>, &FolderIds),
    report: &mut Report,
) -> bool {
    let answered = queries.read(Subject::OpenOrders { surface }).await;
    let Some(StateReport::OpenOrders(open)) = answered.state_report() else {
        not_read(surface, &answered, queries.exchange, report);
        return true;
    };
    let is_own = |order: &&OpenOrder| {
        let id = order.report.client_order_id;
        let named = id.parse_own().map(|(strategy, ..)| strategy.to_owned());
        named.is_some_and(|name| config.strategies.iter().any(|one| one.id.as_str() == name))
    };
    for note in &answered.notes {
        if let Note::Elsewhere { .. } = note {
            let mend =
                "no run and no countdown cancels it once its strategy is removed: cancel it first";
            report.warn("orders", note.to_string(), mend);
        }
    }
    let is_alone = instances(config, surface, open, ids, report);
    let own = open.iter().filter(is_own).count();
    let foreign = open.len() - own;
    let found = format!("{surface}: {own} own orders are open, {foreign} of others");
    match (foreign, surface) {
        (0, _) | (_, Surface::Spot) => report.ok("orders", found),
        (_, Surface::Futures) => report.warn(
            "orders",
            found,
            "the countdown of a traded symbol cancels all orders on it, also these, when the run \
             dies: use a separate account for this run",
        ),
    }
    is_alone
}

/// Reports open orders that only another instance or a deleted data folder can have placed. Returns
/// whether it found no such order.
fn instances(
    config: &Config,
    surface: Surface,
    open: &[OpenOrder],
    ids: &FolderIds,
    report: &mut Report,
) -> bool {
    let id = |order: &OpenOrder| order.report.client_order_id;
    let others = open.iter().map(id);
    let others: Vec<_> = others.filter(|id| ids.is_of_another(surface, id)).collect();
    let Some(first) = others.first() else {
        return true;
    };
    let found = format!(
        "{surface}: {} open orders that this data folder did not create, such as {first}: another \
         instance trades on this account, or the data folder was deleted",
        others.len()
    );
    report.no_go("instances", found, &mend_instances(config));
    false
}

fn mend_instances(config: &Config) -> String {
    let watch_ms = config.reconcile.interval_ms.saturating_mul(2);
    format!(
        "stop the other instance. If there is none, start `windvane run`: it places no order for \
         {} s, ends with exit code 2 if a new order of another instance appears, and adopts these \
         orders otherwise",
        watch_ms.div_ceil(1_000)
    )
}

/// Orders of this last time are checked, or of the watch of a start if that is longer.
/// Milliseconds.
const LATELY_MS: u64 = 5 * 60_000;

/// The account's trades of each instrument whose list of trades could be read.
type Traded = Vec<(InstrumentId, Vec<AccountTrade>)>;

/// Reports recent orders that only another instance can have placed. An instance that sends only
/// market orders has no open orders. The venue's list of the account's trades shows it. If the
/// venue does not serve that list, or the list has no recent trade because it may be behind, the
/// list of orders shows it.
async fn filled_orders(
    config: &Config,
    (queries, ids): (QueryClient<'_>, &FolderIds),
    (surface, traded): (Surface, &Traded),
    report: &mut Report,
) {
    let lately_ms = LATELY_MS.max(config.reconcile.interval_ms.saturating_mul(2));
    let lately_ms = i64::try_from(lately_ms).unwrap_or(i64::MAX);
    let oldest = ids.read_at().plus_ms(lately_ms.saturating_neg());
    let mut lists_orders = true;
    let mut unseen = None;
    for instrument in instruments(queries.exchange, surface) {
        let trades = traded.iter().find(|(of, _)| *of == instrument);
        let recent = trades.iter().flat_map(|(_, trades)| trades);
        let recent: Vec<_> = recent.filter(|trade| trade.time >= oldest).collect();
        let orders = match recent.as_slice() {
            // A missing route is queried only once.
            [] if !lists_orders => None,
            [] => listed_orders(queries, instrument).await,
            recent => Some(traded_orders(queries, (instrument, recent)).await),
        };
        lists_orders &= orders.is_some();
        if orders.is_none() && trades.is_none() {
            unseen = unseen.or_else(|| {
                queries
                    .exchange
                    .names()
                    .rules(instrument)
                    .map(Instrument::name)
            });
        }
        for order in orders.iter().flatten() {
            if order.placed < oldest || !ids.is_of_another(surface, &order.client_order_id) {
                continue;
            }
            let found = format!(
                "{surface}: order {} was placed at {}, and this data folder did not create it: \
                 another instance trades on this account, or the data folder was deleted",
                order.client_order_id,
                seconds_text(order.placed)
            );
            report.no_go("instances", found, &mend_instances(config));
            return;
        }
    }
    if let Some(first) = unseen {
        report.warn(
            "instances",
            format!(
                "{surface}: the venue lists neither account trades nor orders of {first}: another \
                 instance whose orders fill at once cannot be excluded"
            ),
            "make sure that no other windvane runs on this account before you start",
        );
    }
}

/// The orders of the newest of these trades. An order without a time counts as placed at the time
/// of its trade.
async fn traded_orders(
    queries: QueryClient<'_>,
    (instrument, trades): (InstrumentId, &[&AccountTrade]),
) -> Vec<TradedOrder> {
    let mut orders = Vec::new();
    for order_id in newest_orders(trades.iter().copied()) {
        let subject = Subject::TradedOrder {
            instrument,
            order_id,
        };
        let answered = queries.read(subject).await;
        let Some(StateReport::TradedOrder(mut order)) = answered.state_report().cloned() else {
            continue;
        };
        if order.placed == Time::default() {
            let of_order = trades.iter().rfind(|trade| trade.order_id == order_id);
            order.placed = of_order.map_or(order.placed, |trade| trade.time);
        }
        orders.push(order);
    }
    orders
}

/// The newest orders of an instrument; `None` if the venue does not list them.
async fn listed_orders(
    queries: QueryClient<'_>,
    instrument: InstrumentId,
) -> Option<Vec<TradedOrder>> {
    let subject = Subject::NewestOrders { instrument };
    match queries.read(subject).await.state_report() {
        Some(StateReport::NewestOrders(orders)) => Some(orders.clone()),
        _ => None,
    }
}

/// Checks whether missed fills can be read. Returns the newest trades of each instrument.
async fn trades(surface: Surface, queries: QueryClient<'_>, report: &mut Report) -> Traded {
    let mut read = Vec::new();
    for instrument in instruments(queries.exchange, surface) {
        let subject = Subject::Trades {
            instrument,
            from: None,
        };
        let answered = queries.read(subject).await;
        if let Some(StateReport::Trades { trades, .. }) = answered.state_report() {
            read.push((instrument, trades.clone()));
            continue;
        }
        let why = answered.failed.as_ref().map_or_else(
            || "the core interface has no such route".to_owned(),
            ToString::to_string,
        );
        report.warn(
            "trades",
            format!("{surface}: account trades cannot be read ({why})"),
            "the run recovers a fill that the user stream misses by querying its order, and \
             estimates the fee",
        );
        return read;
    }
    if !read.is_empty() {
        report.ok("trades", format!("{surface}: account trades can be read"));
    }
    read
}

#[cfg(test)]
mod tests {
    use windvane_client::{Addresses, Client, Settings};
    use windvane_protocol::error::{Judgement, judge};
    use windvane_protocol::sign::{Credentials, Dialect, Network};
    use windvane_protocol::{Brand, route};
    use windvane_session::{Documented, Signing};

    use super::*;

    fn advice(route: &str, status: u16, body: &str) -> String {
        let Judgement::Refused {
            complaint,
            is_fatal,
        } = judge(status, None, body)
        else {
            panic!("{status} is a refusal")
        };
        let route = route::named(route).unwrap();
        let version = route.listings[0].version;
        let dialect = Dialect {
            brand: Brand::new("svc").unwrap(),
            network: Network::Mainnet,
            recv_window_ms: None,
        };
        let settings = Settings::new(Addresses::default(), dialect, Credentials::default());
        let gateway = Client::new(settings).unwrap().gateway().clone();
        let refused = NotDone::Refused(Refusal::Venue {
            called_route: CalledRoute { route, version },
            complaint,
            is_fatal,
        });
        mend(&refused, &Documented::new(gateway, false, Signing::Here))
    }

    #[test]
    fn advice_after_a_route_that_is_not_served_fits_the_route() {
        let unsupported = r#"{"code":-1020,"msg":"Path /x is invalid."}"#;
        let bodies = [
            ("<html>nothing here</html>", 404),
            ("", 404),
            (unsupported, 404),
        ];
        for (body, status) in [&bodies[..], &[(unsupported, 400)]].concat() {
            let account = advice("futures.account", status, body);
            assert!(account.contains("set account.user"), "{account}");
            for (route, setting) in [
                ("spot.account", "venue.spot.rest"),
                ("spot.open_orders", "venue.spot.api"),
                ("futures.open_orders", "venue.futures.rest"),
                ("futures.position_mode", "venue.futures.api"),
            ] {
                let other = advice(route, status, body);
                assert!(other.contains(route) && other.contains(setting), "{other}");
                assert!(!other.contains("info endpoint"), "{other}");
            }
        }
        let key = r#"{"code":-2015,"msg":"Invalid API-key."}"#;
        assert!(advice("spot.account", 404, key).contains("account.api_key"));
    }
}
