//! Tests of access: token, Host, Origin, methods, sizes.

use crate::instance::{TOKEN, authorization, start};

#[tokio::test]
async fn every_api_route_needs_the_token() {
    let mut instance = start().await;
    let host = instance.host();
    let wrong = format!("Authorization: Bearer {}0", &TOKEN[..TOKEN.len() - 1]);
    let longer = format!("Authorization: Bearer {TOKEN}0");
    let basic = format!("Authorization: Basic {TOKEN}");
    let bare = format!("Authorization: {TOKEN}");
    let right = authorization();
    let attempts: [&[&str]; 8] = [
        &[&host],
        &[&host, &wrong],
        &[&host, &longer],
        &[&host, &basic],
        &[&host, &bare],
        &[&host, "Authorization: Bearer "],
        &[&host, "Authorization:"],
        &[&host, &wrong, &right],
    ];
    for headers in attempts {
        for (method, path) in [
            ("GET", "/api/status"),
            ("GET", "/api/orders"),
            ("POST", "/api/halt"),
            ("GET", "/api/no-such-route"),
        ] {
            let answer = instance.query_with(method, path, headers, "").await;
            answer.assert_refused(401);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    let by_query = format!("/api/status?token={TOKEN}");
    let answer = instance.query_with("GET", &by_query, &[&host], "").await;
    answer.assert_refused(401);
    assert!(instance.steered.try_recv().is_none(), "no command arrived");

    let lower = format!("authorization: bearer {TOKEN}");
    let answer = instance
        .query_with("GET", "/api/status", &[&host, &lower], "")
        .await;
    assert_eq!(answer.status, 200, "header names and schemes ignore case");
}

#[tokio::test]
async fn another_host_is_refused_on_every_route() {
    let instance = start().await;
    let token = authorization();
    let port = instance.address().port();
    for path in ["/api/status", "/metrics", "/health", "/ready", "/"] {
        for host in ["Host: example.com", "Host: 127.0.0.1.example.com", "Host:"] {
            let answer = instance.query_with("GET", path, &[host, &token], "").await;
            answer.assert_refused(403);
        }
        let twice = ["Host: localhost", "Host: example.com", token.as_str()];
        let answer = instance.query_with("GET", path, &twice, "").await;
        assert!(matches!(answer.status, 400 | 403), "{answer:?}");
        let answer = instance.query_with("GET", path, &[&token], "").await;
        assert!(
            matches!(answer.status, 400 | 403),
            "without a Host header: {answer:?}"
        );
    }
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        for host in [format!("Host: {name}"), format!("Host: {name}:{port}")] {
            let answer = instance
                .query_with("GET", "/api/status", &[&host, &token], "")
                .await;
            assert_eq!(answer.status, 200, "{host}");
        }
    }
}

#[tokio::test]
async fn web_pages_are_refused_even_with_the_right_token() {
    let mut instance = start().await;
    let (host, token) = (instance.host(), authorization());
    let own = format!("Origin: http://{}", instance.address());
    for origin in ["Origin: https://example.com", "Origin: null", own.as_str()] {
        for (method, path) in [("POST", "/api/halt"), ("GET", "/metrics")] {
            let headers = [host.as_str(), token.as_str(), origin];
            let answer = instance.query_with(method, path, &headers, "").await;
            answer.assert_refused(403);
        }
    }
    assert!(instance.steered.try_recv().is_none());
}

#[tokio::test]
async fn get_cannot_command_and_post_cannot_query() {
    let mut instance = start().await;
    for verb in ["pause", "resume", "halt", "flatten", "reload"] {
        let path = format!("/api/{verb}");
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            let answer = instance.request(method, &path, "").await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.header("allow"), Some("POST"), "{method} {path}");
            if method != "HEAD" {
                answer.assert_refused(405);
            }
        }
    }
    for path in [
        "/api/status",
        "/api/orders",
        "/metrics",
        "/health",
        "/ready",
    ] {
        let answer = instance.request("POST", path, "").await;
        answer.assert_refused(405);
        assert_eq!(answer.header("allow"), Some("GET,HEAD"), "{path}");
    }
    assert!(instance.steered.try_recv().is_none());
}

#[tokio::test]
async fn unknown_routes_return_404() {
    let instance = start().await;
    for path in [
        "/",
        "/api",
        "/api/withdraw",
        "/api/status/x",
        "/metrics/",
        "/api/%2e%2e",
    ] {
        instance.request("GET", path, "").await.assert_refused(404);
    }
}

#[tokio::test]
async fn large_bodies_and_heads_are_refused() {
    let mut instance = start().await;
    let large = format!("{{\"strategy\": \"{}\"}}", "a".repeat(5_000));
    instance
        .request("POST", "/api/halt", &large)
        .await
        .assert_refused(413);
    let (host, token) = (instance.host(), authorization());
    let chunk = format!("1388\r\n{}\r\n", "a".repeat(5_000));
    let chunked = format!(
        "POST /api/halt HTTP/1.1\r\n{host}\r\n{token}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"
    );
    instance.send(chunked.as_bytes()).await.assert_refused(413);
    let filler = format!("X-Filler: {}", "a".repeat(20_000));
    let answer = instance
        .query_with("GET", "/health", &[&host, &filler], "")
        .await;
    assert_eq!(answer.status, 431);
    assert!(instance.steered.try_recv().is_none());
}

#[tokio::test]
async fn every_response_names_the_server_and_forbids_caching() {
    let instance = start().await;
    for path in ["/health", "/api/status", "/nowhere", "/metrics"] {
        let answer = instance.request("GET", path, "").await;
        assert_eq!(answer.header("server"), Some("windvane"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
}
