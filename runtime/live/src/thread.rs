//! The engine's thread, which is also an async runtime. Tasks that are spawned on it run while the
//! engine waits. So no other thread must be woken between a public frame, the engine and the socket
//! of an order.
//!
//! Tasks here must be short: the engine waits for them.

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::loop_state::{EventLoop, Finish};

/// The thread before the engine exists. Its tasks run already. The thread ends when this value is
/// dropped.
pub struct EngineThread {
    handle: Handle,
    seat: oneshot::Sender<EventLoop>,
    ended: oneshot::Receiver<Finish>,
}

impl EngineThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (seat, seated) = oneshot::channel::<EventLoop>();
        let (tell_end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("engine".to_owned());
        // The thread is not joined. A panic drops the sender, which the receiver notices.
        thread.spawn(move || {
            let finish = runtime.block_on(async { Some(Box::pin(seated.await.ok()?.run()).await) });
            if let Some(finish) = finish {
                let _ = tell_end.send(finish);
            }
            // Name lookups may still block, so do not wait for them.
            runtime.shutdown_background();
        })?;
        Ok(Self {
            handle,
            seat,
            ended,
        })
    }

    /// The handle to spawn tasks on this thread.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs the engine on this thread. The receiver gets its result, or an error if the thread
    /// panics.
    pub fn run(self, event_loop: EventLoop) -> oneshot::Receiver<Finish> {
        // If the thread has already panicked, its end of `ended` is dropped too.
        drop(self.seat.send(event_loop));
        self.ended
    }
}
