//! Every kind of fault of the control port that a client may meet.

use serde_json::{Value, json};

/// All switches and acts. The caller draws a probability in place of `share`, and `for_ms` if it is
/// missing.
pub fn all() -> Vec<Value> {
    let mut all = requests();
    all.extend(events());
    all.extend(acts());
    all
}

fn requests() -> Vec<Value> {
    let mut all = Vec::new();
    for how in ["503", "-1006", "-1007", "cut"] {
        for accepted in [true, false] {
            all.push(json!({"fault": "unknown", "how": how, "accepted": accepted,
                "surface": "futures", "probability": "share"}));
        }
    }
    for route in [
        "futures.new_order",
        "futures.cancel_order",
        "futures.countdown*",
        "stream",
    ] {
        all.push(
            json!({"fault": "unknown", "how": "cut", "accepted": true, "route": route,
            "count": 2}),
        );
        all.push(
            json!({"fault": "unknown", "how": "half_open", "accepted": false,
            "route": route, "count": 1}),
        );
    }
    all.extend([
        json!({"fault": "delay", "before_ms": 20, "after_ms": 80, "jitter_ms": 300,
            "surface": "futures"}),
        json!({"fault": "delay", "before_ms": 0, "after_ms": 2000, "jitter_ms": 500,
            "route": "futures.new_order", "count": 3}),
        json!({"fault": "refuse", "code": -1001, "msg": "Internal error.",
            "route": "futures.new_order", "probability": "share"}),
        json!({"fault": "refuse", "code": -2010, "msg": "No.", "route": "futures.new_order",
            "count": 3}),
        json!({"fault": "html", "status": 502, "surface": "futures", "accepted": true,
            "probability": "share"}),
        json!({"fault": "html", "status": 403, "surface": "futures", "count": 1}),
        json!({"fault": "html", "status": 502, "route": "stream", "count": 2}),
        json!({"fault": "empty", "surface": "futures", "probability": "share"}),
        json!({"fault": "truncate", "surface": "futures", "probability": "share"}),
        json!({"fault": "ban", "status": 429, "retry_after_s": 2, "surface": "futures",
            "for_ms": 2000}),
        json!({"fault": "ban", "route": "futures.new_order", "count": 1}),
        json!({"fault": "ban", "status": 418, "for_ms": 4000}),
        json!({"fault": "skew", "ms": -1500}),
        json!({"fault": "skew", "ms": 800}),
    ]);
    all
}

fn events() -> Vec<Value> {
    vec![
        json!({"fault": "late", "ms": 100, "jitter_ms": 1500, "account": 0}),
        json!({"fault": "twice", "after_ms": 50, "probability": "share"}),
        json!({"fault": "twice", "probability": "share"}),
        json!({"fault": "lost", "event": "ORDER_TRADE_UPDATE", "surface": "futures",
            "probability": "share"}),
        json!({"fault": "lost", "surface": "futures", "count": 3}),
        json!({"fault": "swap", "within_ms": 500, "probability": "share"}),
        json!({"fault": "stall", "shuffle": true, "account": 0}),
        json!({"fault": "stall", "account": 0}),
        json!({"fault": "gap", "surface": "futures", "topic": "btcusdt@depth*", "count": 3}),
        json!({"fault": "gap", "surface": "futures", "probability": "share"}),
    ]
}

fn acts() -> Vec<Value> {
    let mut all = vec![
        json!({"act": "disconnect"}),
        json!({"act": "disconnect", "kind": "user", "close_frame": true}),
        json!({"act": "disconnect", "kind": "public"}),
        json!({"act": "pause", "kind": "user", "for_ms": 2000}),
        json!({"act": "pause", "for_ms": 500}),
        json!({"act": "freeze", "kind": "user", "account": 0}),
        json!({"act": "freeze", "kind": "public"}),
        json!({"act": "expire_listen_key", "account": 0, "surface": "futures"}),
        json!({"act": "expire_listen_key", "account": 0, "surface": "futures", "silent": true}),
        json!({"act": "funding", "symbol": "BTCUSDT", "rate": "0.0001"}),
        json!({"act": "deposit", "asset": "USDT", "amount": "100.25"}),
        json!({"act": "transfer", "from": "spot", "asset": "USDT", "amount": "12.5"}),
    ];
    for frame in ["binary", "truncated", "unknown", "not_json", "empty"] {
        all.push(json!({"act": "garbage", "frame": frame, "kind": "user"}));
        all.push(json!({"act": "garbage", "frame": frame, "kind": "public"}));
    }
    all
}
