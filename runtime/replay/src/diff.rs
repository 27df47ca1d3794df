//! Compares a changed module with the recorded one: orders and cancels that only one of the two
//! sends.

use serde_json::{Value, json};
use windvane_engine::Engine;
use windvane_model::{Intent, OrderTerms, Time};

use super::export::RecordFormatter;

/// How many changes are kept in full; further ones are only counted.
const LISTED: usize = 100_000;

/// Which module sent the intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Only the new module.
    New,
    /// Only the old module.
    Old,
}

/// One intent that only one of the two modules had at this moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The time of the callback.
    pub time: Time,
    /// The module that had it.
    pub by: By,
    /// `submit`, `cancel` or `cancel_all`.
    pub kind: &'static str,
    /// The order's parameters, if they are known.
    pub order: Value,
}

/// All changes of a replay.
#[derive(Debug, Default)]
pub struct Changes {
    /// The first changes, up to a limit.
    pub listed: Vec<Change>,
    /// Numbers of the new module: submits, cancels.
    pub new: [u64; 2],
    /// Numbers of the old module: submits, cancels.
    pub old: [u64; 2],
}

impl Changes {
    /// Adds a change.
    pub fn push(&mut self, change: Change) {
        let counts = match change.by {
            By::New => &mut self.new,
            By::Old => &mut self.old,
        };
        counts[usize::from(change.kind != "submit")] += 1;
        if self.listed.len() < LISTED {
            self.listed.push(change);
        }
    }

    /// The number of changes.
    pub const fn total(&self) -> u64 {
        self.new[0] + self.new[1] + self.old[0] + self.old[1]
    }
}

/// Whether two intents request the same order or cancel. Order numbers do not count, because they
/// depend on which module submits first.
fn same(one: &Intent, other: &Intent) -> bool {
    match (one, other) {
        (Intent::Submit { terms: one, .. }, Intent::Submit { terms: other, .. }) => one == other,
        _ => one == other,
    }
}

impl Change {
    /// The intents of one moment that only one module had. Timers and locally rejected intents are
    /// left out, because they cause nothing at the venue.
    pub fn between(
        time: Time,
        mut old: Vec<Intent>,
        new: &[Intent],
        engine: &Engine,
        formatter: &RecordFormatter,
    ) -> Vec<Self> {
        let mut changes = Vec::new();
        for intent in new {
            match old.iter().position(|other| same(intent, other)) {
                Some(at) => drop(old.remove(at)),
                None => changes.extend(Self::of(time, By::New, intent, engine, formatter)),
            }
        }
        let left = old.iter();
        changes.extend(left.filter_map(|one| Self::of(time, By::Old, one, engine, formatter)));
        changes
    }

    fn of(
        time: Time,
        by: By,
        intent: &Intent,
        engine: &Engine,
        formatter: &RecordFormatter,
    ) -> Option<Self> {
        let listed =
            |terms: Option<&OrderTerms>| terms.map_or(Value::Null, |one| formatter.terms(one));
        let (kind, order) = match intent {
            Intent::Submit { terms, .. } => ("submit", listed(Some(terms))),
            Intent::Cancel { order } => (
                "cancel",
                listed(engine.order(*order).map(|order| &order.terms)),
            ),
            Intent::CancelAll { instrument } => {
                let instrument = instrument.map(|id| formatter.name(id));
                ("cancel_all", json!({ "instrument": instrument }))
            }
            Intent::Rejected { .. } | Intent::SetTimer { .. } | Intent::CancelTimer { .. } => {
                return None;
            }
        };
        Some(Self {
            time,
            by,
            kind,
            order,
        })
    }
}

#[cfg(test)]
mod tests {
    use windvane_engine::ENGINE_RULES;
    use windvane_model::OrderSeq;
    use windvane_model::config::EngineConfig;

    use super::*;
    use windvane_session::Checkpoint;

    #[test]
    fn each_intent_of_only_one_module_is_listed_once() {
        let mut engine = Engine::new(EngineConfig::default()).unwrap();
        let checkpoint = Checkpoint {
            version: String::new(),
            engine: engine.snapshot(),
            strategies: Vec::new(),
            paper: None,
            engine_rules: ENGINE_RULES,
        };
        let formatter = RecordFormatter::new(0, &checkpoint.to_bytes()).unwrap();
        let cancel = |order| Intent::Cancel {
            order: OrderSeq(order),
        };
        let timer = Intent::CancelTimer { token: 7 };
        let old = vec![cancel(1), cancel(2), cancel(2), timer];
        let new = [cancel(2), cancel(3)];
        let changes = Change::between(Time(5), old, &new, &engine, &formatter);
        let listed: Vec<_> = changes
            .iter()
            .map(|change| (change.by, change.kind))
            .collect();
        assert_eq!(
            listed,
            [
                (By::New, "cancel"),
                (By::Old, "cancel"),
                (By::Old, "cancel")
            ]
        );
        let mut all = Changes::default();
        for change in changes {
            all.push(change);
        }
        assert_eq!((all.new, all.old, all.total()), ([0, 1], [0, 2], 3));
    }
}
