//! The routes and their handlers. GET only reads; POST commands.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::metrics::table;
use crate::proof;
use crate::steer::{Applied, Command, Refused, START_WITHIN, Steer, WAIT_MAX};
use crate::view::{self, Published};

use super::access_control::{AccessControl, admit_host, admit_known, challenge};
use super::answer::{json, refuse};
use super::tcp::Listening;
use super::visits::{Places, Purpose, Visit};
use super::{Served, Settings};

/// A command's body contains at most the id of a strategy or the path of a configuration.
const BODY_BYTES_MAX: usize = 4 * 1024;
/// The time limit for a body.
const BODY_WITHIN: Duration = Duration::from_secs(5);

/// The state that handlers share.
#[derive(Debug)]
struct ServerState {
    settings: Settings,
    served: Served,
    listening: watch::Receiver<Listening>,
    places: Places,
}

impl ServerState {
    /// Gives a request that may pass its place and its time. Without a free place it is refused.
    fn enter(&self, request: &Request, purpose: Purpose, limit: Duration) -> Option<Response> {
        let visit = request.extensions().get::<Arc<Visit>>()?;
        if visit.enter(&self.places, purpose, limit) {
            return None;
        }
        Some(refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests of this kind are being answered",
            "send it again in a moment; nothing was done",
        ))
    }

    fn published(&self) -> Arc<Published> {
        Arc::clone(&self.served.published.borrow())
    }
}

type Shared = State<Arc<ServerState>>;

/// All routes.
pub(super) fn router(
    settings: Settings,
    (served, listening): (Served, watch::Receiver<Listening>),
    access_control: AccessControl,
) -> Router {
    let access_control = Arc::new(access_control);
    let metrics = served.metrics.clone();
    let metrics_are_open = settings.open_metrics;
    let server_state = Arc::new(ServerState {
        settings,
        served,
        listening,
        places: Places::new(),
    });
    let mut api = Router::new()
        .route("/status", get(show_status))
        .route("/orders", show(|now| &now.orders))
        .route("/positions", show(|now| &now.positions))
        .route("/balances", show(|now| &now.balances))
        .route("/strategies", show(|now| &now.strategies));
    for command in Command::ALL {
        api = api.route(&format!("/{}", command.as_str()), take(command));
    }
    let known = || from_fn_with_state(Arc::clone(&access_control), admit_known);
    let api = api
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(known());
    let metrics_route = if metrics_are_open {
        get(show_open_metrics)
    } else {
        get(show_metrics).layer(known())
    };
    Router::new()
        .nest("/api", api)
        .route("/metrics", metrics_route)
        .route("/health", get(show_health))
        .route("/ready", get(show_ready))
        .route(
            proof::PATH,
            get(challenge).with_state(Arc::clone(&access_control)),
        )
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state((access_control, metrics), admit_host))
        .with_state(server_state)
}

async fn unknown_route() -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        "there is no such route",
        "GET /api/status, orders, positions, balances, strategies; POST /api/pause, resume, \
         halt, flatten, reload; GET /metrics, /health, /ready",
    )
}

async fn wrong_method() -> Response {
    refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "the route does not accept this method",
        "use the method in the Allow header: GET shows, POST commands",
    )
}

/// A route that shows a part of the last published state.
fn show<T: Serialize + 'static>(part: fn(&Published) -> &T) -> MethodRouter<Arc<ServerState>> {
    get(
        move |State(server_state): Shared, request: Request| async move {
            let limit = server_state.settings.transfer_within;
            if let Some(refused) = server_state.enter(&request, Purpose::Show, limit) {
                return refused;
            }
            json(StatusCode::OK, part(&server_state.published()))
        },
    )
}

/// The status as it was published last, with what only the server knows.
async fn show_status(State(server_state): Shared, request: Request) -> Response {
    let limit = server_state.settings.transfer_within;
    if let Some(refused) = server_state.enter(&request, Purpose::Show, limit) {
        return refused;
    }
    let mut status = server_state.published().status.clone();
    status
        .admin_problem
        .clone_from(&server_state.listening.borrow().problem);
    json(StatusCode::OK, &status)
}

/// A route that takes a command.
fn take(command: Command) -> MethodRouter<Arc<ServerState>> {
    post(
        move |State(server_state): Shared, request: Request| async move {
            let settings = &server_state.settings;
            // The connection lives at least as long as the answer may take.
            let limit = BODY_WITHIN
                + settings.answer_to(command, WAIT_MAX.max(START_WITHIN))
                + settings.transfer_within;
            let purpose = if command.sets_kill_switch() {
                Purpose::ReduceRisk
            } else {
                Purpose::Command
            };
            if let Some(refused) = server_state.enter(&request, purpose, limit) {
                return refused;
            }
            // A strategy in the query must not be ignored, because the command would then apply to
            // all.
            if let Some(query) = request.uri().query() {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    &format!("a command takes no query: {query}"),
                    "name a strategy in the body, {\"strategy\": \"ID\"}; nothing was done",
                );
            }
            let to = match read_order(request.into_body()).await {
                Ok(to) => to,
                Err(refused) => return refused,
            };
            if to.config.is_some() && command != Command::Reload {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    "only a reload takes a configuration",
                    "send no body, or {\"strategy\": \"ID\"}; nothing was done",
                );
            }
            if to.wait_ms.is_some() && !command.cancels_orders() {
                return refuse(
                    StatusCode::BAD_REQUEST,
                    "only a halt or a flatten takes wait_ms",
                    "send no body, or {\"strategy\": \"ID\"}; nothing was done",
                );
            }
            // The resume of a strategy in quarantine waits for its start.
            let starts = command == Command::Resume && to.strategy.is_some();
            let wait = if starts { START_WITHIN } else { to.wait() };
            let within = settings.answer_to(command, wait);
            let strategy = to.strategy.clone();
            let (outcome, response) = match steer(&server_state, command, to, within).await {
                Ok(Ok(applied)) => ("applied", json(StatusCode::OK, &applied)),
                Ok(Err(refused)) => ("refused", json(StatusCode::CONFLICT, &refused)),
                Err(Unanswered::Late) => ("unanswered", late(within)),
                Err(Unanswered::Gone) => ("unanswered", gone()),
            };
            let (verb, status) = (command.as_str(), response.status().as_u16());
            tracing::info!(command = verb, strategy, outcome, status, "operator");
            let metrics = &server_state.served.metrics;
            metrics.within(|| table::COMMANDS.of([verb, outcome]).increment(1));
            response
        },
    )
}

/// The target of a command. No body means the same as an empty object.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// One strategy; all strategies if absent.
    strategy: Option<String>,
    /// For a reload, the configuration that the caller expects.
    config: Option<PathBuf>,
    /// For a halt or flatten, how long the answer waits for the end of own orders, milliseconds. At
    /// most a minute.
    wait_ms: Option<u64>,
}

impl Order {
    fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms.unwrap_or(0)).min(WAIT_MAX)
    }
}

async fn read_order(body: Body) -> Result<Order, Response> {
    let body = Limited::new(body, BODY_BYTES_MAX).collect();
    let bytes = match timeout(BODY_WITHIN, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("the body is over {BODY_BYTES_MAX} bytes"),
                "send no body, or {\"strategy\": \"ID\"}",
            ));
        }
        Ok(Err(_)) => {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                "the body is not complete",
                "send it again; nothing was done",
            ));
        }
        Err(_) => {
            return Err(refuse(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not arrive in time",
                "send it again without a pause; nothing was done",
            ));
        }
    };
    if bytes.is_empty() {
        return Ok(Order::default());
    }
    let refused = |error: &dyn Display| {
        refuse(
            StatusCode::BAD_REQUEST,
            &format!("the body is not a command: {error}"),
            "send no body, or {\"strategy\": \"ID\"}",
        )
    };
    // serde would accept a list as the members of the object in their order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(refused(&"it is not an object"));
    }
    serde_json::from_slice(&bytes).map_err(|error| refused(&error))
}

/// A command without an answer.
enum Unanswered {
    /// The answer did not come in time.
    Late,
    /// The engine's loop has ended.
    Gone,
}

async fn steer(
    server_state: &ServerState,
    command: Command,
    to: Order,
    within: Duration,
) -> Result<Result<Applied, Refused>, Unanswered> {
    let (answer, answered) = oneshot::channel();
    let steer = Steer {
        command,
        wait: to.wait(),
        strategy: to.strategy,
        config: to.config,
        answer,
    };
    let exchange = async {
        let sent = server_state.served.steer.send(steer).await;
        sent.map_err(|_| Unanswered::Gone)?;
        answered.await.map_err(|_| Unanswered::Gone)
    };
    let in_time = timeout(within, exchange).await;
    in_time.unwrap_or(Err(Unanswered::Late))
}

fn late(within: Duration) -> Response {
    refuse(
        StatusCode::GATEWAY_TIMEOUT,
        &format!(
            "the engine did not answer within {} s",
            within.as_secs_f32()
        ),
        "a pause, halt or flatten may still be carried out, another command only if it is already \
         running: check windvane status. If the engine hangs, end the process: the dead man's \
         switches cancel its orders",
    )
}

fn gone() -> Response {
    refuse(
        StatusCode::SERVICE_UNAVAILABLE,
        "the engine's loop has ended; the command may not have been carried out",
        "check the log, and start the run again",
    )
}

async fn show_metrics(State(server_state): Shared, request: Request) -> Response {
    let limit = server_state.settings.transfer_within;
    match server_state.enter(&request, Purpose::Show, limit) {
        Some(refused) => refused,
        None => show_open_metrics(State(server_state)).await,
    }
}

/// The metrics for everyone. The connection stays one of the unknown clients.
async fn show_open_metrics(State(server_state): Shared) -> Response {
    let text = server_state
        .served
        .metrics
        .text(&server_state.published(), &server_state.served.heartbeat);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(CONTENT_TYPE, kind)], text).into_response()
}

#[derive(Serialize)]
struct Health {
    healthy: bool,
    /// Milliseconds since the engine's loop last made progress.
    loop_age_ms: u64,
}

async fn show_health(State(server_state): Shared) -> Response {
    let age = server_state.served.heartbeat.age();
    let healthy = age <= server_state.settings.stalled_after;
    let loop_age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let health = Health {
        healthy,
        loop_age_ms,
    };
    json(ok_if(healthy), &health)
}

#[derive(Serialize)]
struct Ready {
    ready: bool,
    state: view::State,
}

async fn show_ready(State(server_state): Shared) -> Response {
    let state = server_state.published().status.state;
    let ready = state == view::State::Ready;
    json(ok_if(ready), &Ready { ready, state })
}

/// The status code for probes.
const fn ok_if(well: bool) -> StatusCode {
    if well {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}
