//! The witness while it is written. Each entry goes to the checkers at once, and the last entries
//! are kept as the context of a report. Everything that the runtime sends goes into the hash of the
//! life.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

use crate::check::{self, Check};
use crate::tally::Tally;
use crate::witness::{Entry, Rest, Terms, WitnessEvent};

/// A report shows at most this many entries, unless all are kept.
const CONTEXT: usize = 60;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The name of the rule.
    pub rule: String,
    /// How it was broken.
    pub how: String,
    /// When it was broken, seconds into the life.
    pub at_s: i64,
}

/// The witness of one life.
pub struct Log {
    checks: Vec<Box<dyn Check>>,
    rules: &'static [&'static str],
    recent: VecDeque<Entry>,
    keep_all: bool,
    next: u64,
    born_ns: i64,
    hash: Sha256,
    tally: Tally,
    /// The first rule that was broken.
    pub broken: Option<Broken>,
}

impl Log {
    /// An empty log. With `keep_all`, the context has all entries. If `rules` is not empty, only
    /// these rules are checked.
    pub fn new(
        terms: &Terms,
        born_ns: i64,
        keep_all: bool,
        rules: &'static [&'static str],
    ) -> Self {
        let mut checks = check::all(terms);
        checks.retain(|check| rules.is_empty() || rules.contains(&check.rule()));
        Self {
            checks,
            rules,
            recent: VecDeque::new(),
            keep_all,
            next: 0,
            born_ns,
            hash: Sha256::new(),
            tally: Tally::default(),
            broken: None,
        }
    }

    /// Adds an entry.
    pub fn see(&mut self, at_ns: i64, seen: WitnessEvent) {
        let entry = Entry {
            number: self.next,
            at_ns,
            seen,
        };
        self.next += 1;
        self.tally.see(&entry.seen);
        for check in &mut self.checks {
            if let Err(how) = check.see(&entry)
                && self.broken.is_none()
            {
                self.broken = Some(Broken {
                    rule: check.rule().to_owned(),
                    how,
                    at_s: (at_ns - self.born_ns) / 1_000_000_000,
                });
            }
        }
        if self.recent.len() >= CONTEXT && !self.keep_all {
            self.recent.pop_front();
        }
        self.recent.push_back(entry);
    }

    /// Counts a fault.
    pub fn count(&mut self, kind: &'static str) {
        self.tally.count(kind);
    }

    /// Counts a value of an open point that is not the default.
    pub fn count_choice(&mut self, point: &'static str, value: &'static str) {
        *self.tally.choices.entry((point, value)).or_default() += 1;
    }

    /// The counts so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Gives the state at rest to all checkers.
    pub fn rest(&mut self, rest: &Rest) {
        for check in &mut self.checks {
            if let Err(how) = check.at_rest(rest)
                && self.broken.is_none()
            {
                self.broken = Some(Broken {
                    rule: check.rule().to_owned(),
                    how,
                    at_s: (rest.at_ns - self.born_ns) / 1_000_000_000,
                });
            }
        }
    }

    /// Reports that a rule of the simulator itself was broken.
    pub fn fail(&mut self, at_ns: i64, rule: &str, how: String) {
        let judged = self.rules.is_empty() || self.rules.contains(&rule);
        if judged && self.broken.is_none() {
            self.broken = Some(Broken {
                rule: rule.to_owned(),
                how,
                at_s: (at_ns - self.born_ns) / 1_000_000_000,
            });
        }
    }

    /// Hashes bytes that the runtime sent, or that represent what it did.
    pub fn effect(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    /// The hash of everything that the runtime did.
    pub fn fingerprint(&self) -> String {
        hex::encode(self.hash.clone().finalize())
    }

    /// Number of entries so far.
    pub const fn entries(&self) -> u64 {
        self.next
    }

    /// The last entries, one per line.
    pub fn context(&self) -> impl Iterator<Item = String> {
        self.recent.iter().map(|entry| {
            let at_ms = (entry.at_ns - self.born_ns) / 1_000_000;
            format!(
                "{:>6} {:>9}.{:03} s  {:?}",
                entry.number,
                at_ms / 1_000,
                at_ms % 1_000,
                entry.seen
            )
        })
    }
}
