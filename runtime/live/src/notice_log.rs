//! Writes the engine's notices for people: as log lines with the ids of orders and strategies, and
//! as metrics. It makes no decisions.

use std::slice;

use windvane_admin::metrics::table;
use windvane_engine::Engine;
use windvane_model::effect::{Adjustment, Cause, NotPlaced};
use windvane_model::order::NewOrder;
use windvane_model::order_state::OrderState;
use windvane_model::orders::Order;
use windvane_model::protocol::OrderReport;
use windvane_model::{
    ClientOrderId, Instrument, Notice, OrderSeq, Outcome, Request, StrategyId, Surface, Time,
};
use windvane_session::recovery::UnownedPosition;

use windvane_protocol::error::VenueError;

use super::forced;
use super::terms;
use super::unowned_positions;
use windvane_report::utc::{seconds_text, utc_text};

/// The order that a request places.
pub const fn placed_by(request: &Request) -> Option<&ClientOrderId> {
    match request {
        Request::Place(order) => Some(&order.client_order_id),
        _ => None,
    }
}

/// Whether a reply says that the order never left the process.
pub const fn never_left(outcome: &Outcome<OrderReport>) -> bool {
    matches!(outcome, Outcome::Refused(refusal) if refusal.is_not_sent())
}

/// Logs a request that left the process.
pub fn sent(engine: &Engine, request: &Request) {
    match request {
        Request::Place(order) => placed(engine, slice::from_ref(order)),
        Request::PlaceBatch(orders) => placed(engine, orders),
        Request::Cancel {
            client_order_id, ..
        } => cancelled(engine, slice::from_ref(client_order_id)),
        Request::CancelBatch {
            client_order_ids, ..
        } => cancelled(engine, client_order_ids),
        Request::CancelAll { instrument } => {
            let instrument = engine.instrument(*instrument).map(Instrument::name);
            tracing::info!(instrument, "sent a cancel of all orders of the instrument");
        }
        _ => {}
    }
}

fn placed(engine: &Engine, orders: &[NewOrder]) {
    for order in orders {
        let (id, terms) = (&order.client_order_id, &order.terms);
        table::ORDERS.of([owner(id), "sent"]).increment(1);
        let Some(instrument) = engine.instrument(terms.instrument) else {
            continue;
        };
        tracing::info!(
            strategy = owner(id),
            id = id.as_str(),
            instrument = instrument.name(),
            side = terms.side.as_str(),
            price = terms.price.map(|price| display(instrument.price(price.0))),
            qty = terms.qty.map(|qty| display(instrument.qty(qty.0))),
            "order sent"
        );
    }
}

fn cancelled(engine: &Engine, ids: &[ClientOrderId]) {
    for id in ids {
        if engine.probed(id).is_some() {
            tracing::debug!(
                id = id.as_str(),
                "sent a cancel of an order that does not exist, to test whether the API key may \
                 trade"
            );
            continue;
        }
        tracing::info!(strategy = owner(id), id = id.as_str(), "cancel sent");
    }
}

/// The strategy in an own client order id.
fn owner(id: &ClientOrderId) -> &str {
    id.as_str().split('.').next().unwrap_or_default()
}

fn instance_watch(id: &ClientOrderId, until: Option<Time>, adopted: usize) {
    let id = id.as_str();
    if let Some(until) = until {
        let until = utc_text(until);
        tracing::warn!(
            id,
            until,
            "found an open or recent order that this data folder did not create: another instance \
             trades on this account, or the data folder was deleted. No order is sent until the \
             watch for new orders ends. If another instance runs, stop it"
        );
    } else {
        tracing::warn!(id, adopted, "{}", end_of_watch(adopted));
    }
}

/// The message about the orders that started a watch.
const fn end_of_watch(adopted: usize) -> &'static str {
    match adopted {
        0 => {
            "no other instance placed an order during the watch, and none of its orders is still \
             open: nothing is adopted. Its countdown at the venue may have cancelled them"
        }
        1 => {
            "no other instance placed an order during the watch: its order that is still open is \
             adopted"
        }
        _ => {
            "no other instance placed an order during the watch: its orders that are still open \
             are adopted"
        }
    }
}

fn another_instance(id: &ClientOrderId) {
    tracing::error!(
        id = id.as_str(),
        "another instance trades on this account: it placed an order that this data folder did not \
         create. The run is degraded and opens no position. The positions of both instances add up \
         on the account. Stop one of the two, then run windvane resume"
    );
}

fn instances_unseen(surface: Surface) {
    tracing::warn!(
        %surface,
        what_to_do = "make sure that no other windvane runs on this account",
        "the venue lists neither account trades nor orders, so this run cannot exclude another \
         instance whose orders fill at once. It notices such an instance by the events of its next \
         order, and is then degraded"
    );
}

/// Logs one notice and counts it in the metrics.
pub fn log_notice(engine: &Engine, notice: &Notice) {
    match notice {
        Notice::Filled { .. } | Notice::Recovered { .. } => fill(engine, notice),
        Notice::Ended { order, .. } => ended(engine, order),
        Notice::NotPlaced { order, words, .. } => not_placed(engine, order, words),
        Notice::RefusalsOver {
            strategy,
            instrument,
            refusals,
            ..
        } => {
            if refusals.count > 1 {
                let strategy = name(engine, *strategy);
                let instrument = engine.instrument(*instrument).map(Instrument::name);
                let since = seconds_text(refusals.since);
                let (count, code) = (refusals.count, refusals.code);
                tracing::info!(
                    strategy,
                    instrument,
                    count,
                    code,
                    since,
                    "the venue accepts orders again, after orders that were not placed"
                );
            }
        }
        Notice::Blocked { block, state, .. } => {
            let words = engine.describe_block(*block, state);
            let until = state.until.map(seconds_text);
            tracing::error!(
                what = words.what,
                reason = words.reason,
                until,
                what_to_do = words.what_to_do,
                "trading is blocked: opening orders are not sent"
            );
            table::TRADING_BLOCKS.of([words.what.as_str()]).increment(1);
        }
        Notice::Unblocked { block, state, .. } => {
            let what = engine.describe_block(*block, state).what;
            let since = seconds_text(state.since);
            let (rejected, not_sent) = (state.rejected, state.not_sent);
            tracing::info!(
                what,
                since,
                rejected,
                not_sent,
                "the block ended: opening orders are sent again"
            );
            table::TRADING_BLOCKED.of([what.as_str()]).set(0.0);
            table::TRADING_BLOCKED_SINCE.of([what.as_str()]).set(0.0);
        }
        Notice::Rejected {
            strategy,
            rejection,
            ..
        } => {
            let strategy = name(engine, *strategy);
            tracing::debug!(
                strategy,
                %rejection,
                "an order of the strategy broke a local rule and was not sent"
            );
            table::ORDERS.of([strategy, "rejected"]).increment(1);
        }
        Notice::Funding { amount, .. } => {
            tracing::info!(amount = %amount.to_decimal(), "funding");
        }
        Notice::Quarantined { strategy, kind, .. } => {
            let (strategy, fault) = (name(engine, *strategy), kind.as_str());
            tracing::error!(
                strategy,
                fault,
                "strategy quarantined: it is not called any more, and sends no orders; windvane \
                 status shows the reason"
            );
            table::QUARANTINES.of([strategy, fault]).increment(1);
        }
        Notice::InvariantBroken { broken, .. } => {
            tracing::error!(
                %broken,
                "the program found an error in its own books: own orders are cancelled and no \
                 order is sent. Compare positions and orders with the venue, and attach the newest \
                 file of the folder bug-reports to a bug report. Then run windvane resume, which \
                 checks the books again"
            );
        }
        Notice::Halted { limit, .. } => {
            let limit = limit.map(windvane_model::risk::LossLimit::key);
            tracing::error!(
                limit,
                "halted: own orders are cancelled and no order is sent; windvane status shows the \
                 reason, windvane resume ends the halt"
            );
        }
        Notice::Adjusted {
            adjustment, cause, ..
        } => adjusted(engine, adjustment, *cause),
        Notice::Unknown { order, .. } => {
            let strategy = name(engine, order.strategy);
            let id = order.client_order_id.as_str();
            tracing::warn!(
                strategy,
                id,
                "the outcome of an order is unknown: it counts as open until the venue reports it; \
                 the engine queries it"
            );
            table::ORDERS.of([strategy, "unknown"]).increment(1);
        }
        Notice::Denied { order, .. } => {
            let strategy = name(engine, order.strategy);
            let id = order.client_order_id.as_str();
            tracing::warn!(
                strategy,
                id,
                "the venue reports no such order, although it confirmed the order before: it still \
                 counts as open, and the engine queries it again"
            );
            table::ORDERS.of([strategy, "unknown"]).increment(1);
        }
        Notice::State {
            from, to, reasons, ..
        } => {
            let degraded_reasons = engine.describe_reasons(reasons);
            let (from, to) = (from.as_str(), to.as_str());
            tracing::info!(from, to, ?degraded_reasons, "the state changed");
            table::STATE_MOVES.of([from, to]).increment(1);
        }
        // These may repeat for a long time, so `Troubles` logs them.
        Notice::Heartbeat { .. } | Notice::Reconciled { .. } => {}
        Notice::Watchdog { armed: true, .. } => {
            tracing::info!(
                "the watchdog process is armed: it cancels this run's spot orders if the run dies \
                 or hangs"
            );
            table::WATCHDOG.of([]).set(1.0);
        }
        Notice::Watchdog { armed: false, .. } => {
            tracing::warn!(
                "no watchdog process protects spot orders: no spot order is sent until one does"
            );
            table::WATCHDOG.of([]).set(0.0);
        }
        Notice::Adopted { order, .. } => {
            let strategy = name(engine, order.strategy);
            let id = order.client_order_id.as_str();
            tracing::info!(strategy, id, "adopted an open order of an earlier process");
        }
        Notice::Dust {
            strategy,
            instrument,
            left,
            ..
        } => {
            let strategy = name(engine, *strategy);
            let rules = engine.instrument(*instrument);
            let instrument = rules.map(Instrument::name).unwrap_or_default();
            if rules.is_some_and(|rules| rules.surface == Surface::Futures) {
                tracing::error!(
                    strategy,
                    instrument,
                    %left,
                    what_to_do = "close the rest by hand at the venue",
                    "a rest of the position stays open: it is below the symbol's minimum order \
                     size, so no order can close it"
                );
            } else {
                tracing::info!(
                    strategy,
                    instrument,
                    %left,
                    "the rest of the position is too small for any order: it counts as flat"
                );
            }
        }
        Notice::Unclosed {
            strategy,
            instrument,
            qty,
            ..
        } => {
            let strategy = name(engine, *strategy);
            let rules = engine.instrument(*instrument);
            tracing::error!(
                strategy,
                instrument = rules.map(Instrument::name),
                left = rules.map(|rules| display(rules.qty(*qty))),
                what_to_do = "windvane status shows the venue's rejection: remove its cause, or \
                              close the position by hand at the venue",
                "a position stays open: its closing orders fail. From now on the engine tries once \
                 a minute, until the position is closed or you run windvane resume"
            );
        }
        Notice::Stray { report, .. } => {
            let id = report.client_order_id.as_str();
            tracing::warn!(
                id,
                "cancelled an open order of a strategy that is not configured"
            );
        }
        Notice::AnotherInstance { id, .. } => another_instance(id),
        Notice::InstanceWatch {
            id, until, adopted, ..
        } => instance_watch(id, *until, *adopted),
        Notice::InstancesUnseen { surface, .. } => instances_unseen(*surface),
        Notice::ClosedOutside {
            strategy,
            instrument,
            qty,
            realized_pnl,
            ..
        } => {
            let strategy = name(engine, *strategy);
            let rules = engine.instrument(*instrument);
            tracing::warn!(
                strategy,
                instrument = rules.map(Instrument::name),
                qty = rules.map(|rules| display(rules.qty(*qty))),
                realized_pnl = %realized_pnl.to_decimal(),
                "orders from outside this run closed this quantity: the strategy no longer holds \
                 it, and the engine sends no close for it"
            );
        }
        Notice::NotClosedOutside {
            strategy,
            instrument,
            qty,
            ..
        } => {
            let strategy = name(engine, *strategy);
            let rules = engine.instrument(*instrument);
            tracing::warn!(
                strategy,
                instrument = rules.map(Instrument::name),
                qty = rules.map(|rules| display(rules.qty(*qty))),
                "a fill of an own order arrived late: this fill closed the position, not an order \
                 from outside. The strategy holds this quantity again"
            );
        }
        Notice::ForcedClose { report, .. } => forced::log_notice(engine, report),
        Notice::RulesChanged {
            instrument, before, ..
        } => terms::changed(engine, *instrument, before),
        Notice::RulesUnusable {
            instrument, why, ..
        } => terms::unusable(engine, *instrument, why),
        Notice::Crossed {
            strategy,
            instrument,
            side,
            ..
        } => {
            let strategy = name(engine, *strategy);
            let instrument = engine.instrument(*instrument).map(Instrument::name);
            tracing::warn!(
                strategy,
                instrument,
                side = side.as_str(),
                "post-only orders of the strategy ended at once, because they would have traded at \
                 once: the next ones on this side wait for a growing pause. Check whether market \
                 data is late"
            );
        }
        Notice::FeeUnpriced { asset, .. } => {
            let asset = engine.assets().get(usize::from(asset.0));
            let asset = asset.map_or("", String::as_str);
            tracing::warn!(
                asset,
                "the venue takes commissions in an asset that no configured instrument prices. The \
                 engine queries its price every minute; until it has one, the loss limits use an \
                 estimate from the value of each fill. Add an instrument of this asset and the \
                 quote asset to the configuration to count them exactly"
            );
        }
        Notice::LateFee {
            strategy,
            instrument,
            trade_id,
            fee,
            asset,
            ..
        } => {
            let asset = engine.assets().get(usize::from(asset.0));
            let asset = asset.map_or("", String::as_str);
            let strategy = strategy.map_or("", |strategy| name(engine, strategy));
            let instrument = engine.instrument(*instrument).map(Instrument::name);
            tracing::debug!(
                strategy,
                instrument,
                trade = trade_id.0,
                fee = %fee.to_decimal(),
                asset,
                "booked the commission of a fill later than the fill"
            );
        }
        Notice::Unexplained {
            surface,
            asset,
            amount,
            ..
        } => {
            let asset = engine.assets().get(usize::from(asset.0));
            let asset = asset.map_or("", String::as_str);
            let amount = amount.to_decimal();
            if amount.mantissa() < 0 {
                tracing::warn!(
                    %surface,
                    asset,
                    %amount,
                    "a balance fell, and neither an event nor the venue's income history explains \
                     it: it counts as a loss for the loss limits. If you withdrew it and a limit \
                     halts the run, windvane resume accepts the new balance"
                );
            } else {
                tracing::warn!(
                    %surface,
                    asset,
                    %amount,
                    "a balance rose, and neither an event nor the venue's income history explains \
                     it: it counts as a deposit, so the loss limits start from a higher value. If \
                     it was a profit and a limit halts the run too early, windvane resume starts a \
                     new count"
                );
            }
        }
        Notice::MarginChanged { before, after, .. } => {
            terms::margin_changed(engine, before, after);
        }
        Notice::External { update, .. } => {
            let surface = engine.instrument(update.instrument);
            let surface = surface.map_or_else(String::new, |one| one.surface.to_string());
            let id = update.client_order_id.as_str();
            tracing::info!(%surface, id, "an order or fill from outside this run on the account");
            table::EXTERNAL.of([surface.as_str()]).increment(1);
        }
    }
}

/// Logs positions that a person must handle, each with what to do next.
pub fn unowned_positions(all: &[UnownedPosition], what: &str, what_to_do: &str) {
    for one in all {
        tracing::warn!(
            strategy = one.strategy,
            instrument = one.instrument,
            side = one.side.as_str(),
            qty = one.qty,
            what_to_do,
            "{what}"
        );
    }
}

/// Logs positions that `on_stop = "flatten"` did not close.
pub fn unclosed(all: &[UnownedPosition]) {
    let what = "on_stop = \"flatten\" did not close a position";
    let what_to_do =
        "close it by hand at the venue, or start the run again and run windvane flatten";
    unowned_positions(all, what, what_to_do);
}

/// Logs every position that stays open at the end of a run. `failed` means that the stop tried to
/// close them.
pub fn stays_open(engine: &Engine, failed: bool) {
    let positions = unowned_positions::stays_open(engine);
    if !positions.is_empty() {
        tracing::warn!(
            positions = positions.join(", "),
            what_to_do = what_to_do_with_open(failed),
            "positions stay open after this stop, and nothing protects them: no strategy manages \
             them and no loss limit applies"
        );
    }
}

const fn what_to_do_with_open(failed: bool) -> &'static str {
    if failed {
        "close them by hand at the venue, or start the run again and run windvane flatten"
    } else {
        "start the run again, close them by hand at the venue, or stop with run.on_stop = \"flatten\""
    }
}

fn fill(engine: &Engine, notice: &Notice) {
    match notice {
        Notice::Filled {
            strategy,
            order,
            fill,
            ..
        } => {
            let strategy = name(engine, *strategy);
            let Some(instrument) = engine.instrument(order.instrument()) else {
                return;
            };
            tracing::info!(
                strategy,
                id = order.client_order_id.as_str(),
                side = order.terms.side.as_str(),
                price = %instrument.price(fill.price.0),
                qty = %instrument.qty(fill.qty.0),
                trade = fill.trade_id.0,
                "filled"
            );
            table::FILLS.of([strategy]).increment(1);
        }
        Notice::Recovered { order, fill, .. } => {
            let (live, ended) = engine.orders().all();
            let owner = live.chain(ended).find(|known| known.seq == *order);
            let strategy = owner.map_or("", |owner| name(engine, owner.strategy));
            let trade = fill.trade_id.0;
            if trade > 0 {
                tracing::warn!(
                    strategy,
                    trade,
                    "recovered a fill that the user stream missed"
                );
            } else {
                tracing::info!(
                    strategy,
                    "booked a fill from the venue's response, with an estimated commission, \
                     because its event is late"
                );
            }
            table::FILLS_RECOVERED.of([strategy]).increment(1);
        }
        _ => {}
    }
}

fn advice(code: i32) -> &'static str {
    let error = VenueError {
        code: code.into(),
        msg: String::new(),
    };
    error.advice()
}

/// Writes one line for the first of several orders in a row that were not placed; the rest are only
/// counted.
fn not_placed(engine: &Engine, order: &Order, words: &NotPlaced) {
    let strategy = name(engine, order.strategy);
    let id = order.client_order_id.as_str();
    let instrument = engine.instrument(order.instrument()).map(Instrument::name);
    let instrument = instrument.unwrap_or_default();
    let (reason, code) = (words.reason.as_str(), words.code);
    let code_label = if words.sent {
        code.to_string()
    } else {
        "not_sent".to_owned()
    };
    let outcome = if words.sent { "refused" } else { "not_sent" };
    table::ORDERS.of([strategy, outcome]).increment(1);
    table::ORDERS_NOT_PLACED
        .of([strategy, &instrument, &code_label])
        .increment(1);
    let side = order.terms.side.as_str();
    match (words.sent, words.count) {
        (true, 1) => tracing::warn!(
            strategy,
            id,
            instrument,
            side,
            code,
            reason,
            what_to_do = advice(code),
            "the venue rejected an order; windvane status counts further ones in a row"
        ),
        (false, 1) => tracing::warn!(
            strategy,
            id,
            instrument,
            side,
            reason,
            "an order was not sent; windvane status counts further ones in a row"
        ),
        (true, count) => {
            tracing::debug!(
                strategy, id, instrument, side, code, reason, count, "rejected"
            );
        }
        (false, count) => {
            tracing::debug!(strategy, id, instrument, side, reason, count, "not sent");
        }
    }
}

fn ended(engine: &Engine, order: &Order) {
    let strategy = name(engine, order.strategy);
    if order.state == OrderState::Rejected {
        // `Notice::NotPlaced` or `Adjustment::Absent` reports it.
        return;
    }
    let (id, state) = (order.client_order_id.as_str(), order.state.as_str());
    let rules = engine.instrument(order.instrument());
    tracing::info!(
        strategy,
        id,
        state,
        side = order.terms.side.as_str(),
        price = rules
            .zip(order.terms.price)
            .map(|(rules, price)| display(rules.price(price.0))),
        executed = rules.map(|rules| display(rules.qty(order.executed_qty))),
        "order ended"
    );
    let outcome = match order.state {
        OrderState::Filled => "filled",
        OrderState::Canceled => "canceled",
        _ => "expired",
    };
    table::ORDERS.of([strategy, outcome]).increment(1);
}

fn adjusted(engine: &Engine, adjustment: &Adjustment, cause: Cause) {
    let kind = match adjustment {
        Adjustment::Balance { .. } if cause == Cause::Rounding => "rounding",
        Adjustment::Balance { .. } => "balance",
        Adjustment::Position { .. } => "position",
        Adjustment::Absent { .. } => "absent",
        Adjustment::Alive { .. } => "alive",
        Adjustment::Settled { .. } => "settled",
    };
    table::ADJUSTMENTS.of([kind]).increment(1);
    // Some venues state commissions only through the balance. Then each fill causes one adjustment.
    let is_routine = matches!(cause, Cause::Rounding | Cause::Commission);
    let cause = cause.as_str();
    match adjustment {
        Adjustment::Balance {
            surface,
            asset,
            from,
            to,
        } => {
            let asset = engine.assets().get(usize::from(asset.0));
            let (from, to) = (from.to_decimal(), to.to_decimal());
            if is_routine {
                tracing::debug!(
                    %surface,
                    asset,
                    %from,
                    %to,
                    cause,
                    "balance overwritten with the venue's value"
                );
            } else {
                tracing::warn!(
                    %surface,
                    asset,
                    %from,
                    %to,
                    cause,
                    "balance overwritten with the venue's value"
                );
            }
        }
        Adjustment::Position {
            instrument,
            side,
            from,
            to,
        } => {
            if let Some(rules) = engine.instrument(*instrument) {
                let (instrument, side) = (rules.name(), side.as_str());
                let (from, to) = (rules.qty(*from), rules.qty(*to));
                tracing::warn!(
                    instrument,
                    side,
                    %from,
                    %to,
                    cause,
                    "position overwritten with the venue's value"
                );
            }
        }
        Adjustment::Absent { order } => {
            let words = if cause == Cause::Denial.as_str() {
                "the venue kept reporting no such order, although it had confirmed the order before: \
                 it counts as ended"
            } else {
                table::ORDERS
                    .of([owner_of(engine, *order), "absent"])
                    .increment(1);
                "the venue knows no such order: the request never arrived, and the order counts as \
                 rejected"
            };
            tracing::warn!(order = order.0, cause, "{words}");
        }
        Adjustment::Alive { order } => {
            let words =
                "an order that counted as ended is open at the venue: it counts as open again";
            tracing::warn!(order = order.0, cause, "{words}");
        }
        Adjustment::Settled {
            instrument,
            sold,
            bought,
            qty,
            quote,
            ..
        } => {
            let rules = engine.instrument(*instrument);
            tracing::info!(
                instrument = rules.map(Instrument::name),
                sold = name(engine, *sold),
                bought = name(engine, *bought),
                qty = rules.map(|rules| display(rules.qty(*qty))),
                value = %quote.to_decimal(),
                cause,
                "settled opposite positions of two strategies against each other at the mark \
                 price, without an order"
            );
        }
    }
}

fn owner_of(engine: &Engine, order: OrderSeq) -> &str {
    let known = engine.known_order(order);
    known.map_or("", |order| name(engine, order.strategy))
}

fn name(engine: &Engine, strategy: StrategyId) -> &str {
    engine.strategy_name(strategy).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_watch_names_the_orders_that_are_adopted() {
        assert!(end_of_watch(0).contains("nothing is adopted"));
        assert!(!end_of_watch(0).contains("are adopted"));
        assert!(end_of_watch(1).contains("its order that is still open is adopted"));
        assert!(end_of_watch(2).contains("its orders that are still open are adopted"));
    }

    #[test]
    fn after_a_failed_flatten_the_advice_omits_on_stop() {
        assert!(what_to_do_with_open(false).contains("on_stop"));
        let words = what_to_do_with_open(true);
        assert!(!words.contains("on_stop"), "{words}");
        assert!(words.contains("by hand at the venue"), "{words}");
        assert!(words.contains("windvane flatten"), "{words}");
    }
}
