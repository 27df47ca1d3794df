//! The exact state as JSON: `GET /state`. Amounts, prices and quantities are decimal text; ids and
//! times (ms) are numbers. The order of keys and lists never changes.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use windvane_model::{ClientOrderId, InstrumentId, Surface, Time};
use windvane_sim::{FuturesBalance, OrderView, PositionView};

use super::switches;
use crate::account_id::AccountId;
use crate::accounts::{Account, Agent, ApiKey, Grants, TradeRecord};
use crate::counters::Ledger;
use crate::faults::Switch;
use crate::figures::{amount, fine_price, price, qty};
use crate::request::Refusal;
use crate::state::State;
use crate::wallet::report as wallet_report;

/// The requested part of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Extent {
    /// Only this account.
    account: Option<u16>,
    /// Without finished data: ended orders, trades, accepted orders.
    brief: bool,
}

impl Extent {
    fn parse(state: &State, query: &str) -> Result<Self, Refusal> {
        let mut extent = Self::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let place = part.strip_prefix("account=").and_then(|n| n.parse().ok());
            let known = place.filter(|place| usize::from(*place) < state.accounts.len());
            match (known, part) {
                (Some(place), _) => extent.account = Some(place),
                (None, "brief=true") => extent.brief = true,
                _ => {
                    let msg =
                        format!("{part}: account=N of the ready line and brief=true are known.");
                    return Err(Refusal::new(-1130, msg));
                }
            }
        }
        Ok(extent)
    }
}

/// The state as text, as far as the query requests it. Long lists become text at once, to save
/// memory.
pub(super) fn state_report(state: &State, query: &str) -> Result<String, Refusal> {
    let extent = Extent::parse(state, query)?;
    let places = 0..state.accounts.len() as u16;
    let wanted = places.filter(|place| extent.account.is_none_or(|only| only == *place));
    let state_report = StateReport {
        accounts: wanted
            .map(|place| account(state, AccountId(place), extent.brief))
            .collect(),
        clock_ms: state.clock_ms(state.now),
        connections: connections(state),
        counters: counters(state),
        faults: faults(state),
        market: market(state),
        time_ms: state.now.millis(),
    };
    // Records with text keys; their serialization cannot fail.
    Ok(serde_json::to_string(&state_report).unwrap_or_default())
}

#[derive(Serialize)]
struct StateReport {
    accounts: Vec<AccountSnapshot>,
    clock_ms: i64,
    connections: Value,
    counters: Value,
    faults: Value,
    market: Value,
    time_ms: i64,
}

#[derive(Serialize)]
struct AccountSnapshot {
    accepted: AcceptedOrders,
    account: u16,
    agents: Vec<Value>,
    api_keys: Vec<Value>,
    balances: Value,
    hedge_mode: bool,
    listen_keys: Value,
    multi_assets_mode: bool,
    nonces: Vec<u64>,
    orders: Rows,
    positions: Vec<Value>,
    settings: Value,
    trades: Rows,
    user: String,
    wallet: Value,
}

#[derive(Serialize)]
struct AcceptedOrders {
    orders: Rows,
    repeated: Map<String, Value>,
    total: u64,
}

/// A list as JSON text.
type Rows = Box<RawValue>;

fn rows(records: impl Iterator<Item = Value>) -> Rows {
    let mut text = String::from("[");
    for record in records {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&record.to_string());
    }
    text.push(']');
    // The text above is always a valid list.
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The active switches.
pub(super) fn faults(state: &State) -> Value {
    let shown = |switch: &Switch| {
        json!({
            "id": switch.id,
            "switch": switch.sent,
            "hits": switch.hits,
            "count_left": switch.count,
            "until_ms": (switch.until != Time::NEVER).then(|| switch.until.millis()),
        })
    };
    let switches: Vec<_> = switches::all(state).map(shown).collect();
    json!({ "switches": switches, "held_events": state.faults.held_len() })
}

fn account(state: &State, id: AccountId, brief: bool) -> AccountSnapshot {
    let account = state.account(id);
    let venue = &account.venue;
    let orders = if brief {
        venue.open(None)
    } else {
        venue.orders()
    };
    let positions = venue.position_views();
    let held = positions.filter(|p| p.qty.0 != 0 || p.isolated_wallet.0 != 0);
    let trades = account.history.trades.iter().filter(|_| !brief);
    AccountSnapshot {
        accepted: accepted(state, id, brief),
        account: id.0,
        agents: account.agents.iter().map(agent).collect(),
        api_keys: account.api_keys.iter().map(api_key).collect(),
        balances: balances(state, account),
        hedge_mode: venue.hedge_mode(),
        listen_keys: listen_keys(account),
        multi_assets_mode: venue.multi_assets_mode(),
        nonces: account.nonces.kept().collect(),
        orders: rows(orders.iter().map(|o| order(state, o))),
        positions: held.map(|p| position(state, &p)).collect(),
        settings: settings(state, account),
        trades: rows(trades.map(|record| trade(state, record))),
        user: account.user.to_checksum(None),
        wallet: wallet_report(&state.wallets, &state.assets, id, state.clock_ms(state.now)),
    }
}

fn order(state: &State, order: &OrderView) -> Value {
    let rules = state.rules(order.terms.instrument);
    let terms = &order.terms;
    json!({
        "surface": rules.surface.as_str(),
        "symbol": rules.symbol,
        "order_id": order.order_id.0,
        "client_order_id": order.client_order_id.as_str(),
        "status": order.status.as_str(),
        "open": !order.status.is_final(),
        "side": terms.side.as_str(),
        "position_side": terms.position_side.as_str(),
        "type": order.order_type.as_str(),
        "orig_type": terms.order_type.as_str(),
        "time_in_force": order.time_in_force.as_str(),
        "price": price(rules, terms.price.unwrap_or_default().0),
        "stop_price": price(rules, terms.stop_price.unwrap_or_default().0),
        "qty": qty(rules, order.qty.0),
        "executed_qty": qty(rules, order.executed.0),
        "cum_quote": amount(order.cum_quote),
        "avg_price": fine_price(order.average_price),
        "reduce_only": terms.reduce_only,
        "close_position": terms.close_position,
        "created_ms": order.created.millis(),
        "updated_ms": order.updated.millis(),
    })
}

fn position(state: &State, position: &PositionView) -> Value {
    let rules = state.rules(position.instrument);
    json!({
        "symbol": rules.symbol,
        "position_side": position.position_side.as_str(),
        "qty": qty(rules, position.qty.0),
        "cost": amount(position.cost),
        "entry_price": fine_price(position.entry_price),
        "mark_price": fine_price(position.mark_price),
        "liquidation_price": fine_price(position.liquidation_price),
        "unrealized": amount(position.unrealized),
        "realized": amount(position.realized),
        "isolated": position.isolated,
        "isolated_wallet": amount(position.isolated_wallet),
        "maintenance_margin": amount(position.maintenance_margin),
        "updated_ms": position.updated.millis(),
    })
}

fn balances(state: &State, account: &Account) -> Value {
    let venue = &account.venue;
    let spot: Vec<_> = venue
        .assets()
        .map(|asset| venue.spot_balance(asset))
        .filter(|balance| balance.free.0 != 0 || balance.locked.0 != 0)
        .map(|balance| {
            json!({
                "asset": state.assets.name(balance.asset),
                "free": amount(balance.free),
                "locked": amount(balance.locked),
            })
        })
        .collect();
    let futures: Vec<_> = venue
        .assets()
        .map(|asset| venue.futures_balance(asset))
        .filter(|balance| balance.wallet.0 != 0)
        .map(|balance| futures_balance(state, &balance))
        .collect();
    json!({ "spot": spot, "futures": futures })
}

fn futures_balance(state: &State, balance: &FuturesBalance) -> Value {
    json!({
        "asset": state.assets.name(balance.asset),
        "wallet": amount(balance.wallet),
        "cross_wallet": amount(balance.cross_wallet),
        "unrealized": amount(balance.unrealized),
        "position_margin": amount(balance.position_margin),
        "open_order_margin": amount(balance.open_order_margin),
        "maintenance_margin": amount(balance.maintenance_margin),
        "available": amount(balance.available),
        "max_withdraw": amount(balance.max_withdraw),
    })
}

/// Leverage, margin type and countdown of each futures symbol.
fn settings(state: &State, account: &Account) -> Value {
    let venue = &account.venue;
    let mut shown = Vec::new();
    let mut last = None;
    for view in venue.position_views() {
        if last.replace(view.instrument) == Some(view.instrument) {
            continue;
        }
        let countdown = venue.countdown(view.instrument);
        shown.push(json!({
            "symbol": state.rules(view.instrument).symbol,
            "leverage": view.leverage,
            "isolated": view.isolated,
            "countdown_ends_ms": (countdown != Time::NEVER).then(|| countdown.millis()),
        }));
    }
    Value::Array(shown)
}

fn trade(state: &State, record: &TradeRecord) -> Value {
    let rules = state.rules(record.instrument);
    let fill = &record.fill;
    json!({
        "surface": record.surface.as_str(),
        "symbol": rules.symbol,
        "trade_id": fill.trade_id.0,
        "order_id": record.order_id.0,
        "side": record.side.as_str(),
        "position_side": record.position_side.as_str(),
        "price": price(rules, fill.price.0),
        "qty": qty(rules, fill.qty.0),
        "quote_qty": amount(fill.quote_qty),
        "fee": amount(fill.fee),
        "fee_asset": state.assets.name(fill.fee_asset),
        "maker": fill.maker,
        "realized_pnl": fill.realized_pnl.map(amount),
        "time_ms": record.time.millis(),
    })
}

fn accepted(state: &State, id: AccountId, brief: bool) -> AcceptedOrders {
    let empty = Ledger::default();
    let ledger = state.counters.accounts.get(&id.0).unwrap_or(&empty);
    let name = |instrument: InstrumentId| state.rules(instrument);
    let listed = ledger.orders.iter().filter(|_| !brief);
    let orders = rows(listed.map(|order| {
        json!({
            "surface": name(order.instrument).surface.as_str(),
            "symbol": name(order.instrument).symbol,
            "order_id": order.order_id.0,
            "client_order_id": order.client_order_id.as_str(),
            "time_ms": order.time.millis(),
        })
    }));
    let times = |(id, times): (&ClientOrderId, u32)| (id.as_str().to_owned(), json!(times));
    AcceptedOrders {
        orders,
        repeated: ledger.repeated().map(times).collect(),
        total: ledger.total,
    }
}

fn grants(grants: Grants) -> Value {
    json!({
        "read": grants.read,
        "spot_trade": grants.spot_trade,
        "perp_trade": grants.perp_trade,
        "withdraw": grants.withdraw,
    })
}

fn api_key(key: &ApiKey) -> Value {
    let ips: Vec<_> = key.ips.iter().map(ToString::to_string).collect();
    json!({ "key": key.key, "label": key.label, "ips": ips, "grants": grants(key.grants) })
}

fn agent(agent: &Agent) -> Value {
    json!({
        "address": agent.address.to_checksum(None),
        "name": agent.name,
        "ip_whitelist": agent.ip_whitelist,
        "expired_ms": agent.expired_ms,
        "grants": grants(agent.grants),
    })
}

fn listen_keys(account: &Account) -> Value {
    let of = |surface| {
        let key = account.listen_keys.valid(surface)?;
        Some(json!({ "key": key.key, "expires_ms": key.expires_ms }))
    };
    json!({ "spot": of(Surface::Spot), "futures": of(Surface::Futures) })
}

fn market(state: &State) -> Value {
    let symbols = state.board.symbols().iter().map(|symbol| {
        let rules = &symbol.instrument;
        let (bid, ask) = symbol.book.top();
        let status = match &rules.status {
            windvane_model::instrument::SymbolStatus::Trading => "TRADING",
            windvane_model::instrument::SymbolStatus::Other(word) => word,
        };
        let venue = state.accounts.first().map(|account| &account.venue);
        let mark = venue.and_then(|venue| venue.mark_price(symbol.id));
        json!({
            "surface": rules.surface.as_str(),
            "symbol": rules.symbol,
            "status": status,
            "bid": [price(rules, bid.price), qty(rules, bid.qty)],
            "ask": [price(rules, ask.price), qty(rules, ask.qty)],
            "last": price(rules, symbol.last_price()),
            "mark": fine_price(mark.unwrap_or(0)),
        })
    });
    Value::Array(symbols.collect())
}

fn connections(state: &State) -> Value {
    let connections = state.hub.connections().map(|(id, connection)| {
        let topics = connection.topics.iter();
        let topics: Vec<_> = topics.map(|topic| topic.name(&state.board)).collect();
        json!({
            "connection": id.0,
            "surface": connection.surface.as_str(),
            "listen_keys": connection.listen_keys,
            "topics": topics,
        })
    });
    Value::Array(connections.collect())
}

fn counters(state: &State) -> Value {
    let counters = &state.counters;
    let routes = counters
        .routes
        .iter()
        .map(|(k, n)| (k.to_string(), json!(n)));
    let statuses = counters.statuses.iter();
    let statuses = statuses.map(|(k, n)| (k.to_string(), json!(n)));
    let refusals = counters.refusals.iter();
    let refusals = refusals.map(|(k, n)| (k.to_string(), json!(n)));
    json!({
        "requests": routes.collect::<Map<_, _>>(),
        "answers": statuses.collect::<Map<_, _>>(),
        "refusals": refusals.collect::<Map<_, _>>(),
        "user_events": counters.user_events,
    })
}
