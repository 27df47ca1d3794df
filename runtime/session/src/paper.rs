//! The simulated account of a paper run: a simulated venue in the engine's thread, and the links to
//! it with their latencies. Its only inputs are the public events that the engine receives and the
//! requests that the engine sends.
//!
//! **Invariant:** the account is a function of the journal. Each of its inputs is a record (a
//! public event, or a request that was sent) and takes effect at the time of that record. So the
//! checkpoint of a segment and the records after it give exactly the account that the engine saw.
//! If a record was not durable when a process died, it never happened, for the engine and for the
//! account.
//!
//! Time: the engine receives market data one feed latency after the event. A request sent at `t`
//! meets the market of `t + order`, which the engine receives at `t + order + feed`. The reply is
//! back at `t + order + order`, but not before `t + order + feed`, when the venue can compute it.
//! So the venue runs `feed` behind the engine's clock, and never has to guess the market.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use windvane_model::codec::{Record, RecordBody, RecordedEffect, RecordedInput};
use windvane_model::live::LiveInput;
use windvane_model::{
    AssetId, Input, Instrument, InstrumentId, MarketEvent, Request, Surface, Time,
};
use windvane_protocol::Assets;
use windvane_sim::snapshot::SnapshotError;
use windvane_sim::{Venue, VenueConfig, VenueConfigError, VenueMessage};

use crate::transit::Transit;

/// Interval of the reports that the simulated user streams are alive.
const ALIVE_MS: i64 = 5_000;
/// Interval of the reports that the simulated clock has no offset.
const CLOCK_MS: i64 = 60_000;

/// Latencies of the links, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// From the venue's event to the engine.
    pub feed_ns: i64,
    /// From the engine to the venue, and back.
    pub order_ns: i64,
    /// A gap of the public data invalidates the whole book. In a recording a gap concerns only the
    /// depth.
    pub gap_blinds: bool,
}

/// The simulated account, with the messages that are in flight.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paper {
    venue: Venue,
    /// Names of its assets.
    assets: Vec<String>,
    links: Links,
    /// Arrival times are in the venue's time.
    requests: Transit<Request>,
    /// Arrival times are in the engine's time.
    messages: Transit<VenueMessage>,
    /// The time of the last public event and the number of events with that time. A recording that
    /// is resumed continues there.
    last_market: (Time, u64),
    /// Reports about the connection. They belong to this process only.
    #[serde(skip)]
    connection: Connection,
}

/// The connection to a venue in the same thread. It is always up.
#[derive(Debug, Default)]
struct Connection {
    surfaces: Vec<Surface>,
    inputs: VecDeque<LiveInput>,
    alive: Option<Time>,
    clock: Option<Time>,
}

/// A message for the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaperOutput {
    /// From the venue.
    Venue(VenueMessage),
    /// About the connection to it.
    Live(LiveInput),
}

impl PaperOutput {
    /// The message as an input of the engine.
    pub const fn as_input(&self) -> Input<'_> {
        match self {
            Self::Venue(VenueMessage::Reply(reply)) => Input::Reply(reply),
            Self::Venue(VenueMessage::User(event)) => Input::User(event),
            Self::Live(input) => Input::Live(input),
        }
    }
}

/// The message that the simulated venue sends in a replay in place of the recorded one, if any.
#[derive(Debug)]
pub struct UnexpectedMessage(pub Option<Box<VenueMessage>>);

/// Why the account of an earlier process cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// The settings in `[sim]` cannot be used.
    #[error("[sim]: {0}")]
    Terms(#[from] VenueConfigError),
    /// The saved account does not fit the present instruments.
    #[error(transparent)]
    Succession(#[from] SnapshotError),
}

impl Paper {
    /// A new account with its start balances.
    pub fn new(
        terms: VenueConfig,
        instruments: Vec<Instrument>,
        assets: &Assets,
        links: Links,
    ) -> Result<Self, PaperError> {
        Ok(Self {
            venue: Venue::new(terms, instruments)?,
            assets: assets.names().to_vec(),
            links,
            requests: Transit::default(),
            messages: Transit::default(),
            last_market: (Time(i64::MIN), 0),
            connection: Connection::default(),
        })
    }

    /// Continues the account of an earlier process with the present settings, instruments and
    /// links. Adds its assets to `assets`.
    pub fn succeed(
        self,
        terms: VenueConfig,
        instruments: Vec<Instrument>,
        assets: &mut Assets,
        links: Links,
    ) -> Result<Self, PaperError> {
        let ids: Vec<AssetId> = self.assets.iter().map(|name| assets.id(name)).collect();
        let mut heir = Self {
            venue: self.venue.succeed(terms, instruments, &ids)?,
            assets: assets.names().to_vec(),
            links,
            ..self
        };
        // The connection that would carry these replies no longer exists.
        heir.requests
            .retain(|request| !matches!(request, Request::Read(_) | Request::Query { .. }));
        heir.messages
            .retain(|message| matches!(message, VenueMessage::User(_)));
        heir.collect();
        Ok(heir)
    }

    /// Decodes an account; `None` if the bytes are not an account.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// Encodes the account without loss.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Serializing to memory cannot fail, because every length in the type is known.
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// The time of the last public event and the number of events with that time.
    pub const fn last_market(&self) -> (Time, u64) {
        self.last_market
    }

    /// Reports that the user streams of these surfaces are up from now on.
    pub fn connect(&mut self, now: Time, surfaces: &[Surface]) {
        self.connection.surfaces = surfaces.to_vec();
        self.connection.alive = Some(now.plus_ms(ALIVE_MS));
        self.connection.clock = Some(now);
        self.queue_reports(now);
        for surface in surfaces {
            self.reconnect(*surface);
        }
    }

    /// Reports that the user stream of a surface is up again.
    pub fn reconnect(&mut self, surface: Surface) {
        self.connection
            .inputs
            .push_back(LiveInput::StreamUp { surface });
    }

    /// A public event that the engine receives at `now`.
    pub fn market(&mut self, now: Time, instrument: InstrumentId, event: &MarketEvent<'_>) {
        self.advance(now);
        self.last_market = match self.last_market {
            (last, count) if last == now => (now, count + 1),
            _ => (now, 1),
        };
        if self.links.gap_blinds && *event == MarketEvent::Gap {
            self.venue.blind(instrument);
        } else {
            self.venue.market(self.behind(now), instrument, event);
        }
        self.collect();
    }

    /// A request that leaves at `now`. Even with zero latency it travels for one nanosecond, so
    /// that all events that arrive at `now` come before it.
    pub fn request(&mut self, now: Time, request: Request) {
        let Links {
            feed_ns, order_ns, ..
        } = self.links;
        let way = order_ns.saturating_add(feed_ns).max(1);
        self.requests.send(self.behind(now), way, request);
    }

    /// The next message that the engine must receive by `now`.
    pub fn poll(&mut self, now: Time) -> Option<PaperOutput> {
        self.advance(now);
        self.queue_reports(now);
        if let Some(input) = self.connection.inputs.pop_front() {
            return Some(PaperOutput::Live(input));
        }
        if self.messages.next_arrival() > now {
            return None;
        }
        let (_, message) = self.messages.receive()?;
        Some(PaperOutput::Venue(message))
    }

    /// When the next event happens, if no input comes before it.
    pub fn next(&self) -> Time {
        if !self.connection.inputs.is_empty() {
            return Time(i64::MIN);
        }
        let venue = self.requests.next_arrival().min(self.venue.next_timeout());
        let next_report = [self.connection.alive, self.connection.clock]
            .into_iter()
            .flatten();
        let next_report = next_report.min().unwrap_or(Time::NEVER);
        let ahead = if venue == Time::NEVER {
            venue
        } else {
            venue.plus_ns(self.links.feed_ns)
        };
        ahead.min(self.messages.next_arrival()).min(next_report)
    }

    /// Applies a record of the journal in a replay.
    ///
    /// # Errors
    /// The venue sends another message than the journal recorded.
    pub fn replay(&mut self, record: &Record) -> Result<(), UnexpectedMessage> {
        let now = record.time;
        match &record.body {
            RecordBody::Input(input) => match input {
                RecordedInput::Reply(reply) => {
                    self.expect(now, &VenueMessage::Reply(reply.clone()))?;
                }
                RecordedInput::User(event) => {
                    self.expect(now, &VenueMessage::User(event.clone()))?;
                }
                other => {
                    if let Input::Market { instrument, event } = other.as_input() {
                        self.market(now, instrument, &event);
                    }
                }
            },
            RecordBody::Effect(RecordedEffect::Send { request, .. }) => {
                self.request(now, request.clone());
            }
            RecordBody::Config(_) | RecordBody::Effect(_) | RecordBody::Notice(_) => {}
        }
        Ok(())
    }

    fn expect(&mut self, now: Time, recorded: &VenueMessage) -> Result<(), UnexpectedMessage> {
        self.advance(now);
        match self.messages.receive() {
            Some((due, sent)) if due <= now && sent == *recorded => Ok(()),
            other => Err(UnexpectedMessage(other.map(|(_, sent)| Box::new(sent)))),
        }
    }

    /// Processes everything that happened at the venue by `now`, each at its own time. At equal
    /// times the venue's timers come first, as in a backtest.
    fn advance(&mut self, now: Time) {
        let until = self.behind(now);
        loop {
            let (timer, request) = (self.venue.next_timeout(), self.requests.next_arrival());
            let next = timer.min(request);
            if next > until || next == Time::NEVER {
                return;
            }
            if timer <= request {
                self.venue.timeout(timer);
                self.collect_at(timer);
            } else if let Some((at, request)) = self.requests.receive() {
                self.venue.request(at, &request);
                self.collect_at(at);
            }
        }
    }

    fn collect(&mut self) {
        let at = self.last_market.0;
        self.collect_at(self.behind(at));
    }

    /// Puts the messages that the venue sent at this time on their way.
    fn collect_at(&mut self, at: Time) {
        let Links {
            feed_ns, order_ns, ..
        } = self.links;
        let sent_at = at.plus_ns(feed_ns);
        while let Some(message) = self.venue.poll() {
            let way = order_ns.saturating_sub(feed_ns).max(0);
            self.messages.send(sent_at, way, message);
        }
    }

    /// The venue's time when the engine's clock shows `now`.
    const fn behind(&self, now: Time) -> Time {
        now.plus_ns(-self.links.feed_ns)
    }

    /// Queues the periodic reports about streams and clock.
    fn queue_reports(&mut self, now: Time) {
        let connection = &mut self.connection;
        if connection.clock.is_some_and(|due| due <= now) {
            connection.clock = Some(now.plus_ms(CLOCK_MS));
            let read = |surface: &Surface| LiveInput::Clock {
                surface: *surface,
                offset_ns: 0,
                error_ns: 0,
            };
            connection
                .inputs
                .extend(connection.surfaces.iter().map(read));
        }
        if connection.alive.is_some_and(|due| due <= now) {
            connection.alive = Some(now.plus_ms(ALIVE_MS));
            let alive = |surface: &Surface| LiveInput::StreamAlive { surface: *surface };
            connection
                .inputs
                .extend(connection.surfaces.iter().map(alive));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windvane_model::{
        Amount, ClientOrderId, Decimal, Level, NewOrder, OrderTerms, OrderType, Price, Qty, Side,
        TimeInForce,
    };
    use windvane_sim::QueueModel;

    use super::*;

    const BTC: InstrumentId = InstrumentId(0);

    fn paper(links: Links) -> Paper {
        let mut assets = Assets::default();
        let (base, quote) = (assets.id("BTC"), assets.id("USDT"));
        let instrument =
            Instrument::unrestricted(Surface::Futures, "BTCUSDT", [base, quote], [1, 3]);
        let terms = VenueConfig {
            start_balance: vec![(Surface::Futures, quote, Amount(10_000 * 100_000_000))],
            leverage: 20,
            maintenance_rate: Decimal::new(5, 3),
            maker_fee: Decimal::new(2, 4),
            taker_fee: Decimal::new(4, 4),
            queue: QueueModel::RiskAverse,
            hedge_mode: false,
            seed: 1,
        };
        Paper::new(terms, vec![instrument], &assets, links).unwrap()
    }

    const LINKS: Links = Links {
        feed_ns: 1_000_000,
        order_ns: 5_000_000,
        gap_blinds: true,
    };

    fn ms(ms: i64) -> Time {
        Time::from_millis(1_000).plus_ms(ms)
    }

    fn top(bid: i64, ask: i64) -> MarketEvent<'static> {
        let level = |price| Level { price, qty: 100 };
        MarketEvent::Top {
            update_id: 0,
            bid: level(bid),
            ask: level(ask),
        }
    }

    fn place(name: &str, side: Side, price: Option<i64>) -> Request {
        let order_type = match price {
            Some(_) => OrderType::Limit,
            None => OrderType::Market,
        };
        let mut terms = OrderTerms::new(BTC, side, order_type);
        terms.qty = Some(Qty(5));
        terms.price = price.map(Price);
        terms.time_in_force = price.map(|_| TimeInForce::Gtc);
        Request::Place(NewOrder {
            client_order_id: ClientOrderId::new(name).unwrap(),
            terms,
        })
    }

    /// All messages up to a time, each with its time.
    fn outputs_until(paper: &mut Paper, until: Time) -> Vec<(Time, PaperOutput)> {
        let mut outputs = Vec::new();
        while paper.next() <= until {
            let now = paper.next();
            outputs.extend(paper.poll(now).map(|output| (now, output)));
        }
        outputs
    }

    fn prices(outputs: &[(Time, PaperOutput)]) -> Vec<i64> {
        let fill = |output: &PaperOutput| match output {
            PaperOutput::Venue(VenueMessage::User(windvane_model::UserEvent::Order(update))) => {
                Some(update.fill?.price.0)
            }
            _ => None,
        };
        outputs
            .iter()
            .filter_map(|(_, output)| fill(output))
            .collect()
    }

    #[test]
    fn an_order_fills_at_the_market_of_its_arrival() {
        let mut paper = paper(LINKS);
        paper.market(ms(0), BTC, &top(999, 1_000));
        paper.request(ms(1), place("a", Side::Buy, None));
        // The order is at the venue at 6 ms. The engine receives that market at 7 ms.
        paper.market(ms(6), BTC, &top(1_009, 1_010));
        paper.market(ms(8), BTC, &top(1_019, 1_020));
        let outputs = outputs_until(&mut paper, ms(20));
        assert_eq!(prices(&outputs), [1_010]);
        assert!(outputs.iter().all(|(at, _)| *at == ms(11)), "{outputs:?}");
    }

    #[test]
    fn after_a_gap_orders_fill_only_with_new_market_data() {
        let mut paper = paper(LINKS);
        paper.market(ms(0), BTC, &top(999, 1_000));
        paper.market(ms(1), BTC, &MarketEvent::Gap);
        paper.request(ms(2), place("a", Side::Buy, None));
        paper.request(ms(3), place("b", Side::Buy, Some(1_005)));
        assert_eq!(prices(&outputs_until(&mut paper, ms(20))), [0; 0]);
        paper.market(ms(30), BTC, &top(1_001, 1_002));
        assert_eq!(prices(&outputs_until(&mut paper, ms(50))), [1_005]);
    }

    #[test]
    fn the_connection_is_up_and_reports_it() {
        let mut paper = paper(LINKS);
        paper.connect(ms(0), &[Surface::Futures]);
        let surface = Surface::Futures;
        let outputs: Vec<_> = outputs_until(&mut paper, ms(5_000))
            .into_iter()
            .map(|(_, w)| w)
            .collect();
        let clock = LiveInput::Clock {
            surface,
            offset_ns: 0,
            error_ns: 0,
        };
        let expected = [
            clock,
            LiveInput::StreamUp { surface },
            LiveInput::StreamAlive { surface },
        ];
        assert_eq!(outputs, expected.map(PaperOutput::Live));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Top(i64, i64),
        Trade(i64, bool),
        Gap,
        Buy(Option<i64>),
        Sell(Option<i64>),
        Countdown(u64),
        Wait,
    }

    fn step() -> impl Strategy<Value = (i64, Step)> {
        let price = 980_i64..1_020;
        let limit = proptest::option::of(price.clone());
        let step = prop_oneof![
            4 => (price.clone(), 1_i64..5).prop_map(|(bid, wide)| Step::Top(bid, bid + wide)),
            3 => (price, any::<bool>()).prop_map(|(price, sold)| Step::Trade(price, sold)),
            1 => Just(Step::Gap),
            2 => limit.clone().prop_map(Step::Buy),
            2 => limit.prop_map(Step::Sell),
            1 => (0_u64..40).prop_map(Step::Countdown),
            3 => Just(Step::Wait),
        ];
        (0_i64..6, step)
    }

    /// Applies one step at its time, and collects the messages of the account.
    fn live(paper: &mut Paper, now: Time, n: usize, step: &Step, outputs: &mut Vec<PaperOutput>) {
        let trade = |price, buyer_is_maker| MarketEvent::Trade {
            price,
            qty: 20,
            trade_id: n as i64,
            buyer_is_maker,
        };
        match *step {
            Step::Top(bid, ask) => paper.market(now, BTC, &top(bid, ask)),
            Step::Trade(price, sold) => paper.market(now, BTC, &trade(price, sold)),
            Step::Gap => paper.market(now, BTC, &MarketEvent::Gap),
            Step::Buy(price) => paper.request(now, place(&format!("b{n}"), Side::Buy, price)),
            Step::Sell(price) => paper.request(now, place(&format!("s{n}"), Side::Sell, price)),
            Step::Countdown(countdown_ms) => {
                let instrument = BTC;
                paper.request(
                    now,
                    Request::Countdown {
                        instrument,
                        countdown_ms,
                    },
                );
            }
            Step::Wait => outputs.extend(std::iter::from_fn(|| paper.poll(now))),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// An account that is saved and restored at any moment sends the same messages as one that
        /// runs without a break, even if the latter is polled more often.
        #[test]
        fn an_account_depends_only_on_its_inputs(
            steps in proptest::collection::vec(step(), 1..80),
            cut in 0_usize..80,
            feed_ms in 0_i64..3,
            order_ms in 0_i64..6,
        ) {
            let links = Links {
                feed_ns: feed_ms * 1_000_000,
                order_ns: order_ms * 1_000_000,
                gap_blinds: true,
            };
            let (mut one, mut two) = (paper(links), paper(links));
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let mut now = ms(0);
            for (n, (wait, step)) in steps.iter().enumerate() {
                now = now.plus_ms(*wait);
                if n == cut {
                    two = Paper::from_bytes(&two.to_bytes()).unwrap();
                }
                // Only the first account is advanced before every step.
                one.advance(now);
                live(&mut one, now, n, step, &mut first);
                live(&mut two, now, n, step, &mut second);
            }
            let end = now.plus_ms(1_000);
            first.extend(std::iter::from_fn(|| one.poll(end)));
            second.extend(std::iter::from_fn(|| two.poll(end)));
            prop_assert_eq!(first, second);
            prop_assert_eq!(one.venue.snapshot(), two.venue.snapshot());
        }
    }
}
