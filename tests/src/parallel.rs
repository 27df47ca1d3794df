//! How many checks run at the same time: several for each core if they mostly wait, one for each core if
//! they compute.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Builder;

/// Runs the check for each item with this many workers, and returns the names of the items whose check
/// panicked. Each check has a thread with the item's name, so that the message of a panic has it too.
///
/// # Panics
/// If there is no worker, or a thread cannot be started.
#[expect(clippy::expect_used, reason = "a panic is how a test fails")]
pub fn failed<T: Sync>(
    items: &[T],
    workers: usize,
    name: impl Fn(&T) -> String + Sync,
    check: impl Fn(&T) + Sync,
) -> Vec<String> {
    assert!(workers > 0, "nobody would check anything");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let work = || {
            while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                let thread = Builder::new().name(name(item));
                let thread = thread.spawn_scoped(scope, || check(item));
                // One failure must not hide the results of the other items.
                if thread.expect("a thread starts").join().is_err() {
                    failed.lock().expect("no worker panics").push(name(item));
                }
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().expect("no worker panics");
        }
    });
    failed.into_inner().expect("no worker panics")
}

/// The tests of this process that compute now.
static COMPUTING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// The right to use one core; another test gets it when the value is dropped.
#[derive(Debug)]
pub struct Core(());

/// Waits until fewer tests of this process compute than the machine has cores. A test that needs a core
/// all the time calls it first, because CI runs more tests at the same time than the machine has cores.
pub fn core() -> Core {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let computing = COMPUTING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut computing = ENDED
        .wait_while(computing, |computing| *computing >= cores)
        .unwrap_or_else(PoisonError::into_inner);
    *computing += 1;
    Core(())
}

impl Drop for Core {
    fn drop(&mut self) {
        *COMPUTING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn each_item_is_checked_once_and_failures_are_returned() {
        let items: Vec<usize> = (0..50).collect();
        let counts: Vec<_> = items.iter().map(|_| AtomicUsize::new(0)).collect();
        let mut failed = failed(&items, 4, usize::to_string, |item| {
            let thread = std::thread::current();
            assert_eq!(thread.name(), Some(item.to_string().as_str()));
            counts[*item].fetch_add(1, Ordering::Relaxed);
            assert_ne!(item % 20, 7, "a panic of this test, which it expects");
        });
        failed.sort();
        assert_eq!(failed, ["27", "47", "7"]);
        assert!(
            counts
                .iter()
                .all(|count| count.load(Ordering::Relaxed) == 1)
        );
    }

    #[test]
    fn as_many_items_as_workers_are_checked_at_the_same_time() {
        let started = AtomicUsize::new(0);
        let begin = Instant::now();
        let failed = failed(&[1, 2, 3], 3, i32::to_string, |_| {
            started.fetch_add(1, Ordering::Relaxed);
            while started.load(Ordering::Relaxed) < 3 {
                assert!(begin.elapsed() < Duration::from_mins(1), "one by one");
                std::thread::yield_now();
            }
        });
        assert_eq!(failed, Vec::<String>::new());
    }

    #[test]
    fn no_more_tests_compute_than_there_are_cores() {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let computing = AtomicUsize::new(0);
        let items: Vec<usize> = (0..cores * 4).collect();
        let failed = failed(&items, cores * 4, usize::to_string, |_| {
            let _core = core();
            assert!(computing.fetch_add(1, Ordering::SeqCst) < cores);
            std::thread::sleep(Duration::from_millis(5));
            computing.fetch_sub(1, Ordering::SeqCst);
        });
        assert_eq!(failed, Vec::<String>::new());
    }
}
