//! Who has a connection, and for how long.
//!
//! A connection is *unknown* until its request passed the access control. Unknown connections have
//! few places and little time. If a place is missing, the oldest unknown connection is closed. So a
//! program without the token, which opens many connections and sends nothing, delays no one.
//!
//! Known requests have places by their purpose. Requests that only show something cannot take the
//! places of commands, and no other request takes the places of `pause`, `halt` and `flatten`.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

/// The maximum number of unknown connections of a listener. So many must arrive while a client sends
/// its request, to close the client's connection.
const UNKNOWN_MAX: usize = 128;
/// The maximum number of unknown connections of one address.
const UNKNOWN_OF_PEER_MAX: usize = 96;
/// The time limit for an unknown connection, including its answer.
const UNKNOWN_FOR: Duration = Duration::from_secs(10);

/// How a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Through the Unix socket, from this user or root.
    Socket,
    /// Over TCP.
    Tcp(IpAddr),
}

/// The path and query of a request as the client sent it. The router removes the beginning.
#[derive(Clone, Debug)]
pub(super) struct Asked(pub(super) String);

/// The purpose of a request that passed the access control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It only reads.
    Show,
    /// A command that does not reduce risk.
    Command,
    /// A pause, halt or flatten.
    ReduceRisk,
}

/// The places of known requests.
#[derive(Debug)]
pub(super) struct Places {
    show: Arc<Semaphore>,
    command: Arc<Semaphore>,
    reduce_risk: Arc<Semaphore>,
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            show: Arc::new(Semaphore::new(32)),
            command: Arc::new(Semaphore::new(16)),
            reduce_risk: Arc::new(Semaphore::new(64)),
        }
    }

    const fn of(&self, purpose: Purpose) -> &Arc<Semaphore> {
        match purpose {
            Purpose::Show => &self.show,
            Purpose::Command => &self.command,
            Purpose::ReduceRisk => &self.reduce_risk,
        }
    }
}

/// One connection. Each carries one request.
#[derive(Debug)]
pub(super) struct Visit {
    arrival: Arrival,
    /// When the connection is closed.
    until: watch::Sender<Instant>,
    unknown: Weak<Unknown>,
    /// The place of a known request. It is free when the connection has ended.
    place: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Visit {
    pub(super) const fn arrival(&self) -> Arrival {
        self.arrival
    }

    /// Makes the connection a known one, with its own time limit; `false` without a free place.
    pub(super) fn enter(
        self: &Arc<Self>,
        places: &Places,
        purpose: Purpose,
        limit: Duration,
    ) -> bool {
        let Ok(place) = Arc::clone(places.of(purpose)).try_acquire_owned() else {
            return false;
        };
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        self.leave_unknown();
        self.until.send_replace(Instant::now() + limit);
        true
    }

    /// Completes when the connection must be closed.
    pub(super) async fn over(&self) {
        let mut until = self.until.subscribe();
        loop {
            let at = *until.borrow_and_update();
            tokio::select! {
                () = sleep_until(at) => return,
                // The sender is a member of this visit, so this never fails.
                _ = until.changed() => {}
            }
        }
    }

    /// To be called when the connection has ended.
    pub(super) fn leave_unknown(self: &Arc<Self>) {
        if let Some(unknown) = self.unknown.upgrade() {
            unknown.visits().retain(|visit| !Arc::ptr_eq(visit, self));
        }
    }
}

/// The unknown connections of a listener, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unknown(Mutex<Vec<Arc<Visit>>>);

impl Unknown {
    /// Adds a connection. If its place is missing, the oldest one is closed.
    pub(super) fn arrive(self: &Arc<Self>, arrival: Arrival) -> Arc<Visit> {
        let visit = Arc::new(Visit {
            arrival,
            until: watch::Sender::new(Instant::now() + UNKNOWN_FOR),
            unknown: Arc::downgrade(self),
            place: Mutex::new(None),
        });
        let mut visits = self.visits();
        let of_peer = visits.iter().filter(|other| other.arrival == arrival);
        let closes = if of_peer.count() >= UNKNOWN_OF_PEER_MAX && arrival != Arrival::Socket {
            visits.iter().position(|other| other.arrival == arrival)
        } else {
            (visits.len() >= UNKNOWN_MAX).then_some(0)
        };
        if let Some(oldest) = closes {
            visits.remove(oldest).until.send_replace(Instant::now());
        }
        visits.push(Arc::clone(&visit));
        visit
    }

    fn visits(&self) -> MutexGuard<'_, Vec<Arc<Visit>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_over(visit: &Visit) -> bool {
        *visit.until.borrow() <= Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_unknown_connection_is_closed_and_a_known_one_is_not() {
        let (unknown, places) = (Arc::new(Unknown::default()), Places::new());
        let arrive = || unknown.arrive(Arrival::Socket);
        let known = arrive();
        assert!(known.enter(&places, Purpose::ReduceRisk, Duration::from_mins(1)));
        let visits: Vec<_> = (0..UNKNOWN_MAX + 10).map(|_| arrive()).collect();
        let closed = visits.iter().filter(|visit| is_over(visit)).count();
        assert_eq!(closed, 10);
        assert!(visits[..closed].iter().all(|visit| is_over(visit)));
        assert!(!is_over(&known));
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_cannot_close_the_connections_of_another() {
        let unknown = Arc::new(Unknown::default());
        let [one, two] = [1, 2].map(|last| Arrival::Tcp(IpAddr::from([127, 0, 0, last])));
        let other = unknown.arrive(one);
        let visits: Vec<_> = (0..200).map(|_| unknown.arrive(two)).collect();
        let open = visits.iter().filter(|visit| !is_over(visit)).count();
        assert_eq!(open, UNKNOWN_OF_PEER_MAX);
        assert!(!is_over(&other));
    }

    #[tokio::test]
    async fn requests_that_show_cannot_take_the_places_of_a_halt() {
        let (unknown, places) = (Arc::new(Unknown::default()), Places::new());
        let enter = |purpose| {
            let visit = unknown.arrive(Arrival::Socket);
            let entered = visit.enter(&places, purpose, Duration::from_mins(1));
            (visit, entered)
        };
        let mut visits = Vec::new();
        for purpose in [Purpose::Show, Purpose::Command] {
            let refused = loop {
                let (visit, entered) = enter(purpose);
                if !entered {
                    break visit;
                }
                visits.push(visit);
            };
            drop(refused);
        }
        assert!(enter(Purpose::ReduceRisk).1);
        visits.clear();
        assert!(
            enter(Purpose::Show).1,
            "ended connections give their places back"
        );
    }
}
