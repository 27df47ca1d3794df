//! The configuration file of a life.

use std::fmt::Write as _;

use super::quoters;
use crate::random::Random;
use crate::witness::{LimitTerms, Terms};

/// The configuration file for these drawn settings.
pub fn config(terms: &Terms, random: &mut Random, sizes: &mut Random) -> String {
    let mut text = format!(
        r#"[run]
mode = "live"
data_dir = "unused"
on_start = "{on_start}"
on_stop = "{on_stop}"

[venue]
brand = "svc"
spot.rest = "http://127.0.0.1:1"
spot.ws = "ws://127.0.0.1:1"
futures.rest = "http://127.0.0.1:2"
futures.ws = "ws://127.0.0.1:2"
api = "{api}"
recv_window_ms = {recv_window}

[heartbeat]
countdown_ms = {countdown}
interval_ms = {renew}

[reconcile]
interval_ms = {reconcile}

[risk]
on_liquidation = "{on_liquidation}"
"#,
        on_start = terms.on_start,
        on_stop = terms.on_stop,
        on_liquidation = terms.on_liquidation,
        api = if terms.v3 { "v3" } else { "v1" },
        recv_window = terms.recv_window_ms,
        countdown = terms.countdown_ms,
        renew = terms.renew_ms,
        reconcile = terms.reconcile_ms,
    );
    limits(&mut text, &terms.limits);
    if let Some(loss) = &terms.max_daily_loss {
        let _ = writeln!(text, "max_daily_loss = \"{loss}\"");
    }
    let samples = terms.strategies.iter();
    for strategy in samples.filter(|one| one.module != quoters::MODULE) {
        // Quantities that are whole lots of both symbols.
        let large = sizes.chance(250_000);
        let qty = match (strategy.instruments[0].contains("ETH"), large) {
            (true, true) => "0.4",
            (true, false) => "0.2",
            (false, true) => "0.02",
            (false, false) => "0.01",
        };
        let maker = strategy.module == "market_maker";
        let streams = if maker { "book" } else { "trade" };
        let on_fault = &strategy.on_fault;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[strategy]]\nid = \"{}\"\nmodule = \"strategies/{}\"\ninstruments = [\"{}\"]\n\
             streams = [\"{streams}\"]\non_fault = \"{on_fault}\"\n\n[strategy.params]\nqty = \"{qty}\"\n",
            strategy.id, strategy.module, strategy.instruments[0],
        );
        let _ = if maker {
            let distance = random.between(1, 8);
            let threshold = random.between(2, 20);
            let most = if strategy.instruments[0].contains("ETH") {
                "1"
            } else {
                "0.05"
            };
            writeln!(
                text,
                "reference = \"touch\"\nhalf_spread_ticks = {distance}\n\
                 replace_threshold_ticks = {threshold}\nmax_position = \"{most}\""
            )
        } else {
            let fast = random.between(3, 10);
            let slow = fast + random.between(3, 20);
            let mode = if random.chance(300_000) {
                "flip_each_sign"
            } else {
                "position"
            };
            writeln!(text, "fast = {fast}\nslow = {slow}\nmode = \"{mode}\"")
        };
        text.push_str("\n[strategy.limits]\n");
        limits(&mut text, &strategy.limits);
        // Some strategies lose this much, and are quarantined for it.
        if sizes.chance(100_000) {
            text.push_str("max_daily_loss = \"2\"\n");
        }
    }
    quoters::write(&mut text, terms);
    text
}

/// Writes the lines of some limits.
pub fn limits(text: &mut String, limits: &LimitTerms) {
    let texts = [
        ("max_order_notional", &limits.max_order_notional),
        ("max_position_notional", &limits.max_position_notional),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = \"{value}\"");
        }
    }
    let counts = [
        ("max_open_orders", limits.max_open_orders),
        ("max_orders_per_minute", limits.max_orders_per_minute),
    ];
    for (key, value) in counts {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}
