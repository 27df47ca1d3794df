//! Liquidation and ADL as people see them: the log line, the reason of the latch, the rows of
//! `status`. Decides nothing.

use windvane_admin::metrics::table;
use windvane_admin::view::{ForcedClose, ForcedShare};
use windvane_engine::forced::{ForcedClose as ForcedKind, ForcedCloseReport, OnLiquidation};
use windvane_engine::{Decimal, Engine, Instrument};

/// Logs a forced close with all figures and with what to do.
pub fn tell(engine: &Engine, report: &ForcedCloseReport) {
    let row = row(engine, 0, report);
    table::FORCED_CLOSES
        .of([row.instrument.as_str(), row.reason.as_str()])
        .increment(1);
    let strategies: Vec<_> = row.strategies.iter().map(share).collect();
    let what_happened = match (report.qty, report.order_id.0) {
        (0, 0) => {
            "the venue reported INSURANCE_CLEAR: it closes positions of the account, or its insurance \
             fund paid. No closing order is reported yet"
        }
        (0, _) => "the venue placed an order of its own to close a position",
        (_, 0) => {
            "an account event shows less of a position, and no order event explains it. Probably the venue closed \
             it, by liquidation or auto-deleveraging; it was a person if the order event was lost"
        }
        _ => "the venue closed a position of the account itself",
    };
    tracing::error!(
        reason = row.reason,
        instrument = row.instrument,
        side = row.side,
        position_side = report.position_side.as_str(),
        qty = row.qty,
        price = row.price,
        realized_pnl = row.realized_pnl,
        fee = row.fee,
        strategies = strategies.join(", "),
        unowned = row.unowned,
        left = row.left,
        order_id = report.order_id.0,
        reaction = report.reaction.as_str(),
        what_to_do = what_to_do(report),
        "{what_happened}"
    );
}

/// Why the run is latched after a forced close.
pub fn cause(engine: &Engine, report: &ForcedCloseReport) -> String {
    let row = row(engine, 0, report);
    let closed = match &row.price {
        Some(price) => format!(
            "{} of {} was closed at {price}, {} realized",
            row.qty, row.instrument, row.realized_pnl
        ),
        None => format!("a position of {} is being closed", row.instrument),
    };
    let by = match report.kind {
        ForcedKind::Unreported => "close without an order event, probably by the venue".to_owned(),
        ForcedKind::Liquidation | ForcedKind::Adl => format!("{} by the venue", row.reason),
    };
    format!("{by}: {closed}; check margin and positions, then windvane resume")
}

/// Forced closes since the operator resumed last.
pub fn rows(engine: &Engine) -> Vec<ForcedClose> {
    let all = engine.forced_closes();
    all.map(|(time, report)| row(engine, time.millis(), report))
        .collect()
}

fn row(engine: &Engine, time_ms: i64, report: &ForcedCloseReport) -> ForcedClose {
    let rules = engine.instrument(report.instrument);
    let qty = |qty: i64| rules.map_or_else(String::new, |rules| text(rules.qty(qty)));
    let strategies = report.shares.iter().map(|share| ForcedShare {
        strategy: engine
            .strategy_name(share.strategy)
            .unwrap_or_default()
            .to_owned(),
        qty: qty(share.qty),
        realized_pnl: text(share.realized_pnl.to_decimal()),
        left: qty(share.left),
    });
    let price = rules.and_then(|rules| {
        let closed = rules.qty(report.qty);
        report.quote.to_decimal().checked_div(closed)
    });
    let is_only_stated = (report.qty, report.order_id.0) == (0, 0);
    let reason = if is_only_stated {
        "insurance_clear"
    } else {
        report.kind.as_str()
    };
    ForcedClose {
        time_ms,
        reason: reason.to_owned(),
        instrument: rules.map(Instrument::name).unwrap_or_default(),
        side: report.side.as_str().to_owned(),
        qty: qty(report.qty),
        price: price.map(|price| text(price.round_dp(8))),
        realized_pnl: text(report.realized_pnl.to_decimal()),
        fee: text(report.fee.to_decimal()),
        strategies: strategies.collect(),
        unowned: qty(report.unowned),
        left: qty(report.left),
    }
}

fn share(one: &ForcedShare) -> String {
    let ForcedShare {
        strategy,
        qty,
        realized_pnl,
        left,
    } = one;
    format!("{strategy}: {qty} closed, {realized_pnl} realized, {left} left")
}

const fn what_to_do(report: &ForcedCloseReport) -> &'static str {
    match report.reaction {
        OnLiquidation::Halt => {
            "own orders are cancelled; check margin and positions, then windvane resume"
        }
        OnLiquidation::Pause => {
            "no order adds exposure; check margin and positions, then windvane resume"
        }
        OnLiquidation::Continue => {
            "strategies trade on (risk.on_liquidation); check margin and leverage"
        }
    }
}

fn text(value: Decimal) -> String {
    value.normalize().to_string()
}
