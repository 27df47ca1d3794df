//! Decides which settings may change while a run goes on. All other changes are refused, because
//! the run was set up with the old values.

use super::{Config, Strategy};

/// Returns the key of the first setting that differs and cannot change while a run goes on.
///
/// These may change: `[risk]`, `[journal]`, `[compile]`, `run.on_stop`, and for each strategy `module`,
/// `params`, `limits` and `on_fault`. For secrets, only the source is compared; their text is read
/// only at startup.
pub fn fixed_difference(old: &Config, new: &Config) -> Option<String> {
    // All sections are listed, so that a new section does not compile until its author decides
    // here.
    let Config {
        name: _,
        run,
        venue,
        account,
        heartbeat,
        reconcile,
        risk: _,
        admin,
        signer,
        strategies,
        instruments: _,
        backtest: _,
        sim,
        // Retention may change: it affects only which segments are kept.
        journal: _,
        // The next compilation uses the new limits.
        compile: _,
    } = new;
    let fixed = [
        ("run.mode", run.mode == old.run.mode),
        ("run.data_dir", run.data_dir == old.run.data_dir),
        ("run.on_start", run.on_start == old.run.on_start),
        ("run.busy_poll", run.busy_poll == old.run.busy_poll),
        ("run.keep_awake", run.keep_awake == old.run.keep_awake),
        ("run.confine", run.confine == old.run.confine),
        ("run.allow_source", run.allow_source == old.run.allow_source),
        ("venue.profile", venue.profile == old.venue.profile),
        ("venue.brand", venue.brand == old.venue.brand),
        ("venue.spot", venue.spot == old.venue.spot),
        ("venue.futures", venue.futures == old.venue.futures),
        ("venue.chain", venue.chain == old.venue.chain),
        ("venue.rpc", venue.rpc == old.venue.rpc),
        ("venue.api", venue.api == old.venue.api),
        ("venue.network", venue.network == old.venue.network),
        (
            "venue.market_data",
            venue.market_data == old.venue.market_data,
        ),
        ("venue", *venue == old.venue),
        ("account.api_key", account.api_key == old.account.api_key),
        (
            "account.api_secret",
            account.api_secret == old.account.api_secret,
        ),
        ("account.signer", account.signer == old.account.signer),
        ("account.user", account.user == old.account.user),
        (
            "account.position_mode",
            account.position_mode == old.account.position_mode,
        ),
        ("account", *account == old.account),
        ("heartbeat", *heartbeat == old.heartbeat),
        ("reconcile", *reconcile == old.reconcile),
        ("admin", *admin == old.admin),
        ("signer", *signer == old.signer),
        ("sim", *sim == old.sim),
    ];
    let differs = fixed.iter().find(|(_, same)| !same);
    if let Some((key, _)) = differs {
        return Some((*key).to_owned());
    }
    if strategies.len() != old.strategies.len() {
        return Some("strategy (a strategy was added or removed)".to_owned());
    }
    let pairs = old.strategies.iter().zip(strategies).enumerate();
    let mut differences = pairs.filter_map(|(at, (old, new))| {
        let key = strategy_difference(old, new)?;
        Some(format!("strategy.{at}.{key}"))
    });
    differences.next()
}

fn strategy_difference(old: &Strategy, new: &Strategy) -> Option<&'static str> {
    let Strategy {
        id,
        module: _,
        instruments,
        streams,
        capabilities,
        params: _,
        limits: _,
        on_fault: _,
    } = new;
    let fixed = [
        ("id", *id == old.id),
        ("instruments", *instruments == old.instruments),
        ("streams", *streams == old.streams),
        ("capabilities", *capabilities == old.capabilities),
    ];
    fixed.iter().find(|(_, same)| !same).map(|(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::super::Overrides;
    use super::*;

    const FILE: &str = r#"
        [venue]
        futures.rest = "http://127.0.0.1:1"
        [account]
        api_key = { env = "A" }
        [[strategy]]
        id = "a"
        module = "a.wasm"
        instruments = ["futures:BTCUSDT"]
    "#;

    fn changed(set: &str) -> Option<String> {
        let read = |set: Vec<String>| {
            let overrides = Overrides {
                set,
                ..Overrides::default()
            };
            Config::parse(FILE, "f", &overrides).unwrap()
        };
        fixed_difference(&read(Vec::new()), &read(vec![set.to_owned()]))
    }

    #[test]
    fn only_changeable_settings_may_differ() {
        for (set, key) in [
            ("run.mode=live", "run.mode"),
            ("run.data_dir=elsewhere", "run.data_dir"),
            ("run.busy_poll=true", "run.busy_poll"),
            ("run.keep_awake=true", "run.keep_awake"),
            ("run.confine=false", "run.confine"),
            ("venue.brand=other", "venue.brand"),
            ("venue.profile=aster", "venue.profile"),
            ("venue.limits.spot_streams=7", "venue"),
            ("venue.futures.rest=http://127.0.0.1:2", "venue.futures"),
            ("account.api_key={ env = \"B\" }", "account.api_key"),
            ("heartbeat.countdown_ms=60000", "heartbeat"),
            ("strategy.0.id=b", "strategy.0.id"),
            (
                "strategy.0.instruments=[\"spot:BTCUSDT\"]",
                "strategy.0.instruments",
            ),
        ] {
            assert_eq!(changed(set).as_deref(), Some(key), "{set}");
        }
        for set in [
            "risk.max_open_orders=3",
            "run.on_stop=keep",
            "strategy.0.module=b.wasm",
            "strategy.0.params.qty=1",
            "strategy.0.limits.fuel_per_event=5",
            "strategy.0.on_fault=keep",
        ] {
            assert_eq!(changed(set), None, "{set}");
        }
    }
}
