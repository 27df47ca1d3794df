//! The thread beside the run on which strategies start. A start takes virtual time. The strategy
//! itself is called when that time is over: it sees a copy of the engine, so the moment does not
//! matter.

use windvane_session::{ReloadStarts, StartJob};

use super::MS;
use super::observed::ObservedGuests;

/// The starts of one process.
#[derive(Debug)]
pub struct Starter {
    delay_ns: i64,
    /// The starts of the current reload that have not begun.
    pub queue: Option<ReloadStarts<ObservedGuests>>,
    running: Option<(i64, StartJob<ObservedGuests>)>,
    /// The current reload changed nothing, or not everything.
    pub refused: bool,
}

impl Starter {
    /// The thread in the life with this seed. The delay is computed instead of drawn, so that it
    /// changes no other draw.
    pub fn of(seed: u64) -> Self {
        const DELAYS_NS: [i64; 4] = [0, 40 * MS, 900 * MS, 6_000 * MS];
        let nth = usize::try_from(seed / 2 % 4).unwrap_or(0);
        Self {
            delay_ns: DELAYS_NS[nth],
            queue: None,
            running: None,
            refused: false,
        }
    }

    /// Takes a start of the reload.
    pub fn begin(&mut self, now_ns: i64, job: StartJob<ObservedGuests>) {
        self.running = Some((now_ns + self.delay_ns, job));
    }

    /// Whether a reload is not over yet.
    pub const fn is_busy(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether a start is under way.
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// When the start is over.
    pub fn due_ns(&self) -> Option<i64> {
        let (due_ns, _) = self.running.as_ref()?;
        Some(*due_ns)
    }

    /// The start that is over by now.
    pub fn take_due(&mut self, now_ns: i64) -> Option<StartJob<ObservedGuests>> {
        let due = self.running.take_if(|(due_ns, _)| *due_ns <= now_ns)?;
        Some(due.1)
    }
}
