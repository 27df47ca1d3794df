//! The hunt for planted bugs: seed after seed is led with the bug, until a rule is broken. A seed
//! that breaks a rule without the bug too proves nothing, and is passed over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windvane_engine::planted::{Planted, plant};

use crate::life::{self, Options};
use crate::log::Broken;
use crate::modules::Modules;

/// Where a bug showed itself.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The rule that it broke.
    pub broken: Broken,
}

/// Looks for a bug in the seeds from 1 to `seeds`, so many lives at a time. The bug is a choice of
/// the whole process: one hunt at a time.
///
/// # Errors
/// The simulator itself cannot be set up.
pub fn hunt(
    bug: Planted,
    seeds: u64,
    jobs: usize,
    modules: &Modules,
    options: &Options,
) -> Result<Option<Found>, String> {
    let mut first = 1;
    while first <= seeds {
        plant(Some(bug));
        let found = first_broken(first..=seeds, jobs, modules, options);
        plant(None);
        let Some(found) = found? else {
            return Ok(None);
        };
        if lead(found.seed, modules, options)?.is_none() {
            return Ok(Some(found));
        }
        first = found.seed + 1;
    }
    Ok(None)
}

/// The lowest seed of those that were led when the first broken rule was seen.
fn first_broken(
    seeds: std::ops::RangeInclusive<u64>,
    jobs: usize,
    modules: &Modules,
    options: &Options,
) -> Result<Option<Found>, String> {
    let next = AtomicU64::new(*seeds.start());
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Result<Found, String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = match lead(seed, modules, options) {
                        Ok(None) => continue,
                        Ok(Some(broken)) => Ok(Found { seed, broken }),
                        Err(error) => Err(error),
                    };
                    stop.store(true, Ordering::Relaxed);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let found: Result<Vec<_>, _> = results.into_iter().collect();
    Ok(found?.into_iter().min_by_key(|found| found.seed))
}

/// The rule that a seed breaks; an invariant of the runtime that panics is one too.
fn lead(seed: u64, modules: &Modules, options: &Options) -> Result<Option<Broken>, String> {
    match catch_unwind(AssertUnwindSafe(|| life::lead(seed, modules, options))) {
        Ok(life) => Ok(life?.broken),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Ok(Some(Broken {
                rule: "no invariant of the runtime is broken".to_owned(),
                how: text.unwrap_or_default(),
                at_s: 0,
            }))
        }
    }
}
