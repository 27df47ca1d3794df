//! The simulated venue and its client, both from the real binary: every route of the printed table,
//! and what the README promises for two terminals.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use serde_json::Value;
use windvane_tests::binary::succeed;
use windvane_tests::parallel;
use windvane_tests::venue::Venue;

const STRANGER: &str = "0x1111111111111111111111111111111111111111";
const BUILDER: &str = "0x2222222222222222222222222222222222222222";
/// The address of the Solana key that signs the calls.
const SOLANA: &str = "4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS";

/// A row of `windvane routes --json`.
#[derive(Debug)]
struct Row {
    name: String,
    version: Option<String>,
}

fn rows() -> Vec<Row> {
    let table: Value = serde_json::from_str(&succeed(["routes", "--json"])).unwrap();
    let row = |row: &Value| Row {
        name: row["name"].as_str().unwrap().to_owned(),
        version: row["version"].as_str().map(str::to_owned),
    };
    table.as_array().unwrap().iter().map(row).collect()
}

impl Row {
    /// The value of `--api` for this version.
    fn api(&self) -> &'static str {
        match self.version.as_deref() {
            Some("v3") => "v3",
            _ => "v1",
        }
    }
}

/// A venue, and the requests that its routes need.
struct Scenario {
    venue: Venue,
    /// Makes ids unique that may be used only once.
    count: u64,
}

impl Scenario {
    fn new() -> Self {
        Self {
            venue: Venue::start(&["--seed", "7"]),
            count: 0,
        }
    }

    fn unique(&mut self, prefix: &str) -> String {
        self.count += 1;
        format!("{prefix}-{:020}", self.count)
    }

    /// The main wallet of an account.
    fn user(&self, account: usize) -> String {
        let user = &self.venue.line()["accounts"][account]["user"];
        user.as_str().unwrap().to_owned()
    }

    /// A price at which a buy order rests.
    fn resting_price(&self, surface: &str) -> String {
        let route = format!("{surface}.book_ticker");
        let book = self
            .venue
            .answer("v1", &route, &arguments("symbol=BTCUSDT"));
        let bid = book["bidPrice"].as_str().unwrap();
        let whole: u64 = bid.split('.').next().unwrap().parse().unwrap();
        (whole * 98 / 100).to_string()
    }

    fn order(&mut self, surface: &str, client_order_id: &str) -> Vec<String> {
        let price = self.resting_price(surface);
        arguments(&format!(
            "symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01 price={price} \
             newClientOrderId={client_order_id}"
        ))
    }

    /// Places a resting order through `api` and returns its client order id.
    fn place(&mut self, surface: &str, api: &str) -> String {
        let id = self.unique("o");
        let order = self.order(surface, &id);
        let placed = self
            .venue
            .answer(api, &format!("{surface}.new_order"), &order);
        assert_eq!(placed["status"], "NEW", "{placed}");
        id
    }

    /// Approves an agent or a builder for a route that changes it.
    fn approve(&mut self, what: &str) {
        let parameters = self.parameters(&Row {
            name: format!("futures.approve_{what}"),
            version: Some("v3".to_owned()),
        });
        let route = format!("futures.approve_{what}");
        // It may be approved already; that is fine.
        let _ = self.venue.call("v3", &route, &parameters);
    }

    /// Prepares what a route needs and returns its parameters. A route that is unknown here fails
    /// the test.
    fn parameters(&mut self, row: &Row) -> Vec<String> {
        let (surface, route) = row.name.split_once('.').unwrap_or(("rpc", &row.name));
        let found = self.of_an_order(surface, route, row.api());
        let found = found.or_else(|| self.of_a_movement(surface, route));
        let found = found.or_else(|| self.of_a_grant(route));
        let found = found.or_else(|| self.of_a_setting(surface, route, row.api()));
        let found = found.or_else(|| of_a_question(route));
        found.unwrap_or_else(|| {
            panic!(
                "this test has no parameters for the listed route {}",
                row.name
            )
        })
    }

    fn of_an_order(&mut self, surface: &str, route: &str, api: &str) -> Option<Vec<String>> {
        Some(match route {
            "new_order" => {
                let id = self.unique("o");
                self.order(surface, &id)
            }
            "query_order" | "open_order" | "cancel_order" => {
                let id = self.place(surface, api);
                arguments(&format!("symbol=BTCUSDT origClientOrderId={id}"))
            }
            "cancel_batch_orders" => {
                let id = self.place(surface, api);
                let list = format!("origClientOrderIdList=[\"{id}\"]");
                vec!["symbol=BTCUSDT".to_owned(), list]
            }
            "batch_orders" => {
                let price = self.resting_price(surface);
                vec![format!(
                    r#"batchOrders=[{{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","timeInForce":"GTC","quantity":"0.01","price":"{price}"}}]"#
                )]
            }
            "countdown_cancel_all" => arguments("symbol=BTCUSDT countdownTime=0"),
            "keepalive_listen_key" | "close_listen_key" => {
                let create = format!("{surface}.create_listen_key");
                let key = self.venue.answer(api, &create, &[]);
                match surface {
                    "spot" => {
                        arguments(&format!("listenKey={}", key["listenKey"].as_str().unwrap()))
                    }
                    // Futures has one key at a time, which needs no name.
                    _ => Vec::new(),
                }
            }
            _ => return None,
        })
    }

    fn of_a_movement(&mut self, surface: &str, route: &str) -> Option<Vec<String>> {
        let user = self.user(0);
        Some(match (surface, route) {
            ("spot" | "futures", "wallet_transfer")
            | ("chain", "perp_wallet_transfer" | "spot_wallet_transfer") => {
                let id = self.unique("t");
                arguments(&format!(
                    "asset=USDT amount=1 clientTranId={id} kindType=SPOT_FUTURE"
                ))
            }
            ("spot", "send_to_address") | ("chain", "transfer") => {
                let (other, id) = (self.user(1), self.unique("s"));
                arguments(&format!(
                    "asset=USDT amount=1 toAddress={other} clientTranId={id}"
                ))
            }
            ("spot", "withdraw") | ("chain", "perp_withdraw" | "spot_withdraw") => arguments(
                &format!("chainId=56 asset=USDT amount=5 fee=1 receiver={user}"),
            ),
            ("chain", "perp_solana_withdraw" | "spot_solana_withdraw") => arguments(&format!(
                "chainId=101 asset=USDT amount=5 fee=1 receiver={SOLANA}"
            )),
            (_, "withdraw_fee") => arguments("chainId=56 asset=USDT"),
            ("rpc", _) => arguments(&format!("address={user} blockTag=latest")),
            _ => return None,
        })
    }

    /// Parameters for API keys, agents and builders.
    fn of_a_grant(&mut self, route: &str) -> Option<Vec<String>> {
        let user = self.user(0);
        let (what, text) = match route {
            "get_nonce" => (
                "",
                format!("address={user} userOperationType=CREATE_API_KEY"),
            ),
            "create_api_key" => (
                "",
                format!("address={user} userOperationType=CREATE_API_KEY desc=mine"),
            ),
            "approve_agent" => (
                "",
                format!(
                    "agentName=test agentAddress={STRANGER} ipWhitelist= expired=4102444800000 \
                     canSpotTrade=true canPerpTrade=true canWithdraw=false"
                ),
            ),
            "update_agent" => (
                "agent",
                format!(
                    "agentAddress={STRANGER} canSpotTrade=true canPerpTrade=false \
                     canWithdraw=false"
                ),
            ),
            "delete_agent" => ("agent", format!("agentAddress={STRANGER}")),
            "approve_builder" => (
                "",
                format!("builder={BUILDER} maxFeeRate=0.001 builderName=test"),
            ),
            "update_builder" => ("builder", format!("builder={BUILDER} maxFeeRate=0.002")),
            "delete_builder" => ("builder", format!("builder={BUILDER}")),
            _ => return None,
        };
        if !what.is_empty() {
            self.approve(what);
        }
        Some(arguments(&text))
    }

    /// Modes are changed with v1 and changed back with v3, because the venue refuses a mode that is
    /// already set.
    fn of_a_setting(&mut self, surface: &str, route: &str, api: &str) -> Option<Vec<String>> {
        let there = api == "v1";
        Some(match (surface, route) {
            ("futures", "change_position_mode") => arguments(&format!("dualSidePosition={there}")),
            ("futures", "change_multi_assets_mode") => {
                arguments(&format!("multiAssetsMargin={there}"))
            }
            ("futures", "change_leverage" | "remaining_openable_notional") => {
                arguments("symbol=BTCUSDT leverage=10")
            }
            ("futures", "change_margin_type") if there => {
                arguments("symbol=ETHUSDT marginType=ISOLATED")
            }
            ("futures", "change_margin_type") => arguments("symbol=ETHUSDT marginType=CROSSED"),
            ("futures", "change_position_margin") => {
                // The margin type may be isolated already.
                let isolated = arguments("symbol=ETHUSDT marginType=ISOLATED");
                let _ = self
                    .venue
                    .call("v1", "futures.change_margin_type", &isolated);
                let order = arguments("symbol=ETHUSDT side=BUY type=MARKET quantity=0.1");
                self.venue.answer("v1", "futures.new_order", &order);
                arguments("symbol=ETHUSDT amount=1 type=1 positionSide=BOTH")
            }
            ("chain", "modify_account_status") => arguments("status=PRIVATE"),
            _ => return None,
        })
    }
}

/// Parameters for routes that only read, or need nothing.
fn of_a_question(route: &str) -> Option<Vec<String>> {
    let text = match route {
        "cancel_all_orders"
        | "all_orders"
        | "user_trades"
        | "position_margin_history"
        | "commission_rate"
        | "depth"
        | "trades"
        | "historical_trades"
        | "agg_trades" => "symbol=BTCUSDT",
        "klines" | "mark_price_klines" => "symbol=BTCUSDT interval=1m",
        "index_price_klines" => "pair=BTCUSDT interval=1m",
        "open_orders"
        | "account"
        | "earlier_account"
        | "create_listen_key"
        | "noop"
        | "ping"
        | "time"
        | "exchange_info"
        | "ticker_24hr"
        | "ticker_price"
        | "book_ticker"
        | "position_mode"
        | "multi_assets_mode"
        | "balance"
        | "position_risk"
        | "income"
        | "leverage_bracket"
        | "adl_quantile"
        | "force_orders"
        | "agents"
        | "builders"
        | "premium_index"
        | "funding_rate"
        | "funding_info"
        | "account_status"
        | "locked_staking"
        | "deposit_address"
        | "withdraw_info"
        | "deposit_withdraw_history" => "",
        _ => return None,
    };
    Some(arguments(text))
}

fn arguments(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_listed_route_answers_a_call() {
    let _core = parallel::core();
    let mut scenario = Scenario::new();
    let mut failed = Vec::new();
    for row in rows() {
        let parameters = scenario.parameters(&row);
        let output = scenario.venue.call(row.api(), &row.name, &parameters);
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            failed.push(format!("{} {:?}: {}", row.name, row.version, text.trim()));
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn orders_work_on_both_surfaces_with_both_keys() {
    let _core = parallel::core();
    let mut scenario = Scenario::new();
    for surface in ["spot", "futures"] {
        for api in ["v1", "v3"] {
            let id = scenario.place(surface, api);
            let one = arguments(&format!("symbol=BTCUSDT origClientOrderId={id}"));
            let ask = |what: &str| {
                scenario
                    .venue
                    .answer(api, &format!("{surface}.{what}"), &one)
            };
            let found = ask("query_order");
            assert_eq!(found["clientOrderId"], id.as_str(), "{found}");
            assert_eq!(found["status"], "NEW", "{found}");
            assert_eq!(ask("cancel_order")["status"], "CANCELED");
            assert_eq!(ask("query_order")["status"], "CANCELED");
        }
    }
}

#[test]
fn a_refusal_names_the_venues_code_and_ends_with_code_1() {
    let _core = parallel::core();
    let scenario = Scenario::new();
    let output = scenario
        .venue
        .call("v1", "spot.depth", &arguments("symbol=NOSUCH"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("-1121"), "{text}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "refused");
    assert_eq!(json["code"], -1121);
}

#[test]
fn both_user_streams_report_an_order() {
    let _core = parallel::core();
    let mut scenario = Scenario::new();
    let mut watch = scenario.venue.watch(&["user"]);
    let connected = |surface: &str| {
        let surface = surface.to_owned();
        move |line: &Value| line["surface"] == surface.as_str() && line["notice"] == "connected"
    };
    watch.until_all(&[&connected("spot"), &connected("futures")]);
    for surface in ["spot", "futures"] {
        for api in ["v1", "v3"] {
            let id = scenario.place(surface, api);
            let tells = |line: &Value| {
                let event = &line["event"];
                let order = if surface == "spot" {
                    event
                } else {
                    &event["o"]
                };
                line["surface"] == surface && order["c"] == id.as_str() && order["X"] == "NEW"
            };
            watch.until_all(&[&tells]);
        }
    }
}

#[test]
fn public_streams_are_watched_by_symbol() {
    let _core = parallel::core();
    let scenario = Scenario::new();
    let mut watch = scenario
        .venue
        .watch(&["futures:BTCUSDT", "--streams", "bookTicker"]);
    let top = |line: &Value| {
        let data = line["event"].get("data").unwrap_or(&line["event"]);
        data["e"] == "bookTicker" && data["s"] == "BTCUSDT"
    };
    watch.until_all(&[&top]);
}

#[test]
fn an_order_with_a_builder_code_has_its_own_response() {
    let _core = parallel::core();
    let mut scenario = Scenario::new();
    scenario.approve("builder");
    let id = scenario.unique("b");
    let mut order = scenario.order("futures", &id);
    order.extend(arguments(&format!("builder={BUILDER} feeRate=0.0005")));
    let answer = scenario.venue.answer("v3", "futures.new_order", &order);
    assert!(!answer["data"]["orderId"].is_null(), "{answer}");
    // A fee above the rate that the user has approved.
    order.pop();
    order.push("feeRate=0.5".to_owned());
    let output = scenario.venue.call("v3", "futures.new_order", &order);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_brand_appears_in_all_branded_names() {
    let _core = parallel::core();
    let scenario = Scenario {
        venue: Venue::start(&["--brand", "acme"]),
        count: 0,
    };
    let user = scenario.user(0);
    let brand = arguments("--set venue.brand=acme");
    let call = |route: &str, parameters: &str| {
        let all = [brand.clone(), arguments(parameters)].concat();
        scenario.venue.answer("v3", route, &all)
    };
    call("chain.locked_staking", "");
    call("spot.account", "");
    call(
        "futures.approve_builder",
        &format!("builder={BUILDER} maxFeeRate=0.001"),
    );
    let withdrawal = format!("chainId=56 asset=USDT amount=5 fee=1 receiver={user}");
    call("spot.withdraw", &withdrawal);
    call(
        "acme_getBalance",
        &format!("address={user} blockTag=latest"),
    );
}

#[test]
fn a_recording_drives_the_market_in_a_loop() {
    let _core = parallel::core();
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (session, cache) = (path("session.gz"), path("cache"));
    succeed(["data", "generate", "--minutes", "1", "--out", &session]);
    // One recorded minute takes a fifth of a second: most watched events come from a later round.
    let arguments = [
        "--data", &session, "--cache", &cache, "--loop", "--speed", "300",
    ];
    let venue = Venue::start(&arguments);
    let info = venue.answer("v1", "futures.exchange_info", &[]);
    let symbols = info["symbols"].as_array().unwrap();
    assert_eq!(
        (symbols.len(), &symbols[0]["symbol"]),
        (1, &"BTCUSDT".into())
    );
    let spot = venue.answer("v1", "spot.exchange_info", &[]);
    assert!(spot["symbols"].as_array().unwrap().is_empty(), "{spot}");
    let mut watch = venue.watch(&["futures:BTCUSDT", "--streams", "bookTicker"]);
    let mut last = 0;
    for _ in 0..3 {
        let far_on = |line: &Value| {
            let at = line["event"]["data"]["E"].as_i64();
            at.is_some_and(|at| at > last + 400)
        };
        let line = watch.until(&far_on);
        last = line["event"]["data"]["E"].as_i64().unwrap();
    }
}
