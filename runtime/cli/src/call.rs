//! `windvane call ROUTE k=v ...`: sends a typed and signed request to any route of the venue.

use std::io::{IsTerminal, Write};

use clap::Args;
use serde_json::json;
use windvane_client::call::{Call, CallError, Options};
use windvane_client::{Addresses, Client, NotDone, RawAnswer, Refusal, RequestError};
use windvane_protocol::route::{Scheme, Security, Surface};

use super::place::{Place, SurfaceWord};
use super::{Failure, print_line};
use windvane_live::connection::{self, ConnectionError, Needs, Part};

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
                print_line(&not_done_json(&refused).to_string())?;
            }
            return Err(ConnectionError::from(missing).into());
        }
        let client = Client::new(settings).map_err(Failure::failed)?;
        if self.dry_run {
            let dry = call.dry_run(&client)?;
            return print_line(&serde_json::to_string(&dry).map_err(Failure::failed)?);
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
            Ok(answer) => print_line(&self.answer_text(&answer)),
            Err(not_done) => {
                if self.json {
                    print_line(&not_done_json(&not_done).to_string())?;
                }
                Err(match &not_done {
                    NotDone::Refused(Refusal::NotMade(_)) => Failure::usage(not_done),
                    _ => Failure::failed(not_done),
                })
            }
        }
    }

    /// With `--json` the venue's response unchanged, otherwise indented.
    fn answer_text(&self, answer: &RawAnswer) -> String {
        let text = answer.text.trim();
        if self.json || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return text.to_owned();
        }
        spread(text)
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
        eprintln!("{surface}: cannot read the venue's time, so the local clock is used: {error}");
    }
}

/// A dry run opens no socket, so it needs no address. For a surface without an address, this sets a
/// host name that can never exist (RFC 2606).
fn with_placeholders(mut addresses: Addresses) -> Result<Addresses, Failure> {
    for surface in Surface::ALL {
        if addresses.rest_of(surface).is_none() {
            let placeholder = format!("http://{surface}.invalid");
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
    eprint!("{query}\nSend it? Type yes: ");
    let mut line = String::new();
    std::io::stderr()
        .flush()
        .and_then(|()| std::io::stdin().read_line(&mut line))
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

/// Adds line breaks and indentation to valid JSON. Numbers keep their text.
fn spread(text: &str) -> String {
    let mut spread = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let (mut in_text, mut escaped) = (false, false);
    let mut letters = text.chars().peekable();
    let new_line = |spread: &mut String, depth: usize| {
        spread.push('\n');
        spread.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if in_text {
            spread.push(letter);
            in_text = letter != '"' || escaped;
            escaped = letter == '\\' && !escaped;
            continue;
        }
        match letter {
            '"' => {
                in_text = true;
                spread.push(letter);
            }
            '{' | '[' => {
                spread.push(letter);
                while letters.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    spread.push(end);
                } else {
                    depth += 1;
                    new_line(&mut spread, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut spread, depth);
                spread.push(letter);
            }
            ',' => {
                spread.push(letter);
                new_line(&mut spread, depth);
            }
            ':' => spread.push_str(": "),
            blank if blank.is_whitespace() => {}
            other => spread.push(other),
        }
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_keeps_every_token() {
        let text = r#"{"a":[1.10,{"b":"x,\"{}:\\"}],"c":{},"d":[ ], "e":12345678901234567890.000}"#;
        let spread = spread(text);
        assert!(spread.contains("12345678901234567890.000"), "{spread}");
        assert!(spread.contains(r#""b": "x,\"{}:\\""#), "{spread}");
        assert!(spread.contains("\"c\": {},\n  \"d\": []"), "{spread}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&spread), read(text));
    }
}
