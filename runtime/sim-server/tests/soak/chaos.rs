//! Runs the examples in `CONTROL.md` in random order. Each switch is active for a moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windvane_sim_server::Running;

use crate::client::{Random, control};

const PAGE: &str = include_str!("../../CONTROL.md");

/// The bodies of the examples, by path.
fn examples() -> Vec<(&'static str, Value)> {
    let lines = PAGE.lines().filter(|line| line.starts_with("curl "));
    let posts = lines.filter_map(|line| {
        let path = ["/faults", "/act"];
        let path = path.into_iter().find(|path| line.contains(path))?;
        let (_, body) = line.split_once("-d '")?;
        let body = body.strip_suffix('\'')?;
        Some((path, serde_json::from_str(body).ok()?))
    });
    posts.collect()
}

pub async fn rage(running: Arc<Running>, until: Instant) {
    let examples = examples();
    assert!(examples.len() > 50, "{} examples", examples.len());
    let mut random = Random(20_260_101);
    let mut turns = 0_u64;
    while Instant::now() < until {
        let n = random.below(examples.len() as u64) as usize;
        let (path, mut body) = examples[n].clone();
        if path == "/faults" {
            body["for_ms"] = json!(50 + random.below(250));
            body["probability"] = json!("0.4");
            body["seed"] = json!(random.below(1_000_000));
        } else if body["act"] == "ban" {
            body["for_ms"] = json!(50);
        }
        let (status, text) = control(&running, "POST", path, &body.to_string()).await;
        assert!(status == 200 || status == 400, "{body}: {status} {text}");
        turns += 1;
        if turns.is_multiple_of(50) {
            let (status, _) = control(&running, "GET", "/state?brief=true", "").await;
            assert_eq!(status, 200);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
