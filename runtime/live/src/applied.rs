//! The reply to a command of the operator: the changes, and the work that is still pending.

use windvane_admin::Applied;
use windvane_model::StrategyId;
use windvane_model::run_state::KillSwitch;
use windvane_session::SaveState;

use super::loop_state::EventLoop;
use super::{closes, show};

/// Joins the sentences that are not empty.
pub fn joined(texts: impl IntoIterator<Item = String>) -> String {
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join("; ")
}

impl EventLoop {
    /// Publishes the effect of a command and describes it.
    pub(super) fn applied(&mut self, strategy: Option<StrategyId>) -> Applied {
        let lag = self.lag();
        self.services.publish(&self.session, lag, true);
        let engine = self.session.engine();
        let mut pending = Vec::new();
        match self.session.kill_switch().save_state() {
            SaveState::Failed(error) => pending.push(format!("{}: {error}", Applied::NOT_DURABLE)),
            SaveState::Writing => {
                pending.push(format!("{} yet: the disk is slow", Applied::NOT_DURABLE));
            }
            SaveState::Durable => {}
        }
        let open = show::cancelled_by_halt(self.session.driver())
            .filter(|order| strategy.is_none_or(|one| one == order.strategy));
        match open.count() {
            0 => {}
            1 => pending.push("1 own order is being cancelled".to_owned()),
            open => pending.push(format!("{open} own orders are being cancelled")),
        }
        let modules = self.session.modules();
        let row = |at: usize| show::strategy(engine, modules, self.session.kill_switch(), at);
        for (at, (name, _)) in modules.iter().enumerate() {
            let id = StrategyId(at as u16);
            let of_answer = strategy.is_none_or(|one| one == id);
            if of_answer && engine.is_flattening(id) {
                let closes = closes::shown(engine);
                let close = closes.iter().find(|close| close.strategy == *name);
                pending.push(close.map_or_else(
                    || format!("positions of {name} are being closed"),
                    closes::describe,
                ));
            }
            let held = engine.kill_switch_of(id) != KillSwitch::Clear || engine.fault(id).is_some();
            if strategy.is_none() && engine.kill_switch() == KillSwitch::Clear && held {
                let is = row(at).map_or("", |row| row.state.as_str());
                pending.push(format!(
                    "{name} stays {is}: windvane resume --strategy {name} ends that"
                ));
            }
        }
        Applied {
            state: show::state(engine.run_state()),
            reason: self.services.reason(&self.session),
            since_ms: self.services.publication.since_ms(),
            pending: pending.join("; "),
            strategy: strategy.and_then(|one| row(usize::from(one.0))),
            ..Applied::default()
        }
    }
}
