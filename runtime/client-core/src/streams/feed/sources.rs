//! Decides the source of each topic. Events enter through methods, decisions leave through
//! [`Sources::poll_decision`], and [`Sources::timeout_ms`] is the time of the next
//! [`Sources::tick`]. Time is in milliseconds of a clock that never goes back.
//!
//! A stream is trusted while it sends frames. A silent stream is polled in addition, because a
//! quiet market and a dead stream look alike until polling shows a change that the stream does not
//! deliver.
//!
//! This module contains no sockets, requests or frames, and it does not wait.

use std::collections::VecDeque;
use std::time::Duration;

use windvane_protocol::market_stream::{Feed, Topic};
use windvane_protocol::route::Surface;

use crate::budget::polling::can_be_polled;
use crate::settings::MarketData;

use super::super::{StreamSettings, is_documented, millis};
use super::feed_of;
use super::item::{Source, Why};

/// Time after which a finally refused polling request is sent again.
const AGAIN: Duration = Duration::from_mins(10);

/// When silence is noticed, and when it proves that a stream is dead.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A stream counts as silent after this time if it has sent nothing since the start, or since
    /// its connection was lost.
    pub first_frame_ms: u64,
    /// A working stream delivers within this time what polling shows.
    pub proof_ms: u64,
    /// Time after which a finally refused polling request is sent again, because the symbol may be
    /// listed later.
    pub again_ms: u64,
}

/// The sources that a topic may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Its public stream.
    pub stream: bool,
    /// REST requests, sent repeatedly.
    pub polling: bool,
    /// A stream that has sent frames counts as silent after this time without one.
    pub silence_ms: u64,
}

/// A decision for the feed. Topics are identified by their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The topic has this source from now on, for this reason.
    Serve(usize, Source, Why),
    /// The topic's stream has worked before and is dead now, so open a new connection.
    Restart(usize),
}

#[derive(Clone, Debug)]
struct Tracked {
    source: Source,
    can_be_polled: bool,
    /// When a finally refused polling request is sent again.
    again_ms: Option<u64>,
    is_subscribed: bool,
    has_spoken: bool,
    silence_ms: u64,
    silent_ms: u64,
    /// Since when polling has shown a change that the stream has not delivered.
    ahead_ms: Option<u64>,
}

/// The sources of a feed's topics, by their index.
#[derive(Clone, Debug)]
pub struct Sources {
    rules: Rules,
    topics: Vec<Tracked>,
    decisions: VecDeque<Decision>,
}

impl Rules {
    /// The rules from the settings of streams.
    pub fn new(settings: &StreamSettings) -> Self {
        Self {
            first_frame_ms: millis(settings.first_frame_within),
            proof_ms: millis(settings.first_frame_within),
            again_ms: millis(AGAIN),
        }
    }
}

impl Allowed {
    /// The sources that the mode allows and the surface has.
    pub fn new(
        mode: MarketData,
        surface: Surface,
        topic: &Topic,
        settings: &StreamSettings,
    ) -> Self {
        let silence = if feed_of(topic).is_some_and(Feed::is_quote) {
            settings.quote_within.min(settings.frame_within)
        } else {
            settings.frame_within
        };
        Self {
            stream: mode != MarketData::Documented || is_documented(topic),
            polling: mode != MarketData::Streams && can_be_polled(surface, topic),
            silence_ms: millis(silence),
        }
    }
}

impl Sources {
    /// Every topic is streamed if that is allowed. The others are polled.
    pub fn new(rules: Rules, now_ms: u64, allowed: &[Allowed]) -> Self {
        let tracked = |allowed: &Allowed| Tracked {
            source: if allowed.stream {
                Source::Stream
            } else {
                Source::Polling
            },
            can_be_polled: allowed.polling,
            again_ms: None,
            is_subscribed: false,
            has_spoken: false,
            silence_ms: allowed.silence_ms,
            silent_ms: now_ms + rules.first_frame_ms,
            ahead_ms: None,
        };
        let topics = allowed.iter().map(tracked).collect();
        let polled = allowed.iter().enumerate().filter(|(_, one)| !one.stream);
        let decisions = polled
            .map(|(at, _)| Decision::Serve(at, Source::Polling, Why::Documents))
            .collect();
        Self {
            rules,
            topics,
            decisions,
        }
    }

    /// The current source of a topic.
    pub fn source(&self, at: usize) -> Source {
        self.topics[at].source
    }

    /// Whether the topic has a stream that may deliver frames.
    pub fn is_streamed(&self, at: usize) -> bool {
        matches!(self.source(at), Source::Stream | Source::Both)
    }

    /// Whether the topic is polled.
    pub fn is_polled(&self, at: usize) -> bool {
        matches!(self.source(at), Source::Polling | Source::Both)
    }

    /// Whether the stream can be given up without losing data. It never sent a frame, and either
    /// polling works or the venue does not know the symbol.
    pub fn can_do_without(&self, at: usize) -> bool {
        let topic = &self.topics[at];
        !topic.has_spoken && (topic.can_be_polled || topic.again_ms.is_some())
    }

    /// The venue accepted the subscription.
    pub fn subscribed(&mut self, at: usize) {
        self.topics[at].is_subscribed = true;
    }

    /// The connection was lost; a new one is being opened.
    pub fn lost(&mut self, now_ms: u64, at: usize) {
        let topic = &mut self.topics[at];
        topic.is_subscribed = false;
        topic.ahead_ms = None;
        topic.silent_ms = topic.silent_ms.min(now_ms + self.rules.first_frame_ms);
    }

    /// The stream delivered a frame. A stream that was given up or never subscribed stays unused.
    pub fn spoke(&mut self, now_ms: u64, at: usize) {
        if !self.is_streamed(at) {
            return;
        }
        let topic = &mut self.topics[at];
        topic.has_spoken = true;
        topic.ahead_ms = None;
        topic.silent_ms = now_ms + topic.silence_ms;
        if topic.source != Source::Stream {
            self.serve(at, Source::Stream, Why::Speaks);
        }
    }

    /// The topic has no stream from now on.
    pub fn no_stream(&mut self, at: usize, why: Why) {
        let source = if self.topics[at].can_be_polled {
            Source::Polling
        } else {
            Source::None
        };
        self.serve(at, source, why);
    }

    /// A polling response arrived; `is_new` means that it differs from the previous one.
    pub fn answered(&mut self, now_ms: u64, at: usize, is_new: bool) {
        let topic = &mut self.topics[at];
        if topic.source == Source::Both && topic.is_subscribed && is_new {
            topic.ahead_ms.get_or_insert(now_ms);
        }
    }

    /// The venue refused the topic's polling request, and would refuse it again for a long time.
    pub fn no_polling(&mut self, now_ms: u64, at: usize, why: Why) {
        let topic = &mut self.topics[at];
        topic.can_be_polled = false;
        topic.again_ms = Some(now_ms + self.rules.again_ms);
        match self.source(at) {
            Source::Both => self.serve(at, Source::Stream, why),
            Source::Polling => self.serve(at, Source::None, why),
            Source::Stream | Source::None => {}
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ms: u64) {
        for at in 0..self.topics.len() {
            self.subscribe_again(now_ms, at);
            let topic = &mut self.topics[at];
            let is_due = topic
                .due_ms(self.rules)
                .is_some_and(|due_ms| due_ms <= now_ms);
            if !is_due {
                continue;
            }
            if topic.source == Source::Stream {
                self.serve(at, Source::Both, Why::Silent);
            } else if topic.has_spoken {
                topic.ahead_ms = None;
                self.decisions.push_back(Decision::Restart(at));
            } else {
                self.serve(at, Source::Polling, Why::Dead);
            }
        }
    }

    /// Allows polling again after a final refusal, because the venue may answer by now.
    fn subscribe_again(&mut self, now_ms: u64, at: usize) {
        let topic = &mut self.topics[at];
        if topic.again_ms.is_none_or(|again_ms| again_ms > now_ms) {
            return;
        }
        topic.again_ms = None;
        topic.can_be_polled = true;
        if topic.source == Source::None {
            self.serve(at, Source::Polling, Why::Again);
        }
    }

    /// When [`Self::tick`] is due, if nothing happens before.
    pub fn timeout_ms(&self) -> u64 {
        let due = |topic: &Tracked| [topic.due_ms(self.rules), topic.again_ms];
        let due = self.topics.iter().flat_map(due).flatten();
        due.min().unwrap_or(u64::MAX)
    }

    /// The next decision.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    fn serve(&mut self, at: usize, source: Source, why: Why) {
        let topic = &mut self.topics[at];
        topic.ahead_ms = None;
        if topic.source != source {
            topic.source = source;
            self.decisions.push_back(Decision::Serve(at, source, why));
        }
    }
}

impl Tracked {
    fn due_ms(&self, rules: Rules) -> Option<u64> {
        match self.source {
            Source::Stream => self.can_be_polled.then_some(self.silent_ms),
            Source::Both => self.ahead_ms.map(|ahead_ms| ahead_ms + rules.proof_ms),
            Source::Polling | Source::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: Rules = Rules {
        first_frame_ms: 5_000,
        proof_ms: 5_000,
        again_ms: 600_000,
    };
    const EITHER: Allowed = Allowed {
        stream: true,
        polling: true,
        silence_ms: 60_000,
    };

    /// One topic and a clock.
    struct Bench {
        sources: Sources,
        now_ms: u64,
    }

    impl Bench {
        fn new(allowed: Allowed) -> Self {
            Self {
                sources: Sources::new(RULES, 0, &[allowed]),
                now_ms: 0,
            }
        }

        /// Advances time to `until_ms`; returns the decisions and their times.
        fn pass(&mut self, until_ms: u64) -> Vec<(u64, Decision)> {
            let mut decided = self.decided();
            while self.sources.timeout_ms() <= until_ms {
                self.now_ms = self.sources.timeout_ms().max(self.now_ms);
                self.sources.tick(self.now_ms);
                decided.extend(self.decided());
            }
            self.now_ms = until_ms;
            decided
        }

        fn decided(&mut self) -> Vec<(u64, Decision)> {
            let decisions = std::iter::from_fn(|| self.sources.poll_decision());
            decisions.map(|decision| (self.now_ms, decision)).collect()
        }
    }

    fn serve(source: Source, why: Why) -> Decision {
        Decision::Serve(0, source, why)
    }

    #[test]
    fn a_stream_that_sends_frames_is_the_only_source() {
        let mut bench = Bench::new(EITHER);
        bench.sources.subscribed(0);
        for now_ms in (1_000..200_000).step_by(4_000) {
            assert_eq!(bench.pass(now_ms), []);
            bench.sources.spoke(now_ms, 0);
        }
        assert_eq!(bench.sources.source(0), Source::Stream);
    }

    #[test]
    fn a_silent_stream_is_also_polled_until_it_sends_a_frame() {
        let mut bench = Bench::new(EITHER);
        bench.sources.subscribed(0);
        let both = (5_000, serve(Source::Both, Why::Silent));
        assert_eq!(bench.pass(50_000), [both]);
        // A quiet market: polling returns the same again and again.
        bench.sources.answered(50_000, 0, false);
        assert_eq!(bench.pass(90_000), []);
        bench.sources.spoke(90_000, 0);
        let again = (90_000, serve(Source::Stream, Why::Speaks));
        assert_eq!(bench.pass(149_999), [again]);
        let silent = (150_000, serve(Source::Both, Why::Silent));
        assert_eq!(bench.pass(150_000), [silent]);
    }

    #[test]
    fn a_stream_that_misses_a_polled_change_is_dead() {
        let mut bench = Bench::new(EITHER);
        bench.sources.subscribed(0);
        bench.pass(5_000);
        bench.sources.answered(6_000, 0, true);
        bench.sources.answered(7_000, 0, true);
        let dead = (11_000, serve(Source::Polling, Why::Dead));
        assert_eq!(bench.pass(1_000_000), [dead]);
    }

    #[test]
    fn frames_of_an_unused_stream_change_nothing() {
        let mut documented = Bench::new(Allowed {
            stream: false,
            ..EITHER
        });
        documented.decided();
        documented.sources.spoke(1_000, 0);
        assert_eq!(documented.pass(100_000), []);
        assert_eq!(documented.sources.source(0), Source::Polling);
        let mut refused = Bench::new(EITHER);
        refused.sources.no_stream(0, Why::NoPath(404));
        refused.sources.spoke(1_000, 0);
        assert_eq!(refused.sources.source(0), Source::Polling);
    }

    #[test]
    fn a_stream_that_delivers_the_polled_change_is_kept() {
        let mut bench = Bench::new(EITHER);
        bench.sources.subscribed(0);
        bench.pass(5_000);
        bench.sources.answered(6_000, 0, true);
        bench.sources.spoke(6_100, 0);
        bench.pass(60_000);
        assert_eq!(bench.sources.source(0), Source::Stream);
    }

    #[test]
    fn a_dead_stream_that_worked_before_is_reconnected() {
        let mut bench = Bench::new(EITHER);
        bench.sources.subscribed(0);
        bench.sources.spoke(1_000, 0);
        bench.pass(61_000);
        bench.sources.answered(62_000, 0, true);
        assert_eq!(bench.pass(70_000), [(67_000, Decision::Restart(0))]);
        assert_eq!(bench.sources.source(0), Source::Both);
    }

    #[test]
    fn a_polled_change_without_a_connection_proves_nothing() {
        let mut bench = Bench::new(EITHER);
        bench.pass(5_000);
        bench.sources.answered(6_000, 0, true);
        assert_eq!(bench.pass(500_000), []);
        assert_eq!(bench.sources.source(0), Source::Both);
        // A change that polling showed before the connection was lost proves nothing either.
        bench.sources.subscribed(0);
        bench.sources.answered(501_000, 0, true);
        bench.sources.lost(502_000, 0);
        assert_eq!(bench.pass(600_000), []);
    }

    #[test]
    fn a_lost_connection_is_soon_replaced_by_polling() {
        let mut bench = Bench::new(EITHER);
        bench.sources.subscribed(0);
        bench.sources.spoke(1_000, 0);
        bench.sources.lost(2_000, 0);
        let both = (7_000, serve(Source::Both, Why::Silent));
        assert_eq!(bench.pass(10_000), [both]);
    }

    #[test]
    fn a_topic_without_polling_is_streamed_or_has_no_source() {
        let mut bench = Bench::new(Allowed {
            polling: false,
            ..EITHER
        });
        assert_eq!(bench.pass(1_000_000), []);
        bench.sources.no_stream(0, Why::NoPath(404));
        let none = (1_000_000, serve(Source::None, Why::NoPath(404)));
        assert_eq!(bench.decided(), [none]);
    }

    #[test]
    fn a_topic_refused_by_stream_and_polling_has_no_source() {
        let mut bench = Bench::new(EITHER);
        bench.pass(5_000);
        let why = Why::NotAnswered("no".to_owned());
        bench.sources.no_polling(5_000, 0, why.clone());
        assert_eq!(bench.decided(), [(5_000, serve(Source::Stream, why))]);
        bench.sources.no_stream(0, Why::NoPath(404));
        assert_eq!(bench.sources.source(0), Source::None);
    }

    #[test]
    fn a_final_polling_refusal_is_retried_after_ten_minutes() {
        let mut bench = Bench::new(Allowed {
            stream: false,
            ..EITHER
        });
        bench.decided();
        let why = Why::NotAnswered("no".to_owned());
        bench.sources.no_polling(0, 0, why.clone());
        let none = (0, serve(Source::None, why));
        let again = (600_000, serve(Source::Polling, Why::Again));
        assert_eq!(bench.pass(5_000_000), [none, again]);
        assert_eq!(bench.sources.source(0), Source::Polling);
    }

    #[test]
    fn a_silent_stream_is_polled_again_after_a_final_refusal() {
        let mut bench = Bench::new(EITHER);
        bench.pass(5_000);
        bench
            .sources
            .no_polling(5_000, 0, Why::NotAnswered("no".to_owned()));
        bench.decided();
        let both = (605_000, serve(Source::Both, Why::Silent));
        assert_eq!(bench.pass(5_000_000), [both]);
    }

    proptest! {
        /// After any events, a topic that may be polled always has a source. Silence longer than
        /// allowed is always covered by polling.
        #[test]
        fn a_topic_that_may_be_polled_always_has_a_source(
            happens in proptest::collection::vec((0_u64..20_000, 0_u8..6), 0..60),
        ) {
            let mut bench = Bench::new(EITHER);
            let mut received_ms = 0;
            for (later_ms, kind) in happens {
                bench.pass(bench.now_ms + later_ms);
                let now_ms = bench.now_ms;
                match kind {
                    0 => bench.sources.subscribed(0),
                    1 => bench.sources.lost(now_ms, 0),
                    2 => {
                        bench.sources.spoke(now_ms, 0);
                        received_ms = now_ms;
                    }
                    3 => bench.sources.answered(now_ms, 0, true),
                    4 => bench.sources.answered(now_ms, 0, false),
                    _ => {}
                }
                prop_assert_ne!(bench.sources.source(0), Source::None);
                let is_long = now_ms >= received_ms + EITHER.silence_ms;
                prop_assert!(!is_long || bench.sources.is_polled(0));
            }
        }
    }
}
