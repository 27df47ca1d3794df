//! The values that a seed draws: strategies and their parameters, the market's rate, and how often
//! each fault happens. Each kind of fault is absent in about half of the seeds, so that all
//! combinations occur.
//!
//! The effects of the faults do not belong here.

mod file;
mod own;
mod quoters;

use std::fmt::Write as _;

use windvane_sim_server::Choices;

use crate::open_points::{self, Points};
use crate::process::SignerTerms;
use crate::random::Random;
use crate::witness::{LimitTerms, StrategyTerms, Terms};

/// After the faults everything must converge within this time.
pub const CONVERGE_NS: i64 = 60_000_000_000;
/// With nonces a lost order may still arrive for a minute and a margin, and the runtime queries it
/// until then. Nothing can converge before that.
const CONVERGE_NONCES_NS: i64 = 90_000_000_000;
/// If others used up the weight of a minute, account snapshots wait until the last header that
/// showed it is a minute old.
const CONVERGE_WEIGHT_NS: i64 = 90_000_000_000;
/// If the account's modes changed: a snapshot of the modes is valid for a minute.
const CONVERGE_MODES_NS: i64 = 150_000_000_000;
/// If the run is paused before the comparison: its earlier actions must arrive and be read again.
const CONVERGE_PAUSED_NS: i64 = 150_000_000_000;
/// If the venue does not list the account's trades, user events are late this often, and by this
/// much. That is longer than the runtime waits for a fill before it derives it from its order's
/// totals.
const LATE_WITHOUT_TRADES_PPM: u32 = 20_000;
/// Milliseconds.
const LATE_WITHOUT_TRADES_MS: i64 = 9_000;

/// A kind of fault, as `--only` and `--without` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Requests and responses are late.
    Slow,
    /// Requests or responses are lost.
    Lose,
    /// Queries, cancels and heartbeats arrive twice.
    Double,
    /// The venue responds with 503, -1000, -1001, -1006 or -1007, after acting or without acting.
    Unknown,
    /// The response is HTML, empty, or cut in half.
    Spoil,
    /// The venue responds with 429 and 418.
    Ban,
    /// User events are lost.
    EventLost,
    /// User events are late, and therefore out of order.
    EventLate,
    /// User events come twice.
    EventTwice,
    /// Public frames are lost, late or twice.
    Public,
    /// Connections of streams are cut.
    Cut,
    /// Connections die without any message.
    HalfOpen,
    /// One channel is held back completely and then released in random order.
    Stall,
    /// The process is killed.
    Crash,
    /// A kill loses durable records, or tears the last block.
    Tear,
    /// The process stops for a time longer or shorter than the countdown.
    Pause,
    /// The process's wall clock jumps.
    Clock,
    /// The venue's clock is wrong.
    Skew,
    /// The disk is slow, hangs or fails.
    Disk,
    /// Others act on the account: orders, fills, funding, transfers, ADL, liquidation.
    Others,
    /// People and other programs act: a person closes or cancels by hand or changes the leverage,
    /// another program uses the address's weight, the venue sends a margin call.
    Actors,
    /// Listen keys expire early.
    Keys,
    /// The operator pauses, halts and resumes.
    Operator,
    /// The venue does not list the account's trades, and some user events come seconds late.
    NoAccountTrades,
    /// The list of open orders is short or empty, or the account response repeats an earlier one,
    /// although all is well-formed.
    False,
    /// The operator reloads: strategies get new instances.
    Reload,
    /// Others on the address use much of the weight, and surfaces count it together or separately.
    Weight,
    /// A strategy orders as much as its limits allow, even while outcomes are unknown. It is not a
    /// fault, but is chosen like one.
    Greedy,
    /// For a while the key loses its trading right, a symbol stops, or the venue accepts no orders
    /// for another reason.
    Barred,
    /// Another instance of the runtime, with its own data folder, trades on the account.
    Second,
    /// Others trade on a symbol that is not configured.
    Elsewhere,
    /// The operator flattens while the user stream is down.
    Blind,
    /// The run is paused, and the account loses money on a symbol that is not configured.
    Idle,
    /// Others trade three times a second on a symbol that is not configured, so that the account
    /// differs at each look. The process is killed meanwhile, or the operator flattens.
    Busy,
    /// Connections of streams live for minutes instead of the permitted 24 hours.
    Ends,
    /// The operator stops the run in order and starts it again.
    Stop,
    /// The disk accepts no block for a long time, and the journal has room for few.
    Full,
    /// Somebody changes the account's modes and changes them back after a while.
    Modes,
    /// Public data comes from the streams of the core interface and from polling, and the account
    /// from the info endpoint.
    Documented,
    /// A strategy trades on spot beside the futures strategies, with a watchdog process. It is not
    /// a fault, but is chosen like one.
    Spot,
    /// The account is in hedge mode, as configured. It is not a fault, but is chosen like one.
    Hedge,
    /// One strategy trades on both surfaces. It is not a fault, but is chosen like one.
    Surfaces,
}

impl Kind {
    /// All kinds and their names.
    pub const ALL: [(Self, &'static str); 42] = [
        (Self::Slow, "slow"),
        (Self::Lose, "lose"),
        (Self::Double, "double"),
        (Self::Unknown, "unknown"),
        (Self::Spoil, "spoil"),
        (Self::Ban, "ban"),
        (Self::EventLost, "event-lost"),
        (Self::EventLate, "event-late"),
        (Self::EventTwice, "event-twice"),
        (Self::Public, "public"),
        (Self::Cut, "cut"),
        (Self::HalfOpen, "half-open"),
        (Self::Stall, "stall"),
        (Self::Crash, "crash"),
        (Self::Tear, "tear"),
        (Self::Pause, "pause"),
        (Self::Clock, "clock"),
        (Self::Skew, "skew"),
        (Self::Disk, "disk"),
        (Self::Others, "others"),
        (Self::Actors, "actors"),
        (Self::Keys, "keys"),
        (Self::Operator, "operator"),
        (Self::NoAccountTrades, "untold"),
        (Self::False, "false"),
        (Self::Reload, "reload"),
        (Self::Weight, "weight"),
        (Self::Greedy, "greedy"),
        (Self::Barred, "barred"),
        (Self::Second, "second"),
        (Self::Elsewhere, "elsewhere"),
        (Self::Busy, "busy"),
        (Self::Blind, "blind"),
        (Self::Idle, "idle"),
        (Self::Ends, "ends"),
        (Self::Stop, "stop"),
        (Self::Full, "full"),
        (Self::Spot, "spot"),
        (Self::Modes, "modes"),
        (Self::Documented, "documented"),
        (Self::Hedge, "hedge"),
        (Self::Surfaces, "surfaces"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind)
    }
}

/// Which kinds may be drawn.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only these kinds, if the list is not empty.
    pub only: Vec<Kind>,
    /// These kinds are never drawn.
    pub without: Vec<Kind>,
    /// No kind at all.
    pub none: bool,
    /// How the open points of the documents are chosen.
    pub points: Points,
}

impl Choice {
    fn allows(&self, kind: Kind) -> bool {
        let wanted = self.only.is_empty() || self.only.contains(&kind);
        wanted && !self.none && !self.without.contains(&kind)
    }

    /// Whether a life has this kind: if it was drawn, or named in `only`.
    fn takes(&self, kind: Kind, drawn: bool) -> bool {
        (drawn || self.only.contains(&kind)) && self.allows(kind)
    }
}

/// How often each fault happens. Fields in `_ppm` are shares in a million. Most fields in `_s` are
/// the mean time in seconds between two faults of a kind. 0 means never.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Requests and responses that take up to `slow_ms` longer.
    pub slow_ppm: u32,
    /// Milliseconds.
    pub slow_ms: i64,
    /// Requests that never arrive.
    pub lose_request_ppm: u32,
    /// Responses that never arrive.
    pub lose_answer_ppm: u32,
    /// Requests that arrive twice, of those that may be doubled.
    pub double_ppm: u32,
    /// Responses that say that the outcome is unknown.
    pub unknown_ppm: u32,
    /// Responses that are not valid.
    pub spoil_ppm: u32,
    /// Mean time between two bans.
    pub ban_s: u32,
    /// User events that never come.
    pub event_lost_ppm: u32,
    /// User events that come up to `event_late_ms` late.
    pub event_late_ppm: u32,
    /// Milliseconds.
    pub event_late_ms: i64,
    /// User events that come twice.
    pub event_twice_ppm: u32,
    /// Public frames that are lost, late or come twice.
    pub public_ppm: u32,
    /// Mean time between two cuts of a stream.
    pub cut_s: u32,
    /// Mean time until another stream dies without any message.
    pub half_open_s: u32,
    /// Mean time between two stalls of a channel.
    pub stall_s: u32,
    /// Mean time between two kills of the process.
    pub crash_s: u32,
    /// Kills that tear the last block.
    pub torn_ppm: u32,
    /// Kills that lose durable blocks.
    pub rolled_back_ppm: u32,
    /// Mean time between two times in which the process is stopped and continued.
    pub pause_s: u32,
    /// Mean time between two jumps of the wall clock.
    pub clock_s: u32,
    /// Mean time until the venue's clock is wrong again.
    pub skew_s: u32,
    /// Mean time between two disk problems.
    pub disk_s: u32,
    /// Mean time between two acts of others.
    pub others_s: u32,
    /// Mean time between two acts of people and other programs.
    pub actors_s: u32,
    /// Mean time until another listen key expires.
    pub keys_s: u32,
    /// Mean time between two commands of the operator.
    pub operator_s: u32,
    /// Mean time between two reloads.
    pub reload_s: u32,
    /// Mean time between two times in which no orders are accepted.
    pub barred_s: u32,
    /// Mean time between two times in which others use request weight.
    pub weight_s: u32,
    /// Mean time between two starts of another instance.
    pub second_s: u32,
    /// Mean time between two trades on a symbol that is not configured.
    pub elsewhere_s: u32,
    /// Mean time between two times in which others trade on such a symbol three times a second.
    pub busy_s: u32,
    /// Mean time between two flattens while the user stream is down.
    pub blind_s: u32,
    /// Mean time until a person closes another position by hand.
    pub hand_s: u32,
    /// Mean time between two losses of a run that is paused from its first moments on.
    pub idle_s: u32,
    /// Lifetime of a stream's connection, seconds; 0 means as documented.
    pub ends_s: u32,
    /// Mean time between two orderly stops.
    pub stop_s: u32,
    /// Mean time between two times in which the disk accepts nothing.
    pub full_s: u32,
    /// Mean time between two changes of the account's modes.
    pub modes_s: u32,
    /// The runtime uses only the core interface for public data (`market_data = "documented"`).
    pub documented: bool,
    /// Blocks that may be in flight to the disk; 0 means the session's default.
    pub disk_room: usize,
    /// Responses that are well-formed but false, of those that may be false.
    pub false_ppm: u32,
    /// The venue refuses to list the account's trades.
    pub no_account_trades: bool,
}

/// Everything that a seed draws before its life begins.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// The drawn settings of the life, as far as the checkers may know them.
    pub terms: Terms,
    /// The configuration of the runtime.
    pub config: String,
    /// Actions of the market per second and symbol.
    pub per_second: u32,
    /// How often each fault happens.
    pub faults: Faults,
    /// At the end the operator flattens.
    pub flattens: bool,
    /// The venue's behaviour where the documents leave something open.
    pub choices: Choices,
}

impl FaultPlan {
    /// The plan of a seed, for this many milliseconds with faults.
    pub fn draw(seed: u64, choice: &Choice, faults_ms: i64) -> Self {
        let mut random = Random::of(seed, "mix");
        let mut kinds = Random::of(seed, "kinds");
        let no_account_trades = choice.takes(Kind::NoAccountTrades, kinds.chance(150_000));
        let greedy = choice.takes(Kind::Greedy, kinds.chance(200_000));
        let mut terms = terms(seed, &mut random);
        let mut idle = Random::of(seed, "idle");
        let is_idle = choice.takes(Kind::Idle, idle.chance(100_000));
        if is_idle {
            let loss = idle.pick(&["1", "2", "3"]).copied();
            terms.max_daily_loss = loss.map(str::to_owned);
        }
        own::on_stop(seed, choice, &mut terms);
        quoters::hedge(seed, choice, &mut terms);
        if !is_idle {
            quoters::surfaces(seed, choice, &mut terms);
        }
        let mut config = file::config(&terms, &mut random, &mut Random::of(seed, "sizes"));
        if greedy {
            terms.strategies.push(greedy_terms(&mut kinds));
            write_greedy(&mut config, &terms.strategies, &mut kinds);
        }
        if !is_idle {
            own::spot(seed, choice, &mut terms, &mut config);
        }
        let per_second = 2 + random.below(4) as u32;
        let mut faults = faults(&mut random, &mut kinds, choice);
        let mut barred = Random::of(seed, "barred");
        if choice.takes(Kind::Barred, barred.chance(500_000)) {
            faults.barred_s = barred.between(120, 1_800).unsigned_abs() as u32;
        }
        let mut actors = Random::of(seed, "actors");
        let act = choice.takes(Kind::Actors, actors.chance(400_000));
        let period_s = 30 + actors.below(600) as u32;
        faults.actors_s = if act { period_s } else { 0 };
        let mut weight = Random::of(seed, "weight");
        if choice.takes(Kind::Weight, weight.chance(500_000)) {
            faults.weight_s = 120 + weight.below(600) as u32;
            terms.converge_ns = terms.converge_ns.max(CONVERGE_WEIGHT_NS);
        }
        let mut second = Random::of(seed, "second");
        if choice.takes(Kind::Second, second.chance(150_000)) {
            faults.second_s = 60 + second.below(600) as u32;
        }
        let mut elsewhere = Random::of(seed, "elsewhere");
        if choice.takes(Kind::Elsewhere, elsewhere.chance(300_000)) {
            faults.elsewhere_s = 20 + elsewhere.below(300) as u32;
        }
        let mut busy = Random::of(seed, "busy");
        if choice.takes(Kind::Busy, busy.chance(250_000)) {
            faults.busy_s = 100 + busy.below(900) as u32;
        }
        let mut blind = Random::of(seed, "blind");
        if choice.takes(Kind::Blind, blind.chance(250_000)) {
            faults.blind_s = 100 + blind.below(1_200) as u32;
        }
        let mut hand = Random::of(seed, "hand");
        if greedy && choice.takes(Kind::Actors, hand.chance(500_000)) {
            faults.hand_s = 8 + hand.below(30) as u32;
        }
        let mut ends = Random::of(seed, "ends");
        if choice.takes(Kind::Ends, ends.chance(300_000)) {
            faults.ends_s = 90 + ends.below(800) as u32;
        }
        own::periods(seed, choice, &mut faults);
        faults.fit(faults_ms);
        if is_idle {
            faults.idle_s = 10 + idle.below(30) as u32;
        }
        if no_account_trades {
            faults.no_account_trades = true;
            faults.event_late_ppm = faults.event_late_ppm.max(LATE_WITHOUT_TRADES_PPM);
            faults.event_late_ms = LATE_WITHOUT_TRADES_MS;
        }
        let choices = open_points::draw(seed, &choice.points);
        terms.is_stream_slow = matches!(chosen(&choices, "stream-delay"), Some("5s" | "10s"));
        // The balance lags behind while trading goes on, so it cannot be compared within a minute.
        if own::is_documented(seed, choice) {
            faults.documented = true;
            config = config.replacen("[venue]\n", "[venue]\nmarket_data = \"documented\"\n", 1);
        }
        let is_served = chosen(&choices, "account-route") == Some("served");
        let has_account = is_served && !faults.documented;
        let lag = if has_account {
            "account-lag"
        } else {
            "info-lag"
        };
        let is_account_late = chosen(&choices, lag) == Some("10s");
        terms.pauses_to_rest =
            terms.is_stream_slow || is_account_late || tells_commissions_late(&choices, &faults);
        terms.rounds_fees = chosen(&choices, "fee-rounding") == Some("four-decimals");
        terms.is_documented = faults.documented;
        terms.entries_to_tick = chosen(&choices, "entry-price-rounding") == Some("tick");
        if !has_account {
            // The info endpoint allows a weight of 1,200 a minute. If others use more, one snapshot
            // a minute is left, and a run stays degraded with that.
            faults.weight_s = 0;
        }
        if faults.modes_s > 0 {
            // The event may be lost, and the runtime reads the modes only once a minute.
            terms.converge_ns = terms.converge_ns.max(CONVERGE_MODES_NS);
        }
        if terms.pauses_to_rest {
            terms.converge_ns = terms.converge_ns.max(CONVERGE_PAUSED_NS);
        }
        Self {
            terms,
            config,
            per_second,
            faults,
            flattens: kinds.chance(300_000),
            choices,
        }
    }
}

/// Whether no event reports commissions, and the venue's list of trades reports them late or never.
fn tells_commissions_late(choices: &Choices, faults: &Faults) -> bool {
    let has_trades =
        chosen(choices, "account-trades-route") == Some("served") && !faults.no_account_trades;
    let is_behind = matches!(chosen(choices, "trades-lag"), Some("5s" | "10s"));
    chosen(choices, "fee-in-event") == Some("later") && (!has_trades || is_behind)
}

fn chosen(choices: &Choices, name: &str) -> Option<&'static str> {
    let mut all = choices.all();
    all.find_map(|(point, value)| (point.name == name).then_some(value))
}

impl Faults {
    /// In a short life rare faults come sooner: the mean time between two of them is at most its
    /// length.
    fn fit(&mut self, faults_ms: i64) {
        let most_s = u32::try_from(faults_ms / 1_000).unwrap_or(u32::MAX).max(10);
        for period_s in [
            &mut self.ban_s,
            &mut self.cut_s,
            &mut self.half_open_s,
            &mut self.stall_s,
            &mut self.crash_s,
            &mut self.pause_s,
            &mut self.clock_s,
            &mut self.skew_s,
            &mut self.disk_s,
            &mut self.others_s,
            &mut self.actors_s,
            &mut self.keys_s,
            &mut self.operator_s,
            &mut self.reload_s,
            &mut self.barred_s,
            &mut self.weight_s,
            &mut self.second_s,
            &mut self.elsewhere_s,
            &mut self.busy_s,
            &mut self.blind_s,
            &mut self.ends_s,
            &mut self.stop_s,
            &mut self.full_s,
            &mut self.modes_s,
        ] {
            *period_s = most_s.min(*period_s);
        }
    }
}

/// A strategy that orders up to limits so tight that one more order exceeds them.
fn greedy_terms(random: &mut Random) -> StrategyTerms {
    let most = random.pick(&["700", "1300", "1900"]).copied();
    StrategyTerms {
        id: "gr0".to_owned(),
        module: "greedy".to_owned(),
        instruments: vec!["futures:BTCUSDT".to_owned()],
        limits: LimitTerms {
            max_position_notional: most.map(str::to_owned),
            max_open_orders: random.chance(300_000).then_some(3),
            ..LimitTerms::default()
        },
        on_fault: "cancel".to_owned(),
    }
}

/// The part of this strategy in the configuration file.
fn write_greedy(text: &mut String, strategies: &[StrategyTerms], random: &mut Random) {
    let Some(strategy) = strategies.last() else {
        return;
    };
    let distance = random.between(1, 8);
    let pace_ms = random.between(200, 3_000);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n[[strategy]]\nid = \"{}\"\nmodule = \"strategies/greedy\"\ninstruments = [\"{}\"]\n\
         streams = [\"book\"]\non_fault = \"cancel\"\n\n[strategy.params]\nqty = \"0.01\"\n\
         distance_ticks = {distance}\npace_ms = {pace_ms}\n\n[strategy.limits]\n",
        strategy.id, strategy.instruments[0],
    );
    file::limits(text, &strategy.limits);
}

fn terms(seed: u64, random: &mut Random) -> Terms {
    let futures = ["futures:BTCUSDT", "futures:ETHUSDT"];
    let second = usize::from(random.chance(300_000));
    let instruments: Vec<String> = futures[..=second].iter().map(|s| (*s).to_owned()).collect();
    let countdown_ms = 10_000 * (1 + random.below(3));
    let mut tight = Random::of(seed, "limits");
    let mut strategies = Vec::new();
    for (n, instrument) in instruments.iter().enumerate() {
        let both = n > 0 || random.chance(600_000);
        let maker = random.chance(500_000);
        for (module, wanted) in [
            ("market_maker", maker || both),
            ("ema_cross", !maker || both),
        ] {
            if wanted {
                let own = random.chance(500_000);
                // Room for one or two orders, or for many.
                let most = tight
                    .pick(&["700", "1300", "6000"])
                    .copied()
                    .unwrap_or("6000");
                strategies.push(StrategyTerms {
                    id: format!("{}{n}", &module[..2]),
                    module: module.to_owned(),
                    instruments: vec![instrument.clone()],
                    limits: LimitTerms {
                        max_position_notional: own.then(|| most.to_owned()),
                        max_order_notional: tight.chance(100_000).then(|| "1000".to_owned()),
                        max_open_orders: few(&mut tight, &[1, 2, 3]),
                        max_orders_per_minute: few(&mut tight, &[3, 8, 20]),
                    },
                    on_fault: if module == "ema_cross" {
                        "flatten"
                    } else {
                        "cancel"
                    }
                    .to_owned(),
                });
            }
        }
    }
    let v3 = random.chance(100_000);
    Terms {
        seed,
        strategies,
        limits: account_limits(&mut tight),
        max_daily_loss: daily_loss(&mut Random::of(seed, "daily loss")),
        instruments,
        countdown_ms,
        renew_ms: countdown_ms / 3,
        reconcile_ms: 10_000 + 5_000 * random.below(3),
        recv_window_ms: 5_000,
        v3,
        on_liquidation: Random::of(seed, "liquidation")
            .pick(&["halt", "pause", "continue"])
            .copied()
            .unwrap_or("halt")
            .to_owned(),
        on_start: if random.chance(300_000) {
            "cancel"
        } else {
            "adopt"
        }
        .to_owned(),
        on_stop: "cancel".to_owned(),
        converge_ns: if v3 { CONVERGE_NONCES_NS } else { CONVERGE_NS },
        is_stream_slow: false,
        is_signer_silent: SignerTerms::of(seed).is_silent(),
        pauses_to_rest: false,
        entries_to_tick: false,
        rounds_fees: false,
        is_documented: false,
        hedge: false,
    }
}

/// A daily loss limit that some lives reach.
fn daily_loss(random: &mut Random) -> Option<String> {
    let loss = random.pick(&["0.5", "1", "2", "5"]).copied();
    let limited = random.chance(150_000);
    loss.filter(|_| limited).map(str::to_owned)
}

/// A small number in a fifth of the lives.
fn few(random: &mut Random, of: &[u32]) -> Option<u32> {
    let picked = random.pick(of).copied();
    picked.filter(|_| random.chance(200_000))
}

/// Account limits. They are wide in some lives. In the others each limit is one that some
/// strategies reach together.
fn account_limits(random: &mut Random) -> LimitTerms {
    let wide = random.chance(400_000);
    let mut drawn = |of: [&'static str; 4]| {
        let picked = random.pick(&of).copied();
        picked.filter(|_| !wide).or(of.last().copied())
    };
    let count = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    LimitTerms {
        max_order_notional: drawn(["1000", "5000", "5000", "5000"]).map(str::to_owned),
        max_position_notional: drawn(["1300", "2500", "4000", "20000"]).map(str::to_owned),
        max_open_orders: count(drawn(["2", "3", "5", "20"])),
        max_orders_per_minute: count(drawn(["5", "15", "40", "300"])),
    }
}

fn faults(random: &mut Random, kinds: &mut Random, choice: &Choice) -> Faults {
    // Drawn even if not allowed, so that a choice does not change the other draws of a seed.
    let mut on = |kind| {
        let drawn = random.chance(500_000);
        let figure = random.below(1_000_000);
        choice.takes(kind, drawn).then_some(figure as u32)
    };
    // Scales a draw to a share, from rare to frequent, or to a mean time between two faults.
    let share = |drawn: Option<u32>, most: u32| drawn.map_or(0, |d| 500 + d / 100 * most / 10_000);
    let period = |drawn: Option<u32>, least: u32, most: u32| {
        drawn.map_or(0, |d| least + d / 100 * (most - least) / 10_000)
    };
    let mut later = |kind| {
        let drawn = kinds.chance(500_000);
        let figure = kinds.below(1_000_000);
        choice.takes(kind, drawn).then_some(figure as u32)
    };
    let slow = on(Kind::Slow);
    let lose = on(Kind::Lose);
    let late = on(Kind::EventLate);
    let crash = on(Kind::Crash);
    let tear = on(Kind::Tear);
    Faults {
        slow_ppm: share(slow, 100_000),
        slow_ms: slow.map_or(0, |d| 50 + i64::from(d) / 250),
        lose_request_ppm: share(lose, 40_000),
        lose_answer_ppm: share(lose, 40_000),
        double_ppm: share(on(Kind::Double), 100_000),
        unknown_ppm: share(on(Kind::Unknown), 80_000),
        spoil_ppm: share(on(Kind::Spoil), 50_000),
        ban_s: period(on(Kind::Ban), 600, 3_600),
        event_lost_ppm: share(on(Kind::EventLost), 50_000),
        event_late_ppm: share(late, 200_000),
        event_late_ms: late.map_or(0, |d| 20 + i64::from(d) / 500),
        event_twice_ppm: share(on(Kind::EventTwice), 200_000),
        public_ppm: share(on(Kind::Public), 50_000),
        cut_s: period(on(Kind::Cut), 60, 1_200),
        half_open_s: period(on(Kind::HalfOpen), 200, 1_800),
        stall_s: period(on(Kind::Stall), 60, 900),
        crash_s: period(crash.or(tear), 120, 1_800),
        torn_ppm: tear.map_or(0, |d| d / 2),
        rolled_back_ppm: tear.map_or(0, |d| d / 3),
        pause_s: period(on(Kind::Pause), 200, 1_800),
        clock_s: period(on(Kind::Clock), 120, 1_800),
        skew_s: period(on(Kind::Skew), 300, 1_800),
        disk_s: period(on(Kind::Disk), 60, 900),
        others_s: period(on(Kind::Others), 20, 600),
        actors_s: 0,
        keys_s: period(on(Kind::Keys), 200, 1_800),
        operator_s: period(on(Kind::Operator), 300, 1_800),
        reload_s: period(later(Kind::Reload), 120, 1_800),
        barred_s: 0,
        weight_s: 0,
        second_s: 0,
        elsewhere_s: 0,
        busy_s: 0,
        blind_s: 0,
        hand_s: 0,
        idle_s: 0,
        ends_s: 0,
        stop_s: 0,
        full_s: 0,
        disk_room: 0,
        modes_s: 0,
        documented: false,
        false_ppm: share(later(Kind::False), 200_000),
        no_account_trades: false,
    }
}
