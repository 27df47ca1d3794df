//! Tables and code in the Markdown of the generated pages.

/// A Markdown table. Vertical bars in cells are escaped.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let line = |cells: [&str; N]| format!("| {} |\n", cells.map(escaped).join(" | "));
    let mut text = line(headings);
    text.push_str(&line(["---"; N]));
    for row in rows {
        text.push_str(&line(row.each_ref().map(String::as_str)));
    }
    text
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|")
}

/// The text as code.
pub(super) fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}
