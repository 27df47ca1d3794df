//! Timers of strategies: their rate is limited over time, none is lost, and the runtime's own timers
//! do not wait for them.

use windvane_model::effect::Effect;
use windvane_model::{EventKind, Input, Intent, Request, Side, Time};

use super::support::{Account, MM, limit};
use super::world::ready;

/// Sets a timer for the next moment, as the strategy would in each timer event.
fn rearm(account: &mut Account, tokens: impl Iterator<Item = i64>) {
    let time = account.now;
    let intents: Vec<_> = tokens
        .map(|token| Intent::SetTimer { time, token })
        .collect();
    account.engine.handle(
        account.now,
        Input::Answer {
            strategy: MM,
            intents: &intents,
        },
    );
}

/// The tokens of the timer events since the last call.
fn fired(account: &mut Account) -> Vec<i64> {
    let events = std::mem::take(&mut account.events);
    let timers = events
        .iter()
        .filter(|(_, kind, _)| *kind == EventKind::Timer);
    timers.map(|(.., fields)| fields[0]).collect()
}

#[test]
fn timers_that_set_each_other_fire_a_thousand_times_a_second() {
    let mut account = ready();
    rearm(&mut account, 0..64);
    let (begin, mut counts) = (account.now, [0_u32; 64]);
    while account.now < begin.plus_ms(2_000) {
        account.handle(Input::Timeout);
        let tokens = fired(&mut account);
        for token in &tokens {
            counts[*token as usize] += 1;
        }
        rearm(&mut account, tokens.into_iter());
    }
    let all: u32 = counts.iter().sum();
    assert!((1_000..=2_064).contains(&all), "{all} events in 2 s");
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn a_timeout_fires_a_few_timers_of_strategies_and_loses_none() {
    let mut account = ready();
    let at = account.now.plus_ms(100);
    let intents: Vec<_> = (0..64)
        .map(|token| Intent::SetTimer { time: at, token })
        .collect();
    let strategy = MM;
    let intents = &intents;
    let answer = Input::Answer { strategy, intents };
    account.engine.handle(account.now, answer);
    account.pass(200);
    let mut tokens = fired(&mut account);
    assert_eq!(tokens, (0..8).collect::<Vec<_>>());
    while tokens.len() < 64 {
        let due = account.engine.poll_timeout().map(|(time, _)| time);
        assert!(due.is_some_and(|due| due <= account.now), "{due:?}");
        account.handle(Input::Timeout);
        tokens.extend(fired(&mut account));
    }
    assert_eq!(tokens, (0..64).collect::<Vec<_>>());
}

#[test]
fn a_countdown_is_renewed_before_strategies_get_their_timers() {
    let mut account = ready();
    account.rest();
    let intents: Vec<_> = (0..64)
        .map(|token| Intent::SetTimer {
            time: Time(0),
            token,
        })
        .collect();
    // The renewal and the timers are due at the same timeout.
    account.submit(MM, limit(Side::Buy, 980, 1));
    account.seconds(8);
    let strategy = MM;
    let intents = &intents;
    let answer = Input::Answer { strategy, intents };
    account.engine.handle(account.now, answer);
    account.now = account.now.plus_ms(4_000);
    account.alive();
    account.clock();
    account.engine.handle(account.now, Input::Timeout);
    let effects = std::iter::from_fn(|| account.engine.poll_effect());
    let kinds: Vec<_> = effects
        .filter_map(|effect| match effect {
            Effect::Deliver { event, .. } if event.kind == EventKind::Timer => Some("timer"),
            Effect::Send { request, .. } if matches!(*request, Request::Countdown { .. }) => {
                Some("countdown")
            }
            _ => None,
        })
        .collect();
    assert_eq!(kinds.first(), Some(&"countdown"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "timer").count(), 8);
}
