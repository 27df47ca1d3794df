//! The operator's commands on the engine's thread, for the whole run or for one strategy. The reply
//! to a command waits until its kill switch is durable and its effect is published.

use std::time::{Duration, Instant};

use windvane_admin::{Applied, Command as Word, Refused, Steer};
use windvane_model::input::Command;
use windvane_model::run_state::KillSwitch;
use windvane_model::{OrderSeq, StrategyId};
use windvane_session::{Input, Renewed, SaveState, StartJob, Started};

use super::applied::joined;
use super::cancels;
use super::guests::LiveGuests;
use super::loop_state::{CarriedOut, EventLoop, State};
use super::unowned_positions;

/// A command is answered after this time even if its kill switch is not durable yet. The reply then
/// says so.
const DURABLE_WITHIN: Duration = Duration::from_secs(1);

impl EventLoop {
    /// Carries out a command.
    pub(super) async fn command(&mut self, steer: Steer, state: &mut State) {
        let command = match steer.command {
            Word::Pause => Command::Pause,
            Word::Resume => Command::Resume,
            Word::Halt => Command::Halt,
            Word::Flatten => Command::Flatten,
            Word::Reload if steer.strategy.is_none() => return self.begin_reload(steer, state),
            Word::Reload => {
                let refused = Refused {
                    error: "reload works for the whole configuration only".to_owned(),
                    what_to_do: "run windvane reload without --strategy: strategies that did not \
                                 change keep running"
                        .to_owned(),
                };
                drop(steer.answer.send(Err(refused)));
                return;
            }
        };
        let name = steer.strategy.clone();
        tracing::warn!(
            ?command,
            strategy = name,
            "received a command of the operator"
        );
        let cancels = if steer.command.cancels_orders() {
            self.cancelled_by(name.as_deref())
        } else {
            Vec::new()
        };
        let (strategy, job) = match name {
            None => {
                self.command_all(command, state).await;
                (None, None)
            }
            Some(name) => match self.command_one(&name, command, state).await {
                Ok((strategy, job)) => (Some(strategy), job),
                Err(refused) => {
                    drop(steer.answer.send(Err(refused)));
                    return;
                }
            },
        };
        if let (Some(strategy), Some(job)) = (strategy, job) {
            state.resuming.push((strategy, steer));
            return self.start_beside(job);
        }
        state.carried_out.push(CarriedOut {
            steer,
            strategy,
            note: String::new(),
            cancels,
            since: Instant::now(),
        });
    }

    /// Replies to the command that resumed a strategy in quarantine. Its start is over.
    pub(super) fn answer_resume(&self, started: Started, state: &mut State) {
        let place = state
            .resuming
            .iter()
            .position(|(of, _)| *of == started.strategy);
        let Some((strategy, steer)) = place.map(|place| state.resuming.swap_remove(place)) else {
            return;
        };
        let (name, _) = &self.session.modules()[usize::from(strategy.0)];
        match started.result {
            Ok(renewed) => state.carried_out.push(CarriedOut {
                steer,
                strategy: Some(strategy),
                note: joined([
                    describe_renewed(name, renewed, started.had_state),
                    self.overtaken_note(strategy),
                ]),
                cancels: Vec::new(),
                since: Instant::now(),
            }),
            Err(reason) => drop(steer.answer.send(Err(not_started(name, &reason)))),
        }
    }

    /// A note for a resume during which another command came.
    fn overtaken_note(&self, strategy: StrategyId) -> String {
        match self.session.engine().kill_switch_of(strategy) {
            KillSwitch::Clear => String::new(),
            KillSwitch::Paused | KillSwitch::Halted => {
                "a pause or halt of it is in effect; it places no order until you resume it again"
                    .to_owned()
            }
        }
    }

    /// Replies to commands when their kill switch is durable, cannot be made durable, or takes too
    /// long; and to a halt or flatten also not before its orders have ended, as long as its caller
    /// wants to wait.
    pub(super) fn answer_commands(&mut self, state: &mut State) {
        if state.carried_out.is_empty() {
            return;
        }
        let is_written = self.session.kill_switch().save_state() != SaveState::Writing;
        let engine = self.session.engine();
        let is_answered = |done: &mut CarriedOut| {
            let waited = done.since.elapsed();
            let saved = is_written || waited >= DURABLE_WITHIN;
            let ended = || cancels::are_over(engine, &done.cancels);
            saved && (waited >= done.steer.wait || done.steer.answer.is_closed() || ended())
        };
        let answered: Vec<_> = state.carried_out.extract_if(.., is_answered).collect();
        for done in answered {
            let applied = self.applied(done.strategy);
            let is_flatten = done.steer.command == Word::Flatten;
            let nobodys = if is_flatten && done.strategy.is_none() {
                unowned_positions::external_positions_text(self.session.engine())
            } else {
                String::new()
            };
            let pending = joined([done.note, applied.pending, nobodys]);
            let save_state = self.session.kill_switch().save_state();
            let sets_kill_switch = done.steer.command.sets_kill_switch();
            let cancels_orders = done.steer.command.cancels_orders();
            let applied = Applied {
                pending,
                durable: sets_kill_switch.then_some(save_state == SaveState::Durable),
                cancels: cancels_orders
                    .then(|| cancels::shown(self.session.engine(), &done.cancels)),
                ..applied
            };
            drop(done.steer.answer.send(Ok(applied)));
        }
    }

    /// The orders that a halt of this strategy, or of all, is about to cancel.
    fn cancelled_by(&self, strategy: Option<&str>) -> Vec<OrderSeq> {
        let driver = self.session.driver();
        let Some(name) = strategy else {
            return cancels::cancelled_by(driver, None);
        };
        let mut modules = self.session.modules().iter();
        // An unknown name is refused later.
        let place = modules.position(|(known, _)| known == name);
        place.map_or_else(Vec::new, |place| {
            cancels::cancelled_by(driver, Some(StrategyId(place as u16)))
        })
    }

    async fn command_all(&mut self, command: Command, state: &mut State) {
        self.handle(Input::Command(command, None), state).await;
    }

    /// Returns the strategy, and the start that a resume after quarantine needs.
    async fn command_one(
        &mut self,
        name: &str,
        command: Command,
        state: &mut State,
    ) -> Result<(StrategyId, Option<StartJob<LiveGuests>>), Refused> {
        let modules = self.session.modules();
        let Some(place) = modules.iter().position(|(known, _)| known == name) else {
            return Err(Refused {
                error: format!("there is no strategy {name}"),
                what_to_do: "windvane strategies lists them".to_owned(),
            });
        };
        let strategy = StrategyId(place as u16);
        let steered = self.session.steer(self.clock.now(), strategy, command);
        self.perform(state).await;
        let job = steered.map_err(|reason| not_started(name, &reason))?;
        Ok((strategy, job))
    }
}

fn not_started(strategy: &str, reason: &str) -> Refused {
    Refused {
        error: format!("strategy {strategy} could not start: {reason}"),
        what_to_do:
            "fix its module or parameters, run windvane reload, then resume it again; until \
                     then it stays in quarantine and sends no orders"
                .to_owned(),
    }
}

/// Logs that a strategy left quarantine, and returns what the operator should know about it.
fn describe_renewed(strategy: &str, renewed: Renewed, with_state: bool) -> String {
    match renewed {
        Renewed::WithState => {
            tracing::warn!(
                strategy,
                with_state,
                "strategy left quarantine and is called again, with its state"
            );
            String::new()
        }
        Renewed::Fresh(reason) => {
            tracing::warn!(
                strategy,
                reason,
                "strategy left quarantine and is called again, without its saved state"
            );
            format!("it started without its saved state: {reason}")
        }
    }
}
