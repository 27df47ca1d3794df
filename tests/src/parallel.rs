//! Checks that mostly wait, several at the same time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
}
