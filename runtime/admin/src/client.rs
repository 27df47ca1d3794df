//! The client for the command line. It queries and commands a running instance, and distinguishes
//! *not running* from every other error.
//!
//! It uses the Unix socket of the data folder, and the TCP address only without one. Over TCP, it
//! sends no request to a program that has not proven that it knows the token, and never the token
//! itself (`proof`).

mod exchange;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, SERVER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::exchange::{Broken, Place, exchange};
use crate::address_file::AddressFile;
use crate::proof::{self, Challenge};
use crate::server;
use crate::socket::{self, NotReached};
use crate::steer::{Applied, Command, RELOAD_WITHIN, Refused, START_WITHIN};
use crate::token::{Token, TokenError};

/// Longer than the server waits for its engine.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);
/// How much longer than the server the client waits for a command.
const BREATH: Duration = Duration::from_secs(5);

/// The source of the token of a running instance.
#[derive(Clone, Debug)]
pub enum TokenSource {
    /// A file, usually `<data_dir>/admin.token`.
    File(PathBuf),
    /// The token itself, for example from an environment variable.
    Token(Token),
    /// The token cannot be read, for this reason. The socket needs none.
    Unreadable(String),
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
    /// The instance has only a TCP address, and the configured token cannot be read.
    #[error("{0}; the instance has no usable socket, so its token is needed")]
    NoToken(String),
    /// The program that listens there is not the instance.
    #[error(
        "the program at {at} is not this instance: {why}. Nothing was sent to it, and no command was \
         carried out; check whether the instance runs, and the orders at the venue"
    )]
    NotThisInstance {
        /// Where it listens.
        at: String,
        /// How this was noticed.
        why: String,
    },
    /// The data folder belongs to another user, or other users can change or replace it, so another
    /// program could answer in the name of the instance.
    #[error(
        "run.data_dir {} cannot be used: {why}. Another program could answer in place of the instance, \
         so nothing was sent, and no command was carried out. If orders must stop now, end the run with \
         SIGTERM, or cancel them at the venue",
        .data_dir.display()
    )]
    Folder {
        /// The data folder.
        data_dir: PathBuf,
        /// The path, its owner and its mode.
        why: String,
    },
    /// The instance refused it.
    #[error("{}; {}", .1.error, .1.what_to_do)]
    Refused(StatusCode, Refused),
    /// The result is unknown.
    #[error("the instance at {at} {what}; run windvane status, and check its log")]
    Failed {
        /// Where it listens.
        at: String,
        /// What went wrong.
        what: String,
    },
}

impl QueryError {
    /// The exit code of the command line: 3 if no instance is running, 2 if the data folder cannot be
    /// trusted, else 1.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotRunning(_) => 3,
            Self::Folder { .. } => 2,
            Self::Token(_)
            | Self::NoToken(_)
            | Self::NotThisInstance { .. }
            | Self::Refused(..)
            | Self::Failed { .. } => 1,
        }
    }
}

/// A running instance.
#[derive(Debug)]
pub struct Admin {
    place: Place,
    /// The token of the TCP address; `None` for the socket.
    token: Option<Token>,
}

/// How long the caller of a halt or flatten wants to wait for the end of own orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait(pub Duration);

impl Admin {
    /// Finds the instance of a data folder: by its `admin.sock`, or by its `admin.addr` if there is
    /// no usable socket. `token` is needed only for the latter.
    ///
    /// # Errors
    /// No instance runs there, or it cannot be reached.
    pub async fn in_data_dir(data_dir: &Path, token: TokenSource) -> Result<Self, QueryError> {
        let place = Place::Socket(data_dir.to_owned());
        let Err(not_reached) = socket::connect(data_dir).await else {
            return Ok(Self { place, token: None });
        };
        match (AddressFile::read(data_dir), not_reached) {
            // A process that was killed left both files.
            (_, NotReached::Stale) => Err(Broken::Nobody.at(&place)),
            (Ok(Some(address)), NotReached::Absent | NotReached::Failed(_)) => {
                Self::connect(address, token).await
            }
            (Ok(None), NotReached::Absent) => {
                let text = format!("there is no {place}");
                Err(QueryError::NotRunning(text))
            }
            (Err(error), NotReached::Absent) => {
                let path = AddressFile::path(data_dir);
                let text = format!("{} cannot be used: {error}", path.display());
                Err(QueryError::NotRunning(text))
            }
            (_, not_reached) => Err(Broken::socket(not_reached, data_dir).at(&place)),
        }
    }

    /// Connects to the instance at a TCP address. It must be Windvane and prove that it knows the
    /// token.
    ///
    /// # Errors
    /// No instance runs there, it is another one, or the token cannot be read.
    pub async fn connect(address: SocketAddr, token: TokenSource) -> Result<Self, QueryError> {
        let place = Place::Tcp(address);
        let request_sent = request(&place, Method::GET, "/health").body(Full::default());
        let answer = exchange(&place, request_sent, ANSWER_WITHIN)
            .await
            .map_err(|broken| match broken {
                Broken::Cut(_) => somebody_else(&place),
                broken => broken.at(&place),
            })?;
        let server = answer.headers().get(SERVER);
        if server.is_none_or(|name| name != server::SERVER) {
            return Err(somebody_else(&place));
        }
        let token = match token {
            TokenSource::File(path) => Token::read(&path)?,
            TokenSource::Token(token) => token,
            TokenSource::Unreadable(why) => return Err(QueryError::NoToken(why)),
        };
        // Each request has its own proof; this one tells the caller at once.
        nonce_of_instance(&place, &token).await?;
        let token = Some(token);
        Ok(Self { place, token })
    }

    /// Sends a query. `T` is the type that [`Query`] names, or `serde_json::Value`.
    pub async fn get<T: DeserializeOwned>(&self, question: Query) -> Result<T, QueryError> {
        let path = format!("/api/{}", question.as_str());
        self.query(Method::GET, &path, Bytes::new(), ANSWER_WITHIN)
            .await
    }

    /// Sends a command for one strategy or for all. Returns the new state. A halt or flatten waits at
    /// most for `wait` until no order that it cancels is open any more.
    ///
    /// # Errors
    /// It was refused, or its result is not known.
    pub async fn post(
        &self,
        command: Command,
        strategy: Option<&str>,
        wait: Wait,
    ) -> Result<Applied, QueryError> {
        #[derive(Serialize)]
        struct Order<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            strategy: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            wait_ms: Option<u64>,
        }
        let waits = command.cancels_orders() && wait != Wait::default();
        let wait = if waits { wait.0 } else { Duration::ZERO };
        let order = Order {
            strategy,
            wait_ms: waits.then_some(wait.as_millis() as u64),
        };
        // The server must give up first, because it reports the reason.
        let starts = command == Command::Resume && strategy.is_some();
        let wait = if starts { START_WITHIN } else { wait };
        let within = ANSWER_WITHIN + wait + BREATH;
        let is_needed = strategy.is_some() || waits;
        self.command(command, is_needed.then_some(order), within)
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
        let within = RELOAD_WITHIN + ANSWER_WITHIN + BREATH;
        self.command(Command::Reload, order, within).await
    }

    async fn command(
        &self,
        command: Command,
        order: Option<impl Serialize>,
        within: Duration,
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
        self.query(Method::POST, &path, body, within).await
    }

    async fn query<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<T, QueryError> {
        let (head, body) = match &self.token {
            None => {
                let request_sent = request(&self.place, method, path)
                    .header(CONTENT_TYPE, "application/json")
                    .body(Full::new(body));
                let answer = exchange(&self.place, request_sent, within).await;
                answer.map_err(|broken| broken.at(&self.place))?
            }
            Some(token) => {
                self.prove_and_query(token, (method, path), body, within)
                    .await?
            }
        }
        .into_parts();
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

    /// A request over TCP, with the proofs of both sides.
    async fn prove_and_query(
        &self,
        token: &Token,
        (method, path): (Method, &str),
        body: Bytes,
        within: Duration,
    ) -> Result<Response<Bytes>, QueryError> {
        let nonce = nonce_of_instance(&self.place, token).await?;
        let authorization = token.authorization(&nonce, &method, path, &body);
        let request_sent = request(&self.place, method, path)
            .header(AUTHORIZATION, authorization)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body));
        let answer = exchange(&self.place, request_sent, within).await;
        let answer = answer.map_err(|broken| broken.at(&self.place))?;
        let given = answer.headers().get(proof::ANSWER_HEADER);
        let given = given.map_or(&[][..], |given| given.as_bytes());
        let status = answer.status();
        if token.is_answer(&nonce, status.as_u16(), answer.body(), given) {
            return Ok(answer);
        }
        let what = format!(
            "answered {status} without the proof that the answer is its own: it is not known whether \
             the command was carried out"
        );
        Err(self.failed(&what))
    }

    fn failed(&self, what: &str) -> QueryError {
        Broken::Other(what.to_owned()).at(&self.place)
    }
}

/// A nonce for one request, of a server that has proven that it knows the token.
async fn nonce_of_instance(place: &Place, token: &Token) -> Result<String, QueryError> {
    let client = proof::client_nonce()?;
    let path = format!("{}?nonce={client}", proof::PATH);
    let request_sent = request(place, Method::GET, &path).body(Full::default());
    let answer = exchange(place, request_sent, ANSWER_WITHIN).await;
    let answer = answer.map_err(|broken| broken.at(place))?;
    let challenge = serde_json::from_slice::<Challenge>(answer.body()).ok();
    let proven = challenge.filter(|challenge| token.is_server(&client, challenge));
    proven.map(|challenge| challenge.nonce).ok_or_else(|| {
        let why = "it did not prove that it knows the token of this instance";
        Broken::Stranger(why.to_owned()).at(place)
    })
}

fn somebody_else(place: &Place) -> QueryError {
    QueryError::NotRunning(format!(
        "the program at {place} is not Windvane, so it is not this instance, and nothing was sent to \
         it"
    ))
}

fn request(place: &Place, method: Method, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, place.host())
}
