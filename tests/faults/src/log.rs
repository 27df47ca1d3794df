//! The witness as it is written: entries go to the checkers as they happen, and the last of them
//! are kept for the context of a report. What is sent goes into the hash of the life.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

use crate::check::{self, Check};
use crate::tally::Tally;
use crate::witness::{Entry, Rest, Seen, Terms};

/// Entries that a report shows.
const CONTEXT: usize = 60;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: String,
    /// How.
    pub how: String,
    /// When, seconds into the life.
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
    /// Nothing was seen yet. With `keep_all`, the context is everything. Rules that are named are
    /// the only ones.
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

    /// Something was seen.
    pub fn see(&mut self, at_ns: i64, seen: Seen) {
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

    /// A fault happened.
    pub fn count(&mut self, kind: &'static str) {
        self.tally.count(kind);
    }

    /// Counts what the venue does at an open point.
    pub fn count_choice(&mut self, point: &'static str, value: &'static str) {
        *self.tally.choices.entry((point, value)).or_default() += 1;
    }

    /// What was done and what went wrong so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Everything is at rest.
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

    /// A rule of the simulator itself was broken.
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

    /// Bytes that left the runtime, or that stand for what it did.
    pub fn effect(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }

    /// The hash of everything that the runtime did.
    pub fn fingerprint(&self) -> String {
        hex::encode(self.hash.clone().finalize())
    }

    /// How many entries there were.
    pub const fn entries(&self) -> u64 {
        self.next
    }

    /// The last entries, one a line.
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
