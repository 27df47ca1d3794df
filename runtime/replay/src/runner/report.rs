//! The result of a replay.

use std::collections::BTreeSet;

use windvane_journal::Problem;
use windvane_session::recovery::Difference;

use super::super::diff::Changes;
use super::super::simulate::Simulation;

/// How a module of the journal was replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The strategy's id.
    pub id: String,
    /// The hash of the recorded module.
    pub sha256: String,
    /// Why the recorded outputs were used; `None` if the module itself ran.
    pub from_journal: Option<String>,
    /// Its file is missing or was changed, so its outputs cannot be computed again.
    pub altered: bool,
}

/// The result of a replay.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// The number of segments.
    pub segments: u64,
    /// The number of blocks in them.
    pub blocks: u64,
    /// The number of records in them.
    pub records: u64,
    /// How many outputs the modules themselves produced again.
    pub answers: u64,
    /// The first difference, with its segment.
    pub difference: Option<(u32, Difference)>,
    /// Differences in segments of a program with other engine rules.
    pub other_rules: Option<OtherRules>,
    /// Parts of the journal that are missing or damaged, so they were not replayed.
    pub problems: Vec<Problem>,
    /// How each module was replayed.
    pub roles: Vec<Role>,
    /// Other facts that a reader should know.
    pub notes: Vec<String>,
    /// Orders and cancels that only one of the two modules sent.
    pub changes: Changes,
    /// The inputs of a simulation on the recorded market.
    pub simulation: Option<Simulation>,
}

impl ReplayReport {
    /// Whether the complete journal was replayed and gave the recorded results.
    pub fn is_equal(&self) -> bool {
        let altered = self.roles.iter().any(|role| role.altered);
        self.difference.is_none()
            && self.other_rules.is_none()
            && self.problems.is_empty()
            && !altered
    }
}

/// Segments of a program with other engine rules. Such a program decides differently, so this one
/// cannot verify them.
#[derive(Debug, Default)]
pub struct OtherRules {
    /// The numbers of their engine rules.
    pub rules: BTreeSet<u32>,
    /// The versions of the programs that wrote them.
    pub programs: BTreeSet<String>,
    /// The first differences, with their segments.
    pub differences: Vec<(u32, Difference)>,
    /// The number of all differences.
    pub count: u64,
}

impl OtherRules {
    /// At most this many differences are listed.
    const LISTED: usize = 20;

    pub(super) fn add(&mut self, segment: u32, difference: Difference) {
        self.count += 1;
        if self.differences.len() < Self::LISTED {
            self.differences.push((segment, difference));
        }
    }
}
