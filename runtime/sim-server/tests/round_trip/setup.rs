//! A server, its client, and the state that a route needs before it can be called.

use std::time::Duration;

use rust_decimal::Decimal;
use windvane_client::call::{Call, Options};
use windvane_client::{Api, Client, Outcome, RawAnswer, Refusal};
use windvane_protocol::Brand;
use windvane_protocol::route::{InnerSignature, Listing, Route, Surface};
use windvane_protocol::sign::Credentials;
use windvane_protocol::wire::enums::{
    MarginType, OrderType, PositionSide, PrivacyStatus, Side, TimeInForce,
};
use windvane_protocol::wire::{Parameters, chain, futures, spot};
use windvane_sim_server::{LimitSettings, Running, Settings, Source, start};
use windvane_wire_examples as examples;

use crate::keys::{credentials, solana_key};
use crate::own_client::done;
use crate::{http, own_client};

/// The pairs for resting orders, for isolated positions, and for no activity at all.
const PAIR: &str = "BTCUSDT";
const HELD_PAIR: &str = "DOGEUSDT";
const IDLE_PAIR: &str = "ETHUSDT";
/// Below the market, on a multiple of both surfaces' ticks.
const RESTING_PRICE: i64 = 59_000;

pub struct Setup {
    pub running: Running,
    pub client: Client,
    user: String,
    solana: String,
    /// Counter for unique names.
    names: u32,
}

impl Setup {
    pub async fn new() -> Self {
        let settings = Settings {
            brand: brand(),
            source: Source::Seeded { per_second: 200 },
            limits: LimitSettings {
                spot_weight: 1_000_000,
                futures_weight: 1_000_000,
                ..LimitSettings::default()
            },
            ..Settings::default()
        };
        let running = start(settings).await.unwrap();
        let own = credentials(&running.accounts[0]);
        let client = client(&running, own);
        // The client reads the limits in force, which are high enough for every call.
        done(client.spot().exchange_info().await);
        done(client.futures().exchange_info().await);
        Self {
            user: running.accounts[0].user.clone(),
            client,
            running,
            solana: solana_key().address(),
            names: 0,
        }
    }

    /// A name that was not used before.
    fn name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}-{:022}", self.names)
    }

    /// Places a spot order that rests.
    async fn spot_order(&mut self) -> spot::Order {
        let order = spot::NewOrder::new(PAIR, Side::Buy, OrderType::Limit)
            .time_in_force(TimeInForce::Gtc)
            .quantity(Decimal::new(1, 2))
            .price(RESTING_PRICE)
            .client_order_id(self.name("spot"));
        done(self.client.spot().new_order(&order).await)
    }

    /// Places a futures order that rests.
    async fn futures_order(&mut self) -> futures::Order {
        let order = futures::NewOrder::new(PAIR, Side::Buy, OrderType::Limit)
            .time_in_force(TimeInForce::Gtc)
            .quantity(Decimal::new(1, 2))
            .price(RESTING_PRICE)
            .client_order_id(self.name("futures"));
        done(self.client.futures().new_order(&order).await)
    }

    /// The parameters for a call of this route, after creating what the route needs.
    pub async fn parameters(&mut self, route: &Route) -> Parameters {
        let mut sent = example(route.name).parameters;
        match route.surface {
            Surface::Spot => self.spot_parameters(route.name, &mut sent).await,
            Surface::Futures => self.futures_parameters(route.name, &mut sent).await,
            Surface::Rpc => {
                // The queried data must exist: an open order, a position, a fill of the last 7
                // days.
                self.futures_order().await;
                self.hold(PAIR, Decimal::new(1, 2)).await;
                let request = sent.iter().filter(|(name, _)| *name != "from");
                sent = request.collect();
            }
            Surface::Chain => {}
        }
        if sent.get("clientTranId").is_some() {
            sent = set(&sent, "clientTranId", &self.name("transfer"));
        }
        for name in ["address", "receiver"] {
            if sent.get(name).is_some() {
                sent = set(&sent, name, &self.user);
            }
        }
        if sent.get("toAddress").is_some() {
            sent = set(&sent, "toAddress", &self.running.accounts[1].user);
        }
        if route.name.contains("solana_withdraw") {
            sent = set(&sent, "receiver", &self.solana);
        }
        if sent.get("fee").is_some() {
            sent = set(&sent, "fee", "10");
        }
        sent
    }

    async fn spot_parameters(&mut self, name: &str, sent: &mut Parameters) {
        match name {
            "spot.new_order" => {
                *sent = set(sent, "newClientOrderId", &self.name("spot"));
                *sent = set(sent, "price", &RESTING_PRICE.to_string());
            }
            "spot.cancel_order" | "spot.query_order" | "spot.open_order" => {
                let order = self.spot_order().await;
                *sent = spot::QueryOrder::new(PAIR)
                    .client_order_id(order.client_order_id)
                    .parameters();
            }
            "spot.cancel_all_orders" => {
                let order = self.spot_order().await;
                *sent = spot::CancelAllOrders::new(PAIR)
                    .order_ids(vec![order.order_id.0])
                    .parameters();
            }
            "spot.open_orders" | "spot.all_orders" => {
                self.spot_order().await;
            }
            "spot.user_trades" => {
                let order =
                    spot::NewOrder::new(PAIR, Side::Buy, OrderType::Market).quote_order_qty(100);
                done(self.client.spot().new_order(&order).await);
            }
            "spot.keepalive_listen_key" | "spot.close_listen_key" => {
                let key = done(self.client.spot().create_listen_key().await);
                *sent = set(sent, "listenKey", &key.listen_key);
            }
            "spot.noop" => *sent = Parameters::new(),
            "spot.create_api_key" => {
                *sent = set(sent, "desc", &self.name("k")[..20]);
            }
            _ => {}
        }
    }

    async fn futures_parameters(&mut self, name: &str, sent: &mut Parameters) {
        match name {
            "futures.new_order" => {
                *sent = set(sent, "newClientOrderId", &self.name("futures"));
                *sent = set(sent, "price", &RESTING_PRICE.to_string());
            }
            "futures.cancel_order" | "futures.query_order" | "futures.open_order" => {
                let order = self.futures_order().await;
                *sent = futures::QueryOrder::new(PAIR)
                    .order_id(order.order_id.0)
                    .parameters();
            }
            "futures.batch_orders" => {
                let quantity = Decimal::new(1, 2);
                let first = futures::BatchOrder::new(PAIR, Side::Buy, OrderType::Limit, quantity)
                    .time_in_force(TimeInForce::Gtc)
                    .price(RESTING_PRICE);
                let refused = futures::BatchOrder::new("NOPAIR", Side::Buy, OrderType::Market, 1);
                *sent = futures::BatchOrders::new(vec![first, refused]).parameters();
            }
            "futures.cancel_batch_orders" => {
                let order = self.futures_order().await;
                *sent = futures::CancelBatchOrders::new(PAIR)
                    .client_order_ids(vec![order.client_order_id, "no-order".to_owned()])
                    .parameters();
            }
            "futures.open_orders" | "futures.all_orders" => {
                self.futures_order().await;
            }
            "futures.user_trades" | "futures.income" | "futures.position_risk" => {
                self.hold(PAIR, Decimal::new(1, 2)).await;
                if name == "futures.income" {
                    *sent = Parameters::new();
                }
            }
            "futures.change_margin_type" => {
                let crossed = futures::ChangeMarginType::new(IDLE_PAIR, MarginType::Crossed);
                // This is refused if the position is crossed already.
                let _ = self.client.futures().change_margin_type(&crossed).await;
                *sent = set(sent, "symbol", IDLE_PAIR);
            }
            "futures.change_position_margin" | "futures.position_margin_history" => {
                let isolated = futures::ChangeMarginType::new(HELD_PAIR, MarginType::Isolated);
                // This is refused if the position is isolated already.
                let _ = self.client.futures().change_margin_type(&isolated).await;
                self.hold(HELD_PAIR, Decimal::from(1_000)).await;
                let add = futures::ChangePositionMargin::new(HELD_PAIR, 10, 1);
                let add = add.position_side(PositionSide::Both);
                if name == "futures.change_position_margin" {
                    *sent = add.parameters();
                } else {
                    done(self.client.futures().change_position_margin(&add).await);
                    *sent = set(sent, "symbol", HELD_PAIR);
                }
            }
            "futures.force_orders" => {
                self.hold(PAIR, Decimal::new(1, 2)).await;
                let act = r#"{"act":"adl","symbol":"BTCUSDT","quantity":"0.001"}"#;
                http::succeed(self.running.addresses.control, "POST", "/act", act).await;
            }
            "futures.keepalive_listen_key" | "futures.close_listen_key" => {
                done(self.client.futures().create_listen_key().await);
            }
            "futures.builders" => {
                let example = example("futures.approve_builder").parameters;
                let builder = example.get("builder").unwrap();
                let approve = futures::ApproveBuilder::new(builder, Decimal::new(1, 5));
                let approve = approve.builder_name("desk");
                done(self.client.futures().approve_builder(&approve).await);
            }
            _ => {}
        }
    }

    /// Buys with a market order.
    async fn hold(&self, pair: &str, quantity: Decimal) {
        let order = futures::NewOrder::new(pair, Side::Buy, OrderType::Market).quantity(quantity);
        done(self.client.futures().new_order(&order).await);
    }

    /// Undoes settings that would affect later calls.
    pub async fn restore(&self, name: &str) {
        let client = self.client.futures();
        match name {
            "futures.change_position_mode" => {
                let one_way = futures::ChangePositionMode::new(false);
                done(client.change_position_mode(&one_way).await);
            }
            "futures.change_multi_assets_mode" => {
                let single = futures::ChangeMultiAssetsMode::new(false);
                done(client.change_multi_assets_mode(&single).await);
            }
            // The info endpoint shows nothing of a private account.
            "chain.modify_account_status" => {
                let public = chain::ModifyAccountStatus::new(PrivacyStatus::Public);
                done(self.client.chain().modify_account_status(&public).await);
            }
            _ => {}
        }
    }

    /// Calls one listing of a route, as `windvane call` does if it can choose the listing.
    pub async fn call(&mut self, route: &Route, listing: &'static Listing) -> Outcome<RawAnswer> {
        let mut sent = self.parameters(route).await;
        if route.name == "futures.change_multi_assets_mode" {
            sent = set(&sent, "multiAssetsMargin", "true");
        }
        let pairs = sent.iter();
        let arguments: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        for api in [Api::V1, Api::V3] {
            let options = Options {
                api: Some(api),
                ..Options::default()
            };
            let settings = self.client.settings();
            let call = Call::parse(route.name, &arguments, settings, &options).unwrap();
            if route.listing(call.version()) == Some(listing) {
                return call.run(&self.client).await;
            }
        }
        let route = alone(route, listing);
        self.client.call(route, listing.version, &sent).await
    }
}

/// Requests that the server refuses.
impl Setup {
    /// Code and text of the server's refusal. If the client refuses to build the request, it is
    /// sent without the parts that the client cannot sign.
    pub async fn refused(
        &self,
        route: &Route,
        listing: &'static Listing,
        sent: &Parameters,
    ) -> (i64, String) {
        let which = format!("{} {} {sent:?}", route.name, listing.path);
        let known = alone(route, listing);
        let mut outcome = self.client.call(known, listing.version, sent).await;
        if let (Outcome::Refused(Refusal::NotMade(_)), Some(inner)) = (&outcome, listing.inner) {
            let mut signed = sent.clone();
            signed.push("userSignature", "00".repeat(65));
            signed.push(inner_nonce(inner), "1");
            outcome = self.client.call(known, listing.version, &signed).await;
        }
        match outcome {
            Outcome::Refused(Refusal::NotMade(_)) => self.unsigned(route, listing, sent).await,
            Outcome::Refused(refusal) => (refusal.code().unwrap_or_default(), refusal.to_string()),
            other => panic!("{which}: {other:?}"),
        }
    }

    /// Code and text of the refusal of a form whose values cannot be signed as typed data at all.
    async fn unsigned(&self, route: &Route, listing: &Listing, sent: &Parameters) -> (i64, String) {
        let nonce = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros();
        let pairs = sent.iter().map(|(name, value)| format!("{name}={value}&"));
        let body: String = pairs.collect();
        let signature = "00".repeat(65);
        let body = format!(
            "{body}nonce={nonce}&user={}&signature={signature}",
            self.user
        );
        let address = self.running.addresses.futures;
        let (method, path) = (route.method.to_string(), brand().fill(listing.path));
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let json = http::send(address, &method, &path, form, &body).await;
        let json = json.unwrap().json();
        let code = json["code"].as_i64().unwrap_or_default();
        (code, json["msg"].to_string())
    }
}

const fn inner_nonce(inner: InnerSignature) -> &'static str {
    match inner {
        InnerSignature::Withdrawal { nonce } => nonce,
        _ => "userNonce",
    }
}

fn brand() -> Brand {
    let mut brand = Brand::new("svc").unwrap();
    brand.login_sentence = Some("You are signing into the simulated venue".to_owned());
    brand
}

pub fn client(running: &Running, credentials: Credentials) -> Client {
    let client = Client::new(own_client::settings(running, brand(), credentials)).unwrap();
    client.with_patience(Duration::from_secs(30))
}

/// The route with only one of its listings, because a version may have two paths.
pub fn alone(route: &Route, listing: &'static Listing) -> &'static Route {
    Box::leak(Box::new(Route {
        listings: std::slice::from_ref(listing),
        ..*route
    }))
}

pub fn example(name: &str) -> examples::Example {
    let mut examples = examples::all().into_iter();
    examples.find(|example| example.route == name).unwrap()
}

/// The same parameters in the same order, with another value for one.
pub fn set(sent: &Parameters, name: &str, value: &str) -> Parameters {
    let pairs = sent.iter();
    pairs
        .map(|(key, old)| (key, if key == name { value } else { old }))
        .collect()
}
