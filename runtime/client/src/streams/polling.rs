//! Market data by asking again and again, at the intervals of a plan: for venues whose only
//! public stream is `tradepro`.

use std::time::Duration;

use tokio::time::Instant;
use windvane_venue::route::{self, Surface};
use windvane_venue::wire::Parameters;

use crate::budget::Lane;
use crate::budget::polling::{Needs, Poll, PollingError, plan};
use crate::client::Client;
use crate::outcome::Outcome;
use crate::transport::RawAnswer;

/// Questions that are due by time; see [`Client::market_polling`].
#[derive(Debug)]
pub struct MarketPolling {
    client: Client,
    questions: Vec<Question>,
}

#[derive(Debug)]
struct Question {
    route: &'static route::Route,
    symbol: Option<String>,
    parameters: Parameters,
    interval: Duration,
    due: Instant,
}

/// One question and what became of it.
#[derive(Debug)]
pub struct Polled {
    /// The route that was asked; `windvane_venue::market_stream::polling` reads its answers.
    pub route: &'static str,
    /// The symbol asked for; `None` where all were.
    pub symbol: Option<String>,
    /// The answer.
    pub outcome: Outcome<RawAnswer>,
}

impl Client {
    /// Polls books, tops and marks of these symbols as fast as is useful and as the Query lane's
    /// part of the budget allows, evenly over each interval. `needs.symbols` is set by the list.
    ///
    /// ```no_run
    /// use windvane_client::budget::polling::Needs;
    /// use windvane_venue::route::Surface;
    ///
    /// # async fn watch(client: windvane_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let needs = Needs { symbols: 0, tops: true, levels: 20, marks: true };
    /// let mut polling = client.market_polling(Surface::Futures, &["BTCUSDT"], &needs)?;
    /// loop {
    ///     let polled = polling.next().await;
    ///     println!("{} {:?}", polled.route, polled.outcome);
    /// }
    /// # }
    /// ```
    pub fn market_polling(
        &self,
        surface: Surface,
        symbols: &[&str],
        needs: &Needs,
    ) -> Result<MarketPolling, PollingError> {
        let weight = self.with_budget(surface, |budget, _| budget.steady_weight(Lane::Query));
        let needs = Needs {
            symbols: u32::try_from(symbols.len()).unwrap_or(u32::MAX),
            ..*needs
        };
        let mut questions = Vec::new();
        for poll in plan(surface, &needs, weight)? {
            let route = route::named(poll.route).ok_or(PollingError::NoRoute(surface))?;
            questions.extend(round(&poll, route, symbols));
        }
        Ok(MarketPolling {
            client: self.in_lane(Lane::Query),
            questions,
        })
    }
}

/// One question for each symbol, spread over the interval; or one for all.
fn round(poll: &Poll, route: &'static route::Route, symbols: &[&str]) -> Vec<Question> {
    let interval = Duration::from_millis(poll.interval_ms);
    let now = Instant::now();
    let question = |symbol: Option<&str>, due| {
        let mut parameters = Parameters::new();
        if let Some(symbol) = symbol {
            parameters.push("symbol", symbol);
        }
        if let Some(limit) = poll.limit {
            parameters.push("limit", limit.to_string());
        }
        Question {
            route,
            symbol: symbol.map(str::to_owned),
            parameters,
            interval,
            due,
        }
    };
    if !poll.per_symbol {
        return vec![question(None, now)];
    }
    let count = u32::try_from(symbols.len()).unwrap_or(u32::MAX).max(1);
    let spread = symbols.iter().zip(0_u32..);
    let spread = spread.map(|(symbol, at)| question(Some(symbol), now + interval * at / count));
    spread.collect()
}

impl MarketPolling {
    /// Waits until a question is due, asks it, and gives what became of it. Rounds that were
    /// missed, because answers took long or the venue said wait, are not made up for.
    pub async fn next(&mut self) -> Polled {
        let Some(at) = (0..self.questions.len()).min_by_key(|at| self.questions[*at].due) else {
            // A plan that needs nothing asks nothing.
            return std::future::pending().await;
        };
        let question = &self.questions[at];
        let (route, symbol) = (question.route, question.symbol.clone());
        tokio::time::sleep_until(question.due).await;
        let outcome = self.client.call(route, None, &question.parameters).await;
        let now = Instant::now();
        let question = &mut self.questions[at];
        question.due = (question.due + question.interval).max(now);
        if let Outcome::Wait(wait) = &outcome {
            question.due = now + wait.after.max(question.interval);
        }
        Polled {
            route: route.name,
            symbol,
            outcome,
        }
    }
}
