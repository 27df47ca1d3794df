//! The results of a preflight, as lines for people and as JSON.

use serde::Serialize;
use serde_json::{Value, json};
use windvane_model::outside_text;
use windvane_session::weights::{Plan, Use};

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

    pub(super) fn ok(&mut self, area: &'static str, found: impl Into<String>) {
        self.add(area, Verdict::Ok, found.into(), "");
    }

    pub(super) fn warn(&mut self, area: &'static str, found: impl Into<String>, mend: &str) {
        self.add(area, Verdict::Warn, found.into(), mend);
    }

    pub(super) fn no_go(&mut self, area: &'static str, found: impl Into<String>, mend: &str) {
        self.add(area, Verdict::NoGo, found.into(), mend);
    }

    /// Adds a problem whose cause is the configuration.
    pub(super) fn wrong(&mut self, area: &'static str, found: impl Into<String>, mend: &str) {
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
            let found = outside_text::message(&line.found);
            lines.push(format!("{verdict:<6} {:<14} {found}", line.area));
            if !line.mend.is_empty() {
                let mend = outside_text::message(&line.mend);
                lines.push(format!("{:<6} {:<14} -> {mend}", "", ""));
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
    lines.extend(plan.on_spare_weight().map(row));
    lines.push(format!("  {}", plan.polling));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_of_limited_length() {
        let mut report = Report::default();
        report.no_go(
            "account",
            "a\u{1b}[2J\r\ngo".to_owned() + &"x".repeat(9_999),
            "b\ngo",
        );
        let text = report.text();
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
        let lines: Vec<_> = text.lines().collect();
        assert!(!lines.contains(&"go") && lines.len() == 4, "{text}");
        assert!(lines[0].ends_with(" more bytes]"), "{text}");
    }

    #[test]
    fn warnings_allow_a_run_and_fixes_follow_each_line() {
        let mut report = Report::default();
        report.ok("clock", "0 ms");
        report.warn("kill switch", "paused", "windvane resume");
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
