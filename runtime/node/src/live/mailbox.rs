//! The one way into the engine's thread: everything that happens, in the order in which it came.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite::Utf8Bytes;
use windvane_client::streams::MarketFrame;
use windvane_engine::live::LiveInput;
use windvane_engine::{InstrumentId, Reply, Surface};
use windvane_journal::Event as JournalEvent;

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
    /// A word of the journal.
    Journal(JournalEvent),
}

/// Where things that happened are told.
#[derive(Clone, Debug)]
pub struct Mailbox(SyncSender<Happened>);

/// The engine's end of it.
#[derive(Debug)]
pub struct Inbox(Receiver<Happened>);

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
    let (sender, receiver) = sync_channel(CAPACITY);
    (Mailbox(sender), Inbox(receiver))
}

impl Mailbox {
    /// Tells the engine. Where too much waits, it waits: nothing is lost, and the venue's streams
    /// hold back or are cut, which is told as a gap.
    pub fn tell(&self, happened: Happened) {
        match self.0.try_send(happened) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(happened)) => {
                // An engine that has ended hears nothing, which is no loss.
                tokio::task::block_in_place(|| drop(self.0.send(happened)));
            }
        }
    }

    /// Tells the engine from a thread that must not wait; `false` when too much waits already.
    pub fn try_tell(&self, happened: Happened) -> bool {
        self.0.try_send(happened).is_ok()
    }
}

impl Inbox {
    /// Waits for the next thing, at most so long.
    pub fn wait(&self, at_most: Duration) -> Waited {
        match self.0.recv_timeout(at_most) {
            Ok(happened) => Waited::Happened(happened),
            Err(RecvTimeoutError::Timeout) => Waited::TimeOver,
            Err(RecvTimeoutError::Disconnected) => Waited::Closed,
        }
    }
}
