//! Generates the page `METRICS.md` from the table.

use std::fmt::Write;

use super::table::LINES;

const HEAD: &str = "\
# Metrics

The series in `/metrics` of a running instance, in the text format of Prometheus. This page is
generated from the table in `src/metrics/table.rs`, and a test compares the two. To generate it
again: `cargo xtask docs`.

A series appears when its first value is written. Counters count from the start of the process. A
summary has the quantiles 0.5, 0.9, 0.99 and 1 of the last minute, and `_sum` and `_count` since
the start. Amounts are floating point here; `/api` has the exact values as decimal strings.

| name | kind | unit | labels | meaning |
|---|---|---|---|---|
";

/// The text of the page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for line in LINES {
        let labels: Vec<_> = line.labels.iter().map(|l| format!("`{l}`")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            line.name,
            line.kind.as_str(),
            line.unit,
            labels.join(", "),
            line.meaning
        );
    }
    page
}
