//! The one way into the engine's thread: everything that happens, in the order in which it came.
//! The journal alone has a way of its own beside it, for it must neither wait nor be lost.

use std::sync::mpsc::{
    Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel,
};
use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_client::streams::MarketFrame;
use windvane_engine::live::LiveInput;
use windvane_engine::{InstrumentId, Reply, Surface};
use windvane_journal::Event as JournalEvent;

use super::reload::Reload;

/// So many things may wait for the engine; beyond, whoever brings more waits.
const CAPACITY: usize = 65_536;

/// Something that happened outside.
#[derive(Debug)]
pub enum Happened {
    /// A public frame.
    Frame {
        /// Surface.
        surface: Surface,
        /// The frame.
        frame: MarketFrame,
        /// When it came.
        at: Instant,
    },
    /// Public events of these symbols may have been missed.
    Interrupted {
        /// Surface.
        surface: Surface,
        /// Symbols, upper case.
        symbols: Vec<String>,
    },
    /// The answer of GET depth.
    Depth {
        /// The instrument.
        instrument: InstrumentId,
        /// The answer; `None` if there was none.
        text: Option<String>,
    },
    /// A frame of a user stream.
    User {
        /// Surface.
        surface: Surface,
        /// The frame.
        text: Utf8Bytes,
    },
    /// Answers to requests.
    Replies(Vec<Reply>),
    /// What is to be trusted.
    Live(LiveInput),
    /// A configuration was read anew.
    Reload(Box<Reload>),
    /// Something is to be looked at beside the mailbox: the journal, a command, the end.
    Nudge,
}

/// Where things that happened are told.
#[derive(Clone, Debug)]
pub struct Mailbox {
    happened: SyncSender<Happened>,
    journal: Sender<JournalEvent>,
}

/// The engine's end of it.
#[derive(Debug)]
pub struct Inbox {
    happened: Receiver<Happened>,
    journal: Receiver<JournalEvent>,
}

/// What waiting for something brought.
#[derive(Debug)]
pub enum Waited {
    /// It happened.
    Happened(Happened),
    /// The time is over.
    TimeOver,
    /// Nothing can happen any more.
    Closed,
}

/// A mailbox and its inbox.
pub fn mailbox() -> (Mailbox, Inbox) {
    let (happened, receiver) = sync_channel(CAPACITY);
    let (journal, journal_events) = channel();
    let mailbox = Mailbox { happened, journal };
    let inbox = Inbox {
        happened: receiver,
        journal: journal_events,
    };
    (mailbox, inbox)
}

impl Mailbox {
    /// Tells the engine. Where too much waits, it waits: nothing is lost, and the venue's streams
    /// hold back or are cut, which is told as a gap. To be called on a worker of the runtime.
    pub fn tell(&self, happened: Happened) {
        match self.happened.try_send(happened) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(happened)) => {
                // An engine that has ended hears nothing, which is no loss.
                tokio::task::block_in_place(|| drop(self.happened.send(happened)));
            }
        }
    }

    /// Hands over what was read anew. Not to be called on a worker of the runtime: it may wait.
    pub fn reload(&self, reload: Box<Reload>) {
        // An engine that has ended hears nothing, which is no loss.
        drop(self.happened.send(Happened::Reload(reload)));
    }

    /// Passes a word of the journal on, without ever waiting.
    pub fn journal(&self, event: JournalEvent) {
        let _ = self.journal.send(event);
        self.nudge();
    }

    /// Has the engine's thread look around. One that has things to do does so anyway.
    pub fn nudge(&self) {
        let _ = self.happened.try_send(Happened::Nudge);
    }
}

impl Inbox {
    /// Waits for the next thing, at most so long.
    pub fn wait(&self, at_most: Duration) -> Waited {
        match self.happened.recv_timeout(at_most) {
            Ok(happened) => Waited::Happened(happened),
            Err(RecvTimeoutError::Timeout) => Waited::TimeOver,
            Err(RecvTimeoutError::Disconnected) => Waited::Closed,
        }
    }

    /// Looks for the next thing without falling asleep, at most so long: to be woken takes longer
    /// than what is waited for. Whoever else has work on this processor goes first.
    pub fn look_out(&self, at_most: Duration) -> Option<Happened> {
        let begin = Instant::now();
        loop {
            if let Ok(happened) = self.happened.try_recv() {
                return Some(happened);
            }
            if begin.elapsed() >= at_most {
                return None;
            }
            std::thread::yield_now();
        }
    }

    /// The next word of the journal, if there is one.
    pub fn journal(&self) -> Option<JournalEvent> {
        self.journal.try_recv().ok()
    }
}
