//! The way of commands from the admin server to the engine's loop.
//!
//! Commands that reduce risk have a queue of their own. They overtake the others, and no other
//! command takes their places. A `resume` that waits is refused when such a command overtakes it, so
//! that it cannot end what was commanded after it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::steer::{Command, Refused, Steer};

/// How many commands of each kind may wait for the engine. The next one waits for a place.
const WAITING_MAX: usize = 64;

type Wake = Box<dyn Fn() + Send + Sync>;

/// A command with its number in the order of arrival.
type Numbered = (u64, Steer);

/// Sends commands to the engine's loop.
#[derive(Clone)]
pub struct SteerSender {
    reducing: Sender<Numbered>,
    others: Sender<Numbered>,
    numbers: Arc<AtomicU64>,
    wake: Arc<OnceLock<Wake>>,
}

/// The engine's end.
pub struct SteerReceiver {
    reducing: Receiver<Numbered>,
    others: Receiver<Numbered>,
    /// Commands that were received before, and must be carried out first.
    postponed: VecDeque<Steer>,
    /// The number of the last command that reduces risk.
    last_reducing: u64,
    wake: Arc<OnceLock<Wake>>,
}

/// The engine's loop has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine's loop has ended")]
pub struct LoopEnded;

/// A new way with both of its ends.
pub fn steering() -> (SteerSender, SteerReceiver) {
    let (reducing, of_reducing) = channel(WAITING_MAX);
    let (others, of_others) = channel(WAITING_MAX);
    let wake = Arc::new(OnceLock::new());
    let sender = SteerSender {
        reducing,
        others,
        numbers: Arc::new(AtomicU64::new(0)),
        wake: Arc::clone(&wake),
    };
    let receiver = SteerReceiver {
        reducing: of_reducing,
        others: of_others,
        postponed: VecDeque::new(),
        last_reducing: 0,
        wake,
    };
    (sender, receiver)
}

impl SteerSender {
    /// Queues a command and wakes the loop. Waits while the queue is full.
    ///
    /// # Errors
    /// The loop has ended.
    pub async fn send(&self, steer: Steer) -> Result<(), LoopEnded> {
        let queue = if steer.command.sets_kill_switch() {
            &self.reducing
        } else {
            &self.others
        };
        let place = queue.reserve().await.map_err(|_| LoopEnded)?;
        let number = 1 + self.numbers.fetch_add(1, Ordering::Relaxed);
        place.send((number, steer));
        if let Some(wake) = self.wake.get() {
            wake();
        }
        Ok(())
    }
}

impl SteerReceiver {
    /// Sets what wakes the loop after a command was queued. The first call counts.
    pub fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        // A second call would be a mistake of the caller, and changes nothing.
        let _ = self.wake.set(Box::new(wake));
    }

    /// The next command, if one waits. Commands that reduce risk come first.
    pub fn try_recv(&mut self) -> Option<Steer> {
        if let Some(steer) = self.postponed.pop_front() {
            return Some(steer);
        }
        loop {
            if let Ok((number, steer)) = self.reducing.try_recv() {
                self.last_reducing = self.last_reducing.max(number);
                return Some(steer);
            }
            let (number, steer) = self.others.try_recv().ok()?;
            if let Some(steer) = self.unless_overtaken(number, steer) {
                return Some(steer);
            }
        }
    }

    /// The next command that sets a kill switch; waits for it. `None` once all senders are gone.
    pub async fn recv_kill_switch(&mut self) -> Option<Steer> {
        let (number, steer) = self.reducing.recv().await?;
        self.last_reducing = self.last_reducing.max(number);
        Some(steer)
    }

    /// Keeps a command, to be received again before all others.
    pub fn postpone(&mut self, steer: Steer) {
        self.postponed.push_back(steer);
    }

    /// The next command; waits for it. `None` once all senders are gone.
    pub async fn recv(&mut self) -> Option<Steer> {
        loop {
            if let Some(steer) = self.try_recv() {
                return Some(steer);
            }
            tokio::select! {
                biased;
                Some((number, steer)) = self.reducing.recv() => {
                    self.last_reducing = self.last_reducing.max(number);
                    return Some(steer);
                }
                Some((number, steer)) = self.others.recv() => {
                    if let Some(steer) = self.unless_overtaken(number, steer) {
                        return Some(steer);
                    }
                }
                else => return None,
            }
        }
    }

    fn unless_overtaken(&self, number: u64, steer: Steer) -> Option<Steer> {
        if steer.command != Command::Resume || number > self.last_reducing {
            return Some(steer);
        }
        let refused = Refused {
            error: "a pause, halt or flatten came after this resume and before it was carried out"
                .to_owned(),
            what_to_do: "nothing was resumed: check windvane status, and resume again if you want \
                         that"
                .to_owned(),
        };
        // The caller may be gone.
        let _ = steer.answer.send(Err(refused));
        None
    }
}

impl std::fmt::Debug for SteerSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteerSender").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SteerReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteerReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;
    use crate::steer::Applied;

    type Answered = oneshot::Receiver<Result<Applied, Refused>>;

    async fn send(sender: &SteerSender, command: Command) -> Answered {
        let (answer, answered) = oneshot::channel();
        sender.send(Steer::new(command, answer)).await.unwrap();
        answered
    }

    #[tokio::test]
    async fn a_halt_overtakes_and_ends_a_resume_that_waits() {
        let (sender, mut receiver) = steering();
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&woken);
        receiver.wake_by(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let _reload = send(&sender, Command::Reload).await;
        let early = send(&sender, Command::Resume).await;
        let _halt = send(&sender, Command::Halt).await;
        let _late = send(&sender, Command::Resume).await;
        assert_eq!(woken.load(Ordering::Relaxed), 4);
        let mut commands = Vec::new();
        while let Some(steer) = receiver.try_recv() {
            commands.push(steer.command);
        }
        assert_eq!(commands, [Command::Halt, Command::Reload, Command::Resume]);
        assert!(early.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn other_commands_cannot_fill_the_places_of_a_halt() {
        let (sender, mut receiver) = steering();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(send(&sender, Command::Resume).await);
        }
        let _halt = send(&sender, Command::Halt).await;
        assert_eq!(receiver.recv().await.unwrap().command, Command::Halt);
        drop(sender);
        assert!(receiver.recv().await.is_none(), "the resumes were refused");
    }
}
