//! The data that the engine's thread owns, and the data that it keeps between two events. The
//! methods of the event loop are in the modules that use this one: `outputs`, `applied`, `reload`,
//! `steering`, `playing` and `event_loop`, from the lowest to the highest.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use windvane_admin::Steer;
use windvane_admin::view::JournalLag;
use windvane_journal::Journal;
use windvane_model::{OrderSeq, Request, StrategyId};
use windvane_session::recovery::UnownedPosition;
use windvane_session::{Ended, ReloadStarts, Session};

use super::clock::Clock;
use super::cpu_latency::CpuLatency;
use super::guests::LiveGuests;
use super::http::Http;
use super::mailbox::Inbox;
use super::player::Player;
use super::results::Results;
use super::services::Services;
use super::signer::SignerLink;
use super::sockets::Sockets;
use windvane_report::{ResultError, Summary};

/// The client answers within this time for an order that it does not send.
pub(super) const SENT_AFTER: Duration = Duration::from_millis(100);

/// Everything that the engine's thread owns.
pub struct EventLoop {
    pub clock: Clock,
    pub session: Session<LiveGuests>,
    pub journal: Journal,
    /// Sends requests to the venue; `None` on recordings.
    pub http: Option<Http>,
    /// Signs requests in another process; `None` if the keys of this process sign.
    pub signer: Option<SignerLink>,
    /// The connections of user streams.
    pub sockets: Option<Sockets>,
    /// Plays the recordings, if they are the market.
    pub player: Option<Player>,
    /// Collects the results of a run on recordings.
    pub results: Option<Results>,
    pub services: Services,
    pub inbox: Inbox,
    /// The thread polls without sleeping.
    pub busy_poll: bool,
    /// Keeps the processors from sleeping.
    pub _cpu_latency: Option<CpuLatency>,
    /// Receives the request to stop. The run ends once `on_stop` is carried out.
    pub stop: Receiver<()>,
}

/// How a run ended.
pub struct Finish {
    /// The reason of the end.
    pub ended: Ended,
    /// Positions that `on_stop = "flatten"` did not close.
    pub unclosed: Vec<UnownedPosition>,
    /// The gaps in the run's knowledge of the account, as a sentence. Empty if it knows the
    /// account.
    pub unknown: String,
    /// Own orders that may be open at the venue, as text.
    pub resting: String,
    /// The results of a run on recordings.
    pub results: Option<Result<Summary, ResultError>>,
}

/// State that the thread keeps between two events.
#[derive(Default)]
pub(super) struct State {
    /// Requests were handed to tasks of this thread, which need a turn now.
    pub(super) handed: bool,
    /// Order requests that were handed to the client, with the time. The log reports an order as
    /// sent when its reply arrives, or after [`SENT_AFTER`]: the client replies sooner for an order
    /// that it does not send.
    pub(super) sent: VecDeque<(Instant, Request)>,
    /// A reload is not over yet.
    pub(super) reloading: bool,
    /// A reload that was applied, while its strategies start.
    pub(super) applied_reload: Option<AppliedReload>,
    /// Commands that resume a strategy after quarantine, while it starts.
    pub(super) resuming: Vec<(StrategyId, Steer)>,
    /// Commands that are carried out except for the write of their kill switch, each with its time.
    pub(super) carried_out: Vec<CarriedOut>,
    pub(super) ended: Option<Ended>,
}

/// A reload that was applied. Some of its strategies start.
pub(super) struct AppliedReload {
    pub(super) steer: Steer,
    pub(super) changes: Vec<String>,
    /// The starts that have not begun.
    pub(super) starts: ReloadStarts<LiveGuests>,
    /// How many starts have begun and are not over.
    pub(super) running: usize,
    /// The strategies that failed to start, as text.
    pub(super) failed: Vec<String>,
}

/// A command that is carried out except for the write of its kill switch.
pub struct CarriedOut {
    pub(super) steer: Steer,
    pub(super) strategy: Option<StrategyId>,
    /// A note about the result for the operator.
    pub(super) note: String,
    /// The orders that it cancels, if it is a halt or a flatten.
    pub(super) cancels: Vec<OrderSeq>,
    pub(super) since: Instant,
}

impl EventLoop {
    pub(super) fn lag(&self) -> JournalLag {
        let lag = self.session.durability_lag(self.clock.now());
        JournalLag {
            written: self.session.engine().records(),
            durable: lag.durable,
            behind_ms: lag.behind_ns.unsigned_abs() / 1_000_000,
        }
    }
}
