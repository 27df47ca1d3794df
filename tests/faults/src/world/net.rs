//! The links: delays, losses, doubled and damaged messages, and cuts, in each direction.
//!
//! Messages of one stream keep their order as on TCP, unless a fault is drawn. Requests may
//! overtake each other. Requests that place orders are never doubled. No proxy may repeat a POST,
//! and a venue of these documents accepts a client order id again once its order has ended.

use serde_json::Value;
use windvane_model::Time;
use windvane_protocol::route::Surface;
use windvane_protocol::sign::Prepared;
use windvane_session::{Call, late_by, venue_surface};

use super::watchdog::Watch;
use super::{Event, MS, S, World};
use crate::fault_plan::Kind;
use crate::process::{In, StreamKey, Wire};
use crate::venue::{LinkName, StreamOutput};
use crate::witness::{Answer, Request, View, WitnessEvent};

/// Channel of requests, which may be held back.
pub const REST: usize = 0;
/// Channel of user streams.
pub const USER: usize = 1;
/// Channel of public streams.
pub const PUBLIC: usize = 2;

/// Routes whose responses may be false: the list of open orders, and the account.
const FALSE_ROUTES: [&str; 2] = ["futures.open_orders", "futures.account"];

/// A request in flight.
#[derive(Debug)]
pub struct Flight {
    life: u32,
    what: Request,
    surface: Surface,
    prepared: Prepared,
    copy: u32,
    fate: Fate,
    /// The runtime's view when it sent a market order.
    belief: Option<Box<View>>,
    /// The watchdog that sent it; `None` for the run.
    watchdog: Option<u32>,
}

/// The fate of a request and of its response.
#[derive(Clone, Debug)]
enum Fate {
    /// It is answered normally.
    AsIs,
    /// The venue acts or does not act, and this response comes instead.
    Instead { acts: bool, answer: Answer },
    /// Half of the response comes.
    Half,
    /// The venue acts. The connection breaks, and the runtime notices that.
    Cut,
    /// The venue acts. Nothing ever comes back.
    Silent,
    /// A second arrival, whose response is dropped.
    Duplicate,
}

/// A stream's connection.
#[derive(Clone, Debug)]
pub struct Link {
    /// The life of its process.
    pub life: u32,
    /// The stream.
    pub key: StreamKey,
    /// The process's number of the connection.
    pub number: u64,
    /// The venue has accepted it.
    pub up: bool,
    /// No message passes any more, but there is no error.
    pub dead: bool,
    /// When the last frame arrives.
    last_ns: i64,
}

/// The first half of a response.
fn half(mut answer: Answer) -> Answer {
    let half = answer.body.len() / 2;
    answer.body = answer.body.chars().take(half).collect();
    answer
}

/// A connection's name in the world.
pub fn link_name(life: u32, key: StreamKey, link: u64) -> LinkName {
    let stream = key.surface as u64 * 2 + u64::from(key.user);
    // The upper half of a public connection's number is the number of its stream.
    let link = ((link >> 32) << 16) | (link & 0xffff);
    (u64::from(life) << 32) | (stream << 28) | link
}

impl World {
    /// Latency of a message that is sent now.
    fn way_ns(&mut self) -> i64 {
        let usual = self.net.between(MS / 2, 5 * MS);
        let faults = &self.fault_plan.faults;
        let slow_ms = faults.slow_ms;
        if self.faults_on && self.net.chance(faults.slow_ppm) {
            self.count(Kind::Slow);
            return usual + self.net.between(0, slow_ms * MS);
        }
        usual
    }

    /// When a message that is sent now arrives on a channel.
    fn arrival_ns(&mut self, channel: usize) -> i64 {
        let way_ns = self.way_ns();
        let at_ns = self.now_ns + way_ns;
        let (until_ns, jitter_ns) = self.stalls[channel];
        if at_ns >= until_ns {
            return at_ns;
        }
        // Requests leave a stall in any order; frames of a stream keep their order.
        let later_ns = if channel == REST {
            self.net.between(0, 2 * S)
        } else {
            jitter_ns
        };
        until_ns + later_ns
    }

    fn draw(&mut self, kind: Kind, ppm: impl Fn(&crate::fault_plan::Faults) -> u32) -> bool {
        let ppm = if self.faults_on {
            ppm(&self.fault_plan.faults)
        } else {
            0
        };
        let drawn = self.net.chance(ppm);
        if drawn {
            self.count(kind);
        }
        drawn
    }
}

/// Requests.
impl World {
    /// A request leaves the process.
    pub(super) fn send(&mut self, wire: Wire) {
        if let Some(late) = late_by(wire.leave_by_ns.map(Time), Time(self.now_ns)) {
            return self.deliver(self.life, In::Late(wire.id, late));
        }
        let what = request(self.life, &wire);
        for part in [&wire.prepared.path, &what.method] {
            self.log.effect(part.as_bytes());
        }
        for part in [&wire.prepared.query, &wire.prepared.body] {
            self.log
                .effect(part.as_deref().unwrap_or_default().as_bytes());
        }
        self.see(WitnessEvent::Sent(what.clone()));
        if self.draw(Kind::Lose, |faults| faults.lose_request_ppm) {
            if self.net.chance(500_000) {
                let at_ns = self.arrival_ns(REST);
                let cut = In::Answer(wire.id, None);
                self.queue.put(at_ns, Event::Deliver(self.life, cut));
            }
            return;
        }
        let fate = self.fate();
        let doubles = !matches!(wire.route.name, "spot.new_order" | "futures.new_order");
        let doubled = doubles && self.draw(Kind::Double, |faults| faults.double_ppm);
        let mut flight = Flight {
            life: self.life,
            what,
            surface: wire.route.surface,
            prepared: wire.prepared,
            copy: 0,
            fate,
            belief: None,
            watchdog: None,
        };
        flight.belief = self.belief(&flight.what);
        if doubled {
            let copy = Flight {
                what: flight.what.clone(),
                prepared: flight.prepared.clone(),
                copy: 1,
                fate: Fate::Duplicate,
                belief: None,
                ..flight
            };
            let at_ns = self.arrival_ns(REST);
            self.queue.put(at_ns, Event::Arrive(Box::new(copy)));
        }
        let at_ns = self.arrival_ns(REST);
        flight.copy = 0;
        self.queue.put(at_ns, Event::Arrive(Box::new(flight)));
    }

    /// A request of a watchdog process is sent. Rules about the requests of the run do not see it.
    pub(super) fn send_for_watchdog(&mut self, number: u32, life: u32, call: Call) {
        let wire = Wire {
            id: call.id,
            route: call.route,
            prepared: call.prepared,
            leave_by_ns: None,
        };
        let what = request(life, &wire);
        self.log.effect(what.path.as_bytes());
        let at_ns = self.arrival_ns(REST);
        if self.draw(Kind::Lose, |faults| faults.lose_request_ppm) {
            if self.net.chance(500_000) {
                let cut = Event::Watchdog(Watch::Answer(number, wire.id, None));
                self.queue.put(at_ns, cut);
            }
            return;
        }
        let flight = Flight {
            life,
            what,
            surface: wire.route.surface,
            prepared: wire.prepared,
            copy: 0,
            fate: self.fate(),
            belief: None,
            watchdog: Some(number),
        };
        self.queue.put(at_ns, Event::Arrive(Box::new(flight)));
    }

    /// A request of a watchdog arrives at the venue.
    fn arrive_for_watchdog(&mut self, number: u32, flight: Flight) {
        let acts = !matches!(flight.fate, Fate::Instead { acts: false, .. });
        let mut sent = None;
        if acts {
            let answered = self
                .venue
                .request(flight.surface, &flight.prepared, self.now_ns);
            sent = answered.1;
            self.carry_frames();
            let is_done = sent.as_ref().is_some_and(|answer| answer.status == 200);
            if is_done && flight.what.route == "spot.cancel_order" {
                let of = |name| flight.what.param(name).unwrap_or_default().to_owned();
                let (symbol, id) = (of("symbol"), of("origClientOrderId"));
                self.watchdog_cancelled(number, &symbol, &id);
            }
        }
        let answer = match flight.fate {
            Fate::AsIs => sent,
            Fate::Half => sent.map(half),
            Fate::Instead { answer, .. } => Some(answer),
            Fate::Cut => None,
            Fate::Silent | Fate::Duplicate => return,
        };
        std::mem::swap(&mut self.net, &mut self.watchdogs.net);
        let at_ns = self.arrival_ns(REST);
        std::mem::swap(&mut self.net, &mut self.watchdogs.net);
        let answer = Watch::Answer(number, flight.what.id, answer);
        self.queue.put(at_ns, Event::Watchdog(answer));
    }

    fn fate(&mut self) -> Fate {
        if self.draw(Kind::Lose, |faults| faults.lose_answer_ppm) {
            return if self.net.chance(500_000) {
                Fate::Cut
            } else {
                Fate::Silent
            };
        }
        if self.draw(Kind::Unknown, |faults| faults.unknown_ppm) {
            let acts = self.net.chance(500_000);
            let answers = [
                (503, r#"{"code":-1000,"msg":"Unknown error."}"#),
                (503, "<html><body>Service Unavailable</body></html>"),
                (400, r#"{"code":-1000,"msg":"An unknown error occurred."}"#),
                (400, r#"{"code":-1001,"msg":"Internal error."}"#),
                (400, r#"{"code":-1006,"msg":"Execution status unknown."}"#),
                (
                    400,
                    r#"{"code":-1007,"msg":"Timeout waiting for response."}"#,
                ),
                (504, ""),
            ];
            let (status, body) = self.net.pick(&answers).copied().unwrap_or_default();
            let answer = spoilt(status, body);
            return Fate::Instead { acts, answer };
        }
        if self.draw(Kind::Spoil, |faults| faults.spoil_ppm) {
            let acts = self.net.chance(500_000);
            let html = "<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>";
            return match self.net.below(4) {
                0 => Fate::Half,
                1 => Fate::Instead {
                    acts,
                    answer: spoilt(502, html),
                },
                2 => Fate::Instead {
                    acts,
                    answer: spoilt(200, html),
                },
                _ => Fate::Instead {
                    acts: true,
                    answer: spoilt(200, ""),
                },
            };
        }
        Fate::AsIs
    }

    /// Replaces the response by that of a lagging cache, or by a list that is cut short. It is
    /// well-formed but false. An account response is never false twice in a row.
    fn falsify(&mut self, route: &str, answer: &mut Answer) {
        if answer.status != 200 || !FALSE_ROUTES.contains(&route) {
            return;
        }
        if route == FALSE_ROUTES[0] {
            let Some(Value::Array(mut list)) = answer.json() else {
                return;
            };
            if list.is_empty() || !self.draw(Kind::False, |faults| faults.false_ppm) {
                return;
            }
            let place = self.net.below(list.len() as u64) as usize;
            if self.net.chance(500_000) {
                list.clear();
            } else {
                list.remove(place);
            }
            answer.body = Value::Array(list).to_string();
            return;
        }
        let before = self.last_answers.get(route).cloned();
        let before = before.filter(|(text, was_false)| !was_false && *text != answer.body);
        let mut is_false = false;
        if let Some((text, _)) = before
            && self.draw(Kind::False, |faults| faults.false_ppm)
        {
            answer.body = text;
            is_false = true;
        }
        let last_answers = (answer.body.clone(), is_false);
        self.last_answers.insert(route.to_owned(), last_answers);
    }

    /// A request arrives at the venue.
    pub(super) fn arrive(&mut self, flight: Flight) {
        if let Some(number) = flight.watchdog {
            return self.arrive_for_watchdog(number, flight);
        }
        let (request, copy) = (flight.what.id, flight.copy);
        let route = flight.what.route.clone();
        let acts = !matches!(flight.fate, Fate::Instead { acts: false, .. });
        let mut sent = None;
        if acts {
            let market = flight.belief.map(|view| {
                let before = self.venue.truth(true, self.now_ns);
                (flight.what.clone(), view, before)
            });
            self.see(WitnessEvent::Arrived {
                request,
                copy,
                what: flight.what,
            });
            let answered = self
                .venue
                .request(flight.surface, &flight.prepared, self.now_ns);
            // A fault switch of the venue (a ban) refuses in the venue's name.
            if let Some(answer) = answered.0.or_else(|| answered.1.clone()) {
                self.see(WitnessEvent::Answered {
                    request,
                    copy,
                    answer,
                });
            }
            sent = answered.1;
            self.carry_frames();
            if let Some((what, view, before)) = market {
                self.witness_market(what, view, before);
            }
            if let Some(answer) = &mut sent {
                self.falsify(&route, answer);
            }
        }
        let answer = match flight.fate {
            Fate::AsIs => sent,
            Fate::Half => sent.map(half),
            Fate::Instead { answer, .. } => Some(answer),
            Fate::Cut => None,
            Fate::Silent | Fate::Duplicate => return,
        };
        let at_ns = self.arrival_ns(REST);
        self.queue.put(
            at_ns,
            Event::Deliver(flight.life, In::Answer(request, answer)),
        );
    }
}

/// Streams.
impl World {
    /// The process opens a connection.
    pub(super) fn open(&mut self, key: StreamKey, link: u64, target: String) {
        let name = link_name(self.life, key, link);
        self.links.insert(
            name,
            Link {
                life: self.life,
                key,
                number: link,
                up: false,
                dead: false,
                last_ns: 0,
            },
        );
        if self.draw(Kind::Lose, |faults| faults.lose_request_ppm) {
            return;
        }
        let at_ns = self.arrival_ns(REST);
        self.queue.put(at_ns, Event::Handshake(name, target));
    }

    pub(super) fn handshake(&mut self, name: LinkName, target: &str) {
        let Some(link) = self.links.get(&name) else {
            return;
        };
        let (key, number, life) = (link.key, link.number, link.life);
        let made = if key.user && self.now_ns < self.blind_until_ns {
            Err(spoilt(502, ""))
        } else {
            self.venue
                .connect(name, venue_surface(key.surface), target, self.now_ns)
        };
        let at_ns = self.arrival_ns(REST);
        let happened = match made {
            Ok(()) => {
                if let Some(link) = self.links.get_mut(&name) {
                    link.up = true;
                    // Nothing overtakes the response to the handshake.
                    link.last_ns = at_ns;
                }
                In::Opened(key, number)
            }
            Err(answer) => {
                self.links.remove(&name);
                In::NotOpened(key, number, Some(answer))
            }
        };
        self.queue.put(at_ns, Event::Deliver(life, happened));
    }

    pub(super) fn send_text(&mut self, key: StreamKey, link: u64, text: String) {
        let name = link_name(self.life, key, link);
        if self.links.get(&name).is_some_and(|link| !link.dead) {
            let at_ns = self.arrival_ns(channel(key));
            self.queue.put(at_ns, Event::ClientText(name, text));
        }
    }

    /// The other end of the connection answers a PING.
    pub(super) fn ping(&mut self, key: StreamKey, link: u64) {
        let name = link_name(self.life, key, link);
        if self
            .links
            .get(&name)
            .is_some_and(|link| link.up && !link.dead)
        {
            let there_ns = self.arrival_ns(channel(key)) - self.now_ns;
            let at_ns = self.arrival_ns(channel(key)) + there_ns;
            let pong = In::Pong(key, link);
            self.queue.put(at_ns, Event::Deliver(self.life, pong));
        }
    }

    pub(super) fn close(&mut self, key: StreamKey, link: u64) {
        let name = link_name(self.life, key, link);
        self.venue.hang_up(name);
        self.links.remove(&name);
    }

    /// Sends the frames of the venue's streams on their way.
    pub(super) fn carry_frames(&mut self) {
        for (client_order_id, executed_qty) in self.venue.executions() {
            self.see(WitnessEvent::Executed {
                client_order_id,
                executed_qty,
            });
        }
        for (name, output) in self.venue.poll_streams() {
            match output {
                StreamOutput::Text(text) => self.carry_frame(name, text),
                // The client's library answers it.
                StreamOutput::Ping => self.record_fault(format!("the venue pings stream {name:x}")),
                StreamOutput::Closed => {
                    self.count_end(name, "a close frame");
                    self.ended(name);
                }
                StreamOutput::Cut => {
                    self.count_end(name, "no close frame");
                    self.cut_off(name);
                }
            }
        }
    }

    /// The venue ended a connection, or a fault cut it. Messages in flight still arrive.
    pub(super) fn ended(&mut self, name: LinkName) {
        let Some(link) = self.links.get_mut(&name) else {
            return;
        };
        link.up = false;
        let (life, key, number, last_ns) = (link.life, link.key, link.number, link.last_ns);
        let at_ns = self.arrival_ns(channel(key)).max(last_ns + 1);
        self.queue
            .put(at_ns, Event::Deliver(life, In::Closed(key, number)));
    }

    fn count_end(&mut self, name: LinkName, how: &str) {
        if self.fault_plan.faults.ends_s > 0 {
            self.count(Kind::Ends);
        }
        self.record_fault(format!("the venue ends stream {name:x} with {how}"));
    }

    /// The venue ended a connection without a close frame. Frames in flight are lost.
    fn cut_off(&mut self, name: LinkName) {
        let Some(link) = self.links.remove(&name) else {
            return;
        };
        let at_ns = self.arrival_ns(channel(link.key));
        let closed = In::Closed(link.key, link.number);
        self.queue.put(at_ns, Event::Deliver(link.life, closed));
    }

    fn carry_frame(&mut self, name: LinkName, text: String) {
        let Some(link) = self.links.get(&name) else {
            return;
        };
        let (key, dead) = (link.key, link.dead);
        let event = key.user.then(|| {
            self.user_events += 1;
            self.user_events
        });
        if let Some(event) = event {
            self.see(WitnessEvent::Emitted {
                event,
                surface: key.surface.to_string(),
                stream: name,
                text: text.clone(),
            });
        }
        let lost = if key.user {
            self.draw(Kind::EventLost, |faults| faults.event_lost_ppm)
        } else {
            self.draw(Kind::Public, |faults| faults.public_ppm)
        };
        if dead || lost {
            return;
        }
        let twice = if key.user {
            self.draw(Kind::EventTwice, |faults| faults.event_twice_ppm)
        } else {
            self.draw(Kind::Public, |faults| faults.public_ppm)
        };
        let late = if key.user {
            self.draw(Kind::EventLate, |faults| faults.event_late_ppm)
        } else {
            self.draw(Kind::Public, |faults| faults.public_ppm)
        };
        let arrival_ns = self.arrival_ns(channel(key));
        let mut at_ns = arrival_ns;
        if let Some(link) = self.links.get_mut(&name) {
            at_ns = at_ns.max(link.last_ns + 1);
            if !late {
                link.last_ns = at_ns;
            }
        }
        if late {
            let most_ms = self.fault_plan.faults.event_late_ms.max(50);
            at_ns += self.net.between(0, most_ms * MS);
        }
        if twice {
            let again_ns = at_ns + self.net.between(0, 500 * MS);
            self.queue
                .put(again_ns, Event::Frame(name, event, text.clone()));
        }
        self.queue.put(at_ns, Event::Frame(name, event, text));
    }

    /// A frame reaches the process.
    pub(super) fn frame_comes(&mut self, name: LinkName, event: Option<u64>, text: String) {
        let Some(link) = self.links.get(&name) else {
            return;
        };
        let (life, key, number) = (link.life, link.key, link.number);
        if let Some(event) = event {
            self.see(WitnessEvent::Delivered {
                event,
                stream: name,
            });
        }
        self.deliver(life, In::Text(key, number, text));
    }
}

fn channel(key: StreamKey) -> usize {
    if key.user { USER } else { PUBLIC }
}

fn spoilt(status: u16, body: &str) -> Answer {
    Answer {
        status,
        headers: Vec::new(),
        body: body.to_owned(),
    }
}

/// A request in the form of the witness.
fn request(process: u32, wire: &Wire) -> Request {
    let mut params = Vec::new();
    for part in [&wire.prepared.query, &wire.prepared.body]
        .into_iter()
        .flatten()
    {
        if part.starts_with('{') {
            params.push(("body".to_owned(), part.clone()));
            continue;
        }
        for pair in part.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            params.push((decoded(name), decoded(value)));
        }
    }
    Request {
        id: wire.id,
        process,
        surface: wire.route.surface.to_string(),
        route: wire.route.name.to_owned(),
        method: wire.prepared.method.to_string(),
        path: wire.prepared.path.clone(),
        params,
    }
}

fn decoded(text: &str) -> String {
    let text = percent_encoding::percent_decode_str(text);
    text.decode_utf8_lossy().into_owned()
}
