//! Builds the tables of the report: strategies, rejections, latency and queue, instruments, data.

use std::fmt::Write;

use windvane_model::decimal::Amount;

use crate::format::{Escaped, duration, grouped, money, share};
use crate::{Quantiles, StrategySummary, Summary};

/// A table in a card, built row by row.
struct Table {
    html: String,
    rows: usize,
}

impl Table {
    /// Creates a table with these column names. A name that starts with `<` marks a text column.
    fn new(heads: &[&str]) -> Self {
        let mut html = String::from("<div class=\"card\"><table>\n<thead><tr>");
        for head in heads {
            let _ = match head.strip_prefix('<') {
                Some(text) => write!(html, "<th class=\"text\">{}</th>", Escaped(text)),
                None => write!(html, "<th>{}</th>", Escaped(head)),
            };
        }
        html.push_str("</tr></thead>\n<tbody>\n");
        Self { html, rows: 0 }
    }

    /// Adds a row. The cells are already HTML, and the first cell names the row.
    fn row(&mut self, cells: &[String]) {
        self.rows += 1;
        self.cells(cells);
    }

    fn cells(&mut self, cells: &[String]) {
        self.html.push_str("<tr>");
        for (at, cell) in cells.iter().enumerate() {
            let tag = if at == 0 { "th" } else { "td" };
            let text = cell.strip_prefix('\t');
            let class = if text.is_some() {
                " class=\"text\""
            } else {
                ""
            };
            let _ = write!(self.html, "<{tag}{class}>{}</{tag}>", text.unwrap_or(cell));
        }
        self.html.push_str("</tr>\n");
    }

    /// Adds a row with the figures of a distribution, if anything was measured.
    fn quantiles(&mut self, name: &str, of: Option<Quantiles>, shown: impl Fn(i64) -> String) {
        if let Some(of) = of {
            let mut cells = vec![Escaped(name).to_string(), grouped(of.count)];
            cells.extend([of.min, of.p50, of.p90, of.p99, of.max, of.mean].map(shown));
            self.row(&cells);
        }
    }

    fn total(&mut self, cells: &[String]) {
        self.html.push_str("</tbody>\n<tfoot>\n");
        self.cells(cells);
        self.html.push_str("</tfoot>\n<tbody>\n");
    }

    fn finish(self, title: &str) -> String {
        format!(
            "<section><h2>{title}</h2>\n{}</tbody></table></div></section>\n",
            self.html
        )
    }
}

/// An escaped, left-aligned text cell.
fn text(value: &str) -> String {
    format!("\t{}", Escaped(value))
}

fn amount_cell(amount: Amount) -> String {
    colored(amount, &money(amount, 4))
}

/// One row per strategy, and a total if there are several.
pub(super) fn strategy_table(summary: &Summary) -> String {
    let heads = [
        "<Strategy",
        "Events",
        "Orders",
        "Rejected",
        "Canceled",
        "Fills",
        "Maker",
        "Volume",
        "Realized",
        "Unrealized",
        "Fees",
        "Funding",
        "Net",
    ];
    let mut table = Table::new(&heads);
    for strategy in &summary.strategies {
        table.row(&strategy_cells(strategy));
    }
    if summary.strategies.len() > 1 {
        table.total(&strategy_total(&summary.strategies));
    }
    let title = format!(
        "Strategies <span class=\"soft\">amounts in {}</span>",
        Escaped(&summary.quote_asset)
    );
    let note = match summary.strategies.len() {
        0 | 1 => "",
        _ => {
            "<p class=\"soft\">Strategies share one position at the venue. Their split into \
             realized and unrealized profit may differ from the account's; \
             the net is the same.</p>\n"
        }
    };
    table.finish(&title) + note
}

fn strategy_cells(strategy: &StrategySummary) -> [String; 13] {
    let fault = if strategy.state == "running" {
        String::new()
    } else {
        let text = strategy.state_text();
        format!("<br><span class=\"bad\">{}</span>", Escaped(&text))
    };
    [
        format!(
            "{}<br><span class=\"soft\">{}</span>{fault}",
            Escaped(&strategy.id),
            Escaped(&strategy.module)
        ),
        grouped(strategy.events),
        grouped(strategy.orders_submitted),
        grouped(strategy.orders_rejected),
        grouped(strategy.orders_canceled),
        grouped(strategy.fills),
        share(strategy.maker_fills, strategy.fills),
        money(strategy.volume_quote, 0),
        amount_cell(strategy.realized_pnl),
        amount_cell(strategy.unrealized_pnl),
        money(strategy.fees, 4),
        amount_cell(strategy.funding),
        amount_cell(strategy.net_pnl()),
    ]
}

fn strategy_total(strategies: &[StrategySummary]) -> [String; 13] {
    let count = |field: fn(&StrategySummary) -> u64| strategies.iter().map(field).sum::<u64>();
    let amount =
        |field: fn(&StrategySummary) -> Amount| strategies.iter().map(field).sum::<Amount>();
    [
        "all".to_owned(),
        grouped(count(|one| one.events)),
        grouped(count(|one| one.orders_submitted)),
        grouped(count(|one| one.orders_rejected)),
        grouped(count(|one| one.orders_canceled)),
        grouped(count(|one| one.fills)),
        share(count(|one| one.maker_fills), count(|one| one.fills)),
        money(amount(|one| one.volume_quote), 0),
        amount_cell(amount(|one| one.realized_pnl)),
        amount_cell(amount(|one| one.unrealized_pnl)),
        money(amount(|one| one.fees), 4),
        amount_cell(amount(|one| one.funding)),
        amount_cell(amount(StrategySummary::net_pnl)),
    ]
}

/// Each rule that refused an order, with its count.
pub(super) fn rejection_table(summary: &Summary) -> String {
    if summary.rejections.is_empty() {
        return "<section><h2>Rejections</h2>\n\
                <p class=\"soft\">No order was rejected.</p></section>\n"
            .to_owned();
    }
    let mut table = Table::new(&["<Strategy", "<Rule", "Venue's code", "Count", "Share"]);
    let total: u64 = summary
        .rejections
        .iter()
        .map(|rejection| rejection.count)
        .sum();
    for rejection in &summary.rejections {
        let code = match rejection.code {
            0 => "\u{2013}".to_owned(),
            code => code.to_string().replace('-', "\u{2212}"),
        };
        table.row(&[
            Escaped(&rejection.strategy).to_string(),
            text(&rejection.rule),
            code,
            grouped(rejection.count),
            share(rejection.count, total),
        ]);
    }
    table.finish("Rejections by rule")
}

/// Figures of latency and queue.
pub(super) fn latency_table(summary: &Summary) -> String {
    let heads = [
        "<Distribution",
        "Count",
        "Min",
        "Median",
        "90 %",
        "99 %",
        "Max",
        "Mean",
    ];
    let mut table = Table::new(&heads);
    let queue = &summary.queue;
    let count = |value: i64| grouped(value.max(0).cast_unsigned());
    table.quantiles(
        "Feed latency: venue to strategy",
        summary.latency.feed_ns,
        duration,
    );
    table.quantiles(
        "Order latency: strategy to venue",
        summary.latency.order_ns,
        duration,
    );
    table.quantiles(
        "Time from submission to the first fill",
        queue.time_to_fill_ns,
        duration,
    );
    let ahead = format!(
        "Quantity ahead when the order starts to rest, in {}",
        queue.ahead_unit
    );
    table.quantiles(&ahead, queue.ahead, count);
    let facts = format!(
        "<p class=\"soft\">Latency model {}, queue model {}. {} orders rested in the book, {} \
         of them were filled at least in part; {} fills as maker, {} as taker.</p>\n",
        Escaped(&summary.latency.model),
        Escaped(&queue.model),
        grouped(queue.rested),
        share(queue.filled, queue.rested),
        grouped(queue.maker_fills),
        grouped(queue.taker_fills),
    );
    if table.rows == 0 {
        return format!("<section><h2>Latency and queue</h2>\n{facts}</section>\n");
    }
    table.finish("Latency and queue") + &facts
}

/// One row per instrument.
pub(super) fn instrument_table(summary: &Summary) -> String {
    let heads = [
        "<Instrument",
        "<Rules",
        "Tick",
        "Step",
        "Final position",
        "Final mid price",
    ];
    let mut table = Table::new(&heads);
    for instrument in &summary.instruments {
        let with_unit = |value: &str, unit: &str| match value {
            "" => "\u{2013}".to_owned(),
            _ => format!(
                "{} {}",
                Escaped(&value.replace('-', "\u{2212}")),
                Escaped(unit)
            ),
        };
        table.row(&[
            Escaped(&instrument.name).to_string(),
            text(instrument.rules.as_str()),
            Escaped(&instrument.tick).to_string(),
            Escaped(&instrument.step).to_string(),
            with_unit(&instrument.final_position, &instrument.base),
            with_unit(&instrument.final_mid, &instrument.quote),
        ]);
    }
    table.finish("Instruments")
}

/// How the wall time is divided between components.
pub(super) fn time_share(summary: &Summary) -> String {
    let Some(share) = summary.time_share else {
        return String::new();
    };
    let parts = [
        ("decode", share.decode),
        ("engine", share.engine),
        ("venue", share.venue),
        ("guest", share.guest),
        ("results", share.results),
    ];
    let other = 100.0 - parts.iter().map(|(_, percent)| percent).sum::<f64>();
    let mut bar = String::new();
    let mut keys = String::new();
    for (name, percent) in parts.into_iter().chain([("other", other.max(0.0))]) {
        let _ = write!(
            bar,
            "<div style=\"width:{percent:.3}%;background:var(--{name})\"></div>"
        );
        let _ = writeln!(
            keys,
            "<span style=\"--key:var(--{name})\">{name} {percent:.1}\u{202f}%</span>"
        );
    }
    format!(
        "<section><h2>Wall time by component <span class=\"soft\">{:.2} s in total</span></h2>\n\
         <div class=\"card\"><div class=\"bar\">{bar}</div>\
         <p class=\"keys\">{keys}</p></div></section>\n",
        summary.wall_seconds
    )
}

/// A list of names and values. The values are already HTML.
fn facts(title: &str, rows: &[(&str, String)]) -> String {
    let mut html = format!("<section><h2>{title}</h2>\n<div class=\"card\"><dl class=\"facts\">\n");
    for (name, value) in rows {
        let _ = writeln!(html, "<dt>{}</dt><dd>{value}</dd>", Escaped(name));
    }
    html + "</dl></div></section>\n"
}

/// The data that was read, and its faults.
pub(super) fn data_facts(summary: &Summary) -> String {
    let data = &summary.data;
    let files: Vec<String> = data
        .files
        .iter()
        .map(|file| Escaped(file).to_string())
        .collect();
    let trouble = |count: u64| match count {
        0 => "none".to_owned(),
        _ => format!("<span class=\"bad\">{}</span>", grouped(count)),
    };
    let mut rows = vec![
        ("Files", files.join("<br>")),
        (
            "Records",
            format!(
                "{}: {} trades, {} tops of book, {} depth frames, {} mark prices",
                grouped(data.records),
                grouped(data.events.trades),
                grouped(data.events.tops),
                grouped(data.events.depths),
                grouped(data.events.marks)
            ),
        ),
        ("Gaps in the depth sequence", trouble(data.events.gaps)),
        ("Damaged lines", trouble(data.damaged_lines)),
    ];
    if data.cut {
        rows.push((
            "End",
            "a file breaks off in the middle of a record".to_owned(),
        ));
    }
    if data.from_cache {
        rows.push(("Decoded", "from the cache of decoded recordings".to_owned()));
    }
    facts("Data", &rows)
}

/// Hashes of the modules, and versions.
pub(super) fn module_facts(summary: &Summary) -> String {
    let mut rows: Vec<(&str, String)> = summary
        .module_sha256
        .iter()
        .map(|(id, hash)| {
            (
                &**id,
                format!("<code>{}</code> SHA-256 of the module", Escaped(hash)),
            )
        })
        .collect();
    rows.push(("Windvane", Escaped(&summary.engine.windvane).to_string()));
    rows.push(("wasmtime", Escaped(&summary.engine.wasmtime).to_string()));
    facts("Modules and versions", &rows)
}

/// An amount in green if it is positive, in red if it is negative.
pub(super) fn colored(amount: Amount, text: &str) -> String {
    match amount.0 {
        0 => text.to_owned(),
        1.. => format!("<span class=\"good\">{text}</span>"),
        _ => format!("<span class=\"bad\">{text}</span>"),
    }
}
