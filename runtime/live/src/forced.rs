//! Shows liquidations and ADL to the operator: the log line, and the rows of `status`. It makes no
//! decisions.

use std::collections::BTreeSet;

use windvane_admin::metrics::table;
use windvane_admin::view::{ForcedClose, ForcedShare};
use windvane_engine::Engine;
use windvane_model::forced::{ForcedCloseReport, OnLiquidation};
use windvane_model::{Decimal, InstrumentId, VenueOrderId};
use windvane_session::forced::{ForcedFigures, sum_so_far};

/// The note for a close that only the change of a balance showed.
const NOT_APART: &str = "the venue stated neither the price nor the commission of this close: \
                         realized_pnl is the change of the balance and includes the commission; if \
                         that does not fit the close, it is an estimate at the mark price";
/// The note for a closing order of the venue whose commission is not known yet.
const NO_FEE: &str = "the venue has not stated the commission of this close yet";

/// The closing orders of the venue that the metrics count. An order with several fills counts once.
#[derive(Default)]
pub struct Counted(BTreeSet<(InstrumentId, VenueOrderId)>);

impl Counted {
    /// Counts a forced close, unless an earlier fill of its order was counted.
    pub fn count(&mut self, engine: &Engine, report: &ForcedCloseReport) {
        if report.order_id.0 == 0 || self.0.insert((report.instrument, report.order_id)) {
            let row = row(engine, 0, report);
            table::FORCED_CLOSES
                .of([row.instrument.as_str(), row.reason.as_str()])
                .increment(1);
        }
    }
}

/// Logs a forced close with all figures and with what to do. After a further fill, the figures are
/// the sum of the order.
pub fn log_notice(engine: &Engine, report: &ForcedCloseReport) {
    let is_more = sum_so_far(engine, report).qty != report.qty;
    let report = sum_so_far(engine, report);
    let row = row(engine, 0, report);
    let strategies: Vec<_> = row.strategies.iter().map(share).collect();
    let what_happened = match (report.qty, report.order_id.0) {
        _ if is_more => {
            "the venue closed more of a position with the same order: the figures are the sum so far"
        }
        (0, 0) => {
            "the venue reported INSURANCE_CLEAR: it closes positions of the account, or its insurance \
             fund paid. No closing order is reported yet"
        }
        (0, _) => "the venue placed an order of its own to close a position",
        (_, 0) => {
            "the venue's account shows a smaller position, and no order explains it. Either the \
             venue closed it, by liquidation or auto-deleveraging, or a person did: it counts as \
             closed by the venue"
        }
        _ => "the venue closed a position of the account itself",
    };
    tracing::error!(
        reason = row.reason,
        instrument = row.instrument,
        side = row.side,
        position_side = report.position_side.as_str(),
        // An order without a fill has no figures.
        qty = (report.qty > 0).then_some(row.qty.as_str()),
        price = row.price,
        realized_pnl =
            (report.qty > 0 || report.order_id.0 == 0).then_some(row.realized_pnl.as_str()),
        fee = row.fee,
        strategies = strategies.join(", "),
        unowned = (report.qty > 0).then_some(row.unowned.as_str()),
        left = row.left,
        note = row.note,
        order_id = report.order_id.0,
        reaction = report.reaction.as_str(),
        what_to_do = what_to_do(report),
        "{what_happened}"
    );
}

/// Forced closes since the operator's last resume.
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
    let figures = ForcedFigures::of(engine, report);
    let note = match (report.has_balance_figures(), figures.lacks_fee) {
        (true, _) => Some(NOT_APART),
        (false, true) => Some(NO_FEE),
        (false, false) => None,
    };
    ForcedClose {
        time_ms,
        reason: figures.reason.to_owned(),
        instrument: figures.instrument,
        side: report.side.as_str().to_owned(),
        qty: figures.qty,
        price: figures.price,
        realized_pnl: figures.realized_pnl,
        fee: figures.fee,
        note: note.map(str::to_owned),
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
            "own orders are cancelled and no order is sent; check margin and positions, then run \
             windvane resume"
        }
        OnLiquidation::Pause => {
            "no order that adds exposure is sent; check margin and positions, then run windvane \
             resume"
        }
        OnLiquidation::Continue => {
            "strategies keep trading (risk.on_liquidation); check margin and leverage"
        }
    }
}

fn text(value: Decimal) -> String {
    value.normalize().to_string()
}
