//! The client for the command line. It queries and commands a running instance, and distinguishes
//! *not running* from every other error.
//!
//! It sends the token only to a server that identified itself as Windvane, because a stale
//! `admin.addr` may contain a port that another program uses now.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, SERVER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::address_file::AddressFile;
use crate::server;
use crate::steer::{Applied, Command, Refused};
use crate::token::{Token, TokenError};

/// Longer than the server waits for its engine.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// How much longer than the server the client waits for a command.
const BREATH: Duration = Duration::from_secs(5);
/// Far more than the size of all orders of an account.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The source of the token of a running instance.
#[derive(Clone, Debug)]
pub enum TokenSource {
    /// A file, usually `<data_dir>/admin.token`.
    File(PathBuf),
    /// The token itself, for example from an environment variable.
    Token(Token),
}

/// The queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// [`crate::view::Status`].
    Status,
    /// A list of [`crate::view::Order`].
    Orders,
    /// A list of [`crate::view::Position`].
    Positions,
    /// A list of [`crate::view::Balance`].
    Balances,
    /// A list of [`crate::view::Strategy`].
    Strategies,
}

impl Query {
    /// All queries.
    pub const ALL: [Self; 5] = [
        Self::Status,
        Self::Orders,
        Self::Positions,
        Self::Balances,
        Self::Strategies,
    ];

    /// The verb of the command line, also the last part of the route.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Orders => "orders",
            Self::Positions => "positions",
            Self::Balances => "balances",
            Self::Strategies => "strategies",
        }
    }
}

/// Why a query or a command failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// No instance is running.
    #[error("no instance is running: {0}; start it with windvane run")]
    NotRunning(String),
    /// The token cannot be read.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The instance refused it.
    #[error("{}; {}", .1.error, .1.what_to_do)]
    Refused(StatusCode, Refused),
    /// The result is unknown.
    #[error("the instance at {address} {what}; run windvane status, and check its log")]
    Failed {
        /// Its address.
        address: SocketAddr,
        /// What went wrong.
        what: String,
    },
}

impl QueryError {
    /// The exit code of the command line: 3 if no instance is running, else 1.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotRunning(_) => 3,
            Self::Token(_) | Self::Refused(..) | Self::Failed { .. } => 1,
        }
    }
}

/// A running instance.
#[derive(Debug)]
pub struct Admin {
    address: SocketAddr,
    token: Token,
}

impl Admin {
    /// Finds the instance of a data folder by its `admin.addr`.
    pub async fn in_data_dir(data_dir: &Path, token: TokenSource) -> Result<Self, QueryError> {
        let path = AddressFile::path(data_dir);
        match AddressFile::read(data_dir) {
            Ok(Some(address)) => Self::connect(address, token).await,
            Ok(None) => Err(QueryError::NotRunning(format!(
                "there is no {}",
                path.display()
            ))),
            Err(error) => {
                let text = format!("{} cannot be used: {error}", path.display());
                Err(QueryError::NotRunning(text))
            }
        }
    }

    /// Connects to the instance at an address. Verifies that it is Windvane before it reads the
    /// token.
    pub async fn connect(address: SocketAddr, token: TokenSource) -> Result<Self, QueryError> {
        let request_sent = request(address, Method::GET, "/health").body(Full::default());
        let answer = exchange(address, request_sent, ANSWER_WITHIN)
            .await
            .map_err(|broken| match broken {
                Broken::Cut(_) => somebody_else(address),
                broken => broken.at(address),
            })?;
        let server = answer.headers().get(SERVER);
        if server.is_none_or(|name| name != server::SERVER) {
            return Err(somebody_else(address));
        }
        let token = match token {
            TokenSource::File(path) => Token::read(&path)?,
            TokenSource::Token(token) => token,
        };
        Ok(Self { address, token })
    }

    /// Its address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a query. `T` is the type that [`Query`] names, or `serde_json::Value`.
    pub async fn get<T: DeserializeOwned>(&self, question: Query) -> Result<T, QueryError> {
        let path = format!("/api/{}", question.as_str());
        self.query(Method::GET, &path, Full::default(), ANSWER_WITHIN)
            .await
    }

    /// Sends a command for one strategy or for all. Returns the new state.
    pub async fn post(
        &self,
        command: Command,
        strategy: Option<&str>,
    ) -> Result<Applied, QueryError> {
        #[derive(Serialize)]
        struct Order<'a> {
            strategy: &'a str,
        }
        self.command(command, strategy.map(|strategy| Order { strategy }))
            .await
    }

    /// Sends a reload. The instance refuses it if it does not read the configuration from the file
    /// `config`.
    pub async fn reload(&self, config: Option<&Path>) -> Result<Applied, QueryError> {
        #[derive(Serialize)]
        struct Order<'a> {
            config: &'a Path,
        }
        let order = config.map(|config| Order { config });
        self.command(Command::Reload, order).await
    }

    async fn command(
        &self,
        command: Command,
        order: Option<impl Serialize>,
    ) -> Result<Applied, QueryError> {
        let body = match order.map(|order| serde_json::to_vec(&order)) {
            None => Bytes::new(),
            Some(Ok(body)) => body.into(),
            Some(Err(error)) => {
                return Err(self.failed(&format!(
                    "was not asked, the command cannot be encoded: {error}"
                )));
            }
        };
        let path = format!("/api/{}", command.as_str());
        // The server must give up first, because it reports the reason.
        let within = command.answer_within(ANSWER_WITHIN) + BREATH;
        self.query(Method::POST, &path, Full::new(body), within)
            .await
    }

    async fn query<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Full<Bytes>,
        within: Duration,
    ) -> Result<T, QueryError> {
        let request_sent = request(self.address, method, path)
            .header(AUTHORIZATION, self.token.authorization())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let answer = exchange(self.address, request_sent, within).await;
        let answer = answer.map_err(|broken| broken.at(self.address))?;
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            let read = serde_json::from_slice(&body);
            return read
                .map_err(|error| self.failed(&format!("answered without valid JSON: {error}")));
        }
        match serde_json::from_slice(&body) {
            Ok(refused) => Err(QueryError::Refused(head.status, refused)),
            Err(_) => Err(self.failed(&format!("answered {} without a reason", head.status))),
        }
    }

    fn failed(&self, what: &str) -> QueryError {
        Broken::Other(what.to_owned()).at(self.address)
    }
}

/// A request without a response.
enum Broken {
    /// No program listens at the address.
    Nobody,
    /// The listener does not respond in time, like a stopped process.
    Late,
    /// The response is not complete or not HTTP.
    Cut(String),
    /// Any other error.
    Other(String),
}

impl Broken {
    fn at(self, address: SocketAddr) -> QueryError {
        let what = match self {
            Self::Nobody => {
                return QueryError::NotRunning(format!("no program listens at {address}"));
            }
            Self::Late => "does not answer".to_owned(),
            Self::Cut(error) => format!("broke the connection: {error}"),
            Self::Other(error) => error,
        };
        QueryError::Failed { address, what }
    }
}

fn somebody_else(address: SocketAddr) -> QueryError {
    QueryError::NotRunning(format!("the program at {address} is not Windvane"))
}

fn request(address: SocketAddr, method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, address.to_string())
}

async fn exchange(
    address: SocketAddr,
    request: http::Result<Request<Full<Bytes>>>,
    within: Duration,
) -> Result<Response<Bytes>, Broken> {
    let request = request.map_err(|error| {
        Broken::Other(format!(
            "was not asked, the request cannot be built: {error}"
        ))
    })?;
    let exchanged = timeout(within, exchange_once(address, request)).await;
    exchanged.unwrap_or(Err(Broken::Late))
}

async fn exchange_once(
    address: SocketAddr,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, Broken> {
    let cut = |error: hyper::Error| Broken::Cut(error.to_string());
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => Broken::Nobody,
            _ => Broken::Other(format!("cannot be reached: {error}")),
        })?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(cut)?;
    let answered = async {
        let (head, body) = sender
            .send_request(request)
            .await
            .map_err(cut)?
            .into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Broken::Cut(error.to_string()))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    tokio::pin!(answered);
    tokio::select! {
        answer = &mut answered => answer,
        // The response reports how the connection ended.
        _ = connection => answered.await,
    }
}
