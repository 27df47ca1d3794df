//! The client of the signer, for the trading process and the watchdog process. It never waits: a
//! request is written at once, and the reply comes through a callback.
//!
//! If the signer is restarted, requests without a reply are sent again. That is safe: a request that
//! is signed twice is still sent to the venue once. A request that is too old is dropped; the session
//! has given it up by then.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use windvane_client_core::gateway::Unsigned;
use windvane_protocol::sign::Prepared;

use crate::address::SocketPath;
use crate::wire::{self, Frames};

/// A signer that does not answer for this time hangs.
const HUNG: Duration = Duration::from_secs(2);
/// How long a request may wait for its signature. The session waits no longer than this
/// (`SIGN_WITHIN` in `runtime/session/src/requests/stages.rs`).
const KEPT: Duration = Duration::from_secs(3);
/// Pause before the next attempt to connect.
const AGAIN: Duration = Duration::from_millis(10);
/// How often the client looks for a hang.
const LOOK: Duration = Duration::from_millis(250);

/// What happened to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The signer closed the connection: its process has ended, or is being replaced.
    Lost,
    /// The signer does not answer.
    Hangs,
}

/// A connection to the signer that is opened again when it ends.
#[derive(Debug)]
pub struct Client {
    shared: Arc<Shared>,
    task: AbortHandle,
}

type Answered = dyn Fn(u64, Result<Prepared, String>) + Send + Sync;
type Troubled = dyn Fn(Trouble) + Send + Sync;

struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    /// The connection cannot be used any more.
    broken: Notify,
    answered: Box<Answered>,
    troubled: Box<Troubled>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    stream: Option<Arc<UnixStream>>,
    /// Requests without a reply.
    pending: BTreeMap<u64, Pending>,
}

#[derive(Debug)]
struct Pending {
    frame: Vec<u8>,
    asked: Instant,
    /// When it was last written; `None` if the present connection does not have it.
    sent: Option<Instant>,
}

impl Client {
    /// Connects to the socket at `path`. `answered` receives each reply, `troubled` each end of the
    /// connection; both run on the runtime of `handle` and must not block.
    pub fn start(
        path: PathBuf,
        handle: &Handle,
        answered: impl Fn(u64, Result<Prepared, String>) + Send + Sync + 'static,
        troubled: impl Fn(Trouble) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            path,
            state: Mutex::default(),
            broken: Notify::new(),
            answered: Box::new(answered),
            troubled: Box::new(troubled),
        });
        let task = handle.spawn(keep(Arc::clone(&shared))).abort_handle();
        Self { shared, task }
    }

    /// Has a request signed. The reply has the same `id`, which must not be used again.
    pub fn sign(&self, id: u64, request: &Unsigned) {
        let frame = match wire::request(id, request) {
            Ok(frame) => frame,
            Err(error) => return (self.shared.answered)(id, Err(error.to_string())),
        };
        let mut state = self.shared.lock();
        let pending = Pending {
            frame,
            asked: Instant::now(),
            sent: None,
        };
        state.pending.insert(id, pending);
        self.shared.write(&mut state);
    }

    /// Whether a request without a reply was asked less than `time` ago.
    pub fn asked_within(&self, time: Duration) -> bool {
        let state = self.shared.lock();
        let newest = state.pending.last_key_value();
        newest.is_some_and(|(_, pending)| pending.asked.elapsed() < time)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the requests that the present connection does not have. The socket has room for
    /// hundreds of requests. If it is full, the signer does not read.
    fn write(&self, state: &mut State) {
        let Some(stream) = state.stream.clone() else {
            return;
        };
        for pending in state.pending.values_mut() {
            if pending.sent.is_some() {
                continue;
            }
            let written = stream.try_write(&pending.frame);
            if !written.is_ok_and(|written| written == pending.frame.len()) {
                // A part of a frame may have left, so nothing more can be written.
                state.stream = None;
                self.broken.notify_one();
                return;
            }
            pending.sent = Some(Instant::now());
        }
    }

    fn is_hung(&self) -> bool {
        let state = self.lock();
        let mut sent = state.pending.values().filter_map(|pending| pending.sent);
        sent.any(|at| at.elapsed() >= HUNG)
    }
}

/// Keeps a connection open.
async fn keep(shared: Arc<Shared>) {
    loop {
        if let Ok(stream) = connect(&shared).await {
            let trouble = read(&shared, &stream).await;
            // No frame may follow the one that was cut.
            shared.lock().stream = None;
            (shared.troubled)(trouble);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn connect(shared: &Shared) -> io::Result<Arc<UnixStream>> {
    let address = SocketPath::of(&shared.path)?;
    let stream = Arc::new(UnixStream::connect(address.path()).await?);
    stream.writable().await?;
    let mut state = shared.lock();
    state
        .pending
        .retain(|_, pending| pending.asked.elapsed() < KEPT);
    for pending in state.pending.values_mut() {
        pending.sent = None;
    }
    state.stream = Some(Arc::clone(&stream));
    shared.write(&mut state);
    Ok(stream)
}

/// Reads replies until the connection ends.
async fn read(shared: &Shared, stream: &UnixStream) -> Trouble {
    let mut frames = Frames::default();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        tokio::select! {
            biased;
            ready = stream.readable() => match ready.and_then(|()| stream.try_read(&mut bytes)) {
                Ok(0) => return Trouble::Lost,
                Ok(read) => frames.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return Trouble::Lost,
            },
            () = shared.broken.notified() => return Trouble::Hangs,
            () = tokio::time::sleep(LOOK) => {
                if shared.is_hung() {
                    return Trouble::Hangs;
                }
                continue;
            }
        }
        loop {
            match frames
                .next_record()
                .and_then(|record| record.map(wire::read_reply).transpose())
            {
                Ok(None) => break,
                Ok(Some((id, result))) => {
                    if shared.lock().pending.remove(&id).is_some() {
                        (shared.answered)(id, result);
                    }
                }
                Err(error) => {
                    tracing::error!(
                        %error,
                        "the signer's reply cannot be read: the connection is opened again, and \
                         requests without a signature are asked again"
                    );
                    return Trouble::Lost;
                }
            }
        }
    }
}
