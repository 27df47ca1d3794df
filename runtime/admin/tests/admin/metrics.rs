//! Tests the text of `/metrics`: every line has the right format and is documented on the page.

use windvane_admin::metrics::{Kind, page, table};

use crate::instance::{authorization, start, start_with};

/// Name and value of a line with a value: `name{label="value",...} value`.
fn sample(line: &str) -> (&str, f64) {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let name = series.split('{').next().expect("a name");
    if let Some(labels) = series.strip_prefix(name).filter(|l| !l.is_empty()) {
        let inner = labels.strip_prefix('{').and_then(|l| l.strip_suffix('}'));
        for label in inner.expect("braces").split(',') {
            let (key, value) = label.split_once('=').expect("a label");
            assert!(!key.is_empty() && value.starts_with('"') && value.ends_with('"'));
        }
    }
    (name, value.parse().expect("a number"))
}

#[tokio::test]
async fn the_text_parses_and_each_name_is_documented() {
    let instance = start().await;
    instance.metrics.within(|| {
        table::FILLS.of(["mm"]).increment(2);
        table::ORDER_LATENCY.of([]).record(0.000_3);
    });
    let (host, token) = (instance.host(), authorization());
    let first = instance
        .query_with("GET", "/metrics", &[&host, &token], "")
        .await;
    assert_eq!(first.status, 200);
    let kind = first.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");

    let text = instance
        .query_with("GET", "/metrics", &[&host, &token], "")
        .await
        .body;
    let page = page();
    let mut names = 0;
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let (name, _) = sample(line);
        let of = |suffix: &str| name.strip_suffix(suffix).unwrap_or(name);
        let documented = table::LINES.iter().find(|line| {
            line.name == name
                || line.kind == Kind::Summary && [of("_sum"), of("_count")].contains(&line.name)
        });
        let documented = documented.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert!(page.contains(&format!("`{}`", documented.name)), "{name}");
        names += 1;
    }
    assert!(names > 15, "{text}");
    for line in [
        "windvane_fills_total{strategy=\"mm\"} 2",
        "windvane_state{state=\"ready\"} 1",
        "windvane_admin_requests_total{status=\"200\"} 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} not in\n{text}");
    }
    let memory = text
        .lines()
        .find(|line| line.starts_with("windvane_memory_bytes "));
    assert!(sample(memory.expect("memory")).1 > 1e6);
    assert!(text.contains("windvane_order_latency_seconds{quantile=\"0.99\"}"));
}

#[tokio::test]
async fn metrics_over_tcp_need_the_token_unless_they_are_open() {
    for open in [false, true] {
        let instance = start_with(|settings| settings.open_metrics = open).await;
        let host = instance.host();
        let answer = instance.query_with("GET", "/metrics", &[&host], "").await;
        assert_eq!(answer.status, if open { 200 } else { 401 });
        assert_eq!(instance.by_socket("GET", "/metrics", "").await.status, 200);
        for path in ["/health", "/ready"] {
            let answer = instance.query_with("GET", path, &[&host], "").await;
            assert!(matches!(answer.status, 200 | 503), "{path}: {answer:?}");
        }
        let api = instance
            .query_with("GET", "/api/status", &[&host], "")
            .await;
        api.assert_refused(401);
    }
}
