//! The operator's commands on the engine's thread, for the whole run or for one strategy. The reply
//! to a command waits until its kill switch is durable and its effect is published.

use std::time::{Duration, Instant};

use windvane_admin::{Applied, Command as Word, Refused, Steer};
use windvane_model::StrategyId;
use windvane_model::input::Command;
use windvane_session::{Freed, Input, Renewed, SaveState};

use super::applied::joined;
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
        let strategy = steer.strategy.as_deref();
        tracing::warn!(?command, strategy, "received a command of the operator");
        let done = match strategy {
            None => {
                self.command_all(command, state).await;
                Ok((None, String::new()))
            }
            Some(name) => self.command_one(name, command, state).await,
        };
        match done {
            Ok((strategy, note)) => state.carried_out.push(CarriedOut {
                steer,
                strategy,
                note,
                since: Instant::now(),
            }),
            Err(refused) => drop(steer.answer.send(Err(refused))),
        }
    }

    /// Replies to commands when their kill switch is durable, cannot be made durable, or takes too
    /// long.
    pub(super) fn answer_commands(&mut self, state: &mut State) {
        let Some(oldest) = state.carried_out.first() else {
            return;
        };
        let is_written = self.session.kill_switch().save_state() != SaveState::Writing;
        if !is_written && oldest.since.elapsed() < DURABLE_WITHIN {
            return;
        }
        for done in std::mem::take(&mut state.carried_out) {
            let applied = self.applied(done.strategy);
            let is_flatten = done.steer.command == Word::Flatten;
            let nobodys = if is_flatten && done.strategy.is_none() {
                unowned_positions::external_positions_text(self.session.engine())
            } else {
                String::new()
            };
            let pending = joined([done.note, applied.pending, nobodys]);
            let applied = Applied { pending, ..applied };
            drop(done.steer.answer.send(Ok(applied)));
        }
    }

    async fn command_all(&mut self, command: Command, state: &mut State) {
        self.handle(Input::Command(command, None), state).await;
    }

    /// Returns the strategy and what the operator should know about the result.
    async fn command_one(
        &mut self,
        name: &str,
        command: Command,
        state: &mut State,
    ) -> Result<(Option<StrategyId>, String), Refused> {
        let modules = self.session.modules();
        let Some(place) = modules.iter().position(|(known, _)| known == name) else {
            return Err(Refused {
                error: format!("there is no strategy {name}"),
                what_to_do: "windvane strategies lists them".to_owned(),
            });
        };
        let strategy = StrategyId(place as u16);
        let commands = self.session.steer(self.clock.now(), strategy, command);
        self.perform(state).await;
        let note = match commands {
            Ok(None) => String::new(),
            Ok(Some(freed)) => describe_freed(name, freed),
            Err(reason) => {
                return Err(Refused {
                    error: format!("strategy {name} could not start: {reason}"),
                    what_to_do:
                        "fix its module or parameters, run windvane reload, then resume it again; \
                         until then it stays in quarantine and sends no orders"
                            .to_owned(),
                });
            }
        };
        Ok((Some(strategy), note))
    }
}

/// Logs that a strategy left quarantine, and returns what the operator should know about it.
fn describe_freed(strategy: &str, freed: Freed) -> String {
    match freed.renewed {
        Renewed::WithState => {
            let with_state = freed.had_state;
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
