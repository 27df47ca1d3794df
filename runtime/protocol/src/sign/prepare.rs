//! Builds the exact bytes of a request: parameters, then the fields of the authentication, then the
//! signature. It does not send and has no clock: time and nonce come in a [`Stamp`].

use std::borrow::Cow;
use std::fmt;

use alloy_primitives::Address;
use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use crate::Brand;
use crate::route::{Kind, Listing, Method, Need, Param, Route, Scheme, Security, Surface, Version};
use crate::sign::encode::{compact_json, push_pair};
use crate::sign::{ApiKey, MessageDomain, Network, SolanaKey, TypedError, Wallet, hmac, typed};
use crate::wire::Parameters;

/// Header that carries the API key (docs/interface/conventions.md#signing-with-an-api-key).
pub const API_KEY_HEADER: &str = "X-MBX-APIKEY";

/// Default chain id of the management routes' typed data (56 is common:
/// docs/interface/conventions.md#signing-management-routes).
pub const SIGNATURE_CHAIN: u64 = 56;

const FORM: &str = "application/x-www-form-urlencoded";

/// The settings of a service and its user that all requests share.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// The brand word and its spellings.
    pub brand: Brand,
    /// Production or test environment.
    pub network: Network,
    /// `recvWindow` of HMAC requests in milliseconds; not sent if `None`.
    pub recv_window_ms: Option<u32>,
}

/// The available keys. A request needs only some of them.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// For v1 routes.
    pub api_key: Option<ApiKey>,
    /// The main address; by default the address of `wallet`.
    pub user: Option<Address>,
    /// The agent's key for v3 routes. Without an agent the main wallet signs
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    pub signer: Option<Wallet>,
    /// The main wallet's key.
    pub wallet: Option<Wallet>,
    /// The Solana wallet's key.
    pub solana: Option<SolanaKey>,
}

/// Time and nonces of a request, from the caller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Unix time in milliseconds, on the service's clock.
    pub timestamp_ms: i64,
    /// Microseconds, strictly increasing. For `createApiKey` the number that `getNonce` returned.
    pub nonce_us: u64,
    /// Nonce of the inner signature of a withdrawal, in microseconds. It is separate from the
    /// request's nonce (docs/interface/conventions.md#signing-withdrawals).
    pub inner_nonce_us: u64,
}

/// The bytes of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Prepared {
    /// Method.
    pub method: Method,
    /// Path with the brand word.
    pub path: String,
    /// Query string without `?`.
    pub query: Option<String>,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Option<String>,
    /// The signed text: the text of the HMAC or of the `Message`, or the typed data in JSON. For a
    /// request that is signed only in its parameters, the text of that signature.
    pub signed: Option<String>,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Key and signature must not reach a log.
        write!(f, "{} {}", self.method, self.path)
    }
}

/// The caller's data is not enough to build the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages explain each variant")]
pub enum PrepareError {
    #[error(
        "{route} is not listed in version {version}; `windvane routes` prints the versions it has"
    )]
    NoVersion {
        route: &'static str,
        version: String,
    },
    #[error("{route} needs an API key (header X-MBX-APIKEY): set account.api_key")]
    NoApiKey { route: &'static str },
    #[error(
        "{route} needs a signature by an agent or by the main wallet: set account.signer or account.wallet"
    )]
    NoSigner { route: &'static str },
    #[error("{route} needs a signature by the main wallet: set account.wallet")]
    NoWallet { route: &'static str },
    #[error("{route} needs a signature by a Solana wallet: set account.solana")]
    NoSolanaKey { route: &'static str },
    #[error(
        "spot.create_api_key signs a sentence that has no default; set venue.names.login_sentence, or give userSignature"
    )]
    NoSentence,
    #[error(
        "network = SOL: how a Solana wallet signs the sentence is not documented; give userSignature"
    )]
    SolanaSentence,
    #[error("{route} signs {name}, which is missing; give it")]
    NoParameter {
        route: &'static str,
        name: &'static str,
    },
    #[error("{name} = {value:?} must be a chain id, a positive integer")]
    ChainId { name: &'static str, value: String },
    #[error(
        "chainId = {chain_id} has no known short name to sign (1, 56 and 42161 have); give userSignature"
    )]
    UnknownChain { chain_id: u64 },
    #[error("the signer did not sign the request, so it was not sent: {0}")]
    NotSigned(String),
    #[error(transparent)]
    Typed(#[from] TypedError),
}

/// Builds the bytes of a request. Fields of the authentication or of the typed data that are among
/// the parameters are kept as given; missing ones are added. `signature` comes last.
///
/// GET sends a query string. In v1 POST and PUT send a form body and DELETE a query string; in v3
/// all three send a form body (docs/interface/conventions.md#parameters). JSON-RPC sends a JSON
/// body.
pub fn prepare(
    route: &'static Route,
    version: Option<Version>,
    parameters: &Parameters,
    dialect: &Dialect,
    credentials: &Credentials,
    stamp: Stamp,
) -> Result<Prepared, PrepareError> {
    let listing = route
        .listing(version)
        .ok_or_else(|| PrepareError::NoVersion {
            route: route.name,
            version: version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
        })?;
    if route.surface == Surface::Rpc {
        return Ok(prepare_rpc(route, listing, parameters, dialect));
    }
    let mut draft = Draft::new(route, parameters, dialect, credentials, stamp);
    if let Some(inner) = listing.inner {
        draft.sign_inner(inner)?;
    }
    draft.fill_listed_timestamp();
    draft.sign(listing.scheme)?;
    Ok(draft.finish(listing, version))
}

/// A request that is being built.
pub(super) struct Draft<'a> {
    pub(super) route: &'static Route,
    pub(super) dialect: &'a Dialect,
    pub(super) credentials: &'a Credentials,
    pub(super) stamp: Stamp,
    /// The text that the inner signature covers.
    pub(super) inner_signed: Option<String>,
    fields: Vec<(&'a str, Cow<'a, str>)>,
    /// A signature that the caller gave.
    given: Option<&'a str>,
    headers: Vec<(&'static str, String)>,
    /// The encoded text, with the signature once it exists.
    text: String,
    signed: Option<String>,
}

impl<'a> Draft<'a> {
    fn new(
        route: &'static Route,
        parameters: &'a Parameters,
        dialect: &'a Dialect,
        credentials: &'a Credentials,
        stamp: Stamp,
    ) -> Self {
        let mut fields = Vec::with_capacity(16);
        let lists = || route.params.iter().filter(|param| param.kind == Kind::List);
        let has_lists = lists().next().is_some();
        for (name, value) in parameters.iter().filter(|(name, _)| *name != "signature") {
            let value = if has_lists && lists().any(|param| param.name == name) {
                Cow::Owned(compact_json(value))
            } else {
                Cow::Borrowed(value)
            };
            fields.push((name, value));
        }
        Self {
            route,
            dialect,
            credentials,
            stamp,
            inner_signed: None,
            fields,
            given: parameters.get("signature"),
            headers: Vec::with_capacity(2),
            text: String::new(),
            signed: None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.as_ref())
    }

    pub(super) fn needed(&self, name: &'static str) -> Result<&str, PrepareError> {
        self.get(name).ok_or(PrepareError::NoParameter {
            route: self.route.name,
            name,
        })
    }

    pub(super) fn whole(&self, name: &'static str) -> Result<u64, PrepareError> {
        let value = self.needed(name)?;
        value.parse().map_err(|_| PrepareError::ChainId {
            name,
            value: value.to_owned(),
        })
    }

    pub(super) fn wallet(&self) -> Result<&'a Wallet, PrepareError> {
        let wallet = self.credentials.wallet.as_ref();
        wallet.ok_or(PrepareError::NoWallet {
            route: self.route.name,
        })
    }

    pub(super) fn push(&mut self, name: &'static str, value: String) {
        self.fields.push((name, Cow::Owned(value)));
    }

    /// Adds a field unless the caller gave it.
    pub(super) fn fill(&mut self, name: &'a str, value: impl FnOnce() -> String) {
        if self.get(name).is_none() {
            self.fields.push((name, Cow::Owned(value())));
        }
    }

    /// `createApiKey` lists a timestamp although no signature covers it
    /// (docs/interface/account.md#api-keys).
    fn fill_listed_timestamp(&mut self) {
        let listed = |param: &Param| param.name == "timestamp" && param.need == Need::Required;
        if self.route.params.iter().any(listed) {
            let now = self.stamp.timestamp_ms;
            self.fill("timestamp", || now.to_string());
        }
    }

    fn sign(&mut self, scheme: Scheme) -> Result<(), PrepareError> {
        match scheme {
            Scheme::Open => {
                self.show_api_key();
                self.write(self.given.map(str::to_owned));
                self.signed = self.inner_signed.take();
                Ok(())
            }
            Scheme::ApiKey => {
                self.api_key()?;
                self.write(self.given.map(str::to_owned));
                Ok(())
            }
            Scheme::Hmac => self.sign_hmac(),
            Scheme::Message => self.sign_message(),
            Scheme::WalletMessage => self.sign_wallet_message(),
            Scheme::Typed(primary) => self.sign_typed(primary),
        }
    }

    /// `MARKET_DATA` in v3: the core interface requires an API key, public facts require nothing
    /// (docs/interface/conventions.md#where-descriptions-differ). Sending a key if there is one
    /// satisfies both.
    fn show_api_key(&mut self) {
        let key = self.credentials.api_key.as_ref();
        if let Some(key) = key.filter(|_| self.route.security == Security::MarketData) {
            self.headers
                .push((API_KEY_HEADER, key.key.expose_secret().to_owned()));
        }
    }

    fn api_key(&mut self) -> Result<&'a ApiKey, PrepareError> {
        let key = self.credentials.api_key.as_ref();
        let key = key.ok_or(PrepareError::NoApiKey {
            route: self.route.name,
        })?;
        self.headers
            .push((API_KEY_HEADER, key.key.expose_secret().to_owned()));
        Ok(key)
    }

    /// docs/interface/conventions.md#signing-with-an-api-key
    fn sign_hmac(&mut self) -> Result<(), PrepareError> {
        let key = self.api_key()?;
        if let Some(window) = self.dialect.recv_window_ms {
            self.fill("recvWindow", || window.to_string());
        }
        let now = self.stamp.timestamp_ms;
        self.fill("timestamp", || now.to_string());
        self.write(None);
        let signature = self.given.map_or_else(
            || hmac::hex_hmac(&key.secret, &[self.text.as_bytes()]),
            str::to_owned,
        );
        self.seal(&signature);
        Ok(())
    }

    /// `nonce`, `user`, `signer`, and the agent's signature
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    fn sign_message(&mut self) -> Result<(), PrepareError> {
        let agent = self
            .credentials
            .signer
            .as_ref()
            .or(self.credentials.wallet.as_ref());
        self.fill_nonce();
        self.fill_user();
        if let Some(agent) = agent {
            self.fill("signer", || agent.address().to_string());
        }
        self.write(None);
        self.seal_message(
            agent,
            PrepareError::NoSigner {
                route: self.route.name,
            },
        )
    }

    /// `nonce`, `user`, and the main wallet's signature, without `signer`
    /// (docs/interface/conventions.md#messages-of-the-main-wallet).
    fn sign_wallet_message(&mut self) -> Result<(), PrepareError> {
        self.fill_nonce();
        self.fill_user();
        self.write(None);
        let missing = PrepareError::NoWallet {
            route: self.route.name,
        };
        self.seal_message(self.credentials.wallet.as_ref(), missing)
    }

    /// docs/interface/conventions.md#signing-management-routes
    ///
    /// The parameters are sent in the order of the signed type, with the business fields in the
    /// documents' order, whatever order the caller used. So a verifier that uses the order sent and
    /// a verifier that uses the documents' list get the same result.
    fn sign_typed(&mut self, primary: &str) -> Result<(), PrepareError> {
        let (dialect, route) = (self.dialect, self.route);
        self.fill(&dialect.brand.chain_parameter, || {
            dialect.network.label().to_owned()
        });
        self.fill_user();
        self.fill_nonce();
        self.fill("signatureChainId", || SIGNATURE_CHAIN.to_string());
        self.fields
            .sort_by_key(|(name, _)| typed::sent_place(&dialect.brand, route, name));
        let chain = self.whole("signatureChainId")?;
        let sent = self
            .fields
            .iter()
            .map(|(name, value)| (*name, value.as_ref()));
        let data = typed::management(&dialect.brand, self.route, primary, sent, chain)?;
        let signature = match self.given {
            Some(given) => given.to_owned(),
            None => self.wallet()?.sign(&data.digest()),
        };
        self.write(Some(signature));
        self.signed = Some(data.json().to_owned());
        Ok(())
    }

    fn fill_nonce(&mut self) {
        let nonce = self.stamp.nonce_us;
        self.fill("nonce", || nonce.to_string());
    }

    pub(super) fn fill_inner_nonce(&mut self, name: &'static str) {
        let nonce = self.stamp.inner_nonce_us;
        self.fill(name, || nonce.to_string());
    }

    fn fill_user(&mut self) {
        let wallet = self.credentials.wallet.as_ref();
        if let Some(user) = self.credentials.user.or(wallet.map(Wallet::address)) {
            self.fill("user", || user.to_string());
        }
    }

    fn seal_message(
        &mut self,
        key: Option<&Wallet>,
        missing: PrepareError,
    ) -> Result<(), PrepareError> {
        let signature = match (self.given, key) {
            (Some(given), _) => given.to_owned(),
            (None, Some(key)) => {
                let domain = MessageDomain::new(&self.dialect.brand, self.dialect.network);
                key.sign(&domain.digest(self.text.as_bytes()))
            }
            (None, None) => return Err(missing),
        };
        self.seal(&signature);
        Ok(())
    }

    /// Encodes the fields, with a signature that does not cover the text.
    fn write(&mut self, signature: Option<String>) {
        let raw = self
            .fields
            .iter()
            .map(|(name, value)| name.len() + value.len() + 2);
        self.text.reserve_exact(raw.sum::<usize>() + 160);
        for (name, value) in &self.fields {
            push_pair(&mut self.text, name, value);
        }
        if let Some(signature) = signature {
            push_pair(&mut self.text, "signature", &signature);
        }
    }

    /// Adds the signature that covers the text.
    fn seal(&mut self, signature: &str) {
        self.signed = Some(self.text.clone());
        push_pair(&mut self.text, "signature", signature);
    }

    fn finish(mut self, listing: &Listing, version: Option<Version>) -> Prepared {
        let in_query = match self.route.method {
            Method::Get => true,
            Method::Delete => version != Some(Version::V3),
            Method::Post | Method::Put => false,
        };
        let text = (!self.text.is_empty()).then_some(self.text);
        let (query, body) = if in_query { (text, None) } else { (None, text) };
        if body.is_some() {
            self.headers.push(("Content-Type", FORM.to_owned()));
        }
        Prepared {
            method: self.route.method,
            path: self.dialect.brand.fill(listing.path),
            query,
            headers: self.headers,
            body,
            signed: self.signed,
        }
    }
}

/// docs/interface/chain.md#info-endpoint: positional parameters in the documents' order, with
/// `null` for each missing one. An `id` among the parameters is kept, as JSON if it is valid JSON.
fn prepare_rpc(
    route: &Route,
    listing: &Listing,
    parameters: &Parameters,
    dialect: &Dialect,
) -> Prepared {
    let positional = route
        .params
        .iter()
        .map(|param| match parameters.get(param.name) {
            None => Value::Null,
            Some(text) if matches!(param.kind, Kind::Long | Kind::Int) => text
                .parse::<i64>()
                .map_or_else(|_| Value::from(text), Value::from),
            Some(text) => Value::from(text),
        });
    let id = parameters.get("id").map_or_else(
        || Value::from(1),
        |id| serde_json::from_str(id).unwrap_or_else(|_| Value::from(id)),
    );
    let mut body = Map::new();
    body.insert("id".to_owned(), id);
    body.insert("jsonrpc".to_owned(), Value::from("2.0"));
    body.insert(
        "method".to_owned(),
        Value::from(dialect.brand.fill(route.name)),
    );
    body.insert("params".to_owned(), positional.collect());
    Prepared {
        method: route.method,
        path: dialect.brand.fill(listing.path),
        query: None,
        headers: vec![("Content-Type", "application/json".to_owned())],
        body: Some(Value::Object(body).to_string()),
        signed: None,
    }
}
