//! The engine's requests on their way: what `node/src/live/carrier` does with its tasks.

use windvane::live::lane;
use windvane_client::budget::Lane;
use windvane_engine::truth::Subject;
use windvane_engine::{ClientOrderId, Request};
use windvane_session::Input;
use windvane_venue::speak::{Asked, Heard, SpeakError};

use super::{MODES_AGE_NS, MS, Process, Purpose, venue_surface};
use crate::client::Became;

/// What takes risk away, or finds out about it, waits so long for its share of the budget.
const PATIENCE_NS: i64 = 1_000 * MS;
/// A cancel follows its order after its answer, or after so long without one.
const FOLLOW_NS: i64 = 1_000 * MS;
/// With less weight left than this, readings are the cheapest that suffice.
const PLENTY: u32 = 250;
/// Routes whose answers are kept.
const MODES: [&str; 2] = ["futures.position_mode", "futures.multi_assets_mode"];

/// A request of the engine and what became of its calls so far.
pub struct Carried {
    request: Request,
    lane: Lane,
    asked: Vec<Asked>,
    became: Vec<Became>,
    /// It waits for the order that it is about, at most until then.
    pub follow_ns: Option<i64>,
}

impl Process {
    /// Sends a request of the engine on its way.
    pub(super) fn carry(&mut self, request: Request) {
        let Some((session, _)) = &self.run else {
            return;
        };
        let lane = lane(&request, session.engine().purpose(&request));
        let asked = match self.ask(&request, lane) {
            Ok(asked) => asked,
            Err(error) => {
                let Some((session, _)) = &self.run else {
                    return;
                };
                for reply in &session.speaker().refuse(&request, &error) {
                    self.input(Input::Reply(reply));
                }
                return;
            }
        };
        let follows = match &request {
            Request::Cancel {
                client_order_id, ..
            } => self.placing.contains(client_order_id),
            _ => false,
        };
        if let Request::Place(order) = &request {
            self.placing.insert(order.client_order_id);
        }
        self.next_carried += 1;
        let number = self.next_carried;
        let carried = Carried {
            request,
            lane,
            asked,
            became: Vec::new(),
            follow_ns: follows.then_some(self.now_ns + FOLLOW_NS),
        };
        self.carried.insert(number, carried);
        if !follows {
            self.go_on(number);
        }
    }

    /// The calls of a request: where little weight is left, or a close waits for them, open orders are
    /// listed for the configured symbols alone.
    fn ask(&mut self, request: &Request, lane: Lane) -> Result<Vec<Asked>, SpeakError> {
        let Some((session, _)) = &self.run else {
            return Ok(Vec::new());
        };
        if let Request::Read(Subject::OpenOrders { surface }) = request {
            let left = self
                .client
                .weight_left(venue_surface(*surface), lane, self.now_ns);
            if left < PLENTY || lane == Lane::Close {
                return session.speaker().open_orders_by_symbol(*surface);
            }
        }
        session.speaker().ask(request)
    }

    /// Makes the next call of a request, or brings back what became of all of them.
    fn go_on(&mut self, number: u64) {
        let Some(carried) = self.carried.get_mut(&number) else {
            return;
        };
        let Some(call) = carried.asked.get(carried.became.len()) else {
            return self.bring_back(number);
        };
        let reads = matches!(carried.request, Request::Read(_));
        let known = self.modes.get(call.route.name);
        let lane = carried.lane;
        let is_mode = reads && MODES.contains(&call.route.name);
        let left = self
            .client
            .weight_left(call.route.surface, lane, self.now_ns);
        let short = left < PLENTY;
        let any_age = short || lane == Lane::Close;
        let usable =
            known.filter(|(at, _)| is_mode && (any_age || self.now_ns - at < MODES_AGE_NS));
        if let Some((_, text)) = usable {
            carried.became.push(Became::Done(text.clone()));
            return self.go_on(number);
        }
        if is_mode && short {
            carried.became.push(Became::Unknown);
            return self.go_on(number);
        }
        let places = matches!(carried.request, Request::Place(_) | Request::PlaceBatch(_));
        let patience = if places || lane == Lane::Place {
            0
        } else {
            PATIENCE_NS
        };
        let (route, parameters) = (call.route, call.parameters.clone());
        self.call(route, parameters, lane, patience, Purpose::Carried(number));
    }

    /// What became of a call of a request.
    pub(super) fn part_became(&mut self, number: u64, became: Became) {
        if matches!(became, Became::Wait(_)) {
            self.tell_waits(number);
        }
        let Some(carried) = self.carried.get_mut(&number) else {
            return;
        };
        if let (Request::Read(_), Became::Done(text), Some(call)) = (
            &carried.request,
            &became,
            carried.asked.get(carried.became.len()),
        ) && MODES.contains(&call.route.name)
        {
            self.modes
                .insert(call.route.name, (self.now_ns, text.clone()));
        }
        carried.became.push(became);
        self.go_on(number);
    }

    /// The engine learns how long nothing may be sent before it learns what became of its request.
    fn tell_waits(&mut self, number: u64) {
        let Some(carried) = self.carried.get(&number) else {
            return;
        };
        let Some(call) = carried.asked.get(carried.became.len()) else {
            return;
        };
        let surface = match call.route.surface {
            windvane_venue::route::Surface::Spot => windvane_engine::Surface::Spot,
            _ => windvane_engine::Surface::Futures,
        };
        for input in self.client.waits(surface, self.now_ns) {
            self.live(input);
        }
    }

    fn bring_back(&mut self, number: u64) {
        let Some(carried) = self.carried.remove(&number) else {
            return;
        };
        let heard: Vec<Heard<'_>> = carried.became.iter().map(heard).collect();
        if let Some((session, _)) = &self.run {
            let said = session.speaker().reply(&carried.request, &heard);
            for reply in &said.said {
                self.input(Input::Reply(reply));
            }
        }
        if let Request::Place(order) = &carried.request {
            self.placing.remove(&order.client_order_id);
            self.follow(&order.client_order_id);
        }
    }

    /// Cancels that waited for this order go.
    fn follow(&mut self, id: &ClientOrderId) {
        let waits = |carried: &Carried| {
            let about = matches!(&carried.request,
                Request::Cancel { client_order_id, .. } if client_order_id == id);
            about && carried.follow_ns.is_some()
        };
        let all = self.carried.iter();
        let numbers: Vec<_> = all.filter(|(_, c)| waits(c)).map(|(n, _)| *n).collect();
        for number in numbers {
            self.let_go(number);
        }
    }

    /// Cancels that waited long enough go.
    pub(super) fn follow_placed(&mut self) {
        let now_ns = self.now_ns;
        let due = |carried: &Carried| carried.follow_ns.is_some_and(|at| at <= now_ns);
        let all = self.carried.iter();
        let numbers: Vec<_> = all.filter(|(_, c)| due(c)).map(|(n, _)| *n).collect();
        for number in numbers {
            self.let_go(number);
        }
    }

    fn let_go(&mut self, number: u64) {
        if let Some(carried) = self.carried.get_mut(&number) {
            carried.follow_ns = None;
        }
        self.go_on(number);
    }
}

fn heard(became: &Became) -> Heard<'_> {
    match became {
        Became::Done(text) => Heard::Done(text),
        Became::Refused(code) => Heard::Refused {
            code: *code,
            msg: "",
        },
        Became::Unknown => Heard::Unknown,
        Became::Wait(_) => Heard::Wait {
            code: None,
            msg: "",
        },
        Became::NotSent(_) => Heard::NotSent { msg: "" },
    }
}
