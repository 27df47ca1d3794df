//! Shows the operator the trading conditions of instruments: rules that the venue changed, leverage
//! and margin type. It makes no decisions.

use windvane_admin::metrics::table;
use windvane_admin::view;
use windvane_engine::Engine;
use windvane_model::instrument::{LotSize, PriceFilter};
use windvane_model::protocol::MarginTerms;
use windvane_model::{Amount, Decimal, Instrument, InstrumentId};

/// The rules that are compared, as text.
fn rules(of: &Instrument) -> [(&'static str, String); 8] {
    let PriceFilter {
        min_price,
        max_price,
        tick_size,
    } = of.filters.price.unwrap_or_default();
    let LotSize {
        min_qty,
        max_qty,
        step_size,
    } = of.filters.lot_size.unwrap_or_default();
    let notional = of.filters.notional.map(|filter| filter.min_notional);
    let least = of.filters.min_notional.or(notional).map(Amount::to_decimal);
    [
        ("status", of.status.to_string()),
        ("tickSize", text(of.price(tick_size))),
        ("minPrice", text(of.price(min_price))),
        ("maxPrice", text(of.price(max_price))),
        ("stepSize", text(of.qty(step_size))),
        ("minQty", text(of.qty(min_qty))),
        ("maxQty", text(of.qty(max_qty))),
        ("minNotional", text(least.unwrap_or_default())),
    ]
}

/// Logs the rules of an instrument that the venue changed.
pub fn changed(engine: &Engine, id: InstrumentId, before: &Instrument) {
    let Some(now) = engine.instrument(id) else {
        return;
    };
    let pairs = rules(before).into_iter().zip(rules(now));
    let changes: Vec<_> = pairs
        .filter(|((_, was), (_, is))| was != is)
        .map(|((what, was), (_, is))| format!("{what} {was} -> {is}"))
        .collect();
    let changes = if changes.is_empty() {
        "other filters".to_owned()
    } else {
        changes.join(", ")
    };
    let instrument = now.name();
    table::RULE_CHANGES.of([instrument.as_str()]).increment(1);
    tracing::warn!(
        instrument,
        changes,
        "the venue changed the rules of an instrument: new orders are checked by the new rules, \
         and open orders stay as they are"
    );
}

/// Logs that new rules cannot be used.
pub fn unusable(engine: &Engine, id: InstrumentId, why: &str) {
    let instrument = engine.instrument(id).map(Instrument::name);
    tracing::error!(
        instrument,
        why,
        what_to_do =
            "restart the run to trade by the new rules; closing orders are sent until then",
        "the new rules of an instrument cannot be used: no opening order is sent for it"
    );
}

/// Logs a change of leverage or margin type.
pub fn margin_changed(engine: &Engine, before: &MarginTerms, after: &MarginTerms) {
    let instrument = engine.instrument(after.instrument).map(Instrument::name);
    tracing::warn!(
        instrument,
        leverage_before = before.leverage,
        leverage = after.leverage,
        margin_type_before = before.isolated.map(margin_type),
        margin_type = after.isolated.map(margin_type),
        what_to_do = "change it back at the venue if this was not intended",
        "the leverage or the margin type of a symbol was changed outside this run: its margin and \
         its liquidation price are different now"
    );
}

/// The trading conditions of every instrument.
pub fn rows(engine: &Engine) -> Vec<view::Terms> {
    let row = |(index, rules): (usize, &Instrument)| {
        let id = InstrumentId(index as u16);
        let margin = engine
            .margin_terms()
            .find(|(terms, _)| terms.instrument == id);
        let of = |what: &str| {
            let all = self::rules(rules);
            let found = all.into_iter().find(|(name, _)| *name == what);
            found.map(|(_, value)| value).unwrap_or_default()
        };
        view::Terms {
            instrument: rules.name(),
            status: rules.status.to_string(),
            tick: of("tickSize"),
            step: of("stepSize"),
            min_notional: of("minNotional"),
            leverage: margin.and_then(|(terms, _)| terms.leverage),
            margin_type: margin
                .and_then(|(terms, _)| terms.isolated)
                .map(|isolated| margin_type(isolated).to_owned()),
            margin_changed_ms: margin
                .and_then(|(_, at)| at)
                .map(windvane_model::Time::millis),
            unusable: engine.unusable_rules(id).map(str::to_owned),
        }
    };
    engine.instruments().iter().enumerate().map(row).collect()
}

const fn margin_type(isolated: bool) -> &'static str {
    if isolated { "isolated" } else { "crossed" }
}

fn text(value: Decimal) -> String {
    value.normalize().to_string()
}
