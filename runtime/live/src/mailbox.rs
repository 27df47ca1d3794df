//! The queue into the engine's thread: all events, in the order of their arrival. Events of the
//! disk have their own queue, because they must never wait or be lost.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{
    Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel,
};
use windvane_client::RawAnswer;
use windvane_client::streams::SocketEvent;
use windvane_client_core::gateway::{Answer, Failure};
use windvane_engine::Surface;
use windvane_engine::live::LiveInput;
use windvane_journal::Event as JournalEvent;
use windvane_session::{CallAnswer, CallId};

use super::reload::Reload;

/// How many events may wait for the engine. A sender waits while the queue is full.
const CAPACITY: usize = 65_536;

/// Spin hints between two polls, about a microsecond, so that threads that share the processor or
/// its memory are not slowed down.
const BREATHS: u32 = 64;

/// An event from outside the engine's thread.
#[derive(Debug)]
pub enum Happened {
    /// An event of a stream's connection.
    Socket(Surface, u64, SocketEvent),
    /// The result of a request.
    Came(CallId, Came),
    /// An input for the live engine.
    Live(LiveInput),
    /// A configuration was read again.
    Reload(Box<Reload>),
    /// No event: wakes the thread to look for a command or a request to stop.
    Nudge,
}

/// An event from a thread that writes to the disk.
#[derive(Debug)]
pub enum Disk {
    /// An event of the journal.
    Journal(JournalEvent),
    /// The latch file is durable, or could not be written for this reason.
    Latches(Result<(), String>),
}

/// The result of a request.
#[derive(Debug)]
pub enum Came {
    /// A response.
    Answer(RawAnswer),
    /// No response.
    Failed(Failure),
    /// The request was not sent, because it was late by this time.
    Late(Duration),
}

impl Came {
    /// Passes the result on as the session's type.
    pub fn with_answer<T>(self, take: impl FnOnce(CallAnswer<'_>) -> T) -> T {
        match self {
            Self::Answer(raw) => {
                let headers = raw.texts();
                take(CallAnswer::Received(Answer {
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

/// The sending end of the queue.
#[derive(Clone, Debug)]
pub struct Mailbox {
    happened: Sender<Happened>,
    disk: UnboundedSender<Disk>,
}

/// The engine's end of the queue.
#[derive(Debug)]
pub struct Inbox {
    happened: Receiver<Happened>,
    disk: UnboundedReceiver<Disk>,
}

/// The result of waiting for an event.
#[derive(Debug)]
pub enum Waited {
    /// An event.
    Happened(Happened),
    /// An event of the disk.
    Disk(Disk),
    /// The time is over.
    TimeOver,
    /// No event can come any more.
    Closed,
}

/// A new queue with both of its ends.
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
    /// Sends an event to the engine. Waits while the queue is full, so nothing is lost. The venue's
    /// streams then slow down or are cut, which the session reports as a gap.
    pub async fn tell(&self, happened: Happened) {
        // After the engine's end, its events are not needed.
        drop(self.happened.send(happened).await);
    }

    /// [`tell`](Self::tell) for a thread outside the async runtime.
    pub fn tell_blocking(&self, happened: Happened) {
        drop(self.happened.blocking_send(happened));
    }

    /// Sends an event of the disk. Never waits.
    pub fn disk(&self, said: Disk) {
        let _ = self.disk.send(said);
    }

    /// Wakes the engine's thread. If the queue is full, the thread is awake anyway.
    pub fn nudge(&self) {
        let _ = self.happened.try_send(Happened::Nudge);
    }
}

impl Inbox {
    /// Waits for the next event, for `at_most`. The tasks of this thread run meanwhile.
    pub async fn wait(&mut self, at_most: Duration) -> Waited {
        if at_most.is_zero() {
            // A timer would take about a millisecond.
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

    /// Polls for the next event without sleeping, for `at_most`, because waking up would take
    /// longer than the event. Other work on this processor runs first.
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

    /// The next event, if there is one. Events of the disk come first.
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
    async fn journal_events_come_before_earlier_events() {
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
    async fn a_full_mailbox_delays_senders_but_never_the_journal() {
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
    async fn polling_finds_the_event_of_a_task_on_the_same_thread() {
        let (mailbox, mut inbox) = mailbox();
        tokio::spawn(async move { mailbox.tell(Happened::Nudge).await });
        let found = inbox.look_out(Duration::from_mins(1)).await;
        assert!(matches!(found, Some(Waited::Happened(Happened::Nudge))));
        assert!(inbox.look_out(Duration::ZERO).await.is_none());
    }
}
