//! The signer's policy: the operator's file, or what the configuration implies.

use rust_decimal::Decimal;
use windvane_config::{Config, Risk, assembly};
use windvane_session::venue_surface;
use windvane_signer::{Limits, Policy, PolicyFileError};

/// The policy of a configuration: `signer.policy`, or without it the instruments of the strategies,
/// `max_order_notional` and `max_orders_per_minute`. A limit that the configuration does not set is no
/// limit then.
///
/// # Errors
/// The policy file cannot be used.
pub fn policy(config: &Config) -> Result<Policy, PolicyFileError> {
    if let Some(file) = &config.signer.policy {
        return Policy::load(file);
    }
    let strategies: Vec<Risk> = config
        .strategies
        .iter()
        .map(|strategy| strategy.limits.risk())
        .collect();
    let limits = Limits {
        max_quantity: None,
        max_notional: max_notional(&config.risk, &strategies),
        allow_unpriced: true,
    };
    let names = assembly::instrument_names(config).into_iter();
    let symbols = names.map(|name| ((venue_surface(name.surface), name.symbol), limits));
    let per_minute = orders_per_minute(&config.risk, &strategies);
    Ok(Policy::new(symbols, per_minute))
}

/// The largest order that any strategy may send.
fn max_notional(account: &Risk, strategies: &[Risk]) -> Option<Decimal> {
    let each: Option<Vec<Decimal>> = strategies
        .iter()
        .map(|one| one.max_order_notional)
        .collect();
    let largest = each.and_then(|each| each.into_iter().max());
    smaller(account.max_order_notional, largest)
}

/// The orders that all strategies together may send in a minute.
fn orders_per_minute(account: &Risk, strategies: &[Risk]) -> Option<u32> {
    let each: Option<Vec<u32>> = strategies
        .iter()
        .map(|one| one.max_orders_per_minute)
        .collect();
    let all = each.map(|each| each.into_iter().fold(0, u32::saturating_add));
    smaller(account.max_orders_per_minute, all)
}

/// The smaller of two limits, of which each may be absent.
fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(risk: &str, limits: [&str; 2]) -> String {
        let strategy = |id: &str, limits: &str| {
            format!(
                "[[strategy]]\nid = \"{id}\"\nmodule = \"a.wasm\"\n\
                 instruments = [\"futures:BTCUSDT\"]\nlimits = {{ {limits} }}\n"
            )
        };
        let [first, second] = limits;
        let text = format!(
            "[risk]\n{risk}\n{}{}",
            strategy("a", first),
            strategy("b", second)
        );
        let config = Config::parse(&text, "test", &windvane_config::Overrides::default()).unwrap();
        policy(&config).unwrap().to_string()
    }

    #[test]
    fn a_policy_without_a_file_follows_from_the_limits() {
        let none = text("", ["", ""]);
        assert!(none.contains("no limit per minute"), "{none}");
        assert!(
            none.contains("futures:BTCUSDT without a limit of size"),
            "{none}"
        );
        let account = text(
            "max_order_notional = 900\nmax_orders_per_minute = 7",
            ["", ""],
        );
        assert!(account.contains("at most 7 a minute"), "{account}");
        assert!(account.contains("value at most 900"), "{account}");
        let each = ["max_order_notional = 50, max_orders_per_minute = 2"; 2];
        let each = text("max_order_notional = 900", each);
        assert!(each.contains("at most 4 a minute"), "{each}");
        assert!(each.contains("value at most 50"), "{each}");
        let one = text(
            "",
            ["max_order_notional = 50, max_orders_per_minute = 2", ""],
        );
        assert!(one.contains("no limit per minute"), "{one}");
        assert!(one.contains("without a limit of size"), "{one}");
    }
}
