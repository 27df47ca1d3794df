//! The page `METRICS.md`, made from the table.

use std::fmt::Write;

use super::table::LINES;

const HEAD: &str = "\
# Metrics

What `/metrics` of a running instance shows, in the text format of Prometheus. Made from the
table in `src/metrics/table.rs`, which a test holds it to; make it again with:

    cargo run -p windvane-admin --example metrics_page > runtime/admin/METRICS.md

A series appears when its first value is written. Counters count since the process started. A
summary has the quantiles 0.5, 0.9, 0.99 and 1 of the last minute, and `_sum` and `_count` since
the start. Amounts are floating point here; the exact ones are decimal strings under `/api`.

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
