//! The server of the signer process: it accepts connections of the same user, judges each request
//! and signs what the policy allows.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use windvane_client_core::gateway::Unsigned;
use windvane_protocol::sign::{Credentials, Dialect, Prepared, prepare};

use crate::policy::{Now, Policy};
use crate::wire::{self, FrameError, Frames};

/// How many connections may be open: the run, its watchdog, and their successors.
const CONNECTIONS: usize = 16;
/// How long the signer stays after the end of the run without a connection. A watchdog that lost its
/// connection has this time to connect again.
const LINGER: Duration = Duration::from_secs(3);
/// Bytes that are read at once.
const READ: usize = 8 * 1024;

/// Takes the number of opening orders that were counted. With `false` nothing is signed.
type Counted = dyn Fn(u32) -> bool + Send + Sync;

/// The keys and the policy.
#[derive(Debug)]
pub struct Signer {
    dialect: Dialect,
    credentials: Credentials,
    policy: Mutex<Policy>,
    began: Instant,
    /// How long it stays after the end of the run without a connection.
    linger: Duration,
}

impl Signer {
    /// A signer with these keys.
    pub fn new(dialect: Dialect, credentials: Credentials, policy: Policy) -> Self {
        Self {
            dialect,
            credentials,
            policy: Mutex::new(policy),
            began: Instant::now(),
            linger: Duration::ZERO,
        }
    }

    /// Whether a watchdog may need the signer after the end of the run.
    #[must_use]
    pub fn lingering(mut self, is_watched: bool) -> Self {
        self.linger = if is_watched { LINGER } else { Duration::ZERO };
        self
    }

    /// Signs a request if the policy allows it. `counted` gets the number of opening orders that the
    /// policy counted, if it has a limit per minute; with `false` nothing is signed.
    ///
    /// # Errors
    /// Why it is not signed, for the operator.
    pub fn sign(
        &self,
        request: &Unsigned,
        counted: impl FnOnce(u32) -> bool,
    ) -> Result<Prepared, String> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = unix.map_or(0, |unix| unix.as_millis());
        let now = Now {
            since_start_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_ms: i64::try_from(unix_ms).unwrap_or(i64::MAX),
        };
        let route = request.called_route.route;
        let judged = {
            // A panic while the policy counted cannot allow more: at worst an order counts twice.
            let mut policy = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
            policy.judge(now, request)
        };
        let opened = judged.map_err(|refused| {
            tracing::warn!(
                route = route.name,
                rule = refused.rule,
                what = refused.what,
                "the signer's policy forbids a request: it was not signed and not sent"
            );
            format!("the signer's policy forbids it ({refused})")
        })?;
        if opened > 0 && !counted(opened) {
            return Err("the process that counts opening orders does not answer".to_owned());
        }
        let version = request.called_route.version;
        let (parameters, stamp) = (&request.parameters, request.stamp);
        let (dialect, credentials) = (&self.dialect, &self.credentials);
        prepare(route, version, parameters, dialect, credentials, stamp)
            .map_err(|error| error.to_string())
    }

    /// Serves connections until the run has ended and no connection is left. The run has ended when
    /// `control` closes. `counted` is used as in [`Self::sign`], before the signature leaves.
    ///
    /// # Errors
    /// The operating system refuses to accept connections.
    pub async fn serve(
        self,
        listener: UnixListener,
        control: UnixStream,
        counted: impl Fn(u32) -> bool + Send + Sync + 'static,
    ) -> std::io::Result<()> {
        let signer = Arc::new(self);
        let counted: Arc<Counted> = Arc::new(counted);
        let own = control.peer_cred()?.uid();
        // Each connection holds a receiver, so the sender counts them.
        let (open, _) = watch::channel(());
        let mut ended = Box::pin(closed(control));
        let mut has_ended = false;
        loop {
            let is_idle = has_ended && open.receiver_count() == 0;
            tokio::select! {
                accepted = listener.accept() => {
                    let (stream, _) = accepted?;
                    let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == own);
                    if !is_own {
                        tracing::error!(
                            "another user tried to reach the signer: the connection was refused"
                        );
                    } else if open.receiver_count() < CONNECTIONS {
                        tokio::spawn(connection(
                            Arc::clone(&signer),
                            Arc::clone(&counted),
                            stream,
                            open.subscribe(),
                        ));
                    }
                }
                () = &mut ended, if !has_ended => has_ended = true,
                () = open.closed(), if has_ended && !is_idle => {}
                () = tokio::time::sleep(signer.linger), if is_idle => return Ok(()),
            }
        }
    }
}

/// Completes when the other end is gone.
async fn closed(mut control: UnixStream) {
    let mut bytes = [0; 16];
    while control.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
}

/// Answers the requests of a connection until it ends. `_open` counts the connection.
async fn connection(
    signer: Arc<Signer>,
    counted: Arc<Counted>,
    mut stream: UnixStream,
    _open: watch::Receiver<()>,
) {
    let mut frames = Frames::default();
    let mut bytes = vec![0; READ];
    loop {
        match stream.read(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(read) => frames.push(&bytes[..read]),
        }
        loop {
            let reply = match frames.next_record() {
                Ok(None) => break,
                Ok(Some(record)) => answer(&signer, &*counted, record),
                Err(error) => Err(error),
            };
            match reply {
                Ok(reply) => {
                    if stream.write_all(&reply).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::error!(
                        %error,
                        "the signer cannot read a request: the connection is closed, and the \
                         requests in it are not signed"
                    );
                    return;
                }
            }
        }
    }
}

fn answer(signer: &Signer, counted: &Counted, record: &[u8]) -> Result<Vec<u8>, FrameError> {
    let (id, request) = wire::read_request(record)?;
    wire::reply(id, signer.sign(&request, counted))
}
