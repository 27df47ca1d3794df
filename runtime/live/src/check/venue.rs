//! Checks of the venue itself: its clock, its instruments with their rules, its limits.

use windvane_client::Client;
use windvane_client::budget::LimitKind;
use windvane_client::clock::Fit;
use windvane_model::instrument::SymbolStatus;
use windvane_model::{Instrument, Surface};
use windvane_protocol::Assets;

use super::super::startup_steps;
use super::query::{PATIENCE, QueryClient};
use super::report::Report;
use crate::connection::{self, Part, reads_info};
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, MarketData};
use windvane_session::weights::{Plan, Polling};
use windvane_session::{StartupError, StartupResult, StartupTerms, venue_surface};
/// How often a clock is read; the best reading counts.
const SAMPLES: u8 = 5;
/// A local clock that is further off should be corrected, although requests use the venue's time.
const FAR_US: i64 = 1_000_000;

/// The traded instruments and their assets.
#[derive(Debug)]
pub(super) struct Market {
    pub(super) instruments: Vec<Instrument>,
    pub(super) assets: Assets,
}

/// Reads the clock of a surface. Returns whether the surface responds.
pub(super) async fn clock(
    config: &Config,
    surface: Surface,
    queries: QueryClient<'_>,
    report: &mut Report,
) -> bool {
    let (client, venue) = (queries.client, venue_surface(surface));
    let addresses = &client.settings().addresses;
    let required = |surface, part| connection::require(config, addresses, surface, part);
    if let Err(missing) = required(venue, Part::Ws) {
        report.wrong("address", missing.to_string(), "");
    }
    if reads_info(config, venue)
        && let Err(missing) = required(windvane_protocol::route::Surface::Rpc, Part::Rest)
    {
        report.wrong("address", missing.to_string(), "");
    }
    let address = match required(venue, Part::Rest) {
        Ok(()) => addresses.rest_of(venue).map_or("", |url| url.as_str()),
        Err(missing) => {
            report.wrong("address", missing.to_string(), "");
            return false;
        }
    };
    // Each request has its own limit. This one is for all readings together, however slow the venue
    // is.
    let bound = PATIENCE * u32::from(SAMPLES);
    let read = tokio::time::timeout(bound, queries.clock(surface, SAMPLES)).await;
    let offset = match read {
        Ok(Ok(offset)) => offset,
        Ok(Err(error)) => {
            let found = format!("{surface} at {address}: {error}");
            report.no_go(
                "address",
                found,
                "wait until the venue responds; if it does not, correct the address",
            );
            return false;
        }
        Err(_) => {
            let found = format!("{surface} at {address}: no response within {bound:?}");
            report.no_go(
                "address",
                found,
                "wait until the venue responds; if it does not, correct the address",
            );
            return false;
        }
    };
    report.ok("address", format!("{surface} responds at {address}"));
    let window = config.venue.recv_window_ms;
    let found = format!(
        "{surface}: the venue's clock is {} ms ahead of this machine's, with an error of {} ms; \
         round trip {} ms, recv_window_ms {window}",
        offset.offset_us / 1_000,
        offset.error_us / 1_000,
        offset.round_trip_us / 1_000
    );
    match offset.fit(window) {
        Fit::Kept if offset.offset_us.abs() > FAR_US => report.warn(
            "clock",
            found,
            "requests use the venue's time, so trading works; still, set this machine's clock",
        ),
        Fit::Kept => report.ok("clock", found),
        Fit::MayBeAhead | Fit::MayBeLate => report.no_go(
            "clock",
            format!("{found}: the venue would reject requests with -1021"),
            "use a faster connection to the venue, or raise venue.recv_window_ms",
        ),
    }
    true
}

/// Queries the venue in the same way as a start.
pub(super) async fn find_out(
    config: &Config,
    client: &Client,
    terms: StartupTerms,
) -> Result<StartupResult, Box<StartupError>> {
    let (known, _) =
        startup_steps::find_out(config, client, (terms, None), || Ok::<_, Box<_>>(())).await?;
    Ok(known)
}

/// Reads the instruments with their rules.
pub(super) async fn instruments(
    config: &Config,
    reached: &[Surface],
    client: &Client,
    report: &mut Report,
) -> Option<Market> {
    let names = assembly::instrument_names(config);
    let missing = names.iter().any(|name| !reached.contains(&name.surface));
    if missing || names.is_empty() {
        return None;
    }
    let terms = StartupTerms {
        instruments: names.clone(),
        reads_clocks: false,
        futures_account: None,
    };
    let search = find_out(config, client, terms);
    let bound = PATIENCE * Surface::ALL.len() as u32;
    let known = match tokio::time::timeout(bound, search).await {
        Ok(Ok(known)) => known,
        Ok(Err(error)) if matches!(*error, StartupError::NotListed(_)) => {
            report.wrong("instruments", error.to_string(), "");
            return None;
        }
        Ok(Err(error)) => {
            report.no_go("instruments", error.to_string(), "");
            return None;
        }
        Err(_) => {
            report.no_go(
                "instruments",
                "the venue did not answer the request for exchange information in time",
                "",
            );
            return None;
        }
    };
    for (name, rules) in names.iter().zip(&known.instruments) {
        filters(name, rules, report);
    }
    Some(Market {
        instruments: known.instruments,
        assets: known.assets,
    })
}

fn filters(name: &InstrumentName, rules: &Instrument, report: &mut Report) {
    let mut parts = Vec::new();
    if let Some(price) = rules.filters.price {
        parts.push(format!("tick {}", rules.price(price.tick_size)));
    }
    if let Some(lot) = rules.filters.lot_size {
        let (step, least) = (rules.qty(lot.step_size), rules.qty(lot.min_qty));
        parts.push(format!(
            "step {step}, from {least} to {}",
            rules.qty(lot.max_qty)
        ));
    }
    if let Some(notional) = rules.filters.min_notional {
        parts.push(format!(
            "notional from {}",
            notional.to_decimal().normalize()
        ));
    }
    let found = format!("{name}: {}", parts.join(", "));
    if rules.status == SymbolStatus::Trading {
        report.ok("instruments", found);
    } else {
        let found = format!("{found}; its status is {}", rules.status);
        report.warn(
            "instruments",
            found,
            "the venue accepts no order for it until its status is TRADING",
        );
    }
}

/// Checks the venue's limits, and the plan that keeps a run within them.
pub(super) fn plan(config: &Config, reached: &[Surface], client: &Client, report: &mut Report) {
    for &surface in reached {
        let limits = client.with_budget(venue_surface(surface), |budget, _| budget.limits());
        let parts = limits.iter().map(|limit| {
            let kind = match limit.kind {
                LimitKind::Weight => "weight",
                LimitKind::Orders => "orders",
            };
            format!("{} {kind} in {} s", limit.limit, limit.interval_ms / 1_000)
        });
        let parts: Vec<_> = parts.collect();
        report.ok("limits", format!("{surface}: {}", parts.join(", ")));
        let orders = limits
            .iter()
            .filter(|limit| limit.kind == LimitKind::Orders);
        let per_minute = |limit: u32, ms: u64| u64::from(limit) * 60_000 / ms.max(1);
        let orders = orders
            .map(|limit| per_minute(limit.limit, limit.interval_ms))
            .min();
        if let (Some(wanted), Some(most)) = (config.risk.max_orders_per_minute, orders)
            && u64::from(wanted) > most
        {
            let found = format!(
                "risk.max_orders_per_minute = {wanted} exceeds the venue's limit of {most}"
            );
            report.warn(
                "limits",
                found,
                "orders beyond the venue's limit are not sent until the next interval; lower the \
                 setting",
            );
        }
        for plan in startup_steps::wants(config, surface).plans(&limits) {
            check_plan(config, &plan, report);
            report.plans.push(plan);
        }
    }
}

fn check_plan(config: &Config, plan: &Plan, report: &mut Report) {
    match plan.check() {
        Ok(()) => {
            let (surface, sum, limit) = (plan.surface, plan.sum(), plan.limit);
            let most = match plan.symbols_max() {
                0 => String::new(),
                most => format!("; there is room for {most} symbols"),
            };
            report.ok(
                "weights",
                format!("{surface}: a weight of {sum} of {limit} is planned{most}"),
            );
        }
        Err(overbooked) => report.wrong("weights", overbooked.to_string(), ""),
    }
    if let Polling::TooLittle(error) = &plan.polling {
        let documented = config.venue.market_data == MarketData::Documented;
        if documented {
            report.wrong(
                "weights",
                error.to_string(),
                "trade fewer instruments or streams",
            );
        } else {
            let mend = "market data that the venue does not stream could not be polled either; \
                        trade fewer instruments or streams";
            report.warn("weights", error.to_string(), mend);
        }
    }
}
