//! Forced closes: their figures as text, and the reason of the kill switch that they cause.
//!
//! This module must never decide to set a kill switch. The engine decides that.

use windvane_engine::Engine;
use windvane_model::forced::{ForcedClose, ForcedCloseReport};
use windvane_model::{Amount, Decimal, Instrument};

/// The figures of a forced close, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedFigures {
    /// Why the venue closed the position.
    pub reason: &'static str,
    /// The instrument.
    pub instrument: String,
    /// The quantity that was closed.
    pub qty: String,
    /// The average price, if the venue stated it.
    pub price: Option<String>,
    /// The realized profit or loss.
    pub realized_pnl: String,
    /// The commission, if the venue stated it.
    pub fee: Option<String>,
    /// The order has traded, but its commission is not stated yet.
    pub lacks_fee: bool,
}

impl ForcedFigures {
    /// The figures of a report.
    pub fn of(engine: &Engine, report: &ForcedCloseReport) -> Self {
        let rules = engine.instrument(report.instrument);
        let qty = |qty: i64| rules.map_or_else(String::new, |rules| text(rules.qty(qty)));
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
        let is_apart = !report.has_balance_figures();
        let lacks_fee = is_apart && report.qty > 0 && report.fee == Amount::ZERO;
        Self {
            reason,
            instrument: rules.map(Instrument::name).unwrap_or_default(),
            qty: qty(report.qty),
            price: price
                .filter(|_| is_apart)
                .map(|price| text(price.round_dp(8))),
            realized_pnl: text(report.realized_pnl.to_decimal()),
            fee: (is_apart && !lacks_fee && report.qty > 0).then(|| text(report.fee.to_decimal())),
            lacks_fee,
        }
    }
}

/// The sum of all reports about the same order. One report is about one fill of it.
pub fn sum_so_far<'a>(engine: &'a Engine, report: &'a ForcedCloseReport) -> &'a ForcedCloseReport {
    let mut reports = engine.forced_closes().map(|(_, sum)| sum);
    let of_order = reports.find(|sum| {
        report.order_id.0 != 0
            && (sum.instrument, sum.order_id) == (report.instrument, report.order_id)
    });
    of_order.unwrap_or(report)
}

/// Why the run is paused or halted after a forced close, from all reports of its order so far.
/// `None` if the present reason `known` has another cause than this close.
pub(crate) fn cause(engine: &Engine, report: &ForcedCloseReport, known: &str) -> Option<String> {
    let sum = sum_so_far(engine, report);
    let is_open = |one: &ForcedCloseReport| one.kill_switch_changed && one.qty == 0;
    let mut reports = engine.forced_closes().map(|(_, sum)| sum);
    let has_changed = sum.kill_switch_changed
        || reports.any(|one| is_open(one) && one.instrument == sum.instrument);
    // The operator or a limit may have set the kill switch after the close.
    let goes_on = known.contains(BY_VENUE) && has_changed && sum.qty > 0;
    (report.kill_switch_changed || goes_on).then(|| cause_of(&ForcedFigures::of(engine, sum), sum))
}

const BY_VENUE: &str = "by the venue: ";

fn cause_of(figures: &ForcedFigures, report: &ForcedCloseReport) -> String {
    let (qty, instrument, lost) = (&figures.qty, &figures.instrument, &figures.realized_pnl);
    let closed = match (&figures.price, &figures.fee) {
        (Some(price), Some(fee)) => {
            format!("{qty} of {instrument} was closed at {price}, {lost} realized, fee {fee}")
        }
        (Some(price), None) if report.qty > 0 => {
            format!(
                "{qty} of {instrument} was closed at {price}, {lost} realized, commission not \
                 stated yet"
            )
        }
        _ if report.qty > 0 => {
            format!("{qty} of {instrument} was closed, {lost} realized with the commission")
        }
        _ => format!("a position of {instrument} is being closed"),
    };
    let by = match report.kind {
        ForcedClose::Unreported => "close that no order explains, by a person or ".to_owned(),
        ForcedClose::Liquidation | ForcedClose::Adl => format!("{} ", figures.reason),
    };
    format!("{by}{BY_VENUE}{closed}; check margin and positions, then windvane resume")
}

fn text(value: Decimal) -> String {
    value.normalize().to_string()
}
