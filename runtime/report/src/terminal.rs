//! Formats the summary of a run for a terminal: aligned columns, plain characters.

use std::fmt::Write;

use windvane_model::outside_text;

use crate::Summary;
use crate::format::{duration, grouped, money, percent, share, signed_money};
use crate::utc::seconds_text;

/// The summary as a table.
pub fn summary_text(summary: &Summary) -> String {
    let mut text = String::new();
    for one in &summary.quarantined {
        let _ = writeln!(
            text,
            "QUARANTINED: {}.",
            outside_text::message(&one.to_string())
        );
    }
    if !summary.quarantined.is_empty() {
        text.push_str("The figures below do not show a complete run.\n\n");
    }
    let _ = write!(
        text,
        "{}: {} to {} UTC, {} of market time\n\n",
        outside_text::name(&summary.config),
        seconds_text(summary.start_time),
        seconds_text(summary.end_time),
        duration(summary.end_time.0.saturating_sub(summary.start_time.0)),
    );
    let rows = rows(summary);
    let width = rows
        .iter()
        .map(|(_, value, _)| value.chars().count())
        .max()
        .unwrap_or(0);
    for (name, value, note) in rows {
        let line = format!("  {name:<18} {value:>width$}  {note}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if summary.strategies.len() > 1 || summary.strategies.iter().any(|one| one.state != "running") {
        text.push('\n');
        text.push_str(&strategy_lines(summary));
    }
    if !summary.rejections.is_empty() {
        text.push_str("\n  rejected\n");
        for rejection in &summary.rejections {
            let _ = writeln!(
                text,
                "    {:>10}  {:<8}  {}",
                grouped(rejection.count),
                outside_text::name(&rejection.strategy),
                outside_text::name(&rejection.rule)
            );
        }
    }
    if summary.state != "ready" {
        let _ = writeln!(text, "\nThe account was {}.", summary.state);
    }
    let _ = writeln!(text, "\nfingerprint {}", summary.fingerprint);
    plain(&text)
}

fn rows(summary: &Summary) -> Vec<(&'static str, String, String)> {
    let asset = &summary.quote_asset;
    let maker_fills: u64 = summary.strategies.iter().map(|one| one.maker_fills).sum();
    let net = summary.final_equity - summary.start_equity;
    vec![
        (
            "events",
            grouped(summary.events),
            format!("{} per second", grouped(summary.events_per_second)),
        ),
        (
            "orders",
            grouped(summary.orders_submitted),
            format!(
                "{} canceled, {} rejected",
                grouped(summary.orders_canceled),
                grouped(summary.orders_rejected)
            ),
        ),
        (
            "fills",
            grouped(summary.fills),
            format!("{} as maker", share(maker_fills, summary.fills)),
        ),
        ("volume", money(summary.volume_quote, 2), asset.clone()),
        (
            "start equity",
            money(summary.start_equity, 4),
            asset.clone(),
        ),
        (
            "realized profit",
            signed_money(summary.realized_pnl, 4),
            "before fees".to_owned(),
        ),
        (
            "unrealized profit",
            signed_money(summary.unrealized_pnl, 4),
            String::new(),
        ),
        ("fees", signed_money(-summary.fees, 4), String::new()),
        ("funding", signed_money(summary.funding, 4), String::new()),
        (
            "final equity",
            money(summary.final_equity, 4),
            format!("{asset}, net {}", signed_money(net, 4)),
        ),
        (
            "max drawdown",
            percent(summary.max_drawdown, false),
            String::new(),
        ),
        (
            "Sharpe ratio",
            summary
                .sharpe
                .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            "per second, annualised".to_owned(),
        ),
        ("instrument rules", summary.rules.to_owned(), String::new()),
    ]
}

fn strategy_lines(summary: &Summary) -> String {
    let mut text = format!(
        "  {:<10}{:>10}{:>10}{:>10}{:>16}{:>14}{:>14}  state\n",
        "strategy", "orders", "canceled", "fills", "volume", "fees", "net"
    );
    for one in &summary.strategies {
        let _ = writeln!(
            text,
            "  {:<10}{:>10}{:>10}{:>10}{:>16}{:>14}{:>14}  {}",
            outside_text::name(&one.id),
            grouped(one.orders_submitted),
            grouped(one.orders_canceled),
            grouped(one.fills),
            money(one.volume_quote, 2),
            money(one.fees, 4),
            signed_money(one.net_pnl(), 4),
            outside_text::message(&one.state_text())
        );
    }
    text
}

/// Replaces characters of the report that a terminal may not show: minus sign, narrow space, dash,
/// micro sign.
fn plain(text: &str) -> String {
    text.replace('\u{2212}', "-")
        .replace('\u{202f}', " ")
        .replace('\u{2013}', "-")
        .replace('\u{b5}', "u")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResultWriter, sample};

    #[test]
    fn the_table_is_plain_text_with_aligned_columns() {
        let summary = sample::write(&mut ResultWriter::discard(), 60, "sample");
        let text = summary_text(&summary);
        assert!(text.is_ascii(), "{text}");
        assert!(text.starts_with("sample: 2024-08-08 23:54:15 to "));
        let ends: Vec<usize> = text
            .lines()
            .filter(|line| line.starts_with("  start equity") || line.starts_with("  fees"))
            .map(|line| line.trim_end_matches(" USDT").trim_end().len())
            .collect();
        assert_eq!(ends.len(), 2);
        assert_eq!(ends[0], ends[1], "{text}");
        assert!(text.contains("6  mm-btc    GTX would cross"), "{text}");
        assert!(text.contains("  ema  "), "{text}");
    }

    #[test]
    fn texts_of_a_strategy_stay_on_their_line() {
        let mut summary = sample::write(&mut ResultWriter::discard(), 60, "sample\u{1b}[2J");
        let hostile = "x\u{1b}[31m\nfingerprint 00\u{202e}";
        "quarantined".clone_into(&mut summary.strategies[0].state);
        hostile.clone_into(&mut summary.strategies[0].fault);
        hostile.clone_into(&mut summary.rejections[0].rule);
        let text = summary_text(&summary);
        assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text:?}");
        assert_eq!(text.matches("\nfingerprint").count(), 1, "{text}");
    }
}
