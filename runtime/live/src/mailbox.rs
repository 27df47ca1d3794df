//! The one way into the engine's thread: everything that happens, in the order in which it came.
//! What the disk says has a way of its own beside it, for it must neither wait nor be lost.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use windvane_client::RawAnswer;
use windvane_client::streams::SocketEvent;
use windvane_client_core::gateway::{Answer, Failure};
use windvane_journal::Event as JournalEvent;
use windvane_model::Surface;
use windvane_model::live::LiveInput;
use windvane_session::{CallAnswer, CallId};

use super::reload::Reload;

/// So many things may wait for the engine; beyond, whoever brings more waits.
const CAPACITY: usize = 65_536;

/// Between two looks, so that who shares the processor or its memory is not slowed down: about a
/// microsecond.
const BREATHS: u32 = 64;

/// Something that happened outside.
#[derive(Debug)]
pub enum Happened {
    /// Something happened to a connection of a stream.
    Socket(Surface, u64, SocketEvent),
    /// What came back of a call.
    Came(CallId, Came),
    /// What is to be trusted.
    Live(LiveInput),
    /// A configuration was read anew.
    Reload(Box<Reload>),
    /// Something is to be looked at beside the mailbox: a command, the end.
    Nudge,
}

/// What a thread says that writes to the disk.
#[derive(Debug)]
pub enum Disk {
    /// The journal says something.
    Journal(JournalEvent),
    /// The file of the latches is durable, or could not be written for this reason.
    Latches(Result<(), String>),
}

/// What came back of a call.
#[derive(Debug)]
pub enum Came {
    /// An answer.
    Answer(RawAnswer),
    /// No answer.
    Failed(Failure),
    /// It did not leave, for it was late by so much.
    Late(Duration),
}

impl Came {
    /// Passes it on in the session's words.
    pub fn with_answer<T>(self, take: impl FnOnce(CallAnswer<'_>) -> T) -> T {
        match self {
            Self::Answer(raw) => {
                let headers = raw.texts();
                take(CallAnswer::Came(Answer {
                    status: raw.status,
                    headers: &headers,
                    text: &raw.text,
                }))
            }
            Self::Failed(Failure::NotMade(error)) => take(CallAnswer::NotMade(error)),
            Self::Failed(Failure::NoConnection(why)) => take(CallAnswer::NoConnection(why)),
            Self::Failed(Failure::Lost(lost)) => take(CallAnswer::Lost(lost)),
            Self::Late(waited) => take(CallAnswer::Late(waited)),
        }
    }
}

/// Where things that happened are told.
#[derive(Clone, Debug)]
pub struct Mailbox {
    happened: Sender<Happened>,
    disk: UnboundedSender<Disk>,
}

/// The engine's end of it.
#[derive(Debug)]
pub struct Inbox {
    happened: Receiver<Happened>,
    disk: UnboundedReceiver<Disk>,
}

/// What waiting for something brought.
#[derive(Debug)]
pub enum Waited {
    /// It happened.
    Happened(Happened),
    /// The disk says something.
    Disk(Disk),
    /// The time is over.
    TimeOver,
    /// Nothing can happen any more.
    Closed,
}

/// A mailbox and its inbox.
pub fn mailbox() -> (Mailbox, Inbox) {
    let (happened, receiver) = channel(CAPACITY);
    let (disk, of_disk) = unbounded_channel();
    let mailbox = Mailbox { happened, disk };
    let inbox = Inbox {
        happened: receiver,
        disk: of_disk,
    };
    (mailbox, inbox)
}

impl Mailbox {
    /// Tells the engine. Where too much waits, it waits: nothing is lost, and the venue's streams
    /// hold back or are cut, which is told as a gap.
    pub async fn tell(&self, happened: Happened) {
        // An engine that has ended hears nothing, which is no loss.
        drop(self.happened.send(happened).await);
    }

    /// [`tell`](Self::tell) for a thread that no runtime works on.
    pub fn tell_blocking(&self, happened: Happened) {
        drop(self.happened.blocking_send(happened));
    }

    /// Passes on what the disk says, without ever waiting.
    pub fn disk(&self, said: Disk) {
        let _ = self.disk.send(said);
    }

    /// Has the engine's thread look around. One that has things to do does so anyway.
    pub fn nudge(&self) {
        let _ = self.happened.try_send(Happened::Nudge);
    }
}

impl Inbox {
    /// Waits for the next thing, at most so long; meanwhile the tasks of this thread work.
    pub async fn wait(&mut self, at_most: Duration) -> Waited {
        if at_most.is_zero() {
            // A timer would take a millisecond.
            tokio::task::yield_now().await;
            return self.ready().unwrap_or(Waited::TimeOver);
        }
        tokio::select! {
            biased;
            Some(said) = self.disk.recv() => Waited::Disk(said),
            happened = self.happened.recv() => happened.map_or(Waited::Closed, Waited::Happened),
            () = tokio::time::sleep(at_most) => Waited::TimeOver,
        }
    }

    /// Looks for the next thing without falling asleep, at most so long: to be woken takes longer
    /// than what is waited for. Whoever else has work on this processor goes first.
    pub async fn look_out(&mut self, at_most: Duration) -> Option<Waited> {
        let begin = Instant::now();
        loop {
            if let Some(waited) = self.ready() {
                return Some(waited);
            }
            if begin.elapsed() >= at_most {
                return None;
            }
            for _ in 0..BREATHS {
                std::hint::spin_loop();
            }
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
    }

    /// The next thing, if there is one: what the disk says first.
    pub fn ready(&mut self) -> Option<Waited> {
        if let Ok(said) = self.disk.try_recv() {
            return Some(Waited::Disk(said));
        }
        self.happened.try_recv().ok().map(Waited::Happened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Disk {
        Disk::Journal(JournalEvent::Healthy {
            stalled: Duration::ZERO,
        })
    }

    #[tokio::test]
    async fn the_journal_is_heard_before_what_came_earlier() {
        let (mailbox, mut inbox) = mailbox();
        mailbox.tell(Happened::Nudge).await;
        mailbox.disk(healthy());
        let first = inbox.wait(Duration::from_mins(1)).await;
        assert!(matches!(first, Waited::Disk(_)), "{first:?}");
        let second = inbox.wait(Duration::from_mins(1)).await;
        assert!(
            matches!(second, Waited::Happened(Happened::Nudge)),
            "{second:?}"
        );
    }

    #[tokio::test]
    async fn a_full_mailbox_holds_up_whoever_tells_but_never_the_journal() {
        let (mailbox, mut inbox) = mailbox();
        for _ in 0..CAPACITY {
            mailbox.tell(Happened::Nudge).await;
        }
        let teller = tokio::spawn({
            let mailbox = mailbox.clone();
            async move { mailbox.tell(Happened::Live(LiveInput::Begin)).await }
        });
        tokio::task::yield_now().await;
        assert!(!teller.is_finished());
        mailbox.nudge();
        mailbox.disk(healthy());
        assert!(matches!(inbox.ready(), Some(Waited::Disk(_))));
        for _ in 0..CAPACITY {
            let nudge = inbox.wait(Duration::ZERO).await;
            assert!(matches!(nudge, Waited::Happened(Happened::Nudge)));
        }
        assert!(teller.await.is_ok());
        let last = inbox.ready();
        assert!(
            matches!(last, Some(Waited::Happened(Happened::Live(_)))),
            "{last:?}"
        );
    }

    #[tokio::test]
    async fn what_a_task_of_the_thread_tells_is_found_while_looking_out() {
        let (mailbox, mut inbox) = mailbox();
        tokio::spawn(async move { mailbox.tell(Happened::Nudge).await });
        let found = inbox.look_out(Duration::from_mins(1)).await;
        assert!(matches!(found, Some(Waited::Happened(Happened::Nudge))));
        assert!(inbox.look_out(Duration::ZERO).await.is_none());
    }
}
