//! The engine's requests on their way: what `node/src/live/carrier` does with its tasks.

use windvane_client::budget::Lane;
use windvane_engine::{ClientOrderId, Input, Request};
use windvane_venue::speak::{Asked, Heard};

use super::{MODES_AGE_NS, MS, Process, Purpose, lane};
use crate::client::Became;

/// What takes risk away, or finds out about it, waits so long for its share of the budget.
const PATIENCE_NS: i64 = 1_000 * MS;
/// A cancel follows its order after its answer, or after so long without one.
const FOLLOW_NS: i64 = 1_000 * MS;
/// Routes whose answers are kept.
const MODES: [&str; 2] = ["futures.position_mode", "futures.multi_assets_mode"];

/// A request of the engine and what became of its calls so far.
pub struct Carried {
    request: Request,
    asked: Vec<Asked>,
    became: Vec<Became>,
    /// It waits for the order that it is about, at most until then.
    pub follow_ns: Option<i64>,
}

impl Process {
    /// Sends a request of the engine on its way.
    pub(super) fn carry(&mut self, request: Request) {
        let Some(pulse) = &mut self.pulse else { return };
        let asked = match pulse.speaker().ask(&request) {
            Ok(asked) => asked,
            Err(error) => {
                let replies = pulse.speaker().refuse(&request, &error);
                for reply in &replies {
                    pulse.handle(self.now_ns, Input::Reply(reply), &mut self.outs);
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
            asked,
            became: Vec::new(),
            follow_ns: follows.then_some(self.now_ns + FOLLOW_NS),
        };
        self.carried.insert(number, carried);
        if !follows {
            self.go_on(number);
        }
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
        let fresh = known.filter(|(at, _)| reads && self.now_ns - at < MODES_AGE_NS);
        if let Some((_, text)) = fresh {
            carried.became.push(Became::Done(text.clone()));
            return self.go_on(number);
        }
        let lane = lane(&carried.request);
        let patience = if lane == Lane::Place { 0 } else { PATIENCE_NS };
        let (route, parameters) = (call.route, call.parameters.clone());
        self.call(route, parameters, lane, patience, Purpose::Carried(number));
    }

    /// What became of a call of a request.
    pub(super) fn part_became(&mut self, number: u64, became: Became) {
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

    fn bring_back(&mut self, number: u64) {
        let Some(carried) = self.carried.remove(&number) else {
            return;
        };
        let heard: Vec<Heard<'_>> = carried.became.iter().map(heard).collect();
        if let Some(pulse) = &mut self.pulse {
            let said = pulse.speaker().reply(&carried.request, &heard);
            for reply in &said.said {
                pulse.handle(self.now_ns, Input::Reply(reply), &mut self.outs);
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
        self.grant();
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
