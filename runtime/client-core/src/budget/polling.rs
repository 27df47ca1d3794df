//! Plans the polling of market data by weight: which requests serve which topics, and how often
//! each is sent.

use windvane_protocol::market_stream::{Feed, Topic};
use windvane_protocol::route::{self, Need, Param, Route, Surface};

/// One request that is sent repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Route.
    pub route: &'static Route,
    /// The requested symbol; `None` if one request covers all symbols.
    pub symbol: Option<String>,
    /// Its other parameters.
    pub parameters: Vec<(&'static str, String)>,
    /// The topics that its response serves.
    pub topics: Vec<Topic>,
    /// Weight of one request.
    pub weight: u32,
    /// Time between two requests, in milliseconds.
    pub interval_ms: u64,
}

/// No polling plan fits the budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollingError {
    /// The intervals would be too long to be useful.
    #[error("{}; take fewer symbols or fewer topics", too_little(*topics, *weight, *interval_ms))]
    TooLittle {
        /// Number of requested topics.
        topics: usize,
        /// Weight per minute that polling may use.
        weight: u32,
        /// The longest interval between two requests if the plan uses no more than this weight, in
        /// milliseconds.
        interval_ms: u64,
    },
    /// No documented route returns the data of the topic's stream.
    #[error("{surface} has no route that returns the data of {topic}")]
    NoRoute {
        /// Surface.
        surface: Surface,
        /// The topic.
        topic: Topic,
    },
}

/// Levels of a polled book that replaces a stream of differences: as many as the lowest weight
/// allows (docs/interface/limits.md#weights).
const BOOK_LEVELS: u32 = 50;
/// Trades per response. If more trades happen between two requests, the rest is lost.
const TRADES: u32 = 1_000;
/// A market that would be polled less often than this is not polled at all.
const LONGEST_MS: u64 = 60_000;

/// Plans the polls and their intervals that serve `topics` within `weight_per_minute`
/// ([`super::Budget::steady_weight`]). Each feed has a shortest useful interval; below it,
/// responses only repeat each other. If these intervals cost too much, all are stretched by the
/// same factor.
///
/// ```
/// use windvane_client_core::budget::polling::plan;
/// use windvane_protocol::route::Surface;
///
/// let topics = ["btcusdt@bookTicker".parse()?, "btcusdt@depth20".parse()?];
/// for poll in plan(Surface::Futures, &topics, 840)? {
///     println!("{} every {} ms", poll.route.name, poll.interval_ms);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(
    surface: Surface,
    topics: &[Topic],
    weight_per_minute: u32,
) -> Result<Vec<Poll>, PollingError> {
    let mut polls: Vec<Poll> = Vec::new();
    for topic in topics {
        let poll = question(surface, topic)?;
        let same = polls.iter_mut().find(|known| {
            (known.route.name, &known.symbol, &known.parameters)
                == (poll.route.name, &poll.symbol, &poll.parameters)
        });
        match same {
            Some(known) => known.topics.push(topic.clone()),
            None => polls.push(poll),
        }
    }
    let mut polls = join(&polls);
    stretch(&mut polls, topics.len(), weight_per_minute)?;
    Ok(polls)
}

fn too_little(topics: usize, weight: u32, interval_ms: u64) -> String {
    match weight {
        0 => format!("no weight is left for polling {topics} topics"),
        _ => format!(
            "polling {topics} topics with weight {weight} per minute is possible only every {} s",
            interval_ms.div_ceil(1_000)
        ),
    }
}

/// Whether a documented route returns the data of the topic's stream.
pub fn can_be_polled(surface: Surface, topic: &Topic) -> bool {
    question(surface, topic).is_ok()
}

/// The request whose response has the data of a topic's stream, for its symbol alone.
fn question(surface: Surface, topic: &Topic) -> Result<Poll, PollingError> {
    let limit = |limit: u32| vec![("limit", limit.to_string())];
    let no_route = || PollingError::NoRoute {
        surface,
        topic: topic.clone(),
    };
    let (symbol, name, parameters, interval_ms) = match topic {
        Topic::AllMarkPrices { .. } => (None, "premium_index", Vec::new(), 1_000),
        Topic::Of { symbol, feed } => {
            let (name, parameters, interval_ms) = match *feed {
                Feed::BookTicker => ("book_ticker", Vec::new(), 250),
                Feed::Depth { .. } => ("depth", limit(BOOK_LEVELS), 500),
                Feed::PartialDepth { levels, .. } => ("depth", limit(levels as u32), 500),
                Feed::MarkPrice { .. } => ("premium_index", Vec::new(), 1_000),
                Feed::Trade | Feed::TradePro => ("trades", limit(TRADES), 1_000),
                Feed::AggTrade => ("agg_trades", limit(TRADES), 4_000),
                Feed::Ticker | Feed::MiniTicker => ("ticker_24hr", Vec::new(), 2_000),
                Feed::Kline(interval) => {
                    let mut parameters = vec![("interval", interval.to_string())];
                    // The current bar, and the previous one until it is known as closed.
                    parameters.extend(limit(2));
                    ("klines", parameters, 2_000)
                }
                Feed::ForceOrder => return Err(no_route()),
            };
            (Some(symbol.clone()), name, parameters, interval_ms)
        }
    };
    let route = route::named(&format!("{surface}.{name}")).ok_or_else(no_route)?;
    let limit_sent = parameters.iter().find(|(name, _)| *name == "limit");
    let limit_sent = limit_sent.and_then(|(_, limit)| limit.parse().ok());
    Ok(Poll {
        route,
        weight: route.weight.of(symbol.is_some(), limit_sent),
        symbol,
        parameters,
        topics: vec![topic.clone()],
        interval_ms,
    })
}

/// Requests all symbols at once where that costs less than one request per symbol.
fn join(polls: &[Poll]) -> Vec<Poll> {
    let mut joined: Vec<Poll> = Vec::new();
    for poll in polls {
        let of_route = polls
            .iter()
            .filter(|other| other.route.name == poll.route.name);
        // `None` if one request of this route covers all symbols in any case; it serves the others
        // too.
        let each = of_route.map(|other| other.symbol.as_ref().map(|_| other.weight));
        let each: Option<u32> = each.sum();
        let all = poll.route.weight.of(false, None);
        if needs_symbol(poll.route) || each.is_some_and(|each| each <= all) {
            joined.push(poll.clone());
            continue;
        }
        let same = |known: &&mut Poll| known.route.name == poll.route.name;
        match joined.iter_mut().find(same) {
            Some(known) => known.topics.extend(poll.topics.iter().cloned()),
            None => joined.push(Poll {
                symbol: None,
                weight: all,
                ..poll.clone()
            }),
        }
    }
    joined
}

fn needs_symbol(route: &Route) -> bool {
    let is_it = |param: &Param| param.name == "symbol" && param.need == Need::Required;
    route.params.iter().any(is_it)
}

fn stretch(polls: &mut [Poll], topics: usize, weight: u32) -> Result<(), PollingError> {
    // Weight per minute, times 1,000, so that no share is rounded down to zero.
    let cost = |poll: &Poll| u64::from(poll.weight) * 60_000 * 1_000 / poll.interval_ms;
    let wanted: u64 = polls.iter().map(cost).sum();
    let given = u64::from(weight) * 1_000;
    if wanted > given {
        for poll in &mut *polls {
            let stretched = u128::from(poll.interval_ms) * u128::from(wanted);
            let stretched = stretched.div_ceil(u128::from(given.max(1)));
            poll.interval_ms = u64::try_from(stretched).unwrap_or(u64::MAX);
        }
    }
    let longest = polls.iter().map(|poll| poll.interval_ms).max();
    match longest.filter(|longest| *longest > LONGEST_MS) {
        None => Ok(()),
        Some(interval_ms) => Err(PollingError::TooLittle {
            topics,
            weight,
            interval_ms,
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::{Budget, Lane, Shares, documented};

    /// Topics of these streams for so many symbols.
    fn topics(symbols: u32, streams: &[&str]) -> Vec<Topic> {
        let symbols = (0..symbols).map(|at| format!("a{at}usdt"));
        let topics =
            symbols.flat_map(|symbol| streams.iter().map(move |one| format!("{symbol}@{one}")));
        topics.map(|topic| topic.parse().unwrap()).collect()
    }

    const STREAMS: [&str; 3] = ["bookTicker", "depth20", "markPrice"];

    /// Weight of a plan per minute.
    fn weight(polls: &[Poll]) -> u64 {
        let cost = |poll: &Poll| u64::from(poll.weight) * 60_000 / poll.interval_ms;
        polls.iter().map(cost).sum()
    }

    #[test]
    fn one_symbol_is_polled_as_fast_as_is_useful() {
        let budget = Budget::new(&documented(Surface::Futures), Shares::default());
        let given = budget.steady_weight(Lane::Query);
        assert_eq!(given, 840);
        let polls = plan(Surface::Futures, &topics(1, &STREAMS), given).unwrap();
        let named: Vec<_> = polls
            .iter()
            .map(|poll| (poll.route.name, poll.weight, poll.interval_ms))
            .collect();
        assert_eq!(
            named,
            [
                ("futures.book_ticker", 1, 250),
                ("futures.depth", 2, 500),
                ("futures.premium_index", 1, 1_000),
            ]
        );
        assert!(
            polls
                .iter()
                .all(|poll| poll.symbol.as_deref() == Some("A0USDT"))
        );
    }

    #[test]
    fn many_symbols_share_one_request_where_the_route_allows_it() {
        let polls = plan(Surface::Futures, &topics(10, &STREAMS), 840).unwrap();
        let of = |name: &str| {
            let of_route = polls.iter().filter(|poll| poll.route.name == name);
            of_route.collect::<Vec<_>>()
        };
        let tops = of("futures.book_ticker");
        assert_eq!((tops.len(), &tops[0].symbol, tops[0].weight), (1, &None, 2));
        assert_eq!(tops[0].topics.len(), 10);
        assert_eq!(of("futures.depth").len(), 10);
        assert!(of("futures.depth")[0].interval_ms > 1_500, "{polls:?}");
        assert_eq!(of("futures.premium_index").len(), 1);
    }

    #[test]
    fn topics_of_one_request_share_its_response() {
        let mut wanted = topics(1, &["ticker", "miniTicker", "trade", "tradepro"]);
        wanted.push("!markPrice@arr".parse().unwrap());
        wanted.extend(topics(1, &["markPrice@1s"]));
        let polls = plan(Surface::Futures, &wanted, 840).unwrap();
        let served: Vec<_> = polls.iter().map(|poll| poll.topics.len()).collect();
        assert_eq!(served, [2, 2, 2]);
    }

    #[test]
    fn a_route_that_needs_a_symbol_gets_one_request_per_symbol() {
        let streams = [
            "depth", "depth5", "trade", "aggTrade", "kline_1m", "kline_1h",
        ];
        let polls = plan(Surface::Spot, &topics(2, &streams), 10_000).unwrap();
        assert_eq!(polls.len(), 12);
        assert!(polls.iter().all(|poll| poll.symbol.is_some()));
    }

    #[test]
    fn a_plan_that_does_not_fit_the_budget_is_refused() {
        let refused = plan(Surface::Spot, &topics(1, &["markPrice"]), 840).unwrap_err();
        assert!(matches!(refused, PollingError::NoRoute { .. }));
        let refused = plan(Surface::Futures, &topics(1, &["forceOrder"]), 840).unwrap_err();
        assert!(matches!(refused, PollingError::NoRoute { .. }));
        let refused = plan(Surface::Futures, &topics(1_000, &STREAMS), 10).unwrap_err();
        assert!(matches!(refused, PollingError::TooLittle { .. }));
        let refused = plan(Surface::Futures, &topics(1, &STREAMS), 0).unwrap_err();
        let text = refused.to_string();
        assert!(text.starts_with("no weight is left for polling "), "{text}");
    }

    proptest! {
        #[test]
        fn a_plan_keeps_its_weight_and_serves_every_topic(
            symbols in 1_u32..100, given in 1_u32..3_000,
            streams in proptest::sample::subsequence(
                vec!["bookTicker", "depth", "depth5", "markPrice", "tradepro", "aggTrade",
                    "ticker", "miniTicker", "kline_1m"], 1..9),
        ) {
            let topics = topics(symbols, &streams);
            if let Ok(polls) = plan(Surface::Futures, &topics, given) {
                prop_assert!(weight(&polls) <= u64::from(given));
                let served: usize = polls.iter().map(|poll| poll.topics.len()).sum();
                prop_assert_eq!(served, topics.len());
            }
        }
    }
}
