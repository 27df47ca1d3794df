//! Commands that query or control a running instance.

use std::path::PathBuf;

use clap::Args;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Value, json};
use windvane_admin::{Admin, Command, Query, QueryError, Token, TokenSource};
use windvane_model::Time;

use super::{Failure, print_line};
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
        let token = token(&config)?;
        let answered = super::block_on(async {
            let admin = Admin::in_data_dir(&config.run.data_dir, token).await?;
            work(admin).await
        })?;
        answered.map_err(|error| match error {
            QueryError::NotRunning(_) => Failure::NotRunning(error.to_string()),
            _ => Failure::failed(error),
        })
    }

    fn show<T: Serialize>(&self, answer: &T) -> Result<(), Failure> {
        let value = json!(answer);
        if self.json {
            return print_line(&value.to_string());
        }
        print_line(&spoken(&value))
    }
}

fn token(config: &Config) -> Result<TokenSource, Failure> {
    let Some(secret) = &config.admin.token else {
        return Ok(TokenSource::File(config.run.data_dir.join(TOKEN_FILE)));
    };
    let text = secret.read().map_err(Failure::usage)?;
    let token = Token::from_text(text.expose_secret(), "admin.token").map_err(Failure::usage)?;
    Ok(TokenSource::Token(token))
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
        let strategy = self.strategy.as_deref();
        let instance = &self.instance;
        let applied = instance.with_admin(async |admin| admin.post(command, strategy).await)?;
        instance.show(&json!(applied))?;
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
                    .map(move |text| format!("{name:<16} {text}"))
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        Value::Array(rows) => table(rows),
        other => word(other),
    }
}

fn table(rows: &[Value]) -> String {
    let Some(names) = rows.first().and_then(Value::as_object) else {
        return "none".to_owned();
    };
    let mut lines = vec![names.keys().cloned().collect::<Vec<_>>()];
    for row in rows {
        lines.push(names.keys().map(|name| word(&row[name])).collect());
    }
    let widths: Vec<usize> = (0..names.len())
        .map(|at| lines.iter().map(|line| line[at].len()).max().unwrap_or(0))
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
        Value::Bool(true) => name.clone(),
        Value::Bool(false) => format!("not {name}"),
        Value::Array(rows) => {
            let rows: Vec<_> = rows.iter().map(row).collect();
            format!("{name} ({})", rows.join(") ("))
        }
        other => named(name, other),
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// A value with its name. Times are shown as dates.
fn named(name: &str, value: &Value) -> String {
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
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_tables_and_empty_lists_have_a_message() {
        let rows = json!([{"id": "a", "qty": "0.10"}, {"id": "long", "qty": null}]);
        assert_eq!(spoken(&rows), "id    qty\na     0.10\nlong  -");
        assert_eq!(spoken(&json!([])), "none");
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
        });
        let expected = [
            "closes           not open; wait_ms 7000",
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
