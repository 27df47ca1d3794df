//! Where the parameters of a request are read from, and how a response reports the wrong one.

use crate::fixture::{Answered, Sent, Venue, raw, stamped};

const ORDER: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";

/// Sends a request with the first account's key, a body and a content type.
async fn with_body(
    venue: &Venue,
    (method, path, query): (&str, &str, &str),
    content_type: Option<&str>,
    body: &str,
) -> Answered {
    let address = venue.address(path);
    let kind = content_type.map_or_else(String::new, |kind| format!("Content-Type: {kind}\r\n"));
    let request = format!(
        "{method} {path}?{query} HTTP/1.1\r\nHost: {address}\r\nX-MBX-APIKEY: {}\r\n{kind}\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        venue.keys().api_key,
        body.len()
    );
    raw(address, request.as_bytes()).await
}

const FORM: Option<&str> = Some("application/x-www-form-urlencoded");

#[tokio::test]
async fn a_get_request_reads_only_its_query() {
    let venue = Venue::new().await;
    for path in ["/fapi/v1/depth", "/api/v3/depth"] {
        let request = with_body(&venue, ("GET", path, ""), FORM, "symbol=BTCUSDT").await;
        assert_eq!(request.refusal(), (400, -1102), "{path}");
        let both = with_body(&venue, ("GET", path, "symbol=BTCUSDT"), FORM, "limit=zero").await;
        both.ok();
    }
    let signed = venue.hmac_signed(&stamped(""), "");
    let route = ("GET", "/api/v1/account", "");
    let refused = with_body(&venue, route, FORM, &signed).await;
    assert_eq!(refused.refusal(), (400, -1102));
    // The signature, too, covers only the query.
    let route = ("GET", "/api/v1/account", signed.as_str());
    with_body(&venue, route, FORM, "whatever=1").await.ok();
}

#[tokio::test]
async fn a_form_needs_its_content_type() {
    let venue = Venue::new().await;
    for path in ["/api/v1/order", "/fapi/v1/order"] {
        for kind in [None, Some("application/json"), Some("text/plain")] {
            let body = venue.hmac_signed(&stamped(ORDER), "");
            let refused = with_body(&venue, ("POST", path, ""), kind, &body).await;
            assert_eq!(refused.refusal(), (400, -1102), "{path} {kind:?}");
        }
        for kind in [
            FORM,
            Some("Application/X-WWW-Form-UrlEncoded; charset=UTF-8"),
        ] {
            let body = venue.hmac_signed(&stamped(ORDER), "");
            with_body(&venue, ("POST", path, ""), kind, &body)
                .await
                .ok();
        }
        // The signature does not cover a body with another content type.
        let query = venue.hmac_signed(&stamped(ORDER), "");
        let route = ("POST", path, query.as_str());
        let json = Some("application/json");
        with_body(&venue, route, json, "{}").await.ok();
    }
}

#[tokio::test]
async fn an_empty_list_of_orders_is_a_missing_parameter() {
    let venue = Venue::new().await;
    let placed = venue.v1("POST", "/api/v1/order", ORDER).await.ok();
    let routes = ["/fapi/v1/batchOrders", "/api/v1/allOpenOrders"];
    for path in routes {
        for name in ["orderIdList", "origClientOrderIdList"] {
            for empty in ["", "%5B%5D"] {
                let query = format!("symbol=BTCUSDT&{name}={empty}");
                let refused = venue.v1("DELETE", path, &query).await;
                assert_eq!(refused.refusal(), (400, -1102), "{path} {query}");
                assert!(refused.text.contains(name), "{refused:?}");
            }
        }
    }
    let query = format!("symbol=BTCUSDT&orderId={}", placed["orderId"]);
    let order = venue.v1("GET", "/api/v1/order", &query).await.ok();
    assert_eq!(order["status"], "NEW", "nothing was cancelled");
}

#[tokio::test]
async fn an_error_in_a_batch_entry_names_its_parameter() {
    let venue = Venue::new().await;
    let limit = r#""symbol":"BTCUSDT","side":"BUY","type":"LIMIT","timeInForce":"GTC""#;
    let trailing = r#""symbol":"BTCUSDT","side":"SELL","type":"TRAILING_STOP_MARKET""#;
    let cases = [
        (
            limit,
            r#""quantity":"0.01","price":"50000","orderId":1"#,
            -1104,
            "'orderId'",
        ),
        (
            limit,
            r#""quantity":"0.01","price":"50000","nobody":1"#,
            -1103,
            "'nobody'",
        ),
        (limit, r#""quantity":"0.01","price":null"#, -1102, "'price'"),
        (
            limit,
            r#""quantity":"0.01","price":"5e4""#,
            -1100,
            "'price'",
        ),
        (
            limit,
            r#""quantity":"0.01","price":"50000.000000001""#,
            -1111,
            "'price'",
        ),
        (
            limit,
            r#""quantity":"0.000000001","price":"50000""#,
            -1111,
            "'quantity'",
        ),
        (limit, r#""quantity":"0.01""#, -1102, "'price'"),
        (
            limit,
            r#""quantity":"0.01","price":"50000","stopPrice":"1""#,
            -1106,
            "'stopPrice'",
        ),
        (
            limit,
            r#""quantity":"0.01","price":"50000","reduceOnly":"maybe""#,
            -1130,
            "'reduceOnly'",
        ),
        (
            trailing,
            r#""quantity":"0.01","callbackRate":"4.5""#,
            -1130,
            "'callbackRate'",
        ),
        (
            trailing,
            r#""quantity":"0.01","callbackRate":"0.05""#,
            -1130,
            "'callbackRate'",
        ),
    ];
    for (order, rest, code, name) in cases {
        let list = format!("[{{{order},{rest}}}]");
        let encoded =
            percent_encoding::percent_encode(list.as_bytes(), percent_encoding::NON_ALPHANUMERIC);
        let query = format!("batchOrders={encoded}");
        let answers = venue.v1("POST", "/fapi/v1/batchOrders", &query).await.ok();
        let (found, msg) = (&answers[0]["code"], answers[0]["msg"].to_string());
        assert_eq!(*found, code, "{list}: {msg}");
        assert!(msg.contains(name), "{list}: {msg}");
    }
}

#[tokio::test]
async fn user_stream_routes_of_v3_need_only_the_key() {
    let venue = Venue::new().await;
    let ask = async |method: &'static str, path: &'static str, query: String, key: Option<&str>| {
        venue
            .send(Sent {
                method,
                path,
                query,
                key,
                ..Sent::default()
            })
            .await
    };
    let key = Some(venue.keys().api_key.as_str());
    for path in ["/fapi/v3/listenKey", "/api/v3/listenKey"] {
        let made = ask("POST", path, String::new(), key).await.ok();
        let own = format!("listenKey={}", made["listenKey"].as_str().unwrap());
        ask("PUT", path, own.clone(), key).await.ok();
        // If a signature is sent, it is verified.
        let forged = format!("{}&signature=00", stamped(&own));
        let refused = ask("PUT", path, forged, key).await;
        assert_eq!(refused.refusal(), (400, -1022), "{path}");
        let unknown = "0".repeat(64);
        let refused = ask("PUT", path, own.clone(), Some(&unknown)).await;
        assert_eq!(refused.refusal(), (401, -2015), "{path}");
        ask("DELETE", path, own, key).await.ok();
        // Other routes of v3 still require a signature.
        let refused = ask("GET", "/fapi/v3/balance", String::new(), key).await;
        assert_eq!(refused.refusal(), (400, -1102));
    }
}
