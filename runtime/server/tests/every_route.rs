//! Every route of the table, in every version that it is listed in, through the client to the
//! server and back. The table is iterated: a route without arguments here fails the test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

use std::collections::BTreeSet;

use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windvane_client::budget::Shares;
use windvane_client::call::{Call, Options};
use windvane_client::settings::default_version;
use windvane_client::{Addresses, Api, Client, Settings as ClientSettings};
use windvane_server::{AccountKeys, Running, Settings, Source, start};
use windvane_venue::Brand;
use windvane_venue::route::{self, Surface, Version};
use windvane_venue::sign::{ApiKey, Credentials, Dialect, Network, SolanaKey, Wallet};
use windvane_venue::wire::{Parameters, answers};

/// An agent and a builder that the test approves and removes.
const AGENT: &str = "0x00000000000000000000000000000000000000a1";
const BUILDER: &str = "0x00000000000000000000000000000000000000b1";

fn brand() -> Brand {
    let mut brand = Brand::new("svc").unwrap();
    brand.login_sentence = Some("You are signing into Svc".to_owned());
    brand
}

fn client_settings(running: &Running) -> ClientSettings {
    let at = running.addresses;
    let mut addresses = Addresses::default();
    for (surface, address) in [
        (Surface::Spot, at.spot),
        (Surface::Futures, at.futures),
        (Surface::Chain, at.chain),
        (Surface::Rpc, at.rpc),
    ] {
        addresses = addresses
            .rest(surface, &format!("http://{address}"))
            .unwrap();
    }
    let keys = &running.accounts[0];
    let wallet = |key: &str| Wallet::from_hex(&SecretString::from(key)).unwrap();
    let secret = SecretString::from(keys.api_secret.as_str());
    let credentials = Credentials {
        api_key: Some(ApiKey::new(keys.api_key.clone(), secret)),
        user: None,
        signer: Some(wallet(&keys.signer_key)),
        wallet: Some(wallet(&keys.user_key)),
        solana: Some(SolanaKey::from_seed(&[7; 32])),
    };
    let dialect = Dialect {
        brand: brand(),
        network: Network::Mainnet,
        recv_window_ms: Some(5_000),
    };
    let mut settings = ClientSettings::new(addresses, dialect, credentials);
    settings.shares = Shares::NONE;
    settings
}

struct Tour {
    client: Client,
    settings: ClientSettings,
    accounts: Vec<AccountKeys>,
    serial: u32,
    prices: [i64; 2],
}

impl Tour {
    /// Sends one request and gives its answer, which must be a success.
    async fn call(&self, name: &str, api: Api, arguments: &[String]) -> Result<String, String> {
        let options = Options {
            api: Some(api),
            ..Options::default()
        };
        let call = Call::parse(name, arguments, &self.settings, &options);
        let call = call.map_err(|error| format!("{name} {api:?}: {error}"))?;
        let answer = call.run(&self.client).await.into_result();
        let raw = answer.map_err(|error| format!("{name} {api:?} {arguments:?}: {error}"))?;
        match answers::check(name, &raw.text) {
            Ok(()) => Ok(raw.text),
            Err(error) => Err(format!("{name} {api:?}: {error} in {}", raw.text)),
        }
    }

    async fn learn_prices(&mut self) {
        for (at, surface) in [Surface::Spot, Surface::Futures].into_iter().enumerate() {
            let name = format!("{surface}.book_ticker");
            let text = self
                .call(&name, Api::V1, &words("symbol=BTCUSDT"))
                .await
                .unwrap();
            let top: serde_json::Value = serde_json::from_str(&text).unwrap();
            let bid: rust_decimal::Decimal = top["bidPrice"].as_str().unwrap().parse().unwrap();
            let resting = bid * rust_decimal::Decimal::new(98, 2);
            self.prices[at] = i64::try_from(resting.trunc()).unwrap();
        }
    }

    fn serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    fn order(&mut self, surface: Surface) -> (String, Vec<String>) {
        let id = format!("tour:{}", self.serial());
        let price = self.prices[surface as usize];
        let text = format!(
            "symbol=BTCUSDT side=BUY type=LIMIT timeInForce=GTC quantity=0.01 price={price} \
             newClientOrderId={id}"
        );
        (id, words(&text))
    }

    /// A resting order; its client order id.
    async fn place(&mut self, surface: Surface, api: Api) -> Result<String, String> {
        let (id, arguments) = self.order(surface);
        self.call(&format!("{surface}.new_order"), api, &arguments)
            .await?;
        Ok(id)
    }

    /// No futures order and no isolated position is left.
    async fn clear(&self, api: Api) -> Result<(), String> {
        self.call("futures.cancel_all_orders", api, &words("symbol=BTCUSDT"))
            .await?;
        let risk = self
            .call("futures.position_risk", api, &words("symbol=BTCUSDT"))
            .await?;
        if risk.contains("\"isolated\"") {
            let sell = "symbol=BTCUSDT side=SELL type=MARKET quantity=0.01 reduceOnly=true";
            self.call("futures.new_order", api, &words(sell)).await?;
            let crossed = words("symbol=BTCUSDT marginType=CROSSED");
            self.call("futures.change_margin_type", api, &crossed)
                .await?;
        }
        Ok(())
    }

    /// Arguments with which a route succeeds, after whatever it needs has been done.
    async fn arguments(&mut self, route: &route::Route, api: Api) -> Result<Vec<String>, String> {
        let surface = route.surface;
        let (_, name) = route.name.split_once('.').unwrap_or(("", route.name));
        if let Some(method) = route.name.strip_prefix("{rpc}") {
            let user = &self.accounts[0].user;
            assert!(["getBalance", "openOrders", "userFills"].contains(&method));
            return Ok(words(&format!("address={user} blockTag=latest")));
        }
        let other = self.accounts[1].user.clone();
        let user = self.accounts[0].user.clone();
        let text = match name {
            "new_order" => return Ok(self.order(surface).1),
            "batch_orders" => {
                let (price, id) = (self.prices[1], self.serial());
                let order = format!(
                    r#"{{"symbol":"BTCUSDT","side":"BUY","type":"LIMIT","timeInForce":"GTC","quantity":"0.01","price":"{price}","newClientOrderId":"batch:{id}"}}"#
                );
                return Ok(vec![format!("batchOrders=[{order}]")]);
            }
            "cancel_order" | "query_order" | "open_order" => {
                let id = self.place(surface, api).await?;
                format!("symbol=BTCUSDT origClientOrderId={id}")
            }
            "cancel_batch_orders" => {
                let id = self.place(surface, api).await?;
                return Ok(vec![
                    "symbol=BTCUSDT".to_owned(),
                    format!("origClientOrderIdList=[\"{id}\"]"),
                ]);
            }
            "countdown_cancel_all" => "symbol=BTCUSDT countdownTime=0".to_owned(),
            "wallet_transfer" | "spot_wallet_transfer" | "perp_wallet_transfer" => {
                let kind = if name == "spot_wallet_transfer" || surface == Surface::Spot {
                    "SPOT_FUTURE"
                } else {
                    "FUTURE_SPOT"
                };
                let serial = self.serial();
                format!("amount=1 asset=USDT clientTranId=tour-transfer-{serial} kindType={kind}")
            }
            "send_to_address" | "transfer" => {
                let serial = self.serial();
                format!(
                    "amount=1 asset=USDT toAddress={other} \
                     clientTranId=a-transfer-of-the-tour-{serial}"
                )
            }
            "withdraw_fee" => "chainId=56 asset=USDT".to_owned(),
            "withdraw" | "spot_withdraw" | "perp_withdraw" => {
                format!("chainId=56 asset=USDT amount=10 fee=1 receiver={user}")
            }
            "spot_solana_withdraw" | "perp_solana_withdraw" => {
                let receiver = SolanaKey::from_seed(&[7; 32]).address();
                format!("chainId=101 asset=USDT amount=10 fee=1 receiver={receiver}")
            }
            "get_nonce" => format!("address={user} userOperationType=CREATE_API_KEY"),
            "create_api_key" => {
                let serial = self.serial();
                format!("address={user} userOperationType=CREATE_API_KEY desc=tour-{serial}")
            }
            "keepalive_listen_key" | "close_listen_key" => {
                let create = format!("{surface}.create_listen_key");
                let answer = self.call(&create, api, &[]).await?;
                let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
                if surface == Surface::Futures {
                    return Ok(Vec::new());
                }
                format!("listenKey={}", answer["listenKey"].as_str().unwrap())
            }
            "klines" | "mark_price_klines" => "symbol=BTCUSDT interval=1m".to_owned(),
            "index_price_klines" => "pair=BTCUSDT interval=1m".to_owned(),
            // Changes that change nothing may be errors: it is changed, and the visit changes it
            // back.
            "change_position_mode" => {
                self.clear(api).await?;
                self.call(route.name, api, &words("dualSidePosition=true"))
                    .await?;
                "dualSidePosition=false".to_owned()
            }
            "change_multi_assets_mode" => {
                self.call(route.name, api, &words("multiAssetsMargin=true"))
                    .await?;
                "multiAssetsMargin=false".to_owned()
            }
            "change_leverage" | "remaining_openable_notional" => {
                "symbol=BTCUSDT leverage=10".to_owned()
            }
            "change_margin_type" => {
                self.clear(api).await?;
                self.call(
                    route.name,
                    api,
                    &words("symbol=BTCUSDT marginType=ISOLATED"),
                )
                .await?;
                "symbol=BTCUSDT marginType=CROSSED".to_owned()
            }
            "change_position_margin" => {
                self.clear(api).await?;
                let isolated = words("symbol=BTCUSDT marginType=ISOLATED");
                self.call("futures.change_margin_type", api, &isolated)
                    .await?;
                let buy = words("symbol=BTCUSDT side=BUY type=MARKET quantity=0.01");
                self.call("futures.new_order", api, &buy).await?;
                "symbol=BTCUSDT amount=1 type=1".to_owned()
            }
            "approve_agent" => format!(
                "agentName=tour agentAddress={AGENT} ipWhitelist= expired=1967945395040 \
                 canSpotTrade=true canPerpTrade=true canWithdraw=false"
            ),
            "update_agent" => format!(
                "agentAddress={AGENT} canSpotTrade=true canPerpTrade=false canWithdraw=false"
            ),
            "delete_agent" => format!("agentAddress={AGENT}"),
            "approve_builder" => {
                format!("builder={BUILDER} maxFeeRate=0.001 builderName=tour")
            }
            "update_builder" => format!("builder={BUILDER} maxFeeRate=0.002"),
            "delete_builder" => format!("builder={BUILDER}"),
            "modify_account_status" => "status=PRIVATE".to_owned(),
            _ if route.params.iter().any(|param| param.name == "symbol") => {
                "symbol=BTCUSDT".to_owned()
            }
            _ => {
                let needs = route
                    .params
                    .iter()
                    .find(|param| param.need != route::Need::Optional);
                assert!(needs.is_none(), "{}: no arguments here", route.name);
                String::new()
            }
        };
        Ok(words(&text))
    }

    async fn visit(&mut self, route: &'static route::Route, api: Api) -> Result<(), String> {
        let arguments = self.arguments(route, api).await?;
        self.call(route.name, api, &arguments).await?;
        Ok(())
    }

    /// A version that no way of signing prefers.
    async fn visit_other(
        &mut self,
        route: &'static route::Route,
        version: Option<Version>,
    ) -> Result<(), String> {
        let arguments = self.arguments(route, Api::V3).await?;
        let pairs = arguments.iter().filter_map(|pair| pair.split_once('='));
        let parameters: Parameters = pairs.collect();
        let answer = self.client.call(route, version, &parameters).await;
        let raw = answer.into_result();
        let raw = raw.map_err(|error| format!("{} {version:?}: {error}", route.name))?;
        answers::check(route.name, &raw.text).map_err(|error| error.to_string())
    }
}

/// The body that a GET gives.
async fn get(address: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A version with two paths is called by the first: the second takes the same bytes.
async fn visit_second_paths(client: &Client) -> Vec<String> {
    let mut failures = Vec::new();
    for route in route::all() {
        for listing in route.listings {
            if route.listing(listing.version) == Some(listing) {
                continue;
            }
            assert_eq!(route.method, route::Method::Get, "{}", route.name);
            let none = Parameters::new();
            let ready = client.prepare(route, listing.version, &none, None);
            let url = ready.unwrap().url;
            let target = format!("{}?{}", brand().fill(listing.path), url.query().unwrap());
            let text = get(url.authority(), &target).await;
            if let Err(error) = answers::check(route.name, &text) {
                failures.push(format!("{target}: {error} in {text}"));
            }
        }
    }
    failures
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn every_route_goes_there_and_back_in_every_version() {
    let settings = Settings {
        source: Source::Seeded { per_second: 50 },
        brand: brand(),
        ..Settings::default()
    };
    let running = start(settings).await.unwrap();
    let settings = client_settings(&running);
    let mut tour = Tour {
        client: Client::new(settings.clone()).unwrap(),
        settings,
        accounts: running.accounts.clone(),
        serial: 0,
        prices: [0; 2],
    };
    tour.learn_prices().await;
    let mut failures = Vec::new();
    let mut visited: BTreeSet<(&str, Option<Version>)> = BTreeSet::new();
    for api in [Api::V1, Api::V3] {
        for route in route::all() {
            let version = default_version(route, api);
            if visited.insert((route.name, version)) {
                failures.extend(tour.visit(route, api).await.err());
            }
        }
    }
    for route in route::all() {
        for listing in route.listings {
            if visited.insert((route.name, listing.version)) {
                failures.extend(tour.visit_other(route, listing.version).await.err());
            }
        }
    }
    failures.extend(visit_second_paths(&tour.client).await);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(visited.len() > 140, "{}", visited.len());
}
