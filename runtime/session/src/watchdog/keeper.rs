//! Keeps one watchdog process alive, without IO: checks that it responds, has it killed if it does
//! not, and has the next one started.
//!
//! The run (`runtime/live/src/watchdog/keeper.rs`) and the fault simulator drive the same
//! [`Keeper`].

use std::collections::VecDeque;

use windvane_model::live::LiveInput;
use windvane_model::{Time, planted};

use super::messages::{RunMessage, WatchdogMessage};
use super::time::ms;

/// The process must acknowledge a heartbeat within this time.
const ANSWER_MS: i64 = 5_000;
/// A process that is arming itself, or cancelling, must report within this time.
const SILENT_MS: i64 = 120_000;
/// Pause between the end of one process and the start of the next. It doubles each time, from the
/// first value to the second.
const PAUSE_MS: (i64, i64) = (200, 15_000);
/// After a process that lived this long, the pause is the first value again.
const LIVED_MS: i64 = 60_000;
/// A process must end within this time after the run told it to end.
const END_MS: i64 = 2_000;
/// If a timeout comes this late, the keeper itself was suspended, and responses may be waiting.
const STOPPED_MS: i64 = 1_000;

/// An event for the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperInput {
    /// The engine sends a heartbeat.
    Heartbeat {
        /// Increases by one each time.
        number: u64,
        /// How long the venue wants no requests at all, in milliseconds.
        stopped_ms: u64,
    },
    /// A message of the process.
    Message(WatchdogMessage),
    /// The process ended, was killed, or could not be started.
    ProcessEnded {
        /// How long the venue wants no requests at all, in milliseconds.
        stopped_ms: u64,
    },
    /// The run stops in an orderly way.
    End,
    /// The time of [`Keeper::poll_timeout`] has come.
    Timeout,
}

/// Work for the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeeperOutput {
    /// Start a process whose [`WatchdogPlan`](super::WatchdogPlan) has this field.
    Start {
        /// See [`WatchdogPlan`](super::WatchdogPlan).
        orders_may_rest: bool,
    },
    /// Send this to the process.
    SendMessage(RunMessage),
    /// Kill the process; [`KeeperInput::ProcessEnded`] must follow.
    Kill,
    /// Pass this to the engine.
    Report(LiveInput),
    /// The process has ended, and no other follows.
    Over,
}

#[derive(Debug)]
enum Phase {
    Keeping {
        began: Time,
        /// The process must report before this time. `None` between heartbeats, when it need not
        /// report.
        answer_by: Option<Time>,
        acting: bool,
    },
    /// The process is being killed.
    Killed {
        began: Time,
    },
    /// The next process is started at this time.
    Pausing {
        until: Time,
    },
    /// The process must end before this time; `None` once it is killed.
    Ending {
        by: Option<Time>,
    },
    Over,
}

/// Keeps a watchdog process alive. See the module documentation.
#[derive(Debug)]
pub struct Keeper {
    phase: Phase,
    pause_ms: i64,
    orders_may_rest: bool,
    outputs: VecDeque<KeeperOutput>,
}

impl Keeper {
    /// A keeper that starts the first process.
    pub fn new(now: Time) -> Self {
        let mut keeper = Self {
            phase: Phase::Over,
            pause_ms: PAUSE_MS.0,
            orders_may_rest: false,
            outputs: VecDeque::new(),
        };
        keeper.start(now);
        keeper
    }

    /// Handles one event. `now` never runs backwards.
    pub fn handle(&mut self, now: Time, input: KeeperInput) {
        match input {
            KeeperInput::Heartbeat { number, stopped_ms } => {
                self.heartbeat(now, number, stopped_ms);
            }
            KeeperInput::Message(message) => self.handle_message(now, message),
            KeeperInput::ProcessEnded { stopped_ms } => self.gone(now, stopped_ms),
            KeeperInput::End => self.end(now),
            KeeperInput::Timeout => self.timeout(now),
        }
    }

    /// The next work for the shell.
    pub fn poll_output(&mut self) -> Option<KeeperOutput> {
        self.outputs.pop_front()
    }

    /// When [`KeeperInput::Timeout`] is due.
    pub const fn poll_timeout(&self) -> Option<Time> {
        match self.phase {
            Phase::Keeping { answer_by: by, .. } | Phase::Ending { by } => by,
            Phase::Pausing { until } => Some(until),
            Phase::Killed { .. } | Phase::Over => None,
        }
    }

    fn start(&mut self, now: Time) {
        let orders_may_rest = self.orders_may_rest && !planted!(RestingOrdersForgotten);
        self.outputs
            .push_back(KeeperOutput::Start { orders_may_rest });
        self.phase = Phase::Keeping {
            began: now,
            answer_by: Some(now.plus_ms(SILENT_MS)),
            acting: false,
        };
    }

    fn heartbeat(&mut self, now: Time, number: u64, stopped_ms: u64) {
        self.orders_may_rest = true;
        if let Phase::Keeping { answer_by, .. } = &mut self.phase {
            *answer_by = answer_by.or_else(|| Some(now.plus_ms(ANSWER_MS)));
            let heartbeat = RunMessage::Heartbeat { number, stopped_ms };
            self.outputs.push_back(KeeperOutput::SendMessage(heartbeat));
        }
    }

    fn handle_message(&mut self, now: Time, message: WatchdogMessage) {
        let Phase::Keeping {
            answer_by, acting, ..
        } = &mut self.phase
        else {
            return;
        };
        let acts = message == WatchdogMessage::Acting;
        if acts && !*acting {
            tracing::warn!("the watchdog process cancels spot orders");
        }
        *acting = acts;
        *answer_by = acts.then(|| now.plus_ms(SILENT_MS));
        self.outputs.push_back(KeeperOutput::Report(match message {
            WatchdogMessage::Armed => LiveInput::Watchdog { armed: true },
            WatchdogMessage::Acknowledged { number } => LiveInput::HeartbeatAcknowledged { number },
            WatchdogMessage::Acting => LiveInput::Watchdog { armed: false },
        }));
    }

    fn gone(&mut self, now: Time, stopped_ms: u64) {
        match self.phase {
            Phase::Keeping { began, .. } | Phase::Killed { began } => {
                let disarmed = LiveInput::Watchdog { armed: false };
                self.outputs.push_back(KeeperOutput::Report(disarmed));
                if now.0 - began.0 > LIVED_MS * 1_000_000 {
                    self.pause_ms = PAUSE_MS.0;
                }
                // A new process sends requests, and every request prolongs a ban.
                let until = now.plus_ms(self.pause_ms.max(ms(stopped_ms)));
                self.phase = Phase::Pausing { until };
                self.pause_ms = (self.pause_ms * 2).min(PAUSE_MS.1);
                if planted!(WatchdogNotStartedAgain) {
                    self.over();
                }
            }
            Phase::Ending { .. } => self.over(),
            Phase::Pausing { .. } | Phase::Over => {}
        }
    }

    fn end(&mut self, now: Time) {
        match self.phase {
            Phase::Keeping { .. } => {
                self.outputs
                    .push_back(KeeperOutput::SendMessage(RunMessage::End));
                let by = Some(now.plus_ms(END_MS));
                self.phase = Phase::Ending { by };
            }
            Phase::Killed { .. } => self.phase = Phase::Ending { by: None },
            Phase::Pausing { .. } => self.over(),
            Phase::Ending { .. } | Phase::Over => {}
        }
    }

    fn timeout(&mut self, now: Time) {
        match &mut self.phase {
            Phase::Keeping {
                answer_by: Some(by),
                began,
                ..
            } if *by <= now => {
                if now.0 - by.0 > STOPPED_MS * 1_000_000 {
                    *by = now.plus_ms(ANSWER_MS);
                    return;
                }
                tracing::error!(
                    "the watchdog process does not respond; it is killed and started again"
                );
                self.phase = Phase::Killed { began: *began };
                self.outputs.push_back(KeeperOutput::Kill);
            }
            Phase::Ending { by: Some(by) } if *by <= now => {
                tracing::warn!("the watchdog process does not end; it is killed");
                self.phase = Phase::Ending { by: None };
                self.outputs.push_back(KeeperOutput::Kill);
            }
            Phase::Pausing { until } if *until <= now => self.start(now),
            _ => {}
        }
    }

    fn over(&mut self) {
        self.phase = Phase::Over;
        self.outputs.push_back(KeeperOutput::Over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: KeeperInput = KeeperInput::ProcessEnded { stopped_ms: 0 };

    struct Rig {
        keeper: Keeper,
        now: Time,
    }

    impl Rig {
        /// A keeper whose first process is armed.
        fn armed() -> Self {
            let now = Time(0);
            let mut rig = Self {
                keeper: Keeper::new(now),
                now,
            };
            assert_eq!(rig.outputs(), [started(false)]);
            rig.give(KeeperInput::Message(WatchdogMessage::Armed));
            rig
        }

        fn give(&mut self, input: KeeperInput) -> Vec<KeeperOutput> {
            self.keeper.handle(self.now, input);
            self.outputs()
        }

        fn heartbeat(&mut self) -> Vec<KeeperOutput> {
            self.give(KeeperInput::Heartbeat {
                number: 1,
                stopped_ms: 0,
            })
        }

        fn outputs(&mut self) -> Vec<KeeperOutput> {
            std::iter::from_fn(|| self.keeper.poll_output()).collect()
        }

        /// Moves the time to the next timeout plus `late_ms`. Returns how long that was, in
        /// milliseconds.
        fn pass(&mut self, late_ms: i64) -> (i64, Vec<KeeperOutput>) {
            let due = self.keeper.poll_timeout().unwrap();
            let passed_ms = (due.0 - self.now.0) / 1_000_000;
            self.now = due.plus_ms(late_ms);
            (passed_ms, self.give(KeeperInput::Timeout))
        }
    }

    const fn started(orders_may_rest: bool) -> KeeperOutput {
        KeeperOutput::Start { orders_may_rest }
    }

    const fn armed_report(armed: bool) -> KeeperOutput {
        KeeperOutput::Report(LiveInput::Watchdog { armed })
    }

    #[test]
    fn a_process_that_misses_a_heartbeat_is_replaced() {
        let mut rig = Rig::armed();
        assert_eq!(rig.keeper.poll_timeout(), None);
        rig.heartbeat();
        assert_eq!(rig.pass(0), (ANSWER_MS, vec![KeeperOutput::Kill]));
        assert_eq!(rig.keeper.poll_timeout(), None);
        assert_eq!(rig.give(GONE), [armed_report(false)]);
        assert_eq!(rig.pass(0), (PAUSE_MS.0, vec![started(true)]));
    }

    #[test]
    fn a_later_heartbeat_does_not_extend_the_wait() {
        let mut rig = Rig::armed();
        rig.heartbeat();
        rig.now = rig.now.plus_ms(4_000);
        rig.heartbeat();
        assert_eq!(
            rig.keeper.poll_timeout(),
            Some(Time(0).plus_ms(ANSWER_MS)),
            "the wait counts from the first heartbeat"
        );
        rig.give(KeeperInput::Message(WatchdogMessage::Acknowledged {
            number: 1,
        }));
        assert_eq!(rig.keeper.poll_timeout(), None);
    }

    #[test]
    fn a_suspended_keeper_waits_for_the_response_again() {
        let mut rig = Rig::armed();
        rig.heartbeat();
        assert_eq!(rig.pass(STOPPED_MS + 1).1, []);
        assert_eq!(rig.pass(0), (ANSWER_MS, vec![KeeperOutput::Kill]));
    }

    #[test]
    fn pauses_grow_to_a_limit_and_reset_after_a_long_life() {
        let mut rig = Rig::armed();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            rig.give(GONE);
            pauses.push(rig.pass(0).0);
        }
        assert_eq!(
            pauses,
            [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000]
        );
        rig.now = rig.now.plus_ms(LIVED_MS + 1);
        rig.give(GONE);
        assert_eq!(rig.pass(0).0, 200);
    }

    #[test]
    fn no_process_is_started_during_a_ban() {
        let mut rig = Rig::armed();
        let stopped_ms = 90_000;
        rig.give(KeeperInput::ProcessEnded { stopped_ms });
        assert_eq!(rig.pass(0), (90_000, vec![started(false)]));
    }

    #[test]
    fn the_end_of_the_run_ends_or_kills_the_process() {
        for ends in [true, false] {
            let mut rig = Rig::armed();
            let end = KeeperOutput::SendMessage(RunMessage::End);
            assert_eq!(rig.give(KeeperInput::End), [end]);
            if !ends {
                assert_eq!(rig.pass(0), (END_MS, vec![KeeperOutput::Kill]));
            }
            assert_eq!(rig.give(GONE), [KeeperOutput::Over]);
        }
        let mut rig = Rig::armed();
        rig.give(GONE);
        assert_eq!(rig.give(KeeperInput::End), [KeeperOutput::Over]);
    }

    #[test]
    fn a_process_that_cancels_lives_as_long_as_it_reports() {
        let mut rig = Rig::armed();
        let acting = KeeperInput::Message(WatchdogMessage::Acting);
        assert_eq!(rig.give(acting), [armed_report(false)]);
        rig.now = rig.now.plus_ms(SILENT_MS - 1);
        rig.give(acting);
        assert_eq!(rig.pass(0), (SILENT_MS, vec![KeeperOutput::Kill]));
    }
}
