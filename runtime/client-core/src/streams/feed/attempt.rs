//! How the topics of one kind are subscribed, and what to do when that fails.

use crate::settings::MarketData;

use super::super::{MarketPath, Obstacle, StreamSettings};
use super::item::Why;

/// How the topics of one connection are subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The path that the connection uses.
    pub path: MarketPath,
    /// No other path is tried, because the documents describe only this one or because it has
    /// worked before.
    pub is_only_path: bool,
    /// Each topic gets its own SUBSCRIBE, because the venue refused one topic of a batch.
    pub is_apart: bool,
    /// All topics have been subscribed at least once.
    pub has_stood: bool,
    /// Number of consecutive connections that ended at the subscription or that a firewall refused.
    strikes: u32,
}

/// The reaction to an [`Obstacle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do nothing: the stream tries again by itself.
    Wait,
    /// Try another path.
    Reopen,
    /// Give the stream up, because it does not exist.
    GiveUp(Why),
}

/// This many consecutive connections that end at the subscription are not a coincidence.
const STRIKES: u32 = 3;
/// The limit for a connection that has worked before. It is higher, because the venue may have a
/// temporary problem.
const STRIKES_AFTER_SERVICE: u32 = 10;

impl Attempt {
    /// A first attempt.
    pub const fn new(path: MarketPath, is_only_path: bool) -> Self {
        Self {
            path,
            is_only_path,
            is_apart: false,
            has_stood: false,
            strikes: 0,
        }
    }

    /// A first attempt according to the settings. Documented streams exist on the path `/ws` alone.
    pub const fn first(mode: MarketData, settings: &StreamSettings) -> Self {
        match mode {
            MarketData::Documented => Self::new(MarketPath::Raw, true),
            MarketData::Auto | MarketData::Streams => Self::new(settings.path, false),
        }
    }

    /// All topics are subscribed.
    pub const fn stands(&mut self) {
        self.is_only_path = true;
        self.has_stood = true;
        self.strikes = 0;
    }

    /// The reaction to an obstacle that keeps the connection from working.
    pub fn next(&mut self, obstacle: &Obstacle) -> Next {
        match obstacle {
            Obstacle::NotOpened {
                status: Some(status),
                ..
            } if is_about_the_path(*status) => self.other_path(Why::NoPath(*status)),
            Obstacle::NotSubscribed(_) => {
                self.strikes += 1;
                let most = if self.has_stood {
                    STRIKES_AFTER_SERVICE
                } else {
                    STRIKES
                };
                if self.strikes < most {
                    return Next::Wait;
                }
                self.other_path(Why::Unsubscribable)
            }
            Obstacle::NotOpened {
                status: Some(403), ..
            } => self.forbidden(),
            Obstacle::NotOpened { .. } | Obstacle::NoKey(_) => Next::Wait,
        }
    }

    /// A firewall may forbid one path, or everything for a time. So the two paths take turns, and
    /// both stay in use. Meanwhile the topic is polled if possible.
    fn forbidden(&mut self) -> Next {
        self.strikes += 1;
        if self.strikes < STRIKES || self.is_only_path {
            return Next::Wait;
        }
        self.strikes = 0;
        self.path = match self.path {
            MarketPath::Combined => MarketPath::Raw,
            MarketPath::Raw => MarketPath::Combined,
        };
        Next::Reopen
    }

    fn other_path(&mut self, why: Why) -> Next {
        if self.is_only_path || self.path == MarketPath::Raw {
            return Next::GiveUp(why);
        }
        self.path = MarketPath::Raw;
        self.strikes = 0;
        Next::Reopen
    }
}

/// Whether a status concerns the path. A limit (418, 429) does not, and a firewall (403) may not.
fn is_about_the_path(status: u16) -> bool {
    (400..500).contains(&status) && ![403, 418, 429].contains(&status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::GapReason;

    #[test]
    fn after_a_missing_path_the_other_path_is_tried() {
        let mut attempt = Attempt::new(MarketPath::Combined, false);
        let refused = |status| Obstacle::NotOpened {
            status,
            why: String::new(),
        };
        for status in [None, Some(418), Some(429), Some(502)] {
            assert_eq!(attempt.next(&refused(status)), Next::Wait);
        }
        assert_eq!(attempt.next(&refused(Some(404))), Next::Reopen);
        assert_eq!(attempt.path, MarketPath::Raw);
        let give_up = Next::GiveUp(Why::NoPath(404));
        assert_eq!(attempt.next(&refused(Some(404))), give_up);
    }

    #[test]
    fn three_failed_subscriptions_change_the_path() {
        let mut attempt = Attempt::new(MarketPath::Combined, false);
        let closed = Obstacle::NotSubscribed(GapReason::Closed);
        for after_three in [Next::Reopen, Next::GiveUp(Why::Unsubscribable)] {
            assert_eq!(attempt.next(&closed), Next::Wait);
            assert_eq!(attempt.next(&closed), Next::Wait);
            assert_eq!(attempt.next(&closed), after_three);
        }
    }

    #[test]
    fn paths_take_turns_while_a_firewall_forbids_them() {
        let mut attempt = Attempt::new(MarketPath::Combined, false);
        let forbidden = Obstacle::NotOpened {
            status: Some(403),
            why: String::new(),
        };
        for path in [MarketPath::Raw, MarketPath::Combined] {
            assert_eq!(attempt.next(&forbidden), Next::Wait);
            assert_eq!(attempt.next(&forbidden), Next::Wait);
            assert_eq!(attempt.next(&forbidden), Next::Reopen);
            assert_eq!(attempt.path, path);
        }
        attempt.stands();
        for _ in 0..10 {
            assert_eq!(attempt.next(&forbidden), Next::Wait);
        }
    }

    #[test]
    fn a_path_that_has_worked_is_kept() {
        let mut attempt = Attempt::new(MarketPath::Combined, false);
        attempt.stands();
        let refused = Obstacle::NotOpened {
            status: Some(404),
            why: String::new(),
        };
        assert_eq!(attempt.next(&refused), Next::GiveUp(Why::NoPath(404)));
        let closed = Obstacle::NotSubscribed(GapReason::Closed);
        for _ in 1..STRIKES_AFTER_SERVICE {
            assert_eq!(attempt.next(&closed), Next::Wait);
        }
        assert_eq!(attempt.next(&closed), Next::GiveUp(Why::Unsubscribable));
        assert_eq!(attempt.path, MarketPath::Combined);
    }
}
