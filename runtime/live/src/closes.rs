//! Shows the operator the closes that are not finished: why they wait, and for how long.

use windvane_admin::view;
use windvane_engine::Engine;
use windvane_engine::engine::{CloseReason, CloseWait};
use windvane_model::{Instrument, Time};
use windvane_protocol::error::VenueError;

/// Every close that is not finished.
pub fn shown(engine: &Engine) -> Vec<view::Close> {
    let waits = engine.close_waits();
    waits.iter().map(|wait| row(engine, wait)).collect()
}

fn row(engine: &Engine, wait: &CloseWait) -> view::Close {
    let positions = wait.positions.iter().filter_map(|(id, qty)| {
        let instrument = engine.instrument(*id)?;
        let qty = instrument.qty(*qty).normalize();
        Some(format!("{qty} {}", instrument.name()))
    });
    view::Close {
        strategy: engine
            .strategy_name(wait.strategy)
            .unwrap_or_default()
            .to_owned(),
        open: positions.collect(),
        waits_for: wait
            .reasons
            .iter()
            .map(|reason| reason_text(engine, reason))
            .collect(),
        what_to_do: wait.reasons.iter().find_map(what_to_do),
        since_ms: wait.since.millis(),
        waiting_s: seconds(wait.since, engine.now()),
    }
}

/// A close as one sentence.
pub fn describe(close: &view::Close) -> String {
    let view::Close {
        strategy,
        waiting_s,
        ..
    } = close;
    let open = match close.open.as_slice() {
        [] => "its orders".to_owned(),
        open => open.join(", "),
    };
    if let Some(what_to_do) = &close.what_to_do {
        let why = close.waits_for.join(", and ");
        return format!("{open} of {strategy} stays open: {why}. To do: {what_to_do}");
    }
    let waits_for = match close.waits_for.as_slice() {
        [] => "the next try".to_owned(),
        reasons => reasons.join(", and for "),
    };
    format!("closing {open} of {strategy} for {waiting_s} s: it waits for {waits_for}")
}

/// After this many rejections in a row, a person must act.
const MANY_REFUSALS: u32 = 3;

fn what_to_do(reason: &CloseReason) -> Option<String> {
    let what = match reason {
        CloseReason::TooSmall { .. } => {
            "close it by hand at the venue, or run windvane flatten again once the symbol accepts \
             smaller orders"
        }
        CloseReason::Refused { count, .. } if *count >= MANY_REFUSALS => {
            "remove the cause of the rejection, or close the position by hand at the venue. The \
             run tries again at least once a minute; windvane flatten tries at once, windvane \
             resume ends the close"
        }
        _ => return None,
    };
    Some(what.to_owned())
}

/// An error code with its name from the venue's documents.
fn named(code: i32) -> String {
    VenueError {
        code: code.into(),
        msg: String::new(),
    }
    .to_string()
}

fn seconds(from: Time, to: Time) -> u64 {
    let ns = to.0.saturating_sub(from.0).max(0).unsigned_abs();
    ns / 1_000_000_000
}

fn reason_text(engine: &Engine, reason: &CloseReason) -> String {
    let left = |until: Time| seconds(engine.now(), until) + 1;
    match reason {
        CloseReason::Syncing => "the comparison of the account with the venue".to_owned(),
        CloseReason::Cancels(1) => "the cancel of 1 order".to_owned(),
        CloseReason::Cancels(count) => format!("the cancels of {count} orders"),
        CloseReason::OutcomeUnknown(id) => {
            format!("the venue's report about order {id}, whose outcome is unknown")
        }
        CloseReason::Sent(id) => format!("the result of the closing order {id}, which was sent"),
        CloseReason::VenueWait(surface, until) => format!(
            "the {surface} request limit: the venue accepts no request for {} s",
            left(*until)
        ),
        CloseReason::OrderLimit(surface, until) => format!(
            "the {surface} order limit: the venue accepts no order for {} s, and bans a client \
             that sends one",
            left(*until)
        ),
        CloseReason::Journal => "the journal, which does not write: check the disk".to_owned(),
        CloseReason::Clock(surface) => format!("a response with the venue's {surface} time"),
        CloseReason::Stream(surface) => format!(
            "a REST snapshot of the {surface} account that shows the position, because the user \
             stream is down"
        ),
        CloseReason::AwaitsSnapshot(surface) => format!(
            "a REST snapshot of the {surface} account that shows the position, because the account \
             is not reconciled"
        ),
        CloseReason::Pause(until) => {
            format!("the pause after a close that failed, {} s", left(*until))
        }
        CloseReason::Refused {
            instrument,
            code,
            count,
            next,
        } => {
            let rules = engine.instrument(*instrument);
            let name = rules.map(Instrument::name).unwrap_or_default();
            let refusal = match code {
                0 => "the last one was not sent".to_owned(),
                code => format!("the venue rejected the last one with {}", named(*code)),
            };
            let left = left(*next);
            if *count >= MANY_REFUSALS {
                format!(
                    "{count} closing orders in a row for {name} were not placed, and {refusal}; \
                     the next one is sent in {left} s"
                )
            } else {
                format!("the next closing order for {name}, in {left} s, because {refusal}")
            }
        }
        CloseReason::TooSmall {
            instrument,
            min_qty,
        } => {
            let rules = engine.instrument(*instrument);
            let min_qty = rules.map(|rules| rules.qty(*min_qty).normalize().to_string());
            format!(
                "it is below the symbol's minimum order size, {}, so no order can close it",
                min_qty.unwrap_or_default()
            )
        }
        CloseReason::Opposite => {
            "the cancels of another strategy's orders, before its opposite position is settled \
             against this one"
                .to_owned()
        }
    }
}
