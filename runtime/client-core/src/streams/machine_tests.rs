//! Properties of a stream, tested against a venue that may do anything.

use proptest::prelude::*;

use super::GapReason;
use super::machine::{Action, Emit, Input, KeyRules, LinkRules, Machine, Renewal, Rules};

type Frame = String;

fn rules(has_key: bool, commands: usize) -> Rules {
    Rules {
        link: LinkRules {
            ping_every_ms: 10_000,
            pong_within_ms: 10_000,
            silence_max_ms: None,
            answer_within_ms: 10_000,
            messages_per_s: 5,
        },
        backoff_ms: (500, 30_000),
        age_max_ms: 80_000_000,
        overlap_ms: 3_000,
        connect_within_ms: 10_000,
        good_after_ms: 60_000,
        key: has_key.then_some(KeyRules {
            renew_every_ms: 1_200_000,
            life_ms: 3_600_000,
        }),
        commands: (0..commands).map(|at| format!("command {at}")).collect(),
        seed: 7,
    }
}

/// A machine, a clock and a log of all actions.
struct Bench {
    machine: Machine<Frame>,
    now_ms: u64,
    done: Vec<(u64, Action<Frame>)>,
    open: Vec<u64>,
}

impl Bench {
    fn new(rules: Rules) -> Self {
        let mut bench = Self {
            machine: Machine::new(rules, 0),
            now_ms: 0,
            done: Vec::new(),
            open: Vec::new(),
        };
        bench.input(Input::Tick);
        bench
    }

    fn input(&mut self, input: Input<Frame>) {
        if let Input::NotOpened(link, _) | Input::Closed(link) = &input {
            self.open.retain(|open| open != link);
        }
        self.machine.handle(self.now_ms, input);
        while let Some(action) = self.machine.poll_action() {
            match &action {
                Action::Open(link, _) => self.open.push(*link),
                Action::Close(link) => self.open.retain(|open| open != link),
                _ => {}
            }
            self.done.push((self.now_ms, action));
        }
    }

    /// Advances time to `until_ms`, with a tick whenever the machine requests one.
    fn pass(&mut self, until_ms: u64) {
        loop {
            let due = self.machine.timeout_ms(self.now_ms);
            assert!(
                due > self.now_ms,
                "the machine requests the same instant again"
            );
            if due > until_ms {
                break;
            }
            self.now_ms = due;
            self.input(Input::Tick);
        }
        self.now_ms = until_ms;
    }

    /// Answers every action from index `from` on, as a working venue does, until `until_ms`.
    fn good_venue(&mut self, mut from: usize, until_ms: u64) {
        loop {
            while from < self.done.len() {
                let (_, action) = self.done[from].clone();
                from += 1;
                match action {
                    Action::CreateKey => self.input(Input::Key(Ok("key".to_owned()))),
                    Action::RenewKey(_) => self.input(Input::Renewed(Renewal::Done)),
                    Action::Open(link, _) => self.input(Input::Opened(link)),
                    Action::Send(link, _) => self.input(Input::Answer(link)),
                    Action::Ping(link) => self.input(Input::Pong(link)),
                    Action::Close(_) | Action::Emit(_) => {}
                }
            }
            let due = self.machine.timeout_ms(self.now_ms).min(until_ms);
            self.pass(due);
            if from == self.done.len() && self.now_ms >= until_ms {
                break;
            }
        }
    }

    fn emitted(&self) -> Vec<Emit<Frame>> {
        let emitted = self.done.iter().filter_map(|(_, action)| match action {
            Action::Emit(emit) => Some(emit.clone()),
            _ => None,
        });
        emitted.collect()
    }

    fn is_connected(&self) -> bool {
        let last = self
            .emitted()
            .into_iter()
            .rev()
            .find_map(|emit| match emit {
                Emit::Connected => Some(true),
                Emit::Gap(_) => Some(false),
                _ => None,
            });
        last.unwrap_or(false)
    }

    fn count(&self, is_counted: impl Fn(&Action<Frame>) -> bool) -> usize {
        self.done
            .iter()
            .filter(|(_, action)| is_counted(action))
            .count()
    }
}

/// Any event, on any connection so far.
fn anything() -> impl Strategy<Value = (u64, u8, u64)> {
    (0_u64..40_000, 0_u8..12, 0_u64..4)
}

fn input(bench: &Bench, kind: u8, back: u64) -> Input<Frame> {
    let links = bench.count(|action| matches!(action, Action::Open(..)));
    let link = (links as u64).saturating_sub(1 + back);
    match kind {
        0 | 1 => Input::Opened(link),
        2 => Input::NotOpened(link, None),
        3 => Input::Closed(link),
        4 => Input::Key(Ok("key".to_owned())),
        5 => Input::Key(Err(Some(1_000))),
        6 => Input::Renewed(Renewal::Failed),
        7 => Input::Renewed(Renewal::Dead),
        8 => Input::KeyExpired(link, bench.now_ms as i64),
        9 => Input::Frame(link, "frame".to_owned()),
        10 => Input::Answer(link),
        _ => Input::Pong(link),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn after_any_events_the_stream_reconnects_to_a_working_venue(
        events in proptest::collection::vec(anything(), 0..60), has_key in any::<bool>(),
    ) {
        let mut bench = Bench::new(rules(has_key, 2));
        for (passed, kind, back) in events {
            let input = input(&bench, kind, back);
            bench.input(input);
            let until_ms = bench.now_ms + passed;
            bench.pass(until_ms);
            prop_assert!(bench.open.len() <= 2, "at most two connections: {:?}", bench.open);
        }
        // Open connections are answered. Requests from before are not.
        let from = bench.done.len();
        let until_ms = bench.now_ms + 120_000;
        bench.good_venue(from, until_ms);
        prop_assert!(bench.is_connected());
        prop_assert_eq!(bench.open.len(), 1);
    }

    #[test]
    fn gaps_and_connections_take_turns(
        events in proptest::collection::vec(anything(), 0..80), has_key in any::<bool>(),
    ) {
        let mut bench = Bench::new(rules(has_key, 1));
        for (passed, kind, back) in events {
            let input = input(&bench, kind, back);
            bench.input(input);
            let until_ms = bench.now_ms + passed;
            bench.pass(until_ms);
        }
        let mut is_connected = false;
        for emit in bench.emitted() {
            match emit {
                Emit::Connected => {
                    prop_assert!(!is_connected);
                    is_connected = true;
                }
                Emit::Gap(_) => {
                    prop_assert!(is_connected);
                    is_connected = false;
                }
                _ => {}
            }
        }
    }

    #[test]
    fn no_second_holds_more_messages_than_allowed(commands in 0_usize..40) {
        let mut bench = Bench::new(rules(false, commands));
        bench.good_venue(0, 60_000);
        prop_assert!(bench.is_connected());
        let sent: Vec<u64> = bench
            .done
            .iter()
            .filter(|(_, action)| matches!(action, Action::Send(..) | Action::Ping(_)))
            .map(|(at, _)| *at)
            .collect();
        for at in &sent {
            let within = sent.iter().filter(|other| (*at..at + 1_000).contains(other));
            // The fifth message is reserved for a PONG.
            prop_assert!(within.count() <= 4);
        }
    }
}

#[test]
fn an_old_connection_is_replaced_without_a_gap() {
    let mut bench = Bench::new(rules(true, 1));
    bench.good_venue(0, 79_999_999);
    let (opened, from) = (bench.open.clone(), bench.done.len());
    assert_eq!(opened, [0]);
    bench.pass(80_000_000);
    bench.input(Input::Key(Ok("key".to_owned())));
    bench.input(Input::Opened(1));
    bench.input(Input::Frame(0, "a".to_owned()));
    bench.input(Input::Answer(1));
    bench.input(Input::Frame(1, "a".to_owned()));
    bench.input(Input::Frame(1, "b".to_owned()));
    bench.pass(80_003_000);
    bench.input(Input::Frame(1, "c".to_owned()));
    let frames: Vec<_> = bench
        .done
        .iter()
        .skip(from)
        .filter_map(|(_, action)| match action {
            Action::Emit(Emit::Frame(frame)) => Some(frame.as_str()),
            Action::Emit(Emit::Gap(_) | Emit::Connected) => Some("gap"),
            _ => None,
        })
        .collect();
    assert_eq!(frames, ["a", "b", "c"]);
    assert_eq!(bench.open, [1]);
}

#[test]
fn an_unanswered_ping_ends_a_connection_ten_seconds_later() {
    let mut bench = Bench::new(rules(false, 0));
    bench.input(Input::Opened(0));
    bench.pass(19_999);
    assert!(bench.is_connected());
    bench.pass(20_000);
    assert_eq!(bench.emitted().pop(), Some(Emit::Gap(GapReason::NoPong)));
    assert!(bench.open.is_empty());
}

#[test]
fn a_connection_that_is_silent_for_too_long_is_given_up() {
    let mut rules = rules(false, 0);
    rules.link.silence_max_ms = Some(5_000);
    let mut bench = Bench::new(rules);
    bench.input(Input::Opened(0));
    bench.pass(4_000);
    bench.input(Input::Frame(0, "frame".to_owned()));
    bench.pass(8_999);
    assert!(bench.is_connected());
    bench.pass(9_000);
    assert_eq!(bench.emitted().pop(), Some(Emit::Gap(GapReason::Silent)));
}

#[test]
fn a_key_is_renewed_well_inside_its_life() {
    let mut bench = Bench::new(rules(true, 0));
    bench.good_venue(0, 4 * 3_600_000);
    let renewals: Vec<u64> = bench
        .done
        .iter()
        .filter(|(_, action)| matches!(action, Action::RenewKey(_)))
        .map(|(at, _)| *at)
        .collect();
    assert!(renewals.len() >= 9, "{renewals:?}");
    let mut last = 0;
    for at in renewals {
        assert!((1_200_000..=1_500_000).contains(&(at - last)));
        last = at;
    }
    assert_eq!(bench.count(|action| *action == Action::CreateKey), 1);
    assert!(bench.is_connected());
}

#[test]
fn a_key_that_died_is_made_anew() {
    let mut bench = Bench::new(rules(true, 0));
    bench.input(Input::Key(Ok("first".to_owned())));
    bench.input(Input::Opened(0));
    bench.input(Input::KeyExpired(0, 7));
    assert_eq!(
        bench.emitted().pop(),
        Some(Emit::Gap(GapReason::KeyExpired))
    );
    // The venue reports the same expiry twice
    // (docs/interface/README.md#1-listen-keys-and-silent-streams). The second report changes
    // nothing.
    bench.input(Input::KeyExpired(0, 7));
    bench.pass(1_000);
    bench.input(Input::Key(Ok("second".to_owned())));
    assert!(matches!(
        bench.done.last(),
        Some((_, Action::Open(1, Some(key)))) if key == "second"
    ));
    bench.input(Input::Opened(1));
    assert!(bench.is_connected());
    assert_eq!(bench.open, [1]);
    // The venue repeats the event on the new connection
    // (docs/interface/README.md#2-user-events-twice-or-out-of-order). It concerns the first key.
    bench.input(Input::KeyExpired(1, 7));
    assert!(bench.is_connected());
    bench.input(Input::KeyExpired(1, 8));
    assert!(!bench.is_connected());
}

#[test]
fn a_renewal_that_fails_is_tried_again_until_the_key_is_dead() {
    let mut bench = Bench::new(rules(true, 0));
    bench.input(Input::Key(Ok("key".to_owned())));
    bench.input(Input::Opened(0));
    let mut from = 0;
    while bench.now_ms < 3_600_000 - 1 {
        let due = bench.machine.timeout_ms(bench.now_ms).min(3_600_000 - 1);
        bench.pass(due);
        while from < bench.done.len() {
            let (_, action) = bench.done[from].clone();
            from += 1;
            match action {
                Action::RenewKey(_) => bench.input(Input::Renewed(Renewal::Failed)),
                Action::Ping(link) => bench.input(Input::Pong(link)),
                _ => {}
            }
        }
    }
    assert!(bench.is_connected());
    assert!(bench.count(|action| matches!(action, Action::RenewKey(_))) > 50);
    bench.pass(3_600_000);
    assert_eq!(bench.emitted().pop(), Some(Emit::Gap(GapReason::KeyDead)));
}

#[test]
fn pauses_between_attempts_grow_and_obey_the_venue() {
    let mut bench = Bench::new(rules(false, 0));
    let mut times = Vec::new();
    for link in 0..8 {
        times.push(bench.now_ms);
        bench.input(Input::NotOpened(link, (link == 3).then_some(120_000)));
        let due = bench.machine.timeout_ms(bench.now_ms);
        bench.pass(due);
    }
    let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[0] <= 500 && pauses[2] >= 1_000, "{pauses:?}");
    assert!(pauses[3] >= 120_000, "{pauses:?}");
    assert!(pauses[6] >= 15_000 && pauses[6] <= 30_000, "{pauses:?}");
}

#[test]
fn a_connection_that_lasted_resets_the_pauses() {
    let mut bench = Bench::new(rules(false, 0));
    let mut pause_after = |lived_ms: u64| {
        let link = *bench.open.last().unwrap();
        let from = bench.done.len();
        bench.input(Input::Opened(link));
        let until_ms = bench.now_ms + lived_ms;
        bench.good_venue(from, until_ms);
        bench.input(Input::Closed(link));
        let cut_ms = bench.now_ms;
        while bench.open.is_empty() {
            let due = bench.machine.timeout_ms(bench.now_ms);
            bench.pass(due);
        }
        bench.now_ms - cut_ms
    };
    let cuts: Vec<u64> = (0..10).map(|_| pause_after(1_000)).collect();
    assert!(cuts.iter().all(|pause| *pause <= 30_000), "{cuts:?}");
    assert!(cuts[9] >= 15_000, "{cuts:?}");
    assert!(pause_after(60_000) <= 500);
}

#[test]
fn frames_count_as_answer_to_an_unanswered_command() {
    let mut bench = Bench::new(rules(false, 1));
    bench.input(Input::Opened(0));
    bench.pass(5_000);
    bench.input(Input::Frame(0, "frame".to_owned()));
    bench.pass(10_000);
    assert!(bench.is_connected());

    // Without a frame the stream does not count as subscribed, because nothing shows that the venue
    // received the command.
    let mut bench = Bench::new(rules(false, 1));
    bench.input(Input::Opened(0));
    bench.pass(9_999);
    assert_eq!(bench.open, [0]);
    bench.pass(10_000);
    assert!(bench.open.is_empty() && !bench.is_connected());
}
