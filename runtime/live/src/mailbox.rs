//! The queue into the engine's thread: all events, in the order of their arrival. Events of the
//! disk and replies of the signer have their own queues, because they must never wait or be lost.

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
use windvane_protocol::sign::{PrepareError, Prepared};
use windvane_session::{CallAnswer, CallId, StartJob};

use super::guests::LiveGuests;
use super::new_config::{Reload, TestedReload};

/// How many events may wait for the engine. A sender waits while the queue is full.
const CAPACITY: usize = 65_536;

/// Spin hints between two polls, about a microsecond, so that threads that share the processor or
/// its memory are not slowed down.
const BREATHS: u32 = 64;

/// An event from outside the engine's thread.
#[derive(Debug)]
pub enum LoopEvent {
    /// An event of a stream's connection.
    Socket(Surface, u64, SocketEvent),
    /// The result of a request.
    CallEnded(CallId, CallOutcome),
    /// An input for the live engine.
    Live(LiveInput),
    /// A configuration was read again.
    Reload(Box<Reload>),
    /// The new instances of a reload were tested.
    Tested(Box<TestedReload>),
    /// The start of a strategy is over.
    Started(Box<StartJob<LiveGuests>>),
    /// No event: wakes the thread to look for a command or a request to stop.
    Nudge,
}

/// An event from a thread that writes to the disk.
#[derive(Debug)]
pub enum Disk {
    /// An event of the journal.
    Journal(JournalEvent),
    /// The kill switch file is durable, or could not be written for this reason.
    KillSwitch(Result<(), String>),
}

/// The result of a request.
#[derive(Debug)]
pub enum CallOutcome {
    /// A response.
    Answer(RawAnswer),
    /// No response.
    Failed(Failure),
    /// The request was not sent, because it was late by this time.
    Late(Duration),
}

impl CallOutcome {
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
    events: Sender<LoopEvent>,
    disk: UnboundedSender<Disk>,
    signed: UnboundedSender<Signed>,
}

/// The engine's end of the queue.
#[derive(Debug)]
pub struct Inbox {
    events: Receiver<LoopEvent>,
    disk: UnboundedReceiver<Disk>,
    signed: UnboundedReceiver<Signed>,
}

/// The signer's reply for a call.
pub type Signed = (CallId, Result<Prepared, PrepareError>);

/// The result of waiting for an event.
#[derive(Debug)]
pub enum Wake {
    /// An event.
    Event(LoopEvent),
    /// An event of the disk.
    Disk(Disk),
    /// A reply of the signer.
    Signed(Signed),
    /// The time is over.
    TimeOver,
    /// No event can come any more.
    Closed,
}

/// A new queue with both of its ends.
pub fn mailbox() -> (Mailbox, Inbox) {
    let (events, receiver) = channel(CAPACITY);
    let (disk, of_disk) = unbounded_channel();
    let (signed, of_signer) = unbounded_channel();
    let mailbox = Mailbox {
        events,
        disk,
        signed,
    };
    let inbox = Inbox {
        events: receiver,
        disk: of_disk,
        signed: of_signer,
    };
    (mailbox, inbox)
}

impl Mailbox {
    /// Sends an event to the engine. Waits while the queue is full, so nothing is lost. The venue's
    /// streams then slow down or are cut, which the session reports as a gap.
    pub async fn post(&self, event: LoopEvent) {
        // After the engine's end, its events are not needed.
        drop(self.events.send(event).await);
    }

    /// [`post`](Self::post) for a thread outside the async runtime.
    pub fn post_blocking(&self, event: LoopEvent) {
        drop(self.events.blocking_send(event));
    }

    /// Sends an event of the disk. Never waits.
    pub fn disk(&self, event: Disk) {
        let _ = self.disk.send(event);
    }

    /// Sends a reply of the signer. Never waits: an order must not wait for market data.
    pub fn signed(&self, signed: Signed) {
        let _ = self.signed.send(signed);
    }

    /// Wakes the engine's thread. If the queue is full, the thread is awake anyway.
    pub fn nudge(&self) {
        let _ = self.events.try_send(LoopEvent::Nudge);
    }
}

impl Inbox {
    /// Waits for the next event, for `at_most`. The tasks of this thread run meanwhile.
    pub async fn wait(&mut self, at_most: Duration) -> Wake {
        if at_most.is_zero() {
            // A timer would take about a millisecond.
            tokio::task::yield_now().await;
            return self.ready().unwrap_or(Wake::TimeOver);
        }
        tokio::select! {
            biased;
            Some(event) = self.disk.recv() => Wake::Disk(event),
            Some(signed) = self.signed.recv() => Wake::Signed(signed),
            event = self.events.recv() => event.map_or(Wake::Closed, Wake::Event),
            () = tokio::time::sleep(at_most) => Wake::TimeOver,
        }
    }

    /// Polls for the next event without sleeping, for `at_most`, because waking up would take
    /// longer than the event. Other work on this processor runs first.
    pub async fn look_out(&mut self, at_most: Duration) -> Option<Wake> {
        let begin = Instant::now();
        loop {
            if let Some(wake) = self.ready() {
                return Some(wake);
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
    pub fn ready(&mut self) -> Option<Wake> {
        if let Ok(event) = self.disk.try_recv() {
            return Some(Wake::Disk(event));
        }
        if let Ok(signed) = self.signed.try_recv() {
            return Some(Wake::Signed(signed));
        }
        self.events.try_recv().ok().map(Wake::Event)
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
        mailbox.post(LoopEvent::Nudge).await;
        mailbox.disk(healthy());
        let first = inbox.wait(Duration::from_mins(1)).await;
        assert!(matches!(first, Wake::Disk(_)), "{first:?}");
        let second = inbox.wait(Duration::from_mins(1)).await;
        assert!(
            matches!(second, Wake::Event(LoopEvent::Nudge)),
            "{second:?}"
        );
    }

    #[tokio::test]
    async fn a_full_mailbox_delays_senders_but_never_the_journal() {
        let (mailbox, mut inbox) = mailbox();
        for _ in 0..CAPACITY {
            mailbox.post(LoopEvent::Nudge).await;
        }
        let teller = tokio::spawn({
            let mailbox = mailbox.clone();
            async move { mailbox.post(LoopEvent::Live(LiveInput::Begin)).await }
        });
        tokio::task::yield_now().await;
        assert!(!teller.is_finished());
        mailbox.nudge();
        mailbox.disk(healthy());
        assert!(matches!(inbox.ready(), Some(Wake::Disk(_))));
        for _ in 0..CAPACITY {
            let nudge = inbox.wait(Duration::ZERO).await;
            assert!(matches!(nudge, Wake::Event(LoopEvent::Nudge)));
        }
        assert!(teller.await.is_ok());
        let last = inbox.ready();
        assert!(
            matches!(last, Some(Wake::Event(LoopEvent::Live(_)))),
            "{last:?}"
        );
    }

    #[tokio::test]
    async fn polling_finds_the_event_of_a_task_on_the_same_thread() {
        let (mailbox, mut inbox) = mailbox();
        tokio::spawn(async move { mailbox.post(LoopEvent::Nudge).await });
        let found = inbox.look_out(Duration::from_mins(1)).await;
        assert!(matches!(found, Some(Wake::Event(LoopEvent::Nudge))));
        assert!(inbox.look_out(Duration::ZERO).await.is_none());
    }
}
