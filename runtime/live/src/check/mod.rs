//! The preflight of a run. It checks everything that a start needs, without changing anything at
//! the venue, and prints one line for each result with a fix. It sends no order, countdown or
//! change of mode. The only thing that it creates at the venue is a listen key, which is the
//! account's only key and stays.
//!
//! Its output must not contain keys. It fixes nothing itself.

mod account;
mod local;
mod protection;
mod query;
mod report;
mod signer;
mod streams;
mod venue;

use std::path::PathBuf;

use windvane_client::budget::Lane;
use windvane_client::{Client, Settings};
use windvane_protocol::adapter::{FuturesAccount, Names};
use windvane_session::StartupTerms;

use super::exchange;
use super::identity::Identity;
use super::startup_steps;
use crate::bans;
use query::{PATIENCE, QueryClient};
pub use report::{Line, Report, Verdict};
use windvane_build::modules::Guest;
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, Mode};

/// How the venue is queried.
#[derive(Debug)]
pub struct CheckOptions {
    /// The addresses, and the keys if they could be read.
    pub settings: Settings,
    /// Why the keys could not be read.
    pub no_keys: Option<String>,
    /// Keys that a run needs and that the configuration does not set.
    pub not_set: Vec<&'static str>,
    /// The files that a run reads again at each reload.
    pub files: Vec<PathBuf>,
}

/// Runs all checks.
pub async fn check(config: &Config, options: CheckOptions) -> Report {
    let mut report = Report::default();
    local::configuration(config, &mut report);
    local::profile(config, &mut report);
    local::data_directory(config, &mut report);
    local::admin(config, &mut report);
    local::processors(config, &mut report);
    local::confinement(config, &mut report);
    let on_loopback = options.settings.addresses.are_loopback();
    let guests = local::modules(config, on_loopback, &mut report).await;
    let paper = config.run.mode == Mode::Paper;
    signer::signer(config, &mut report);
    protection::open_files(config, &options.files, &mut report);
    protection::secrets(config, &options.files, &mut report);
    let keys = keys(&options, paper, &mut report);
    let client = match Client::new(options.settings) {
        Ok(client) => client,
        Err(error) => {
            report.no_go("venue", error.to_string(), "");
            return report;
        }
    };
    let surfaces = startup_steps::surfaces(&assembly::instrument_names(config));
    if !paper {
        let identity = Identity::of(client.settings(), &surfaces);
        local::owner(&identity, &config.run.data_dir, &mut report);
    }
    bans::heed(&client, &config.run.data_dir);
    if let Some((_, text)) = bans::current_ban(&client, &surfaces) {
        let found = format!(
            "{text} (a ban from an earlier run): nothing was sent, so the rest was not checked"
        );
        let mend = "wait until then, or start windvane run, which waits by itself";
        report.no_go("venue", found, mend);
        return report;
    }
    // The checks read the same data as a start, so they may use the same share of the weight.
    let client = client.in_lane(Lane::Start);
    check_venue(config, &client, guests, keys && !paper, &mut report).await;
    bans::hand_on(&client, &config.run.data_dir);
    report
}

/// Runs the checks that need the venue.
async fn check_venue(
    config: &Config,
    client: &Client,
    guests: Option<Vec<Guest>>,
    trading: bool,
    report: &mut Report,
) {
    let names = assembly::instrument_names(config);
    let mut exchange = exchange::exchange(config, client.gateway().clone());
    let mut reached = Vec::new();
    for surface in startup_steps::surfaces(&names) {
        let queries = QueryClient::new(client, &*exchange);
        if venue::clock(config, surface, queries, report).await {
            reached.push(surface);
        }
    }
    let Some(market) = venue::instruments(config, &reached, client, report).await else {
        return;
    };
    venue::plan(config, &reached, client, report);
    if let Some(guests) = guests {
        local::begin(config, guests, &market, report);
    }
    if trading {
        let account = futures_account(config, &names, client).await;
        let names = Names::new(&market.instruments, market.assets.names());
        exchange.configure(names, account.clone());
        let queries = QueryClient::new(client, &*exchange);
        let ids = local::folder_ids(&config.run.data_dir);
        for surface in &reached {
            account::look(config, *surface, queries, (&account, &ids), report).await;
        }
    }
    let queries = QueryClient::new(client, &*exchange);
    streams::listen(config, &reached, trading, queries, report).await;
}

/// The route that reads the futures account. Without an address or a response, it returns the
/// futures account routes, and their check then explains what to fix.
async fn futures_account(
    config: &Config,
    names: &[InstrumentName],
    client: &Client,
) -> FuturesAccount {
    let terms = StartupTerms {
        instruments: Vec::new(),
        reads_clocks: false,
        futures_account: startup_steps::find_account(config, names),
    };
    let found = venue::find_out(config, client, terms);
    match tokio::time::timeout(PATIENCE, found).await {
        Ok(Ok(known)) => known.futures_account,
        Ok(Err(_)) | Err(_) => FuturesAccount::Routes,
    }
}

fn keys(options: &CheckOptions, paper: bool, report: &mut Report) -> bool {
    if paper {
        report.ok("keys", "paper trading needs no keys");
        return false;
    }
    for setting in &options.not_set {
        let found = format!("account.{setting} is not set");
        report.wrong(
            "keys",
            found,
            "set it to { env = \"NAME\" } or { file = \"PATH\" }",
        );
    }
    match &options.no_keys {
        Some(why) => report.wrong("keys", why.clone(), "make it readable for this user only"),
        None if options.not_set.is_empty() => report.ok("keys", "every key can be read"),
        None => {}
    }
    options.no_keys.is_none() && options.not_set.is_empty()
}
