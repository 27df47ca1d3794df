//! `windvane call ROUTE k=v ...`: sends a typed and signed request to any route of the venue.

use std::io::{BufRead, IsTerminal, Read, Write};

use clap::Args;
use serde_json::json;
use windvane_client::call::{Call, CallError, Options};
use windvane_client::{Addresses, Client, NotDone, RawAnswer, Refusal, RequestError};
use windvane_model::outside_text;
use windvane_protocol::json_text;
use windvane_protocol::route::{Scheme, Security, Surface};

use super::Failure;
use super::place::{Place, SurfaceWord};
use super::printing::{RESULT_MAX, note, print_json, print_lines};
use windvane_live::connection::{self, ConnectionError, Needs, Part};

/// Longest confirmation that is read, bytes.
const LINE_MAX: u64 = 256;

#[derive(Debug, Args)]
pub(super) struct CallVerb {
    /// Name of the route, as `windvane routes` prints it
    #[arg(value_name = "ROUTE")]
    route: String,
    /// Parameters; missing authentication and typed-data fields are filled in
    #[arg(value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    #[command(flatten)]
    place: Place,
    /// Surface, if several surfaces have a route with this name
    #[arg(long, value_enum)]
    surface: Option<SurfaceWord>,
    /// Print method, URL, headers, body and the signed data as JSON; send nothing
    #[arg(long)]
    dry_run: bool,
    /// Time of the request instead of now, milliseconds
    #[arg(long, value_name = "MS")]
    timestamp: Option<i64>,
    /// Nonce of the request instead of a fresh one, microseconds
    #[arg(long, value_name = "US")]
    nonce: Option<u64>,
    /// Do not ask before withdrawals, transfers and requests that grant rights
    #[arg(long)]
    yes: bool,
    /// Print JSON, also if the request fails
    #[arg(long)]
    json: bool,
}

impl CallVerb {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = Options {
            surface: self.surface.map(Surface::from),
            api: self.place.api.map(Into::into),
            timestamp_ms: self.timestamp,
            nonce_us: self.nonce,
        };
        let mut call = None;
        let config = self.place.config()?;
        let mut settings = self.place.settings_of(&config, |settings| {
            let parsed = Call::parse(&self.route, &self.parameters, settings, &options)?;
            let listing = parsed.route().listing(parsed.version());
            let is_given = |name: &str| {
                let prefix = format!("{name}=");
                self.parameters
                    .iter()
                    .any(|given| given.starts_with(&prefix))
            };
            let mut needs = listing.map_or_else(Needs::default, |one| Needs::of(one, is_given));
            // The key is sent if there is one. The route may need none (see `prepare`).
            needs.api_key |= parsed.route().security == Security::MarketData;
            call = Some(parsed);
            Ok(needs)
        })?;
        let call = call.ok_or_else(|| Failure::usage("no route was parsed"))?;
        if self.dry_run {
            settings.addresses = with_placeholders(settings.addresses)?;
        }
        let surface = call.route().surface;
        if let Err(missing) = connection::require(&config, &settings.addresses, surface, Part::Rest)
        {
            if self.json {
                let refused = NotDone::Refused(RequestError::NoAddress(surface).into());
                print_json(&not_done_json(&refused).to_string())?;
            }
            return Err(ConnectionError::from(missing).into());
        }
        let client = Client::new(settings).map_err(Failure::failed)?;
        if self.dry_run {
            let dry = call.dry_run(&client)?;
            return print_json(&serde_json::to_string(&dry).map_err(Failure::failed)?);
        }
        if let Some(query) = call.confirmation().filter(|_| !self.yes) {
            confirm(&query)?;
        }
        let outcome = super::block_on(async {
            // Do not fetch the venue's time for a request that cannot be built.
            if call.needs_time() && call.dry_run(&client).is_ok() {
                learn_time(&client, call.route().surface).await;
            }
            call.run(&client).await
        })?;
        match outcome.into_result() {
            Ok(answer) => self.print(&answer),
            Err(not_done) => {
                if self.json {
                    print_json(&not_done_json(&not_done).to_string())?;
                }
                Err(match &not_done {
                    NotDone::Refused(Refusal::NotMade(_)) => Failure::usage(not_done),
                    _ => Failure::failed(not_done),
                })
            }
        }
    }

    /// With `--json` the venue's response with its own white space, otherwise indented. A response
    /// that is not JSON is one line.
    fn print(&self, answer: &RawAnswer) -> Result<(), Failure> {
        let text = answer.text.trim();
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return print_lines(&outside_text::one_line(text, RESULT_MAX));
        }
        match json_text::indented(text).filter(|_| !self.json) {
            Some(indented) => print_json(&indented),
            None => print_json(text),
        }
    }
}

/// Whether requests of this scheme contain a timestamp that the venue checks.
pub(super) const fn is_signed(scheme: Scheme) -> bool {
    !matches!(scheme, Scheme::Open | Scheme::ApiKey)
}

/// Estimates the offset between the local clock and the venue's, which checks signed requests by
/// its own clock.
pub(super) async fn learn_time(client: &Client, surface: Surface) {
    // The first sample includes the time to connect.
    if let Err(error) = client.sync_clock(surface, 2).await {
        note(format!(
            "{surface}: cannot read the venue's time, so the local clock is used: {error}"
        ));
    }
}

/// A dry run opens no socket, so it needs no address. For a surface without an address, this sets a
/// host name that can never exist (RFC 2606).
fn with_placeholders(mut addresses: Addresses) -> Result<Addresses, Failure> {
    for surface in Surface::ALL {
        if addresses.rest_of(surface).is_none() {
            let placeholder = format!("https://{surface}.invalid");
            addresses = addresses
                .rest(surface, &placeholder)
                .map_err(Failure::failed)?;
        }
    }
    Ok(addresses)
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::usage(error)
    }
}

fn confirm(query: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "{query}: this moves assets or grants rights, and there is no terminal to ask on; \
             pass --yes to confirm"
        )));
    }
    eprint!("{}\nSend it? Type yes: ", outside_text::message(query));
    let mut line = String::new();
    // A terminal that never sends a line end must not fill the memory.
    let mut input = std::io::stdin().lock().take(LINE_MAX);
    std::io::stderr()
        .flush()
        .and_then(|()| input.read_line(&mut line))
        .map_err(Failure::failed)?;
    if line.trim() == "yes" {
        Ok(())
    } else {
        Err(Failure::Failed(
            "not confirmed; nothing was sent".to_owned(),
        ))
    }
}

fn not_done_json(not_done: &NotDone) -> serde_json::Value {
    match not_done {
        NotDone::Refused(refusal) => json!({
            "outcome": "refused",
            "code": refusal.code(),
            "message": refusal.to_string(),
            "advice": refusal.advice(),
        }),
        NotDone::Unknown(reason) => json!({
            "outcome": "unknown",
            "message": reason.to_string(),
            "advice": reason.advice(),
        }),
        NotDone::Wait(wait) => json!({
            "outcome": "wait",
            "after_ms": u64::try_from(wait.after.as_millis()).ok(),
            "message": wait.why.to_string(),
            "advice": wait.advice(),
        }),
    }
}
