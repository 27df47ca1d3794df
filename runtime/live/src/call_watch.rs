//! Measures the callbacks of a strategy with the clocks of this machine, and ends one that takes
//! too long.
//!
//! The processor time of the thread decides, not the time on the wall: a busy machine must not put
//! a strategy into quarantine.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windvane_admin::metrics::{Counter, table};
use windvane_build::modules::{Guest, TimeLimits};
use windvane_host::{Ticker, Watch};

use super::cpu_account::{CpuAccount, Overuse, Shown};

/// How often a running callback is looked at.
const TICK: Duration = Duration::from_millis(10);
/// `save` may take this many times as long as a callback, because it has the fuel of many. With the
/// default limit it ends after 100 ms of processor time, at the next tick.
const SAVE_CALLBACKS: i64 = 2;
/// How often the log says that callbacks took long on a busy machine.
const BUSY_LOG_EVERY: Duration = Duration::from_mins(1);
const NS_PER_MS: i64 = 1_000_000;

/// Processor time of this thread, nanoseconds.
fn thread_cpu_ns() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}

/// The limit of the callback that runs, shared with the host.
#[derive(Debug)]
struct Running {
    /// Processor time of the thread at the begin of the callback, nanoseconds.
    begin: AtomicI64,
    /// `limits.callback_ms`.
    callback_ms: AtomicI64,
    is_save: AtomicBool,
}

impl Running {
    fn begin(&self, cpu_ns: i64, callback_ms: u32, is_save: bool) {
        self.begin.store(cpu_ns, Ordering::Relaxed);
        self.callback_ms
            .store(i64::from(callback_ms), Ordering::Relaxed);
        self.is_save.store(is_save, Ordering::Relaxed);
    }

    /// The reason to end the callback when the thread has used this processor time.
    fn reason(&self, cpu_ns: i64) -> Option<String> {
        let used = cpu_ns - self.begin.load(Ordering::Relaxed);
        let callback_ms = self.callback_ms.load(Ordering::Relaxed);
        let is_save = self.is_save.load(Ordering::Relaxed);
        (used > limit_ns(callback_ms, is_save)).then(|| {
            let used = used / NS_PER_MS;
            if is_save {
                format!(
                    "its save took {used} ms of processor time; twice limits.callback_ms \
                     ({callback_ms}) is allowed. Save less, or raise limits.callback_ms and reload"
                )
            } else {
                format!(
                    "it used {used} ms of processor time, limits.callback_ms allows {callback_ms}. \
                     Do less work in one callback, or raise limits.callback_ms and reload"
                )
            }
        })
    }
}

impl Watch for Running {
    fn exceeded(&self) -> Option<String> {
        self.reason(thread_cpu_ns())
    }
}

const fn limit_ns(callback_ms: i64, is_save: bool) -> i64 {
    let callbacks = if is_save { SAVE_CALLBACKS } else { 1 };
    callback_ms * NS_PER_MS * callbacks
}

/// The measurement of one strategy's callbacks.
pub(crate) struct CallWatch {
    name: String,
    limits: TimeLimits,
    origin: Instant,
    account: CpuAccount,
    running: Arc<Running>,
    used: Counter,
    /// Nanoseconds that are not in `used` yet, which counts microseconds.
    rest: i64,
    delayed: Counter,
    logged: Option<Instant>,
}

/// The begin of a measured call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    cpu: i64,
    wall: Instant,
}

impl CallWatch {
    /// Watches the callbacks of a guest.
    fn new(guest: &mut Guest) -> Self {
        let origin = Instant::now();
        let running = Arc::new(Running {
            begin: AtomicI64::new(0),
            callback_ms: AtomicI64::new(i64::from(guest.time.callback_ms)),
            is_save: AtomicBool::new(false),
        });
        guest.strategy.watch(Arc::clone(&running) as Arc<dyn Watch>);
        Self {
            limits: guest.time,
            origin,
            account: CpuAccount::new(guest.time.cpu_percent, 0),
            running,
            used: table::STRATEGY_CPU.of([&guest.name]),
            rest: 0,
            delayed: table::CALLBACKS_DELAYED.of([&guest.name]),
            logged: None,
            name: guest.name.clone(),
        }
    }

    /// A new instance begins with a new account.
    pub(crate) fn renew(&mut self) {
        self.account = CpuAccount::new(self.limits.cpu_percent, self.wall_ns());
    }

    /// Other limits apply from now on.
    pub(crate) fn set_limits(&mut self, limits: TimeLimits) {
        self.limits = limits;
        self.account.set_percent(limits.cpu_percent);
    }

    /// Its use of the processor beside its limit.
    pub(crate) fn cpu(&self) -> Shown {
        self.account.shown(self.wall_ns())
    }

    fn wall_ns(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// An event or a save begins. The host ends it at its limit.
    #[inline]
    pub(crate) fn begin(&self, is_save: bool) -> Begin {
        let cpu = thread_cpu_ns();
        self.running.begin(cpu, self.limits.callback_ms, is_save);
        Begin {
            cpu,
            wall: Instant::now(),
        }
    }

    /// The call is over. Books what it used.
    ///
    /// # Errors
    /// The account of the strategy is overdrawn.
    #[inline]
    pub(crate) fn end(&mut self, begin: Begin) -> Result<(), Overuse> {
        let used = thread_cpu_ns() - begin.cpu;
        self.rest += used;
        self.used.increment((self.rest / 1_000).unsigned_abs());
        self.rest %= 1_000;
        let wall = begin.wall.elapsed();
        let limit = Duration::from_millis(u64::from(self.limits.callback_ms));
        if wall > limit && used < i64::from(self.limits.callback_ms) * NS_PER_MS {
            self.delayed(wall, used);
        }
        self.account.charge(self.wall_ns(), used)
    }

    /// Reports a callback that took long because the machine was busy.
    #[cold]
    fn delayed(&mut self, wall: Duration, used: i64) {
        self.delayed.increment(1);
        if self.logged.is_some_and(|at| at.elapsed() < BUSY_LOG_EVERY) {
            return;
        }
        self.logged = Some(Instant::now());
        tracing::warn!(
            strategy = %self.name,
            took_ms = wall.as_millis(),
            cpu_ms = used / NS_PER_MS,
            "a callback was interrupted by other work of this machine: orders and heartbeats of \
             the run were late by this time. The strategy is not at fault; give the run more \
             processor time"
        );
    }
}

/// Watches all strategies of a run, and has the thread that ticks.
pub(crate) struct CallWatches {
    tickers: Arc<Mutex<Vec<Ticker>>>,
}

impl CallWatches {
    /// Starts the thread that ticks. It ends with this value.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let tickers = Arc::new(Mutex::new(Vec::<Ticker>::new()));
        let weak = Arc::downgrade(&tickers);
        let thread = std::thread::Builder::new().name("callback-ticks".to_owned());
        thread.spawn(move || {
            while let Some(tickers) = weak.upgrade() {
                let mut all = tickers.lock().unwrap_or_else(PoisonError::into_inner);
                all.retain(Ticker::tick);
                drop(all);
                drop(tickers);
                std::thread::sleep(TICK);
            }
        })?;
        Ok(Self { tickers })
    }

    /// Watches the callbacks of a guest.
    pub(crate) fn watch(&self, guest: &mut Guest) -> CallWatch {
        let mut tickers = self.tickers.lock().unwrap_or_else(PoisonError::into_inner);
        tickers.push(guest.strategy.ticker());
        CallWatch::new(guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = NS_PER_MS;

    fn running(is_save: bool) -> Running {
        let running = Running {
            begin: AtomicI64::new(0),
            callback_ms: AtomicI64::new(0),
            is_save: AtomicBool::new(false),
        };
        running.begin(7 * MS, 50, is_save);
        running
    }

    #[test]
    fn a_save_ends_after_100_ms_by_default() {
        let save = running(true);
        assert_eq!(save.reason(107 * MS), None);
        let reason = save.reason(108 * MS).unwrap();
        assert!(
            reason.starts_with(
                "its save took 101 ms of processor time; twice limits.callback_ms (50) is allowed"
            ),
            "{reason}"
        );
    }

    #[test]
    fn an_event_ends_after_its_limit() {
        let event = running(false);
        assert_eq!(event.reason(57 * MS), None);
        let reason = event.reason(58 * MS).unwrap();
        assert!(
            reason.starts_with(
                "it used 51 ms of processor time, limits.callback_ms allows 50. Do less"
            ),
            "{reason}"
        );
    }
}
