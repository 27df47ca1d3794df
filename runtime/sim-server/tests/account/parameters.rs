//! Permitted and refused parameters: unknown, foreign, empty or superfluous ones
//! (docs/interface/errors.md#11xx).

use crate::fixture::{Answered, Venue};

const SPOT: [&str; 2] = ["/api/v1/order", "/api/v3/order"];
const FUTURES: [&str; 2] = ["/fapi/v1/order", "/fapi/v3/order"];
const LIMIT: &str = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.01&price=50000";
const MARKET: &str = "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.01";

async fn signed(venue: &Venue, method: &str, path: &str, text: &str) -> Answered {
    if path.contains("/v3/") {
        venue.v3(method, path, text).await
    } else {
        venue.v1(method, path, text).await
    }
}

async fn refusal(venue: &Venue, method: &str, path: &str, text: &str) -> (u16, i64) {
    signed(venue, method, path, text).await.refusal()
}

#[tokio::test]
async fn a_parameter_that_the_route_does_not_read_is_refused() {
    let venue = Venue::new().await;
    for path in SPOT.iter().chain(&FUTURES) {
        let cases = [
            ("whatever=1", -1103),
            ("orderId=7", -1104),
            ("limit=5", -1104),
            ("orderId=7&whatever=1", -1103),
            ("symbol=BTCUSDT", -1101),
            ("recvWindow=", -1105),
            ("stopPrice=", -1105),
        ];
        for (extra, code) in cases {
            let text = format!("{LIMIT}&{extra}");
            let refused = refusal(&venue, "POST", path, &text).await;
            assert_eq!(refused, (400, code), "{path} {extra}");
        }
    }
    let refused = refusal(&venue, "GET", "/api/v1/openOrders", "orderId=1").await;
    assert_eq!(refused, (400, -1104));
    let refused = refusal(&venue, "GET", "/fapi/v3/balance", "symbol=BTCUSDT").await;
    assert_eq!(refused, (400, -1101));
    let quoted = format!("{LIMIT}&quoteOrderQty=5");
    assert_eq!(
        refusal(&venue, "POST", FUTURES[0], &quoted).await,
        (400, -1104)
    );
    // Only v3 has the builder's code.
    let built = format!("{LIMIT}&feeRate=0.001");
    assert_eq!(
        refusal(&venue, "POST", FUTURES[0], &built).await,
        (400, -1104)
    );
}

#[tokio::test]
async fn parameters_that_clients_add_to_every_request_are_accepted() {
    let venue = Venue::new().await;
    for path in SPOT.iter().chain(&FUTURES) {
        let text = format!("{LIMIT}&recvWindow=5000&newOrderRespType=RESULT");
        signed(&venue, "POST", path, &text).await.ok();
        let post_only = LIMIT.replace("GTC", "GTX") + "&postOnly=true";
        signed(&venue, "POST", path, &post_only).await.ok();
    }
    for path in ["/api/v1/openOrders", "/fapi/v1/openOrders"] {
        let text = "symbol=BTCUSDT&recvWindow=5000";
        signed(&venue, "GET", path, text).await.ok();
    }
    let made = venue.v1("POST", "/fapi/v1/listenKey", "").await.ok();
    let key = format!("listenKey={}", made["listenKey"].as_str().unwrap());
    venue.v1("PUT", "/fapi/v1/listenKey", &key).await.ok();
}

#[tokio::test]
async fn parameters_that_an_order_type_forbids_are_refused() {
    let venue = Venue::new().await;
    for path in SPOT.iter().chain(&FUTURES) {
        let cases = [
            (MARKET, "timeInForce=GTC", -1114),
            (MARKET, "price=50000", -1106),
            (MARKET, "stopPrice=50000", -1106),
            (LIMIT, "stopPrice=50000", -1106),
        ];
        for (order, extra, code) in cases {
            let refused = refusal(&venue, "POST", path, &format!("{order}&{extra}")).await;
            assert_eq!(refused, (400, code), "{path} {extra}");
        }
    }
    for path in FUTURES {
        for extra in [
            "activationPrice=50000",
            "callbackRate=1",
            "closePosition=true",
            "priceProtect=TRUE",
        ] {
            let refused = refusal(&venue, "POST", path, &format!("{LIMIT}&{extra}")).await;
            assert_eq!(refused, (400, -1106), "{path} {extra}");
        }
        // A default value has no effect, and every order type permits the working type.
        let defaults = "closePosition=false&priceProtect=FALSE&reduceOnly=false&\
                        workingType=CONTRACT_PRICE&positionSide=BOTH";
        signed(&venue, "POST", path, &format!("{LIMIT}&{defaults}"))
            .await
            .ok();
    }
}

#[tokio::test]
async fn an_entry_of_a_batch_is_checked_like_an_order() {
    let venue = Venue::new().await;
    let entry = |more: &str| {
        format!(
            r#"{{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","quantity":"0.01","price":"50000","timeInForce":"GTC"{more}}}"#
        )
    };
    let cases = [
        (r#","whatever":1"#, -1103),
        (r#","orderId":1"#, -1104),
        (r#","stopPrice":"""#, -1105),
        (r#","newClientOrderId":null"#, -1102),
        (r#","stopPrice":"5e4""#, -1100),
        (r#","workingType":"LAST""#, -4031),
        (r#","stopPrice":"50000""#, -1106),
    ];
    for path in ["/fapi/v1/batchOrders", "/fapi/v3/batchOrders"] {
        for (more, code) in cases {
            let list = format!(
                "[{},{}]",
                entry(more),
                entry(r#","newOrderRespType":"ACK""#)
            );
            let list = percent_encoding::percent_encode(
                list.as_bytes(),
                percent_encoding::NON_ALPHANUMERIC,
            );
            let answers = signed(&venue, "POST", path, &format!("batchOrders={list}"))
                .await
                .ok();
            assert_eq!(answers[0]["code"], code, "{path} {more}");
            assert_eq!(answers[1]["status"], "NEW", "{path} {more}");
        }
    }
}

#[tokio::test]
async fn each_refusal_names_the_error() {
    let venue = Venue::new().await;
    for path in SPOT.iter().chain(&FUTURES) {
        let with = |price: &str| LIMIT.replace("price=50000", &format!("price={price}"));
        let zeros = "0".repeat(40);
        let long = with(&format!("{zeros}50000.{zeros}"));
        signed(&venue, "POST", path, &long).await.ok();
        let fine = format!("50000.{zeros}1");
        for (text, code, word) in [
            (with(&"9".repeat(40)), -4002, "max price"),
            (with(&fine), -1111, "Precision"),
            (LIMIT.replace("&price=50000", ""), -1102, "'price'"),
            (
                LIMIT.replace("&timeInForce=GTC", ""),
                -1102,
                "'timeInForce'",
            ),
            (format!("{LIMIT}&stopPrice=50000"), -1106, "'stopPrice'"),
        ] {
            let result = signed(&venue, "POST", path, &text).await;
            assert_eq!(result.refusal(), (400, code), "{path} {text}");
            assert!(result.text.contains(word), "{path}: {result:?}");
        }
    }
    let mode = "/fapi/v1/multiAssetsMargin";
    let same = signed(&venue, "POST", mode, "multiAssetsMargin=false").await;
    assert_eq!(same.refusal(), (400, -4059));
    assert!(!same.text.contains("position side"), "{same:?}");
    let all = "symbol=BTCUSDT";
    signed(&venue, "DELETE", "/fapi/v1/allOpenOrders", all)
        .await
        .ok();
    let isolated = "symbol=BTCUSDT&marginType=ISOLATED";
    signed(&venue, "POST", "/fapi/v1/marginType", isolated)
        .await
        .ok();
    let refused = signed(&venue, "POST", mode, "multiAssetsMargin=true").await;
    assert_eq!(refused.refusal(), (400, -1020));
    assert!(refused.text.contains("ISOLATED"), "{refused:?}");
    let send = "asset=USDT&amount=1&clientTranId=nineteen-characters&\
                toAddress=0x00000000000000000000000000000000000000aa";
    let short = signed(&venue, "POST", "/api/v1/asset/sendToAddress", send).await;
    assert_eq!(short.refusal(), (400, -4114), "{short:?}");
    assert!(short.text.contains("20 to 63"), "{short:?}");
    let agents = signed(&venue, "GET", "/fapi/v3/agent", "").await;
    assert!(agents.text.contains("4102444800000"), "{agents:?}");
}
