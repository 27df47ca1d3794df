//! Bans that outlive a process: if a host banned this address, the next process obeys that ban
//! before its first request. This module converts between two clocks. The clock of the budgets
//! starts anew with each process; bans are stored by the wall clock. The gateway decides which
//! responses count as a ban.
//!
//! This module does not read or write the file, and it does not wait.

use windvane_protocol::route::Surface;

use crate::gateway::Gateway;

/// A ban as it is stored for the next process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBan {
    /// The host; `name:port` if the port is not the default port of the scheme.
    pub host: String,
    /// End of the ban, Unix milliseconds by the wall clock of this machine.
    pub until_ms: i64,
}

impl WrittenBan {
    /// Remaining time of the ban, milliseconds; 0 once it is over.
    pub fn left_ms(&self, wall_ms: i64) -> u64 {
        u64::try_from(self.until_ms.saturating_sub(wall_ms)).unwrap_or(0)
    }
}

/// At least one surface accepts no request from this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Remaining time, milliseconds.
    pub left_ms: u64,
    /// End, Unix milliseconds by the wall clock.
    pub until_ms: i64,
}

/// The bans of a gateway at one moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct BansNow<'a> {
    gateway: &'a Gateway,
    now_ms: u64,
    wall_ms: i64,
}

impl<'a> BansNow<'a> {
    /// The bans while the clock of the budgets shows `now_ms` and the wall clock shows `wall_ms`.
    pub const fn new(gateway: &'a Gateway, now_ms: u64, wall_ms: i64) -> Self {
        Self {
            gateway,
            now_ms,
            wall_ms,
        }
    }

    /// Blocks requests to the hosts of these bans until the bans end.
    pub fn heed(&self, written: &[WrittenBan]) {
        for ban in written {
            let left_ms = ban.left_ms(self.wall_ms);
            if left_ms > 0 {
                self.gateway.heed_ban(self.now_ms, &ban.host, left_ms);
            }
        }
    }

    /// The bans to store in place of the stored ones: new bans, and bans of earlier processes that
    /// are still in force.
    pub fn to_write(&self) -> Vec<WrittenBan> {
        let bans = self.gateway.bans(self.now_ms).into_iter();
        let written = bans.map(|(host, left_ms)| WrittenBan {
            host,
            until_ms: self.wall_after(left_ms),
        });
        written.collect()
    }

    /// The longest remaining stop among these surfaces.
    pub fn longest(&self, surfaces: impl IntoIterator<Item = Surface>) -> Option<Stopped> {
        let left = |surface| self.gateway.stopped_ms(self.now_ms, surface);
        let left_ms = surfaces.into_iter().filter_map(left).max()?;
        Some(Stopped {
            left_ms,
            until_ms: self.wall_after(left_ms),
        })
    }

    fn wall_after(&self, left_ms: u64) -> i64 {
        let left_ms = i64::try_from(left_ms).unwrap_or(i64::MAX);
        self.wall_ms.saturating_add(left_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::BAN_MAX;
    use crate::gateway::tests::gateway;

    const WALL_MS: i64 = 1_700_000_000_000;

    fn ban(until_ms: i64) -> WrittenBan {
        WrittenBan {
            host: "one".to_owned(),
            until_ms,
        }
    }

    #[test]
    fn a_ban_applies_to_later_processes_until_it_ends() {
        let (first, second) = (gateway(), gateway());
        first.heed_ban(5_000, "one", 60_000);
        let written = BansNow::new(&first, 25_000, WALL_MS).to_write();
        assert_eq!(written, [ban(WALL_MS + 40_000)]);
        // The clock of the second process starts at 0, ten seconds later.
        let begin = BansNow::new(&second, 0, WALL_MS + 10_000);
        begin.heed(&written);
        let stopped = Stopped {
            left_ms: 30_000,
            until_ms: WALL_MS + 40_000,
        };
        assert_eq!(begin.longest([Surface::Spot]), Some(stopped));
        assert_eq!(begin.to_write(), written);
        let later = BansNow::new(&second, 30_000, WALL_MS + 40_000);
        assert_eq!(later.longest([Surface::Spot]), None);
        assert_eq!(later.to_write(), []);
    }

    #[test]
    fn an_expired_ban_has_no_effect() {
        let gateway = gateway();
        let now = BansNow::new(&gateway, 0, WALL_MS);
        now.heed(&[ban(WALL_MS), ban(WALL_MS - 1), ban(i64::MIN)]);
        assert_eq!(now.longest(Surface::ALL.iter().copied()), None);
        assert_eq!(now.to_write(), []);
    }

    #[test]
    fn a_wall_clock_set_back_delays_startup_by_at_most_ban_max() {
        let gateway = gateway();
        let now = BansNow::new(&gateway, 0, 0);
        now.heed(&[ban(WALL_MS)]);
        let most_ms = u64::try_from(BAN_MAX.as_millis()).unwrap();
        let left_ms = now.longest([Surface::Spot]).map(|stopped| stopped.left_ms);
        assert_eq!(left_ms, Some(most_ms));
    }
}
