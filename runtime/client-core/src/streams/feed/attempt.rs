//! How a kind of topics is subscribed, and what follows when that fails. Pure.

use crate::settings::MarketData;

use super::super::{MarketPath, Obstacle, StreamSettings};
use super::item::Why;

/// How the topics of one connection are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The path that it takes.
    pub path: MarketPath,
    /// No other path is tried: the documents know only this one, or it has served before.
    pub is_only_path: bool,
    /// Each topic has a SUBSCRIBE of its own, because one was refused among others.
    pub is_apart: bool,
    /// It has served.
    pub has_stood: bool,
    /// Connections in a row that ended at the subscription, or that a firewall refused.
    strikes: u32,
}

/// What to do about an [`Obstacle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The stream tries again by itself.
    Wait,
    /// Try another path.
    Reopen,
    /// There is no such stream.
    GiveUp(Why),
}

/// So many connections in a row that end so are no accident.
const STRIKES: u32 = 3;
/// Of a connection that has served: the venue may have a bad minute.
const STRIKES_AFTER_SERVICE: u32 = 10;

impl Attempt {
    /// A first one.
    pub const fn new(path: MarketPath, is_only_path: bool) -> Self {
        Self {
            path,
            is_only_path,
            is_apart: false,
            has_stood: false,
            strikes: 0,
        }
    }

    /// A first one by the settings: documented streams are on the path `/ws` alone.
    pub const fn first(mode: MarketData, settings: &StreamSettings) -> Self {
        match mode {
            MarketData::Documented => Self::new(MarketPath::Raw, true),
            MarketData::Auto | MarketData::Streams => Self::new(settings.path, false),
        }
    }

    /// Everything is subscribed.
    pub const fn stands(&mut self) {
        self.is_only_path = true;
        self.has_stood = true;
        self.strikes = 0;
    }

    /// What follows from what keeps its connection from standing.
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

    /// A firewall may forbid a path, or anything for a time: the paths take turns, and none is
    /// given up. Meanwhile the topic is polled, if it can be.
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

/// A limit (418, 429) is not, nor is a firewall (403) for certain.
fn is_about_the_path(status: u16) -> bool {
    (400..500).contains(&status) && ![403, 418, 429].contains(&status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::GapReason;

    #[test]
    fn a_path_that_is_not_there_is_followed_by_the_other() {
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
    fn three_connections_that_end_at_the_subscription_are_enough() {
        let mut attempt = Attempt::new(MarketPath::Combined, false);
        let closed = Obstacle::NotSubscribed(GapReason::Closed);
        for after_three in [Next::Reopen, Next::GiveUp(Why::Unsubscribable)] {
            assert_eq!(attempt.next(&closed), Next::Wait);
            assert_eq!(attempt.next(&closed), Next::Wait);
            assert_eq!(attempt.next(&closed), after_three);
        }
    }

    #[test]
    fn paths_that_a_firewall_forbids_take_turns() {
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
    fn a_path_that_has_served_is_not_left() {
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
