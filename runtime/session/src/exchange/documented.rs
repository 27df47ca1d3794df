//! The exchange of docs/interface.

use serde::de::IgnoredAny;
use windvane_client_core::Gateway;
use windvane_client_core::budget::{Cost, Departed};
use windvane_client_core::gateway::{Answer, Failure, Now, Unsigned};
use windvane_client_core::outcome::NotDone;
use windvane_client_core::streams::{key_expiry_ms, listen_key};
use windvane_model::{Instrument, OrderStatus, Reply, Request, Surface, UserEvent};
use windvane_protocol::adapter::{
    Adapter, CallResult, EncodeError, EncodedCall, FuturesAccount, Names, WithNotes,
};
use windvane_protocol::error::code;
use windvane_protocol::sign::{PrepareError, Prepared, Stamp, percent_encoded};
use windvane_protocol::wire::{Parameters, Whole, Word, read};
use windvane_protocol::{Assets, exchange_info, route, user_stream};

use super::weights::{MODES, weight};
use super::{Capabilities, DEPTH_LEVELS, Exchange, Query, Signing, listings};
use crate::instrument_name::InstrumentName;
use crate::startup_error::StartupError;

/// `CANCEL_REJECTED` and `NO_SUCH_ORDER` (docs/interface/errors.md#20xx).
const NOTHING_TO_CANCEL: [i64; 2] = [-2011, -2013];

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct Documented {
    gateway: Gateway,
    adapter: Adapter,
    signing: Signing,
}

impl Documented {
    /// The capabilities of this exchange.
    pub const CAPABILITIES: Capabilities = Capabilities {
        surfaces: Surface::ALL,
        // Spot has no countdown (docs/interface/futures.md#countdowncancelall).
        countdown: &[Surface::Futures],
        modes: MODES,
        weight,
    };

    /// The exchange behind a gateway. With `only_documents`, only routes of the core interface
    /// (docs/interface/README.md#core-and-public-facts) are used (`market_data = "documented"`).
    pub fn new(gateway: Gateway, only_documents: bool, signing: Signing) -> Self {
        let adapter = Adapter {
            names: Names::new(&[], &[]),
            futures_account: FuturesAccount::Routes,
            documented: only_documents,
        };
        Self {
            gateway,
            adapter,
            signing,
        }
    }
}

impl Exchange for Documented {
    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    fn names(&self) -> &Names {
        &self.adapter.names
    }

    fn configure(&mut self, names: Names, futures_account: FuturesAccount) {
        self.adapter.names = names;
        self.adapter.futures_account = futures_account;
    }

    fn encode_request(&self, request: &Request) -> Result<Vec<EncodedCall>, EncodeError> {
        self.adapter.encode_request(request)
    }

    fn open_orders_by_symbol(&self, surface: Surface) -> Result<Vec<EncodedCall>, EncodeError> {
        self.adapter.open_orders_by_symbol(surface)
    }

    fn encode_query(&self, query: Query<'_>) -> Option<EncodedCall> {
        let name = match query {
            Query::Listing(surface) => format!("{surface}.exchange_info"),
            Query::Clock(surface) => format!("{surface}.time"),
            Query::FuturesAccount => "futures.account".to_owned(),
            Query::Depth(surface, _) => format!("{surface}.depth"),
            Query::CreateKey(surface) => format!("{surface}.create_listen_key"),
            Query::RenewKey(surface, _) => format!("{surface}.keepalive_listen_key"),
            Query::OpenOrders(surface, _) => format!("{surface}.open_orders"),
            Query::Cancel(surface, ..) => format!("{surface}.cancel_order"),
        };
        let route = route::named(&name)?;
        let mut parameters = Parameters::new();
        match query {
            Query::Depth(_, symbol) => {
                parameters.push("symbol", symbol);
                parameters.push("limit", DEPTH_LEVELS);
            }
            Query::OpenOrders(_, symbol) => parameters.push("symbol", symbol),
            Query::Cancel(_, symbol, id) => {
                parameters.push("symbol", symbol);
                parameters.push("origClientOrderId", id);
            }
            // On futures the API key alone identifies the listen key
            // (docs/interface/user-stream.md#listen-keys).
            Query::RenewKey(_, key)
                if route.params.iter().any(|param| param.name == "listenKey") =>
            {
                parameters.push("listenKey", key);
            }
            _ => {}
        }
        Some(EncodedCall { route, parameters })
    }

    fn cost(&self, call: &EncodedCall) -> Cost {
        Cost::of(call.route, &call.parameters)
    }

    fn unsigned(&self, local_us: i64, call: &EncodedCall) -> Unsigned {
        let route = (call.route, None);
        self.gateway
            .unsigned(local_us, route, &call.parameters, None)
    }

    fn sign(&self, unsigned: &Unsigned) -> Option<Result<Prepared, PrepareError>> {
        let is_here = self.signing == Signing::Here || !unsigned.needs_key();
        is_here.then(|| self.gateway.sign(unsigned))
    }

    fn rehearse(&self, call: &EncodedCall) -> Option<Prepared> {
        let stamp = Stamp {
            timestamp_ms: 0,
            nonce_us: 0,
            inner_nonce_us: 0,
        };
        let route = (call.route, None);
        let unsigned = self
            .gateway
            .unsigned(0, route, &call.parameters, Some(stamp));
        self.sign(&unsigned)?.ok()
    }

    fn judge(
        &self,
        now: Now,
        call: &Unsigned,
        sent: (&Cost, Departed),
        answer: Result<Answer<'_>, Failure>,
    ) -> Result<(), NotDone> {
        self.gateway.judge(now, call.called_route, sent, answer)
    }

    fn is_of_clock(&self, not_done: &NotDone) -> bool {
        refusal_code(not_done) == Some(code::INVALID_TIMESTAMP.code)
    }

    fn is_of_dead_key(&self, not_done: &NotDone) -> bool {
        refusal_code(not_done) == Some(code::INVALID_LISTEN_KEY.code)
    }

    fn decode_reply(&self, request: &Request, results: &[CallResult<'_>]) -> WithNotes<Reply> {
        self.adapter.decode_reply(request, results)
    }

    fn refuse(&self, request: &Request, error: &EncodeError) -> Vec<Reply> {
        self.adapter.refuse(request, error)
    }

    fn clock_ms(&self, text: &str) -> Option<i64> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            server_time: Whole,
        }
        let answer: Answer = read(text).ok()?;
        Some(answer.server_time.0)
    }

    fn listen_key(&self, text: &str) -> Option<String> {
        listen_key(text).ok()
    }

    fn user_stream(&self, key: &str) -> String {
        // The venue may use any characters in a key.
        format!("/ws/{}", percent_encoded(key))
    }

    fn key_expiry_ms(&self, text: &str) -> Option<i64> {
        key_expiry_ms(text)
    }

    fn user_event(&self, surface: Surface, text: &str) -> Result<WithNotes<UserEvent>, String> {
        let event = user_stream::decode(surface, text).map_err(|error| error.to_string())?;
        let decoded = self.adapter.user_event(&event);
        decoded.map_err(|error| error.to_string())
    }

    fn check_listing(&self, text: &str) -> Result<(), String> {
        let entries = exchange_info::entries(text);
        entries.map(|_| ()).map_err(|error| error.to_string())
    }

    fn instruments(
        &self,
        names: &[InstrumentName],
        texts: &[(Surface, String)],
    ) -> Result<(Vec<Instrument>, Assets), StartupError> {
        listings::instruments(names, texts)
    }

    fn open_orders(&self, text: &str) -> Result<Vec<String>, String> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Listed {
            client_order_id: String,
            status: Word<OrderStatus>,
        }
        let is_over =
            |status: &Word<OrderStatus>| matches!(status, Word::Known(status) if status.is_final());
        let listed: Vec<Listed> = read(text).map_err(|error| error.to_string())?;
        let open = listed.into_iter().filter(|one| !is_over(&one.status));
        Ok(open.map(|one| one.client_order_id).collect())
    }

    fn is_nothing_to_cancel(&self, not_done: &NotDone) -> bool {
        refusal_code(not_done).is_some_and(|code| NOTHING_TO_CANCEL.contains(&code))
    }

    fn is_account(&self, text: &str) -> bool {
        // An exchange in trouble responds with nothing, an incomplete body, or an HTML page.
        read::<IgnoredAny>(text).is_ok() && text.trim_start().starts_with('{')
    }

    fn other_futures_account(&self) -> Option<FuturesAccount> {
        let address = self.gateway.identity().credentials.user?;
        Some(FuturesAccount::Info {
            address: address.to_string(),
        })
    }
}

fn refusal_code(not_done: &NotDone) -> Option<i64> {
    match not_done {
        NotDone::Refused(refusal) => refusal.code(),
        NotDone::Unknown(_) | NotDone::Wait(_) => None,
    }
}
