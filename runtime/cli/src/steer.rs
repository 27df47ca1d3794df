//! Commands that query or control a running instance.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use windvane_admin::{Admin, Cancels, Command, Query, QueryError, Token, TokenSource, Wait};
use windvane_model::{Time, outside_text};

use super::Failure;
use super::printing::{print_json, print_lines};
use windvane_config::Config;
use windvane_live::TOKEN_FILE;
use windvane_report::utc::seconds_text;

/// Selects the instance and the output format.
#[derive(Debug, Args)]
pub(super) struct Instance {
    /// Configuration file of the instance; its data folder and its [admin] are used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override a setting, such as venue.api=v3; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print only JSON
    #[arg(long)]
    json: bool,
}

impl Instance {
    /// Sends a query and prints the response.
    pub(super) fn query(&self, query: Query) -> Result<(), Failure> {
        let mut answer = self.with_admin(async |admin| admin.get::<Value>(query).await)?;
        name_degraded_reasons(&mut answer);
        self.show(&answer)
    }

    fn with_admin<T>(
        &self,
        work: impl AsyncFnOnce(Admin) -> Result<T, QueryError>,
    ) -> Result<T, Failure> {
        let config = super::configuration(self.config.as_deref(), &self.set)?;
        let token = token(&config);
        let answered = super::block_on(async {
            let admin = Admin::in_data_dir(&config.run.data_dir, token).await?;
            work(admin).await
        })?;
        answered.map_err(|error| match error {
            QueryError::NotRunning(_) => Failure::NotRunning(error.to_string()),
            QueryError::Folder { .. } => Failure::usage(error),
            _ => Failure::failed(error),
        })
    }

    fn show<T: Serialize>(&self, answer: &T) -> Result<(), Failure> {
        let value = json!(answer);
        if self.json {
            return print_json(&value.to_string());
        }
        print_lines(&spoken(&value))
    }
}

/// The token of the TCP address. It is needed only without a socket, so an error comes later.
fn token(config: &Config) -> TokenSource {
    let Some(secret) = &config.admin.token else {
        return TokenSource::File(config.run.data_dir.join(TOKEN_FILE));
    };
    let read = secret.read().map_err(|error| error.to_string());
    let token = read.and_then(|text| {
        let token = Token::from_text(text.expose_secret(), "admin.token");
        token.map_err(|error| error.to_string())
    });
    token.map_or_else(TokenSource::Unreadable, TokenSource::Token)
}

/// A command that cancels own orders.
#[derive(Debug, Args)]
pub(super) struct Stop {
    #[command(flatten)]
    order: Order,
    /// Do not wait up to 10 seconds until the venue confirmed that own orders are no longer open
    #[arg(long)]
    no_wait: bool,
}

/// How long `halt` and `flatten` wait for the end of own orders.
const STOP_WAIT: Duration = Duration::from_secs(10);

impl Stop {
    /// Sends the command, and prints the new state and what became of own orders.
    pub(super) fn give(&self, command: Command) -> Result<(), Failure> {
        let wait = if self.no_wait {
            Duration::ZERO
        } else {
            STOP_WAIT
        };
        self.order.give_and_wait(command, Wait(wait))
    }
}

/// A command for the account or for one strategy.
#[derive(Debug, Args)]
pub(super) struct Order {
    #[command(flatten)]
    instance: Instance,
    /// Apply it to this strategy instead of the whole account
    #[arg(long, value_name = "ID")]
    strategy: Option<String>,
}

impl Order {
    /// Sends the command and prints the new state.
    pub(super) fn give(&self, command: Command) -> Result<(), Failure> {
        self.give_and_wait(command, Wait::default())
    }

    fn give_and_wait(&self, command: Command, wait: Wait) -> Result<(), Failure> {
        let strategy = self.strategy.as_deref();
        let instance = &self.instance;
        let applied =
            instance.with_admin(async |admin| admin.post(command, strategy, wait).await)?;
        instance.show(&json!(applied))?;
        if let Some(words) = applied.cancels.as_ref().and_then(words_of_open) {
            eprintln!("warning: {words}");
        }
        if command.sets_kill_switch() && !applied.is_durable() {
            let (verb, pending) = (command.as_str(), &applied.pending);
            return Err(Failure::Failed(format!(
                "{verb} is in effect now, but may be lost at a restart: {pending}; check the disk, \
                 then run {verb} again"
            )));
        }
        Ok(())
    }
}

impl Instance {
    /// Makes the instance read its configuration again, and prints the new state.
    pub(super) fn reload(&self) -> Result<(), Failure> {
        // An absolute path, because the instance may run in another working directory.
        let meant = self.config.as_deref().map(std::path::absolute).transpose();
        let meant = meant.map_err(Failure::failed)?;
        let applied = self.with_admin(async |admin| admin.reload(meant.as_deref()).await)?;
        self.show(&json!(applied))
    }
}

/// What is still open after a halt or flatten, and what to do; `None` if nothing is.
fn words_of_open(cancels: &Cancels) -> Option<String> {
    let first = cancels.still_open.first()?;
    let ids: Vec<_> = cancels
        .still_open
        .iter()
        .map(|order| order.client_order_id.as_str())
        .collect();
    let more = cancels.open.saturating_sub(ids.len() as u64);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let open = match cancels.open {
        1 => format!(
            "1 order may still be open at the venue: {}",
            first.client_order_id
        ),
        open => format!(
            "{open} orders may still be open at the venue: {}{more}",
            ids.join(", ")
        ),
    };
    Some(format!(
        "{open}. The instance goes on cancelling them; run windvane orders until they are gone, and \
         look at degraded_reasons and venue_waits of windvane status. If they stay, cancel them by \
         hand at the venue"
    ))
}

/// Gives the degraded reasons their present name in the status of an older instance, which has them
/// only under `doubts`.
fn name_degraded_reasons(answer: &mut Value) {
    let Some(members) = answer.as_object_mut() else {
        return;
    };
    if let Some(reasons) = members.get(OLD_DEGRADED_REASONS).cloned() {
        members.entry("degraded_reasons").or_insert(reasons);
    }
}

/// The deprecated name of `degraded_reasons`. It is in the JSON, but not in the text for people.
const OLD_DEGRADED_REASONS: &str = "doubts";

/// Formats a response for people: one line per member of an object, or a table for a list.
fn spoken(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter();
            let present = members.filter(|(name, _)| name.as_str() != OLD_DEGRADED_REASONS);
            let lines = present.flat_map(|(name, value)| {
                let texts = match value {
                    Value::Array(rows) if rows.is_empty() => vec!["none".to_owned()],
                    Value::Array(rows) => rows.iter().map(row).collect(),
                    other => vec![row(other)],
                };
                texts
                    .into_iter()
                    .map(move |text| format!("{:<16} {text}", outside_text::name(name)))
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Array(rows) => table(rows),
        other => word(other),
    }
}

/// Widest column of a table. A longer cell moves only the rest of its own row, so that a long text of a
/// strategy does not spoil the rows of others.
const WIDTH_MAX: usize = 48;

fn table(rows: &[Value]) -> String {
    let Some(names) = rows.first().and_then(Value::as_object) else {
        return "none".to_owned();
    };
    let heads = names
        .keys()
        .map(|name| outside_text::name(name).into_owned());
    let mut lines = vec![heads.collect::<Vec<_>>()];
    for row in rows {
        lines.push(names.keys().map(|name| word(&row[name])).collect());
    }
    let widths: Vec<usize> = (0..names.len())
        .map(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or(0))
        .map(|width| width.min(WIDTH_MAX))
        .collect();
    let text = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    });
    text.collect::<Vec<_>>().join("\n")
}

/// One row of a list on one line, without unknown values.
fn row(value: &Value) -> String {
    let Value::Object(members) = value else {
        return word(value);
    };
    let is_known = |value: &Value| !value.is_null() && *value != json!([]) && *value != json!("");
    let known = members.iter().filter(|(_, value)| is_known(value));
    let texts = known.map(|(name, value)| match value {
        Value::Bool(true) => outside_text::name(name).into_owned(),
        Value::Bool(false) => format!("not {}", outside_text::name(name)),
        Value::Array(rows) => {
            let rows: Vec<_> = rows.iter().map(row).collect();
            format!("{} ({})", outside_text::name(name), rows.join(") ("))
        }
        other => named(name, other),
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// A value with its name. Times are shown as dates.
fn named(name: &str, value: &Value) -> String {
    let name = &*outside_text::name(name);
    let moment = value.as_i64().filter(|ms| *ms >= MOMENT_MS);
    match (name.strip_suffix("_ms"), moment) {
        (Some(name), Some(ms)) => format!("{name} {} UTC", seconds_text(Time::from_millis(ms))),
        _ => format!("{name} {}", word(value)),
    }
}

/// Values from this number of milliseconds on are points in time; smaller ones are durations.
const MOMENT_MS: i64 = 1_000_000_000_000;

fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        // Texts of strategies and of the venue: reasons, names, symbols.
        Value::String(text) => outside_text::message(text).into_owned(),
        other => outside_text::message(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use windvane_admin::StillOpen;

    use super::*;

    #[test]
    fn a_long_text_does_not_widen_the_rows_of_others() {
        let rows = [
            json!({"id": "loud", "reason": "\u{1b}".repeat(2_000), "state": "quarantined"}),
            json!({"id": "calm", "reason": null, "state": "running"}),
        ];
        let text = table(&rows);
        let calm = text.lines().last().unwrap();
        assert!(calm.ends_with("running") && calm.len() < 100, "{calm}");
    }

    #[test]
    fn lists_are_tables_and_empty_lists_have_a_message() {
        let rows = json!([{"id": "a", "qty": "0.10"}, {"id": "long", "qty": null}]);
        assert_eq!(spoken(&rows), "id    qty\na     0.10\nlong  -");
        assert_eq!(spoken(&json!([])), "none");
    }

    #[test]
    fn text_from_outside_stays_in_its_cell() {
        let hostile = "a\u{1b}[2J\nstate            ready\u{202e}";
        for answer in [
            json!({"state": "halted", "reason": hostile, hostile: 1}),
            json!({"state": "halted", "strategies": [{"fault": hostile, hostile: [hostile]}]}),
            json!([{"id": hostile, hostile: {"x": hostile}}]),
        ] {
            let text = spoken(&answer);
            let hidden = |letter: char| letter != '\n' && outside_text::is_hidden(letter);
            assert!(!text.chars().any(hidden), "{text:?}");
            assert!(!text.contains("\nstate            ready"), "{text}");
        }
        let long = json!({"reason": "x".repeat(100_000)});
        assert!(spoken(&long).ends_with(" [95904 more bytes]"));
    }

    #[test]
    fn every_figure_of_a_row_has_its_name() {
        let status = json!({
            "state": "halted",
            "degraded_reasons": ["the user stream is down"],
            "doubts": ["the user stream is down"],
            "forced_closes": [{
                "time_ms": 1_722_500_000_000_i64,
                "qty": "0.295",
                "fee": null,
                "strategies": [{"strategy": "a", "left": "0"}, {"strategy": "b", "left": "0.1"}],
            }],
            "terms": [{"instrument": "futures:BTCUSDT", "leverage": 20, "min_qty": "0.001"}],
            "closes": [{"open": false, "wait_ms": 7000, "reason": ""}],
            "journal": {"behind_ms": 3, "written": 12},
            "cpu": [{"strategy": "a", "used_percent": 3, "limit_percent": 25, "left_ms": 75}],
        });
        let expected = [
            "closes           not open; wait_ms 7000",
            "cpu              left_ms 75; limit_percent 25; strategy a; used_percent 3",
            "degraded_reasons the user stream is down",
            "forced_closes    qty 0.295; strategies (left 0; strategy a) (left 0.1; strategy b); \
             time 2024-08-01 08:13:20 UTC",
            "journal          behind_ms 3; written 12",
            "state            halted",
            "terms            instrument futures:BTCUSDT; leverage 20; min_qty 0.001",
        ];
        assert_eq!(spoken(&status), expected.join("\n"));
    }

    #[test]
    fn open_orders_after_a_halt_are_named_with_what_to_do() {
        let order = |id: &str| StillOpen {
            client_order_id: id.to_owned(),
            ..StillOpen::default()
        };
        let words = |open, ids: &[&str]| {
            words_of_open(&Cancels {
                open,
                still_open: ids.iter().map(|id| order(id)).collect(),
                ..Cancels::default()
            })
        };
        assert_eq!(words(0, &[]), None);
        let one = words(1, &["mm.a.1"]).unwrap();
        assert!(
            one.starts_with("1 order may still be open at the venue: mm.a.1. The"),
            "{one}"
        );
        let many = words(30, &["mm.a.1", "mm.a.2"]).unwrap();
        assert!(
            many.contains("30 orders") && many.contains("mm.a.1, mm.a.2 and 28 more"),
            "{many}"
        );
        assert!(many.contains("by hand at the venue"));
    }

    #[test]
    fn an_older_instance_may_name_degraded_reasons_doubts() {
        let mut status = json!({"state": "degraded", "doubts": ["a margin call"]});
        name_degraded_reasons(&mut status);
        assert_eq!(status["degraded_reasons"], json!(["a margin call"]));
        let expected = "degraded_reasons a margin call\nstate            degraded";
        assert_eq!(spoken(&status), expected);
        let mut present = json!({"degraded_reasons": ["b"], "doubts": ["b"]});
        name_degraded_reasons(&mut present);
        assert_eq!(present, json!({"degraded_reasons": ["b"], "doubts": ["b"]}));
    }
}
