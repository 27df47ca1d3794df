//! The preflight of a run. It checks everything that a start needs, without changing anything at
//! the venue, and prints one line for each result with a fix. It sends no order, countdown or
//! change of mode. The only thing that it creates at the venue is a listen key, which is the
//! account's only key and stays.
//!
//! Its output must not contain keys. It fixes nothing itself.

mod account;
mod local;
mod query;
mod streams;
mod venue;

use serde::Serialize;
use serde_json::{Value, json};
use windvane_client::budget::Lane;
use windvane_client::{Client, Settings};
use windvane_protocol::adapter::{FuturesAccount, Names};
use windvane_session::StartupTerms;
use windvane_session::weights::{Plan, Use};

use super::exchange;
use super::identity::Identity;
use super::startup_steps;
use crate::bans;
use query::QueryClient;
use windvane_build::modules::Guest;
use windvane_config::assembly;
use windvane_config::{Config, InstrumentName, Mode};

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No problem.
    Ok,
    /// The run can start, but the operator should know this.
    Warn,
    /// The run must not start.
    NoGo,
}

/// One result with its explanation.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The area of the check.
    pub area: &'static str,
    /// The result.
    pub verdict: Verdict,
    /// The finding.
    pub found: String,
    /// How to fix it; empty if nothing must be fixed.
    pub mend: String,
    /// Whether the cause is the configuration, and not the environment.
    #[serde(skip)]
    pub by_configuration: bool,
}

/// All results of a preflight.
#[derive(Debug, Default)]
pub struct Report {
    /// The results, in the order of a start.
    pub lines: Vec<Line>,
    /// The plan of weights of each limit.
    pub plans: Vec<Plan>,
}

impl Report {
    fn add(&mut self, area: &'static str, verdict: Verdict, found: String, mend: &str) {
        self.lines.push(Line {
            area,
            verdict,
            found,
            mend: mend.to_owned(),
            by_configuration: false,
        });
    }

    fn ok(&mut self, area: &'static str, found: impl Into<String>) {
        self.add(area, Verdict::Ok, found.into(), "");
    }

    fn warn(&mut self, area: &'static str, found: impl Into<String>, mend: &str) {
        self.add(area, Verdict::Warn, found.into(), mend);
    }

    fn no_go(&mut self, area: &'static str, found: impl Into<String>, mend: &str) {
        self.add(area, Verdict::NoGo, found.into(), mend);
    }

    /// Adds a problem whose cause is the configuration.
    fn wrong(&mut self, area: &'static str, found: impl Into<String>, mend: &str) {
        self.no_go(area, found, mend);
        if let Some(line) = self.lines.last_mut() {
            line.by_configuration = true;
        }
    }

    /// Whether a run may start. Warnings do not prevent it.
    pub fn is_go(&self) -> bool {
        self.lines.iter().all(|line| line.verdict != Verdict::NoGo)
    }

    /// Whether an error in the configuration prevents a run.
    pub fn is_wrong(&self) -> bool {
        let at_fault = |line: &Line| line.verdict == Verdict::NoGo && line.by_configuration;
        self.lines.iter().any(at_fault)
    }

    /// The report as JSON for other programs.
    pub fn json(&self) -> Value {
        json!({
            "go": self.is_go(),
            "lines": self.lines,
            "plan": self.plans.iter().map(plan_json).collect::<Vec<_>>(),
        })
    }

    /// The report as text for people.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        for line in &self.lines {
            let verdict = match line.verdict {
                Verdict::Ok => "ok",
                Verdict::Warn => "warn",
                Verdict::NoGo => "NO-GO",
            };
            lines.push(format!("{verdict:<6} {:<14} {}", line.area, line.found));
            if !line.mend.is_empty() {
                lines.push(format!("{:<6} {:<14} -> {}", "", "", line.mend));
            }
        }
        for plan in &self.plans {
            lines.push(String::new());
            lines.extend(plan_lines(plan));
        }
        let end = if self.is_go() { "go" } else { "no-go" };
        lines.extend([String::new(), end.to_owned()]);
        lines.join("\n")
    }
}

fn plan_json(plan: &Plan) -> Value {
    let uses = plan.uses.iter().map(
        |one| json!({"what": one.what, "times": one.times, "weight": one.weight, "sum": one.sum()}),
    );
    json!({
        "surface": plan.surface.as_str(),
        "interval_ms": plan.interval_ms,
        "limit": plan.limit,
        "sum": plan.sum(),
        "symbols_max": plan.symbols_max(),
        "uses": uses.collect::<Vec<_>>(),
        "polling": plan.polling.to_string(),
    })
}

fn plan_lines(plan: &Plan) -> Vec<String> {
    let (surface, interval) = (plan.surface.as_str(), plan.interval_ms);
    let mut lines = vec![format!(
        "plan of request weights, {surface}, for each {interval} ms"
    )];
    let row = |one: &Use| {
        let (times, weight, sum) = (one.times, one.weight, one.sum());
        format!("  {:<26} {times:>5} x {weight:>4} = {sum:>6}", one.what)
    };
    lines.extend(plan.binding().map(row));
    let (sum, limit) = (plan.sum(), plan.limit);
    lines.push(format!(
        "  {:<26} {:>12} = {sum:>6} of {limit}; from the rest:",
        "sum", ""
    ));
    lines.extend(plan.beside().map(row));
    lines.push(format!("  {}", plan.polling));
    lines
}

/// How the venue is queried.
#[derive(Debug)]
pub struct CheckOptions {
    /// The addresses, and the keys if they could be read.
    pub settings: Settings,
    /// Why the keys could not be read.
    pub no_keys: Option<String>,
    /// Keys that a run needs and that the configuration does not set.
    pub not_set: Vec<&'static str>,
}

/// Runs all checks.
pub async fn check(config: &Config, options: CheckOptions) -> Report {
    let mut report = Report::default();
    local::configuration(config, &mut report);
    local::profile(config, &mut report);
    local::data_directory(config, &mut report);
    local::admin(config, &mut report);
    local::processors(config, &mut report);
    let guests = local::modules(config, &mut report).await;
    let paper = config.run.mode == Mode::Paper;
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

/// The route that reads the futures account. Without an address or a response, it returns the usual
/// routes, and their check then explains what to fix.
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
    match tokio::time::timeout(venue::PATIENCE, found).await {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_allow_a_run_and_fixes_follow_each_line() {
        let mut report = Report::default();
        report.ok("clock", "0 ms");
        report.warn("latch", "paused", "windvane resume");
        assert!(report.is_go() && !report.is_wrong());
        report.no_go("account", "canTrade is false", "ask the venue");
        assert!(!report.is_go() && !report.is_wrong());
        report.wrong("keys", "account.api_key is not set", "set it");
        assert!(report.is_wrong());
        let text = report.text();
        assert!(
            text.contains("NO-GO  account        canTrade is false\n"),
            "{text}"
        );
        assert!(
            text.contains("-> ask the venue") && text.ends_with("\nno-go"),
            "{text}"
        );
        let json = report.json();
        assert_eq!(
            (&json["go"], &json["lines"][1]["verdict"]),
            (&json!(false), &json!("warn"))
        );
    }
}
