//! Tests of the whole page.

use crate::{ResultWriter, sample};

fn page(config: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ResultWriter::create(dir.path(), &[sample::INSTRUMENT.to_owned()]).unwrap();
    let summary = sample::write(&mut writer, 345, config);
    writer.finish(&summary).unwrap();
    std::fs::read_to_string(dir.path().join("report.html")).unwrap()
}

/// The JSON that the script of the page draws.
fn chart_data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_page_loads_nothing() {
    let page = page("sample");
    for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "the page refers to {outside}");
    }
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
}

#[test]
fn the_page_shows_all_sections() {
    let page = page("sample");
    for part in [
        "Fingerprint",
        "Net profit",
        "Largest drawdown",
        "Strategies",
        "Rejections by rule",
        "GTX would cross",
        "\u{2212}5022",
        "Latency and queue",
        "risk-averse",
        "Instruments",
        "instrument rules configured",
        "SHA-256 of the module",
        "market_maker 0.1.0",
        "2,345,678 per second",
        "2024-08-08 23:54:15",
        "Damaged lines",
    ] {
        assert!(page.contains(part), "{part:?} is missing in the page");
    }
    let data = chart_data(&page);
    let titles: Vec<&str> = data["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|panel| panel["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles,
        [
            "Price and fills, futures:BTCUSDT",
            "Position, futures:BTCUSDT",
            "Equity",
            "Drawdown from the peak",
            "Plotted by ema",
            "Plotted by mm-btc",
        ]
    );
    assert_eq!(
        data["panels"][4]["series"].as_array().map(Vec::len),
        Some(2)
    );
    assert!(data["panels"][0]["marks"].as_array().unwrap().len() > 100);
}

#[test]
fn text_from_outside_is_escaped() {
    let page = page("<img onerror='x'>");
    assert!(!page.contains("<img"));
    assert!(page.contains("&lt;img onerror=&#39;x&#39;&gt;"));
    let page = self::page("a\u{1b}\r\u{202e}b\u{200b}");
    assert!(page.contains(r"a\u{1b}\r\u{202e}b\u{200b}"));
    let hidden = |letter: char| letter != '\n' && windvane_model::outside_text::is_hidden(letter);
    assert!(!page.chars().any(hidden));
}

#[test]
fn a_run_without_fills_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let writer = ResultWriter::create(dir.path(), &[]).unwrap();
    let mut summary = sample::write(&mut ResultWriter::discard(), 0, "empty");
    summary.strategies.clear();
    summary.rejections.clear();
    summary.time_share = None;
    writer.finish(&summary).unwrap();
    let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("No order was rejected."));
    assert_eq!(
        chart_data(&page)["panels"].as_array().map(Vec::len),
        Some(2)
    );
}

/// Also writes the page to a file: `WINDVANE_SAMPLE_REPORT=FILE cargo test -p windvane
/// sample_page`.
#[test]
fn sample_page_is_of_moderate_size() {
    let page = page("backtest-usdm");
    assert!(page.len() < 200_000, "{} bytes", page.len());
    if let Some(file) = std::env::var_os("WINDVANE_SAMPLE_REPORT") {
        std::fs::write(file, page).unwrap();
    }
}
