//! The checkpoint of a journal segment: everything that a run needs to continue from there.

use serde::{Deserialize, Serialize, Serializer};
use windvane_engine::ENGINE_RULES;

/// The engine rules of checkpoints that have no such field.
const FIRST_RULES: u32 = 1;

/// The checkpoint of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Version of the program that wrote the checkpoint.
    pub version: String,
    /// The engine's snapshot.
    pub engine: Vec<u8>,
    /// The strategies, in the order of the configuration.
    pub strategies: Vec<SavedStrategy>,
    /// The simulated account of a paper run.
    pub paper: Option<Vec<u8>>,
    /// The [`ENGINE_RULES`] of the program that wrote the segment.
    pub engine_rules: u32,
}

/// The fields of checkpoints of engine rules 1, in their order. Newer fields follow them.
type First = (String, Vec<u8>, Vec<SavedStrategy>, Option<Vec<u8>>);

/// A saved strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStrategy {
    /// Its id.
    pub name: String,
    /// SHA-256 of its module.
    pub sha256: [u8; 32],
    /// Its state, if it has one.
    #[serde(serialize_with = "put_state")]
    pub state: Option<Vec<u8>>,
    /// The inputs from which its instance is made, apart from the module.
    pub made: Made,
}

/// The inputs from which an instance is made, apart from its module. They are enough to make an
/// identical instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// `params` as JSON.
    pub params: Vec<u8>,
    /// Its instruments and the assets, as JSON.
    pub instruments: Vec<u8>,
    /// Fuel limit of one event.
    pub fuel_per_event: u64,
    /// Limit of its linear memory, in bytes.
    pub memory_bytes: u64,
    /// Names of the capabilities that it is granted.
    pub capabilities: Vec<String>,
}

impl Made {
    /// The names of its instruments. Their rules may change without the operator.
    fn instrument_names(&self) -> Vec<String> {
        let instruments: serde_json::Value =
            serde_json::from_slice(&self.instruments).unwrap_or_default();
        let rows = instruments["instruments"].as_array().into_iter().flatten();
        let names = rows.filter_map(|row| row["name"].as_str());
        names.map(str::to_owned).collect()
    }
}

/// The record text of what the instances are made of after a reload.
pub(crate) fn circumstances(instances: &[SavedStrategy]) -> String {
    // Serializing to memory cannot fail.
    serde_json::to_string(instances).unwrap_or_default()
}

/// Parses the record text of what the instances are made of after a reload.
pub fn instances(circumstances: &str) -> Option<Vec<SavedStrategy>> {
    serde_json::from_str(circumstances).ok()
}

/// A strategy's name and the hash of its module.
pub type Module = (String, [u8; 32]);

/// The checkpoint of a segment that begins here. `states` and `made` have the order of `modules`.
pub fn new_checkpoint(
    engine: Vec<u8>,
    states: Vec<Option<Vec<u8>>>,
    modules: &[Module],
    made: Vec<Made>,
    paper: Option<Vec<u8>>,
) -> Checkpoint {
    let strategies = modules.iter().zip(states).zip(made);
    Checkpoint {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine,
        strategies: strategies
            .map(|(((name, sha256), state), made)| SavedStrategy {
                name: name.clone(),
                sha256: *sha256,
                state,
                made,
            })
            .collect(),
        paper,
        engine_rules: ENGINE_RULES,
    }
}

/// Bytes that are written as one piece. The encoded form is that of a list of bytes, which `serde`
/// writes one by one: that takes long for a state of megabytes.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn put_state<S: Serializer>(state: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    state.as_deref().map(Bytes).serialize(serializer)
}

impl Checkpoint {
    /// Encodes the checkpoint.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serializing to memory cannot fail, because every length in the type is known.
        let fields = (
            &self.version,
            Bytes(&self.engine),
            &self.strategies,
            self.paper.as_deref().map(Bytes),
            self.engine_rules,
        );
        let states = self.strategies.iter().filter_map(|one| one.state.as_ref());
        let bytes = states.map(Vec::len).sum::<usize>() + self.engine.len();
        postcard::to_extend(&fields, Vec::with_capacity(bytes + 4_096)).unwrap_or_default()
    }

    /// Decodes a checkpoint; `None` if the bytes are not a checkpoint.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (first, added): (First, _) = postcard::take_from_bytes(bytes).ok()?;
        let (version, engine, strategies, paper) = first;
        let engine_rules = match added {
            [] => FIRST_RULES,
            added => postcard::from_bytes(added).ok()?,
        };
        Some(Self {
            version,
            engine,
            strategies,
            paper,
            engine_rules,
        })
    }

    /// Whether this program decides by the same engine rules as the program that wrote the segment.
    pub const fn has_our_rules(&self) -> bool {
        self.engine_rules == ENGINE_RULES
    }

    /// Whether it has an instance of this module for the strategy, with the same parameters and for
    /// the same instruments.
    pub(crate) fn has_instance(&self, (name, sha256): &Module, made: &Made) -> bool {
        let mut saved = self.strategies.iter();
        saved.any(|saved| {
            saved.name == *name
                && saved.sha256 == *sha256
                && saved.made.params == made.params
                && saved.made.instrument_names() == made.instrument_names()
        })
    }

    /// The saved state of the strategy with this id.
    pub fn state_of(&self, name: &str) -> Option<Vec<u8>> {
        let saved = self.strategies.iter().find(|saved| saved.name == name)?;
        saved.state.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            version: "0.1.0".to_owned(),
            engine: vec![1, 2, 3],
            strategies: vec![SavedStrategy {
                name: "maker".to_owned(),
                sha256: [7; 32],
                state: Some(vec![9]),
                made: Made::default(),
            }],
            paper: Some(vec![4]),
            engine_rules: ENGINE_RULES,
        }
    }

    #[test]
    fn a_checkpoint_is_read_back() {
        assert_eq!(
            Checkpoint::from_bytes(&checkpoint().to_bytes()),
            Some(checkpoint())
        );
        assert!(checkpoint().has_our_rules());
        assert_eq!(Checkpoint::from_bytes(b"no head"), None);
    }

    #[test]
    fn a_checkpoint_without_engine_rules_has_rules_1() {
        let Checkpoint {
            version,
            engine,
            strategies,
            paper,
            ..
        } = checkpoint();
        let old: First = (version, engine, strategies, paper);
        let read = Checkpoint::from_bytes(&postcard::to_stdvec(&old).unwrap()).unwrap();
        assert_eq!(read.engine_rules, FIRST_RULES);
        assert!(!read.has_our_rules());
        assert_eq!(read.strategies, checkpoint().strategies);
    }
}
