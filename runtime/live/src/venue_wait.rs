//! Shows the operator how long the venue accepts no requests after a limit was exceeded.

use std::time::Duration;

use windvane_admin::view;
use windvane_client::Client;
use windvane_engine::Engine;
use windvane_model::{Instrument, Surface, Time};

use windvane_report::utc::seconds_text;
use windvane_session::venue_surface;

/// Logs every rejection that stops a whole surface, whichever request received it. The session
/// informs its engine.
pub async fn watch(client: Client, surfaces: Vec<Surface>) {
    let mut refusals = client.refusals();
    while refusals.changed().await.is_ok() {
        for surface in &surfaces {
            let Some(left) = client.stopped_for(venue_surface(*surface)) else {
                continue;
            };
            tracing::warn!(
                %surface,
                wait_s = left.as_secs_f64().ceil(),
                "the venue rejected a request because a limit was exceeded: nothing is sent during \
                 this wait, not even cancels. Then cancels are sent first, then closes, then \
                 renewals of countdowns"
            );
        }
    }
}

/// The current waits, with the orders and positions that stay open because of each.
pub fn shown(engine: &Engine) -> Vec<view::VenueWait> {
    waits(engine).into_iter().map(|(wait, _)| wait).collect()
}

/// Logs what a stop waits for, at once, because nothing else is logged before the wait is over.
/// `longest` is the maximum duration of a stop.
pub fn report_stop(engine: &Engine, longest: Duration) {
    for (wait, until) in waits(engine) {
        if wait.open.is_empty() {
            continue;
        }
        let until_text = seconds_text(until);
        let what_to_do = stop_advice(wait.left_s > longest.as_secs());
        let open = wait.open.join(", ");
        tracing::warn!(
            surface = wait.surface,
            wait_s = wait.left_s,
            until = until_text,
            open,
            what_to_do,
            "{}",
            stop_words(&wait)
        );
    }
}

fn stop_words(wait: &view::VenueWait) -> &'static str {
    match wait.what.as_str() {
        "orders" => {
            "the stop waits for the end of the venue's order limit: no close is sent before that"
        }
        _ => {
            "the stop waits until the venue accepts requests again: no cancel and no close is sent \
             before that"
        }
    }
}

const fn stop_advice(is_too_long: bool) -> &'static str {
    if is_too_long {
        "the wait is longer than the stop may last: the run ends first, and everything open stays \
         open. Cancel and close it by hand at the venue"
    } else {
        "wait for the end, or cancel and close by hand at the venue. A second signal ends the run \
         at once and leaves everything open"
    }
}

fn waits(engine: &Engine) -> Vec<(view::VenueWait, Time)> {
    let mut waits = Vec::new();
    for surface in Surface::ALL {
        let kinds = [
            ("requests", engine.venue_wait(*surface)),
            ("orders", engine.order_wait(*surface)),
        ];
        for (what, until) in kinds {
            let Some(until) = until else { continue };
            let wait = view::VenueWait {
                surface: surface.to_string(),
                what: what.to_owned(),
                left_s: left_s(engine, until),
                open: open(engine, *surface, what == "requests"),
            };
            waits.push((wait, until));
        }
    }
    waits
}

/// A wait as one sentence.
pub fn describe(wait: &view::VenueWait) -> String {
    let what = match wait.what.as_str() {
        "orders" => "accepts no new order",
        _ => "accepts no request",
    };
    let (surface, left_s) = (&wait.surface, wait.left_s);
    let open = match wait.open.as_slice() {
        [] => "nothing waits to be cancelled or closed".to_owned(),
        open => format!("still open: {}", open.join(", ")),
    };
    format!("{surface}: the venue {what} for {left_s} s, because a limit was exceeded; {open}")
}

fn left_s(engine: &Engine, until: Time) -> u64 {
    let left = until.0.saturating_sub(engine.now().0).max(0);
    Duration::from_nanos(left.unsigned_abs())
        .as_secs_f64()
        .ceil() as u64
}

/// Requests that are sent once the wait is over, in that order. The order limit delays only closes.
fn open(engine: &Engine, surface: Surface, all: bool) -> Vec<String> {
    let (positions, orders) = engine.left_open(surface);
    let name = |id| {
        engine
            .instrument(id)
            .map(Instrument::name)
            .unwrap_or_default()
    };
    let mut open = Vec::new();
    if all {
        open.extend(orders.iter().map(|order| {
            let name = name(order.instrument());
            let side = order.terms.side.as_str();
            format!("cancel of {} ({side} {name})", order.client_order_id)
        }));
    }
    open.extend(positions.iter().filter_map(|(strategy, id, qty)| {
        let instrument = engine.instrument(*id)?;
        let qty = instrument.qty(*qty).normalize();
        let strategy = engine.strategy_name(*strategy).unwrap_or("unknown");
        Some(format!("close of {qty} {} of {strategy}", name(*id)))
    }));
    if all {
        open.extend(engine.covered().into_iter().map(|(id, until)| {
            let left_s = left_s(engine, until);
            format!(
                "renewal of the countdown of {}, which ends in {left_s} s",
                name(id)
            )
        }));
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_names_the_limit_that_it_waits_for() {
        let wait = |what: &str| view::VenueWait {
            surface: "futures".to_owned(),
            what: what.to_owned(),
            left_s: 41,
            open: vec!["close of 1 futures:BTCUSDT of mm".to_owned()],
        };
        assert!(stop_words(&wait("orders")).contains("order limit"));
        assert!(stop_words(&wait("requests")).contains("accepts requests again"));
        assert!(stop_advice(false).contains("wait for the end"));
        assert!(stop_advice(true).contains("stays open"));
    }
}
