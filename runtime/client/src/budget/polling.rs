//! Market data by polling, planned by weight: for venues that show no other public stream than
//! `tradepro` (`market_data = "documented"`).

use windvane_venue::route::{self, Surface};

/// What has to be known of the market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Of how many symbols. A list of symbols ([`crate::Client::market_polling`]) says it
    /// itself.
    pub symbols: u32,
    /// Best bid and ask.
    pub tops: bool,
    /// So many levels of the book: 5, 10, 20, 50, 100, 500 or 1000; zero for none.
    pub levels: u32,
    /// Mark price and funding rate (futures only).
    pub marks: bool,
}

/// One question that is asked again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Route.
    pub route: &'static str,
    /// Asked for each symbol apart; else once for all.
    pub per_symbol: bool,
    /// The parameter `limit`, where the route has one.
    pub limit: Option<u32>,
    /// Weight of one round over all symbols.
    pub weight: u32,
    /// Time from round to round.
    pub interval_ms: u64,
}

/// No plan keeps the budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollingError {
    /// The intervals would be too long to be of use.
    #[error(
        "polling {symbols} symbols within {weight} of weight per minute would ask every \
         {interval_ms} ms only: take fewer symbols or fewer levels"
    )]
    TooLittle {
        /// Symbols asked for.
        symbols: u32,
        /// Weight per minute.
        weight: u32,
        /// The longest interval that it would take.
        interval_ms: u64,
    },
    /// The surface has no such data.
    #[error("{0} has no route of market data for this")]
    NoRoute(Surface),
}

/// Faster than this, answers repeat each other.
const TOP_MS: u64 = 250;
const BOOK_MS: u64 = 500;
const MARK_MS: u64 = 1_000;
/// Slower than this, a market is not followed any more.
const LONGEST_MS: u64 = 60_000;

/// Which polls at which intervals keep `weight_per_minute`
/// ([`super::Budget::steady_weight`]). All intervals are stretched alike when the shortest useful
/// ones would cost too much.
///
/// ```
/// use windvane_client::budget::polling::{Needs, plan};
/// use windvane_venue::route::Surface;
///
/// let needs = Needs { symbols: 10, tops: true, levels: 20, marks: true };
/// for poll in plan(Surface::Futures, &needs, 840)? {
///     println!("{} every {} ms", poll.route, poll.interval_ms);
/// }
/// # Ok::<(), windvane_client::budget::polling::PollingError>(())
/// ```
pub fn plan(
    surface: Surface,
    needs: &Needs,
    weight_per_minute: u32,
) -> Result<Vec<Poll>, PollingError> {
    let mut polls = Vec::new();
    if needs.tops {
        polls.push(by_symbol_or_all(
            surface,
            "book_ticker",
            needs.symbols,
            TOP_MS,
        )?);
    }
    if needs.levels > 0 {
        polls.push(books(surface, needs)?);
    }
    if needs.marks {
        polls.push(by_symbol_or_all(
            surface,
            "premium_index",
            needs.symbols,
            MARK_MS,
        )?);
    }
    stretch(&mut polls, needs.symbols, weight_per_minute)?;
    Ok(polls)
}

fn by_symbol_or_all(
    surface: Surface,
    name: &str,
    symbols: u32,
    interval_ms: u64,
) -> Result<Poll, PollingError> {
    let route = market_route(surface, name)?;
    let each = route.weight.of(true, None).saturating_mul(symbols);
    let all = route.weight.of(false, None);
    Ok(Poll {
        route: route.name,
        per_symbol: each <= all,
        limit: None,
        weight: each.min(all),
        interval_ms,
    })
}

fn books(surface: Surface, needs: &Needs) -> Result<Poll, PollingError> {
    let route = market_route(surface, "depth")?;
    let limit = Some(needs.levels);
    Ok(Poll {
        route: route.name,
        per_symbol: true,
        limit,
        weight: route.weight.of(true, limit).saturating_mul(needs.symbols),
        interval_ms: BOOK_MS,
    })
}

fn market_route(surface: Surface, name: &str) -> Result<&'static route::Route, PollingError> {
    route::named(&format!("{surface}.{name}")).ok_or(PollingError::NoRoute(surface))
}

fn stretch(polls: &mut [Poll], symbols: u32, weight: u32) -> Result<(), PollingError> {
    // Weight per minute, times a thousand so that no share is rounded away.
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
            symbols,
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

    fn needs(symbols: u32) -> Needs {
        Needs {
            symbols,
            tops: true,
            levels: 20,
            marks: true,
        }
    }

    /// Weight of a plan in one minute.
    fn weight(polls: &[Poll]) -> u64 {
        let cost = |poll: &Poll| u64::from(poll.weight) * 60_000 / poll.interval_ms;
        polls.iter().map(cost).sum()
    }

    #[test]
    fn one_symbol_is_polled_as_fast_as_is_useful() {
        let budget = Budget::new(&documented(Surface::Futures), Shares::default());
        let given = budget.steady_weight(Lane::Query);
        assert_eq!(given, 840);
        let polls = plan(Surface::Futures, &needs(1), given).unwrap();
        let told: Vec<_> = polls
            .iter()
            .map(|poll| (poll.route, poll.per_symbol, poll.weight, poll.interval_ms))
            .collect();
        assert_eq!(
            told,
            [
                ("futures.book_ticker", true, 1, 250),
                ("futures.depth", true, 2, 500),
                ("futures.premium_index", true, 1, 1_000),
            ]
        );
    }

    #[test]
    fn many_symbols_share_one_question_where_there_is_one() {
        let polls = plan(Surface::Futures, &needs(10), 840).unwrap();
        assert_eq!((polls[0].per_symbol, polls[0].weight), (false, 2));
        assert_eq!((polls[1].per_symbol, polls[1].weight), (true, 20));
        assert!(polls[1].interval_ms > 1_500, "{polls:?}");
    }

    #[test]
    fn what_no_budget_allows_is_refused() {
        let refused = plan(Surface::Spot, &needs(1), 840).unwrap_err();
        assert_eq!(refused, PollingError::NoRoute(Surface::Spot));
        let refused = plan(Surface::Futures, &needs(1_000), 10).unwrap_err();
        assert!(matches!(refused, PollingError::TooLittle { .. }));
        assert!(plan(Surface::Futures, &needs(1), 0).is_err());
    }

    proptest! {
        #[test]
        fn a_plan_keeps_its_weight(
            symbols in 1_u32..200, given in 1_u32..3_000,
            levels in proptest::sample::select(vec![0_u32, 5, 50, 100, 1_000]),
            (tops, marks) in any::<(bool, bool)>(),
        ) {
            let needs = Needs { symbols, tops, levels, marks };
            if let Ok(polls) = plan(Surface::Futures, &needs, given) {
                prop_assert!(weight(&polls) <= u64::from(given));
            }
        }
    }
}
