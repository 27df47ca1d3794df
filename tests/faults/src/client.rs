//! Requests of listen keys, in virtual time. They leave through the gateway that the
//! session's own requests leave through.

use std::collections::BTreeMap;

use windvane_client_core::budget::{Cost, Departed, Lane};
use windvane_client_core::gateway::{self, Failure, Gateway, Now};
use windvane_client_core::outcome::{Lost, NotDone, Refusal};
use windvane_client_core::{Asked, RequestError};
use windvane_session::Call;
use windvane_venue::route::Route;
use windvane_venue::sign::Prepared;
use windvane_venue::wire::Parameters;

use crate::witness::{Answer, RequestId};

const MS: i64 = 1_000_000;
/// A request without an answer is given up (the client's own default).
pub const REQUEST_NS: i64 = 10_000 * MS;

/// A request on its way to the socket.
#[derive(Debug)]
pub struct Wire {
    /// Its id.
    pub id: RequestId,
    /// The route.
    pub route: &'static Route,
    /// The bytes.
    pub prepared: Prepared,
}

impl From<Call> for Wire {
    fn from(call: Call) -> Self {
        Self {
            id: call.id,
            route: call.route,
            prepared: call.prepared,
        }
    }
}

struct Flying<P> {
    asked: Asked,
    cost: Cost,
    departed: Departed,
    by_ns: i64,
    purpose: P,
}

/// What became of a call.
pub type Became = Result<String, NotDone>;

/// Requests of one process.
pub struct Client<P> {
    gateway: Gateway,
    flying: BTreeMap<RequestId, Flying<P>>,
}

impl<P> Client<P> {
    /// A client of a process that starts now.
    pub const fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            flying: BTreeMap::new(),
        }
    }

    /// The way out.
    pub const fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Makes a call: it leaves, or ends at once.
    ///
    /// # Errors
    /// What became of it, where it does not leave.
    pub fn call(
        &mut self,
        (route, parameters): (&'static Route, &Parameters),
        lane: Lane,
        (id, purpose): (RequestId, P),
        (now_ns, now): (i64, Now),
    ) -> Result<Wire, (P, Became)> {
        let cost = Cost::of(route, parameters);
        let way = (route.surface, lane);
        let departed = match self.gateway.acquire(now.ms, way, &cost) {
            Ok(departed) => departed,
            Err(why) => {
                let wait = gateway::denied(now.ms, why);
                return Err((purpose, Err(NotDone::Wait(wait))));
            }
        };
        let version = self.gateway.identity().version(route);
        let prepared = self
            .gateway
            .prepare(now.local_us, (route, version), parameters, None);
        match prepared {
            Ok(prepared) => {
                let flying = Flying {
                    asked: Asked { route, version },
                    cost,
                    departed,
                    by_ns: now_ns + REQUEST_NS,
                    purpose,
                };
                self.flying.insert(id, flying);
                Ok(Wire {
                    id,
                    route,
                    prepared,
                })
            }
            Err(error) => {
                let refusal = Refusal::NotMade(RequestError::from(error));
                Err((purpose, Err(NotDone::Refused(refusal))))
            }
        }
    }

    /// A request whose time is over.
    pub fn late(&self, now_ns: i64) -> Option<RequestId> {
        let mut flying = self.flying.iter();
        let late = flying.find(|(_, flying)| flying.by_ns <= now_ns);
        late.map(|(id, _)| *id)
    }

    /// When [`Self::late`] has something.
    pub fn wake_ns(&self) -> i64 {
        let flying = self.flying.values().map(|flying| flying.by_ns);
        flying.min().unwrap_or(i64::MAX)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.flying.is_empty()
    }

    /// An answer came, or none will: what the call became. `None` if it is not of this client, or was
    /// given up before.
    pub fn heard(
        &mut self,
        id: RequestId,
        answer: Option<&Answer>,
        now: Now,
    ) -> Option<(P, Became)> {
        let flying = self.flying.remove(&id)?;
        let sent = (&flying.cost, flying.departed);
        let Some(answer) = answer else {
            let lost = Failure::Lost(Lost::Cut("no answer".to_owned()));
            let judged = self.gateway.judge(now, flying.asked, sent, Err(lost));
            return Some((flying.purpose, judged.map(|()| String::new())));
        };
        let headers = answer.headers.iter();
        let headers: Vec<_> = headers.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let judged = gateway::Answer {
            status: answer.status,
            headers: &headers,
            text: &answer.body,
        };
        let became = self.gateway.judge(now, flying.asked, sent, Ok(judged));
        Some((flying.purpose, became.map(|()| answer.body.clone())))
    }
}
