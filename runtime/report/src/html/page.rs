//! Builds the whole page: header, key figures, and the order of its sections.

use std::fmt::Write;

use windvane_model::decimal::{Amount, div_half_even};

use super::charts::Charts;
use super::data::chart_json;
use super::tables::{
    colored, data_facts, instrument_table, latency_table, module_facts, rejection_table,
    strategy_table, time_share,
};
use crate::Summary;
use crate::format::{Escaped, duration, grouped, money, percent, share, signed_money};
use crate::utc::seconds_text;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Renders the page of a run.
pub fn render(summary: &Summary, charts: &Charts) -> String {
    let name = Escaped(&summary.config);
    let body = [
        quarantine(summary),
        header(summary),
        figures(summary),
        equity_sum(summary),
        chart_section(),
        strategy_table(summary),
        rejection_table(summary),
        latency_table(summary),
        instrument_table(summary),
        time_share(summary),
        data_facts(summary),
        module_facts(summary),
    ]
    .concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>{name}: Windvane backtest</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n<div id=\"tip\" hidden></div>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        chart_json(summary, charts)
    )
}

/// A warning at the top: the figures do not show a complete run of these strategies.
fn quarantine(summary: &Summary) -> String {
    let lines = summary.quarantined.iter().map(|one| {
        let text = one.to_string();
        format!("<p><strong>Quarantined: {}.</strong></p>\n", Escaped(&text))
    });
    lines.collect()
}

fn header(summary: &Summary) -> String {
    let (start, end) = (summary.start_time, summary.end_time);
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"soft\">Windvane {} backtest, instrument rules {}</p>\n\
         </header>\n<p>{} to {} UTC, {} of market time. {} events at {} per second.</p>\n\
         {state}<p class=\"soft\">Fingerprint <code title=\"{fingerprint}\">{fingerprint}</code></p>\n",
        Escaped(&summary.config),
        Escaped(&summary.engine.windvane),
        Escaped(summary.rules),
        seconds_text(start),
        seconds_text(end),
        duration(end.0.saturating_sub(start.0)),
        grouped(summary.events),
        grouped(summary.events_per_second),
        state = if summary.state == "ready" {
            String::new()
        } else {
            format!(
                "<p><strong>The account was {}.</strong></p>\n",
                Escaped(&summary.state)
            )
        },
        fingerprint = Escaped(&summary.fingerprint),
    )
}

fn figures(summary: &Summary) -> String {
    let net = summary.final_equity - summary.start_equity;
    let change = if summary.start_equity.0 > 0 {
        div_half_even(net.0.saturating_mul(100_000_000), summary.start_equity.0)
    } else {
        0
    };
    let maker_fills: u64 = summary
        .strategies
        .iter()
        .map(|strategy| strategy.maker_fills)
        .sum();
    let asset = Escaped(&summary.quote_asset);
    let cards = [
        (
            format!("Net profit, {asset}"),
            colored(net, &signed_money(net, 2)),
            format!("{} of start equity", percent(change, true)),
        ),
        (
            "Largest drawdown".to_owned(),
            percent(summary.max_drawdown, false),
            "of peak equity".to_owned(),
        ),
        (
            "Sharpe ratio".to_owned(),
            summary.sharpe.map_or_else(
                || "\u{2013}".to_owned(),
                |ratio| format!("{ratio:.2}").replace('-', "\u{2212}"),
            ),
            "per second, annualised".to_owned(),
        ),
        (
            "Fills".to_owned(),
            grouped(summary.fills),
            format!("{} as maker", share(maker_fills, summary.fills)),
        ),
        (
            "Orders".to_owned(),
            grouped(summary.orders_submitted),
            format!(
                "{} canceled<br>{} rejected",
                grouped(summary.orders_canceled),
                grouped(summary.orders_rejected)
            ),
        ),
        (
            format!("Volume, {asset}"),
            money(summary.volume_quote, 0),
            format!("fees {}", money(summary.fees, 2)),
        ),
    ];
    let mut html = String::from("<section class=\"figures\">\n");
    for (label, value, note) in cards {
        let _ = writeln!(
            html,
            "<div class=\"figure\"><span>{label}</span><b>{value}</b><span>{note}</span></div>"
        );
    }
    html + "</section>\n"
}

/// Shows how the final equity is the sum of its parts.
fn equity_sum(summary: &Summary) -> String {
    let term = |sign: &str, label: &str, amount: Amount| {
        format!(
            "<i>{sign}</i><div><span>{label}</span>{}</div>\n",
            money(amount, 4)
        )
    };
    format!(
        "<section class=\"card sum\">\n{}{}{}{}{}<i>=</i><div class=\"total\"><span>final equity, \
         {}</span>{}</div>\n</section>\n",
        term("", "start equity", summary.start_equity),
        term("+", "realized profit", summary.realized_pnl),
        term("+", "unrealized profit", summary.unrealized_pnl),
        term("\u{2212}", "fees", summary.fees),
        term("+", "funding", summary.funding),
        Escaped(&summary.quote_asset),
        money(summary.final_equity, 4),
    )
}

fn chart_section() -> String {
    "<section>\n<div class=\"head\"><h2>Timeline</h2><span class=\"soft\" id=\"hint\">\
     drag to zoom, double-click to show all, click a name to hide it</span>\
     <button type=\"button\" id=\"reset\" hidden>Show all</button></div>\n\
     <div id=\"charts\"></div>\n<noscript><p>\
     A script in this file draws the charts. The tables below work without it.</p>\
     </noscript>\n</section>\n"
        .to_owned()
}
