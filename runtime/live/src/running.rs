//! A run that has started: how it is stopped by signals, and how it ends.

use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use windvane_session::Ended;

use super::error::LiveError;
use super::loop_state::Finish;
use super::mailbox::Mailbox;
use windvane_report::Summary;

/// How long the process may take to end after the second signal, even if something hangs.
const HURRY: Duration = Duration::from_secs(2);

/// A run that has started.
pub struct Running {
    pub(super) stop: Sender<()>,
    pub(super) mailbox: Mailbox,
    pub(super) ended: oneshot::Receiver<Finish>,
}

impl Running {
    /// Waits for the end of the run. The first signal requests it, the second forces it.
    pub(super) async fn wait(
        &mut self,
        signals: &mut Signals,
    ) -> Result<Option<Summary>, LiveError> {
        let is_requested = tokio::select! {
            ended = self.ended() => return ended,
            () = signals.next() => self.request_stop(),
        };
        tracing::info!(
            is_requested,
            "stopping as run.on_stop says; a second signal ends the process at once and may leave \
             orders open"
        );
        tokio::select! {
            ended = self.ended() => return ended,
            () = signals.next() => self.request_stop(),
        };
        // A disk that hangs must not delay the end.
        let ended = tokio::time::timeout(HURRY, self.ended()).await;
        ended.unwrap_or_else(|_| {
            let left =
                "a second signal came, and the engine's thread did not end within 2 s".to_owned();
            let unknown = String::new();
            Err(LiveError::Hurried { left, unknown })
        })
    }

    fn request_stop(&self) -> bool {
        let is_requested = self.stop.send(()).is_ok();
        self.mailbox.nudge();
        is_requested
    }

    pub(super) async fn ended(&mut self) -> Result<Option<Summary>, LiveError> {
        let finish = (&mut self.ended).await.map_err(|_| LiveError::Broken)?;
        let unknown = match finish.unknown.as_str() {
            "" => String::new(),
            unknown => format!(". The account was not read completely: {unknown}"),
        };
        if !finish.unclosed.is_empty() {
            let left: Vec<_> = finish.unclosed.iter().map(ToString::to_string).collect();
            return Err(LiveError::NotFlat {
                left: left.join(", "),
                resting: finish.resting,
                unknown,
            });
        }
        match finish.ended {
            Ended::Stopped => Ok(finish.results.transpose()?),
            Ended::Hurried => Err(LiveError::Hurried {
                left: finish.resting,
                unknown,
            }),
            Ended::AnotherInstance(order) => Err(LiveError::AnotherInstance {
                order: order.as_str().to_owned(),
            }),
        }
    }
}

/// The signals that request the end of the run.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
