//! The client of the signer, for the trading process and the watchdog process. It never waits: a
//! request is written at once, or as soon as the socket has room, and the reply comes through a callback.
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

/// A signer that answers nothing for this time, although requests wait, hangs.
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
    /// The socket is full, so that bytes are left to write.
    full: Notify,
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
    /// Bytes of the present connection for which the socket has no room yet. A halt can have hundreds of
    /// cancels signed at once, which is more than a socket holds.
    unwritten: Vec<u8>,
    /// When the present connection was opened, or brought its last reply.
    progress: Option<Instant>,
}

#[derive(Debug)]
struct Pending {
    frame: Vec<u8>,
    asked: Instant,
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
            full: Notify::new(),
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
        let asked = Instant::now();
        let mut state = self.shared.lock();
        if state.pending.is_empty() {
            // Nothing was asked until now, so that nothing is late.
            state.progress = Some(asked);
        }
        if state.stream.is_some() {
            state.unwritten.extend_from_slice(&frame);
        }
        state.pending.insert(id, Pending { frame, asked });
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

    /// Writes what the socket has room for.
    fn write(&self, state: &mut State) {
        let Some(stream) = state.stream.clone() else {
            return;
        };
        while !state.unwritten.is_empty() {
            match stream.try_write(&state.unwritten) {
                Ok(written) => drop(state.unwritten.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.full.notify_one();
                }
                Err(_) => {
                    state.stream = None;
                    return self.broken.notify_one();
                }
            }
        }
    }

    fn has_unwritten(&self) -> bool {
        !self.lock().unwritten.is_empty()
    }

    fn is_hung(&self) -> bool {
        let state = self.lock();
        let is_late = state.progress.is_some_and(|at| at.elapsed() >= HUNG);
        !state.pending.is_empty() && is_late
    }
}

/// Keeps a connection open.
async fn keep(shared: Arc<Shared>) {
    loop {
        if let Ok(stream) = connect(&shared).await {
            let trouble = read(&shared, &stream).await;
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
    let frames = state.pending.values().flat_map(|pending| &pending.frame);
    state.unwritten = frames.copied().collect();
    state.progress = Some(Instant::now());
    state.stream = Some(Arc::clone(&stream));
    shared.write(&mut state);
    Ok(stream)
}

/// Reads replies until the connection ends.
async fn read(shared: &Shared, stream: &UnixStream) -> Trouble {
    let mut frames = Frames::default();
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let has_unwritten = shared.has_unwritten();
        tokio::select! {
            biased;
            ready = stream.readable() => match ready.and_then(|()| stream.try_read(&mut bytes)) {
                Ok(0) => return Trouble::Lost,
                Ok(read) => frames.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return Trouble::Lost,
            },
            () = shared.broken.notified() => return Trouble::Lost,
            () = shared.full.notified() => continue,
            _ = stream.writable(), if has_unwritten => {
                shared.write(&mut shared.lock());
                continue;
            }
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
                    let known = {
                        let mut state = shared.lock();
                        state.progress = Some(Instant::now());
                        state.pending.remove(&id)
                    };
                    if known.is_some() {
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
