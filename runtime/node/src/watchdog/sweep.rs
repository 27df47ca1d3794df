//! Cancels what rests of a run that is dead or not healthy, until nothing does: order by order, by
//! client order id, never what is not the run's.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use windvane_client::budget::Lane;
use windvane_client::{Client, NotDone};
use windvane_engine::OrderStatus;
use windvane_session::weights::WATCHDOG_LIST_MS;
use windvane_venue::route::Surface;
use windvane_venue::wire::Word;
use windvane_venue::wire::spot::{CancelOrder, OpenOrders};

use super::Plan;

/// So many listings in a row must show nothing.
const CLEAN: u32 = 2;
/// From listings that found orders to the next.
const AGAIN: Duration = Duration::from_millis(250);
/// Between listings while a late request could still arrive.
const LIST_EVERY: Duration = Duration::from_millis(WATCHDOG_LIST_MS);
/// After a failure, doubled each time from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Waits so long for its share of the weight.
const PATIENCE: Duration = Duration::from_secs(5);
/// Cancels that are on their way at the same time.
const AT_ONCE: usize = 8;
/// While it waits for longer, it says that it lives this often.
const TELL_EVERY: Duration = Duration::from_secs(30);
/// Nobody is asked for ever: not who has refused for so long, nor who was away for so long.
const GIVE_UP: (Duration, Duration) = (Duration::from_hours(1), Duration::from_hours(24));

/// An order whose cancel was answered is cancelled again after this, if it is still listed: the list may
/// be behind by ten seconds.
const CANCEL_AGAIN: Duration = Duration::from_secs(5);
/// `CANCEL_REJECTED` and `NO_SUCH_ORDER`: the order is over.
const NOTHING_TO_CANCEL: [i64; 2] = [-2011, -2013];

/// When the cancel of each order was answered last.
#[derive(Debug, Default)]
struct Answered(BTreeMap<String, Instant>);

impl Answered {
    /// Whether an order that is listed is to be cancelled now.
    fn is_due(&self, id: &str, now: Instant) -> bool {
        let answered = self.0.get(id);
        answered.is_none_or(|answered| now.duration_since(*answered) >= CANCEL_AGAIN)
    }
}

/// What one listing of every symbol showed.
#[derive(Debug, Default)]
struct Round {
    /// Own orders that are listed as open.
    listed: usize,
    /// Those of them that were cancelled now.
    cancelled: usize,
    /// Questions that were refused, and their words.
    refused: Option<String>,
    /// Something is not known: wait at least so long.
    wait: Option<Duration>,
}

/// Cancels until nothing of the run rests and nothing of it can arrive any more; `told` is called
/// with each round. Answers how many orders it found, or why it gave up.
pub(super) async fn sweep(
    client: &Client,
    plan: &Plan,
    told: &mut dyn FnMut(),
) -> Result<usize, String> {
    let client = client.in_lane(Lane::Cancel).with_patience(PATIENCE);
    let begun = Instant::now();
    let nothing_arrives = begun + Duration::from_millis(plan.absence_ms);
    let (mut clean, mut retry) = (0, RETRY.0);
    let mut cancels = Answered::default();
    let (mut taken, mut answered) = (begun, begun);
    loop {
        told();
        let asked = Instant::now();
        let round = round(&client, plan, &mut cancels).await;
        if let Some(words) = &round.refused {
            tracing::error!(words, "the venue refuses to list or to cancel");
            // Most often it is the clock.
            let _ = client.sync_clock(Surface::Spot, 1).await;
        } else {
            taken = asked;
        }
        if round.refused.is_some() || round.wait.is_some() {
            if taken.elapsed() > GIVE_UP.0 || answered.elapsed() > GIVE_UP.1 {
                let away = || "the venue is away".to_owned();
                return Err(round.refused.unwrap_or_else(away));
            }
            clean = 0;
            rest(round.wait.unwrap_or_default().max(retry), told).await;
            retry = (retry * 2).min(RETRY.1);
            continue;
        }
        (answered, retry) = (asked, RETRY.0);
        clean = if round.listed == 0 { clean + 1 } else { 0 };
        if clean >= CLEAN && asked >= nothing_arrives {
            return Ok(cancels.0.len());
        }
        let last = nothing_arrives.saturating_duration_since(Instant::now());
        let pause = match clean {
            // What is listed was cancelled before: the list is behind.
            0 if round.cancelled == 0 => LIST_EVERY,
            ..CLEAN => AGAIN,
            _ => LIST_EVERY.min(last),
        };
        sleep(pause).await;
    }
}

/// Waits, and goes on telling that it lives.
async fn rest(pause: Duration, told: &mut dyn FnMut()) {
    let until = Instant::now() + pause;
    while let left = until.saturating_duration_since(Instant::now())
        && !left.is_zero()
    {
        told();
        sleep(left.min(TELL_EVERY)).await;
    }
}

/// Lists every symbol, and cancels what is the run's.
async fn round(client: &Client, plan: &Plan, answered: &mut Answered) -> Round {
    let mut round = Round::default();
    for symbol in &plan.symbols {
        let question = OpenOrders::new().symbol(symbol.as_str());
        let listed = match client.spot().open_orders(&question).await.into_result() {
            Ok(listed) => listed,
            Err(not_done) => {
                round.failed(&not_done, symbol);
                continue;
            }
        };
        let open = listed.into_iter().filter(|order| !is_over(&order.status));
        let own = open.map(|order| order.client_order_id);
        let own: Vec<_> = own.filter(|id| plan.is_own(id)).collect();
        round.listed += own.len();
        let now = Instant::now();
        let due: Vec<_> = own
            .into_iter()
            .filter(|id| answered.is_due(id, now))
            .collect();
        round.cancelled += due.len();
        for some in due.chunks(AT_ONCE) {
            let cancels = some.iter().map(|id| {
                let (client, symbol, id) = (client.clone(), symbol.clone(), id.clone());
                async move { (cancel(&client, &symbol, &id).await, id) }
            });
            for (became, id) in cancels.collect::<JoinSet<_>>().join_all().await {
                match became {
                    Ok(()) => drop(answered.0.insert(id, Instant::now())),
                    Err(not_done) => round.failed(&not_done, symbol),
                }
            }
        }
    }
    round
}

/// Whether a listed order has ended: a venue may list those of the last seconds.
fn is_over(status: &Word<OrderStatus>) -> bool {
    matches!(status, Word::Known(status) if status.is_final())
}

async fn cancel(client: &Client, symbol: &str, id: &str) -> Result<(), NotDone> {
    let request = CancelOrder::new(symbol).client_order_id(id);
    match client.spot().cancel_order(&request).await.into_result() {
        Ok(_) => tracing::warn!(symbol, id, "cancelled"),
        // It was filled or cancelled meanwhile: the next listing tells.
        Err(NotDone::Refused(refusal))
            if refusal
                .code()
                .is_some_and(|code| NOTHING_TO_CANCEL.contains(&code)) =>
        {
            tracing::info!(symbol, id, %refusal, "not cancelled");
        }
        Err(not_done) => return Err(not_done),
    }
    Ok(())
}

impl Round {
    fn failed(&mut self, not_done: &NotDone, symbol: &str) {
        tracing::warn!(symbol, %not_done, "asked again");
        match not_done {
            NotDone::Refused(_) => self.refused = Some(not_done.to_string()),
            NotDone::Unknown(_) => self.wait = self.wait.max(Some(Duration::ZERO)),
            NotDone::Wait(wait) => {
                // The longest duration stands for never.
                let after = Some(wait.after).filter(|after| *after < Duration::MAX);
                self.wait = self.wait.max(Some(after.unwrap_or(RETRY.1)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_a_late_list_still_has_is_not_cancelled_at_each_listing() {
        let (mut answered, begin) = (Answered::default(), Instant::now());
        // A list that is ten seconds behind, asked for four times a second.
        let asked = (0..40).map(|nth| begin + AGAIN * nth);
        let mut cancels = 0;
        for at in asked {
            if answered.is_due("a.b.1", at) {
                answered.0.insert("a.b.1".to_owned(), at);
                cancels += 1;
            }
        }
        assert_eq!(cancels, 2);
        assert!(answered.is_due("a.b.2", begin));
    }

    #[test]
    fn a_listed_order_that_has_ended_is_not_cancelled() {
        assert!(is_over(&Word::Known(OrderStatus::Filled)));
        assert!(!is_over(&Word::Known(OrderStatus::PartiallyFilled)));
        assert!(!is_over(&Word::Other("NEW_WORD".to_owned())));
    }
}
