//! The outside world of a session: requests, user streams and public data.

use windvane_client_core::streams::feed::ConnectionId;
use windvane_client_core::streams::machine::LinkId;
use windvane_model::Input as EngineInput;
use windvane_model::input::FaultKind;
use windvane_model::live::LiveInput;
use windvane_model::{
    InstrumentId, MarketEvent, Notice, Request, Surface, Time, UserEvent, planted,
};

use super::Session;
use super::events::Output;
use crate::account::Account;
use crate::driver::Action;
use crate::exchange::{EmitMarket, Received};
use crate::guests::Guests;
use crate::log_note::log_note;
use crate::public_streams::{PublicStreams, Want as WantPublic, is_public};
use crate::requests::{Done, Requests};
use crate::stream_sockets::SocketEvent;
use crate::user_streams::{UserStreams, Want};

impl<G: Guests> Session<G> {
    /// Handles the actions that follow from the last input.
    pub(super) fn act(&mut self, now: Time) {
        while let Some(action) = self.driver.poll() {
            match action {
                Action::Append(block) => {
                    let last_record = block.last_record;
                    if self.checkpoint.take().is_some() {
                        // The checkpoint would be written after this block but does not contain it.
                        // A new checkpoint is made later.
                        self.writer.not_rolled(now);
                    }
                    self.writer.push(now, block, self.since);
                    if planted!(AcknowledgedBeforeSync) {
                        self.driver.durable(self.clock.at(now), last_record);
                    }
                }
                Action::Request(request) => self.request(now, request),
                Action::Reconnect(surface) => {
                    if !self.account.reconnect(surface) {
                        self.reconnect(now, surface);
                    }
                }
                Action::Heartbeat(number) => self.outputs.push_back(Output::Heartbeat(number)),
                Action::Notice(notice) => {
                    if let (
                        Some(stop),
                        Notice::Dust {
                            strategy,
                            instrument,
                            ..
                        },
                    ) = (&mut self.stop, &*notice)
                    {
                        stop.note_dust(self.driver.engine(), *strategy, *instrument);
                    }
                    if let Notice::InvariantBroken { broken, .. } = &*notice {
                        self.outputs.push_back(Output::BugReport {
                            broken: *broken,
                            snapshot: self.driver.engine().report(),
                        });
                    }
                    self.note_kill_switch(&notice);
                    self.outputs.push_back(Output::Notice(notice));
                }
            }
        }
    }

    /// Notes the reason of a kill switch or quarantine that a notice reports.
    fn note_kill_switch(&mut self, notice: &Notice) {
        self.kill_switch.notice(self.driver.engine(), notice);
        if let Notice::Quarantined { strategy, kind, .. } = *notice {
            let reason = match kind {
                FaultKind::Loss => "a loss limit of its own was breached",
                _ => self.driver.guests().trouble(strategy).unwrap_or_default(),
            };
            self.kill_switch
                .set_trouble(strategy, kind, reason.to_owned());
        }
    }

    /// Passes a request on: to the venue's calls, or to the simulated account.
    pub(super) fn request(&mut self, now: Time, request: Request) {
        let engine = self.driver.engine();
        let (since, purpose) = (self.since, engine.purpose(&request));
        let awaits_modes = engine.awaits_modes();
        if is_about_own_orders(&request) {
            let request = request.clone();
            self.leaving.push_back(Output::Handed { request, since });
        }
        if let Account::Paper(paper) = &mut self.account {
            return paper.request(engine.now(), request);
        }
        if let Some(requests) = &mut self.requests {
            requests.start_request(now, (request, purpose), since, awaits_modes);
        }
    }

    /// Handles the results of requests and streams until none is left.
    pub(super) fn handle_results(&mut self, now: Time) {
        loop {
            self.handle_request_results(now);
            if let Some(want) = self.streams.as_mut().and_then(UserStreams::poll) {
                self.want(now, want);
            } else if let Some(want) = self.public.as_mut().and_then(PublicStreams::poll) {
                self.want_public(now, want);
            } else {
                return;
            }
        }
    }

    /// An event of a stream connection.
    pub(super) fn socket(
        &mut self,
        now: Time,
        (surface, link): (Surface, LinkId),
        event: SocketEvent<'_>,
    ) {
        let Some(requests) = &self.requests else {
            return;
        };
        let event = match event {
            SocketEvent::NotOpened {
                why,
                status,
                pause_ms,
            } => SocketEvent::NotOpened {
                why,
                status,
                pause_ms: requests.heed_handshake(now, surface, (status, pause_ms)),
            },
            event => event,
        };
        if is_public(link) {
            if let Some(public) = &mut self.public {
                public.socket(now, (surface, link), event, requests);
            }
        } else if let Some(streams) = &mut self.streams {
            streams.socket(now, (surface, link), event, requests);
        }
        // The venue may have refused the handshake because of a limit.
        if let (SocketEvent::NotOpened { .. }, Some(requests)) = (event, &mut self.requests) {
            requests.report_stops(now);
        }
    }

    /// Handles all due timers of the streams.
    pub(super) fn streams_timeout(&mut self, now: Time) {
        let Some(requests) = &self.requests else {
            return;
        };
        if let Some(streams) = &mut self.streams
            && streams.next().is_some_and(|due| due <= now)
        {
            streams.timeout(now, requests);
        }
        if let Some(public) = &mut self.public {
            public.timeout(now, requests);
        }
    }

    fn want_public(&mut self, now: Time, want: WantPublic) {
        match want {
            WantPublic::Socket(surface, link, action) => {
                let output = Output::Socket(surface, link, action);
                self.outputs.push_back(output);
            }
            WantPublic::Poll(surface, query, call) => {
                if let Some(requests) = &mut self.requests {
                    requests.send_poll(now, (surface, query), call);
                }
            }
            WantPublic::Frame(surface, connection, frame) => {
                self.public_frame(now, (surface, connection), &frame);
            }
            WantPublic::Polled(surface, frame) => {
                self.since = Some(frame.at);
                self.read_market(now, |public, emit| {
                    public.polled(surface, &frame.text, emit)
                });
                self.since = None;
            }
            WantPublic::Interrupted(surface, symbols) => self.interrupted(now, surface, &symbols),
            WantPublic::Up(surface, is_up) => self.outputs.push_back(Output::Stream {
                surface,
                is_public: true,
                is_up,
            }),
        }
    }

    /// Decodes a frame once, for its stream and for the market.
    fn public_frame(
        &mut self,
        now: Time,
        (surface, connection): (Surface, ConnectionId),
        frame: &Received,
    ) {
        let Some(requests) = &self.requests else {
            return;
        };
        let (stop_ms, text) = (requests.stopped_ms(now, surface), frame.text.as_str());
        self.since = Some(frame.at);
        self.read_market(now, |public, emit| {
            public.frame(now, (surface, connection), text, (stop_ms, emit))
        });
        self.since = None;
    }

    pub(super) fn want(&mut self, now: Time, want: Want) {
        match want {
            Want::CreateKey(surface) => {
                if let Some(requests) = &mut self.requests {
                    requests.create_key(now, surface);
                }
            }
            Want::RenewKey(surface, key) => {
                if let Some(requests) = &mut self.requests {
                    requests.renew_key(now, (surface, &key));
                }
            }
            Want::Socket(surface, link, action) => {
                let output = Output::Socket(surface, link, action);
                self.outputs.push_back(output);
            }
            Want::Frame(surface, text) => self.user(now, surface, &text),
            Want::Up(surface) => {
                self.outputs.push_back(Output::Stream {
                    surface,
                    is_public: false,
                    is_up: true,
                });
                self.live(now, LiveInput::StreamUp { surface });
            }
            Want::Down(surface) => {
                self.outputs.push_back(Output::Stream {
                    surface,
                    is_public: false,
                    is_up: false,
                });
                self.live(now, LiveInput::StreamDown { surface });
            }
            Want::Alive(surface) => self.live(now, LiveInput::StreamAlive { surface }),
        }
    }

    /// Reconnects a user stream.
    pub(super) fn reconnect(&mut self, now: Time, surface: Surface) {
        if let (Some(streams), Some(requests)) = (&mut self.streams, &self.requests) {
            streams.restart(now, surface, requests);
        }
    }

    pub(super) fn handle_request_results(&mut self, now: Time) {
        while let Some(done) = self.requests.as_mut().and_then(Requests::poll) {
            match done {
                Done::Sign(id, unsigned) => self.leaving.push_back(Output::Sign(id, unsigned)),
                Done::Send(call) => self.leaving.push_back(Output::Send(call)),
                Done::Abandon(id) => self.outputs.push_back(Output::Abandon(id)),
                Done::Ended(ended) => self.outputs.push_back(Output::CallEnded(ended)),
                Done::Waited(lane, ns) => self.outputs.push_back(Output::BudgetWait(lane, ns)),
                Done::Live(input) => self.live(now, input),
                // This result belongs to a start, which is over.
                Done::QueryEnded(..) => {}
                Done::Depth(id, text) => self.depth(now, id, text.as_deref()),
                Done::Key(surface, key) => {
                    if let (Some(streams), Some(requests)) = (&mut self.streams, &self.requests) {
                        streams.key(now, surface, key, requests);
                    }
                }
                Done::Renewed(surface, renewed) => {
                    if let (Some(streams), Some(requests)) = (&mut self.streams, &self.requests) {
                        streams.renewed(now, surface, renewed, requests);
                    }
                }
                Done::Polled(surface, query, result) => {
                    if let (Some(public), Some(requests)) = (&mut self.public, &self.requests) {
                        let answer = (result, requests.venue_ms(now, surface));
                        public.answered(now, (surface, query), answer, requests);
                    }
                }
                Done::Replies(replies) => {
                    for reply in replies {
                        self.outputs.push_back(Output::Replied(reply.clone()));
                        self.engine_input(now, EngineInput::Reply(&reply));
                    }
                }
            }
        }
    }
}

/// Whether a request is about our own orders, so that people are informed of it.
const fn is_about_own_orders(request: &Request) -> bool {
    matches!(
        request,
        Request::Place(_)
            | Request::PlaceBatch(_)
            | Request::Cancel { .. }
            | Request::CancelBatch { .. }
            | Request::CancelAll { .. }
    )
}

/// Public data and user events.
impl<G: Guests> Session<G> {
    /// Runs `work` on the market reader. Its events go to the account and then to the engine, in
    /// order.
    pub(super) fn read_market(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut PublicStreams, &mut EmitMarket<'_>) -> Option<InstrumentId>,
    ) {
        let Some(public) = &mut self.public else {
            return;
        };
        let time = self.clock.at(now);
        let (driver, account) = (&mut self.driver, &mut self.account);
        let mut emit = |instrument: InstrumentId, event: MarketEvent<'_>| {
            account.market(time, instrument, &event);
            driver.handle(time, EngineInput::Market { instrument, event });
        };
        let fetch = work(public, &mut emit);
        self.act(now);
        if let Some(id) = fetch {
            self.fetch_depth(now, id);
        }
    }

    /// Requests the depth snapshot that the depth updates of an instrument wait for.
    pub(super) fn fetch_depth(&mut self, now: Time, id: InstrumentId) {
        let Some(instrument) = self.driver.engine().instrument(id) else {
            return;
        };
        let of = (id, instrument.surface, instrument.symbol.as_str());
        if let Some(requests) = &mut self.requests {
            requests.fetch_depth(now, of);
        }
    }

    pub(super) fn depth(&mut self, now: Time, id: InstrumentId, text: Option<&str>) {
        let Some(instrument) = self.driver.engine().instrument(id) else {
            return;
        };
        let surface = instrument.surface;
        self.read_market(now, |public, emit| {
            public.snapshot((surface, id), text, emit)
        });
    }

    pub(super) fn interrupted(&mut self, now: Time, surface: Surface, symbols: &[String]) {
        self.read_market(now, |public, emit| {
            public.interrupted(surface, symbols, emit);
            None
        });
    }

    pub(super) fn user(&mut self, now: Time, surface: Surface, text: &str) {
        let Some(requests) = &self.requests else {
            return;
        };
        match requests.exchange().user_event(surface, text) {
            Ok(decoded) => {
                for note in &decoded.notes {
                    log_note(note, "in a user event");
                }
                for event in &decoded.items {
                    let is_mode = matches!(
                        event,
                        UserEvent::PositionMode { .. } | UserEvent::AssetMode { .. }
                    );
                    if let Some(requests) = self.requests.as_mut().filter(|_| is_mode) {
                        requests.forget_modes();
                    }
                    self.engine_input(now, EngineInput::User(event));
                }
            }
            Err(error) => {
                // The event is lost, so the account must be read again over REST.
                tracing::error!(
                    %surface,
                    error,
                    text,
                    "a user event could not be decoded; the stream is reconnected and the account \
                     is read over REST"
                );
                self.live(now, LiveInput::StreamDown { surface });
                self.reconnect(now, surface);
            }
        }
    }
}
