//! The engine's thread and the async runtime that it is: what is spawned there works while the
//! engine waits, and nothing has to be woken between a public frame, the engine and the socket that
//! an order leaves by.
//!
//! What may never enter here: tasks that take long. The engine waits for them as they for it.

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::pulse::{Finish, Pulse};

/// The thread, before the engine is there. Its tasks work already; it ends with this value.
pub struct EngineThread {
    handle: Handle,
    seat: oneshot::Sender<Pulse>,
    ended: oneshot::Receiver<Finish>,
}

impl EngineThread {
    /// Starts it.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (seat, seated) = oneshot::channel::<Pulse>();
        let (tell_end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("engine".to_owned());
        // Nobody waits for the thread itself: a panic drops the sender, which is told.
        thread.spawn(move || {
            let finish = runtime.block_on(async { Some(Box::pin(seated.await.ok()?.run()).await) });
            if let Some(finish) = finish {
                let _ = tell_end.send(finish);
            }
            // Lookups of names may still block.
            runtime.shutdown_background();
        })?;
        Ok(Self {
            handle,
            seat,
            ended,
        })
    }

    /// Where tasks of this thread are spawned.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Has the engine run. Its end is told; if the thread breaks, the sender is gone.
    pub fn run(self, pulse: Pulse) -> oneshot::Receiver<Finish> {
        // A thread that broke already has dropped its end of `ended`, too.
        drop(self.seat.send(pulse));
        self.ended
    }
}
