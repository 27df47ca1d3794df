//! Incidents other than faults of single requests: cuts, stalls, bans, kills, stops, clocks, disks,
//! and acts of others. Each kind repeats as often as the seed drew.

use std::sync::Arc;

use serde_json::{Value, json};
use windvane_config::OnLiquidation;
use windvane_model::StrategyId;
use windvane_model::input::Command;

use super::net::{PUBLIC, REST, USER};
use super::{Event, MS, S, Standing, World};
use crate::disk::Damage;
use crate::fault_plan::Kind;
use crate::process::In;
use crate::witness::{ProcessEvent, WitnessEvent};

/// Ticks that the venue may set for a symbol.
const TICKS: [&str; 3] = ["0.1", "0.2", "0.5"];

/// A kind of incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// A stream is cut.
    Cut,
    /// A stream dies without any message.
    HalfOpen,
    /// A channel is held back.
    Stall,
    /// The address is banned, or must wait.
    Ban,
    /// The process is killed.
    Crash,
    /// The process is stopped for a while.
    Pause,
    /// The process's wall clock jumps.
    Clock,
    /// The venue's clock is wrong for a while.
    Skew,
    /// The disk is slow, hangs or fails.
    Disk,
    /// Others act.
    Others,
    /// People and other programs act.
    Actors,
    /// Listen keys expire.
    Keys,
    /// The operator gives a command.
    Operator,
    /// The operator resumes the run, or one strategy.
    GoOn(Option<StrategyId>),
    /// The operator reloads.
    Reload,
    /// The venue accepts no own orders for a while.
    Barred,
    /// The venue accepts own orders again.
    Unbarred,
    /// Others begin or stop to use weight.
    Weight,
    /// Another instance starts.
    Second,
    /// The other instance places an order, or ends.
    SecondActs,
    /// Others trade on a symbol that is not configured.
    Elsewhere,
    /// Others begin to trade frequently on such a symbol.
    Busy,
    /// Others trade once.
    BusyTrade,
    /// The user stream is lost for a while, and the operator flattens.
    Blind,
    /// The operator flattens.
    Flatten,
    /// A person closes a position by hand.
    Hand,
    /// A person closes a position by hand, again and again.
    HandAgain,
    /// The run is paused, and the account loses money.
    Idle,
    /// Funding is paid on a symbol that is not configured.
    IdleFunding,
    /// The operator requests an orderly stop of the run.
    Stop,
    /// The disk accepts nothing for a long time.
    Full,
    /// Somebody changes a mode of the account.
    Modes,
    /// Somebody changes the modes back.
    ModesBack,
    /// The operator repeats a command that was not answered.
    Command(Command, Option<StrategyId>),
    /// The operator halts the run.
    HaltNow,
    /// The process is killed at once.
    KillNow,
}

impl Incident {
    const ALL: [Self; 24] = [
        Self::Cut,
        Self::HalfOpen,
        Self::Stall,
        Self::Ban,
        Self::Crash,
        Self::Pause,
        Self::Clock,
        Self::Skew,
        Self::Disk,
        Self::Others,
        Self::Actors,
        Self::Keys,
        Self::Operator,
        Self::Reload,
        Self::Barred,
        Self::Weight,
        Self::Second,
        Self::Elsewhere,
        Self::Busy,
        Self::Blind,
        Self::HandAgain,
        Self::Stop,
        Self::Full,
        Self::Modes,
    ];
}

impl World {
    pub(super) fn plan_incidents(&mut self) {
        for incident in Incident::ALL {
            self.plan(incident);
        }
    }

    /// Plans the next incident of a kind, if the seed has this kind.
    fn plan(&mut self, incident: Incident) {
        let faults = &self.fault_plan.faults;
        let mean_s = match incident {
            Incident::Cut => faults.cut_s,
            Incident::HalfOpen => faults.half_open_s,
            Incident::Stall => faults.stall_s,
            Incident::Ban => faults.ban_s,
            Incident::Crash => faults.crash_s,
            Incident::Pause => faults.pause_s,
            Incident::Clock => faults.clock_s,
            Incident::Skew => faults.skew_s,
            Incident::Disk => faults.disk_s,
            Incident::Others => faults.others_s,
            Incident::Actors => faults.actors_s,
            Incident::Keys => faults.keys_s,
            Incident::Operator => faults.operator_s,
            Incident::Reload => faults.reload_s,
            Incident::Barred => faults.barred_s,
            Incident::Weight => faults.weight_s,
            Incident::Second => faults.second_s,
            Incident::Elsewhere => faults.elsewhere_s,
            Incident::Busy => faults.busy_s,
            Incident::Blind => faults.blind_s,
            Incident::HandAgain => faults.hand_s,
            Incident::Stop => faults.stop_s,
            Incident::Full => faults.full_s,
            Incident::Modes => faults.modes_s,
            Incident::GoOn(_)
            | Incident::Unbarred
            | Incident::SecondActs
            | Incident::BusyTrade
            | Incident::Flatten
            | Incident::Command(..)
            | Incident::Hand
            | Incident::Idle
            | Incident::IdleFunding
            | Incident::ModesBack
            | Incident::HaltNow
            | Incident::KillNow => 0,
        };
        if mean_s > 0 {
            // These kinds have separate random sequences, so that the other draws of a seed do not
            // change.
            let chance = match incident {
                Incident::Actors => &mut self.actors,
                Incident::Weight => &mut self.weight,
                Incident::Second => self.second.chance(),
                Incident::Elsewhere => &mut self.elsewhere,
                Incident::Busy => &mut self.busy,
                Incident::Blind => &mut self.blind,
                Incident::HandAgain => &mut self.hand,
                Incident::Stop => &mut self.stops,
                Incident::Full => &mut self.full,
                Incident::Modes => &mut self.modes,
                _ => &mut self.chance,
            };
            let at_ns = self.now_ns + chance.wait_ns(mean_s);
            self.queue.put(at_ns, Event::Incident(incident));
        }
    }

    pub(super) fn incident(&mut self, incident: Incident) {
        if !self.faults_on {
            return;
        }
        self.plan(incident);
        match incident {
            Incident::Cut => self.cut(),
            Incident::HalfOpen => self.half_open(),
            Incident::Stall => self.stall(),
            Incident::Ban => self.ban(),
            Incident::Crash => {
                // In the middle of its next outputs, and sometimes in the middle of its recovery.
                self.crash_after = Some(self.chance.below(40));
            }
            // Half of these incidents stop the process when an order is about to be sent.
            Incident::Pause if self.chance.chance(500_000) => self.pause_at_order = true,
            Incident::Pause => self.pause(),
            Incident::Clock => self.jump(),
            Incident::Skew => {
                let ms = self.chance.between(-4_000, 4_000);
                let for_ms = self.chance.between(1_000, 90_000);
                self.count(Kind::Skew);
                self.switch(&json!({"fault": "skew", "ms": ms, "for_ms": for_ms}));
            }
            Incident::Disk => self.disk_trouble(),
            Incident::Others => self.others(),
            Incident::Actors => self.actors(),
            Incident::Keys => {
                let silent = self.chance.chance(500_000);
                self.count(Kind::Keys);
                self.act(&json!({"act": "expire_listen_key", "silent": silent}));
            }
            Incident::Operator => {
                self.operator();
            }
            Incident::GoOn(whom) => {
                // The operator first checks that no other instance runs.
                self.second_ends();
                self.record_fault("the operator: resume".to_owned());
                self.closing_since = None;
                self.command(Command::Resume, whom);
            }
            Incident::Command(command, whom) => {
                self.record_fault(format!("the operator, again: {command:?} {whom:?}"));
                self.command(command, whom);
                if (command, whom) == (Command::Flatten, None) {
                    self.watch_closes();
                }
            }
            Incident::Barred => self.bar(),
            Incident::Unbarred => self.unbar(),
            Incident::Reload => {
                self.record_fault("the operator: reload".to_owned());
                self.count(Kind::Reload);
                self.change_setup();
                let next = Arc::clone(&self.setup);
                self.deliver(self.life, In::Reload(next));
            }
            Incident::Weight => self.others_use_weight(),
            Incident::Second => self.second_begins(),
            Incident::SecondActs => self.second_acts(),
            Incident::Elsewhere => self.trade_elsewhere(),
            Incident::Busy => self.begin_busy(),
            Incident::BusyTrade => self.trade_busily(),
            Incident::Blind => self.flatten_blind(),
            Incident::Flatten => self.flatten(),
            Incident::Hand | Incident::HandAgain => self.close_by_hand(),
            Incident::Idle => self.idle(),
            Incident::IdleFunding => self.pay_funding_elsewhere(),
            Incident::Stop => self.stop_in_order(),
            Incident::Full => self.fill_disk(),
            Incident::Modes => self.change_modes(),
            Incident::ModesBack => self.restore_modes(),
            Incident::HaltNow => {
                self.count(Kind::Operator);
                self.record_fault("the operator: halt".to_owned());
                self.command(Command::Halt, None);
            }
            Incident::KillNow => {
                if self.process.is_some() {
                    self.count(Kind::Crash);
                    self.kill(Damage::None);
                }
            }
        }
    }

    /// For a while the key loses its trading right, a symbol stops, or orders are rejected.
    fn bar(&mut self) {
        let for_ms = self.chance.between(3_000, 90_000);
        self.count(Kind::Barred);
        match self.chance.below(3) {
            0 => {
                self.act(&json!({"act": "rights", "perp_trade": false}));
            }
            1 => {
                let symbols: Vec<_> = self
                    .setup
                    .names
                    .iter()
                    .map(|one| one.symbol.clone())
                    .collect();
                let symbol = self.chance.pick(&symbols).cloned().unwrap_or_default();
                self.act(&json!({"act": "rules", "symbol": symbol, "status": "SETTLING"}));
            }
            _ => {
                let codes = [-4088, -4087, -2019, -2016, -2015];
                let code = self.chance.pick(&codes).copied().unwrap_or(-4088);
                self.switch(&json!({"fault": "refuse", "code": code, "for_ms": for_ms,
                    "route": "futures.new_order"}));
                return;
            }
        }
        let at_ns = self.now_ns + for_ms * MS;
        self.queue.put(at_ns, Event::Incident(Incident::Unbarred));
    }

    fn unbar(&mut self) {
        self.act(&json!({"act": "rights", "perp_trade": true}));
        let symbols: Vec<_> = self
            .setup
            .names
            .iter()
            .map(|one| one.symbol.clone())
            .collect();
        for symbol in symbols {
            self.act(&json!({"act": "rules", "symbol": symbol, "status": "TRADING"}));
        }
    }

    /// The operator gives a command for the run or for one strategy, and resumes after a while.
    fn operator(&mut self) {
        let commands = [Command::Pause, Command::Halt, Command::Flatten];
        let command = self.chance.pick(&commands).copied();
        let command = command.unwrap_or(Command::Pause);
        let one = self.chance.below(self.setup.strategies.len() as u64);
        let one = StrategyId(one as u16);
        let whom = self.chance.chance(400_000).then_some(one);
        self.record_fault(format!("the operator: {command:?} {whom:?}"));
        self.count(Kind::Operator);
        self.command(command, whom);
        if command == Command::Flatten && whom.is_none() {
            self.watch_closes();
        }
        let at_ns = self.now_ns + self.chance.between(S, 60 * S);
        self.queue.put(at_ns, Event::Incident(Incident::GoOn(whom)));
    }

    pub(super) fn record_fault(&mut self, text: String) {
        self.see(WitnessEvent::Fault(text));
    }

    fn a_link(&mut self) -> Option<u64> {
        let up = self.links.iter().filter(|(_, link)| link.up);
        let names: Vec<_> = up.map(|(name, _)| *name).collect();
        self.chance.pick(&names).copied()
    }

    fn cut(&mut self) {
        let Some(name) = self.a_link() else { return };
        self.count(Kind::Cut);
        self.record_fault(format!("stream {name:x} is cut"));
        self.venue.hang_up(name);
        self.ended(name);
    }

    fn half_open(&mut self) {
        let Some(name) = self.a_link() else { return };
        self.count(Kind::HalfOpen);
        self.record_fault(format!("stream {name:x} dies without any message"));
        if let Some(link) = self.links.get_mut(&name) {
            link.dead = true;
        }
    }

    fn stall(&mut self) {
        let for_ms = self.chance.between(200, 20_000);
        for channel in [REST, USER, PUBLIC] {
            if self.chance.chance(500_000) {
                let jitter_ns = self.chance.between(0, 2 * S);
                self.stalls[channel] = (self.now_ns + for_ms * MS, jitter_ns);
                self.count(Kind::Stall);
                self.record_fault(format!("channel {channel} stalls for {for_ms} ms"));
            }
        }
    }

    fn ban(&mut self) {
        let for_ms = self.chance.between(2_000, 60_000);
        let seconds = for_ms / 1_000 + 1;
        let switch = match self.chance.below(3) {
            0 => json!({"fault": "ban", "status": 418, "for_ms": for_ms}),
            1 => json!({"fault": "ban", "status": 429, "retry_after_s": seconds, "for_ms": for_ms}),
            _ => {
                json!({"fault": "ban", "status": 429, "route": "futures.new_order", "for_ms": for_ms})
            }
        };
        self.count(Kind::Ban);
        let until_ns = self.now_ns + seconds * S;
        self.banned_until_ns = self.banned_until_ns.max(until_ns);
        self.switch(&switch);
    }

    /// From now on others on the address use more, less or no weight of each minute. The venue may
    /// also change how it counts weight.
    fn others_use_weight(&mut self) {
        let weight = match self.weight.below(4) {
            0 => 0,
            1 => self.weight.between(600, 1_500),
            _ => self.weight.between(1_500, 2_250),
        };
        self.count(Kind::Weight);
        self.act(&json!({"act": "others_weight", "weight": weight}));
        let shared = ["apart", "info", "all"];
        let shared = self.weight.pick(&shared).copied().unwrap_or("apart");
        let headers = !self.weight.chance(150_000);
        self.act(&json!({"act": "counters", "shared": shared, "headers": headers}));
    }

    /// The venue refuses to list the account's trades, for the whole life.
    pub(super) fn count_missing_trades(&mut self) {
        if self.fault_plan.faults.no_account_trades {
            self.count(Kind::NoAccountTrades);
            self.switch(&json!({"fault": "refuse", "route": "futures.user_trades", "code": -1130}));
        }
    }

    /// Turns a fault switch of the venue on.
    fn switch(&mut self, switch: &Value) {
        self.record_fault(format!("switch {switch}"));
        self.venue
            .control("POST", "/faults", &switch.to_string(), self.now_ns);
    }

    pub(super) fn pause(&mut self) {
        if self.standing != Standing::Running {
            return;
        }
        self.standing = Standing::Paused;
        self.count(Kind::Pause);
        let process = self.life;
        self.see(WitnessEvent::Process(ProcessEvent::Paused { process }));
        let for_ms = self.chance.between(100, 60_000);
        self.queue
            .put(self.now_ns + for_ms * MS, Event::Resume(process));
    }

    fn jump(&mut self) {
        let most_s = if self.chance.chance(200_000) {
            3_600
        } else {
            10
        };
        let by_ns = self.chance.between(-most_s * S, most_s * S);
        self.wall_offset_ns += by_ns;
        self.count(Kind::Clock);
        self.record_fault(format!("the wall clock jumps by {} ms", by_ns / MS));
    }

    fn disk_trouble(&mut self) {
        self.count(Kind::Disk);
        if self.chance.chance(250_000) {
            self.record_fault("the disk fails".to_owned());
            self.disk.failed = true;
            self.trouble_kill_switches(true);
            self.command_on_full_disk();
            self.disk_fails_until = self.now_ns + self.chance.between(0, 10 * S);
            self.deliver(self.life, In::Failed);
        } else {
            let for_ms = self.chance.between(10, 20_000);
            self.record_fault(format!("the disk hangs for {for_ms} ms"));
            self.trouble_kill_switches(false);
            self.disk_hangs_until = self.now_ns + for_ms * MS;
        }
    }

    /// Makes something happen at the venue. Returns whether the venue did it.
    pub(super) fn act(&mut self, act: &Value) -> bool {
        let act = &self.sided(act);
        let answer = self
            .venue
            .control("POST", "/act", &act.to_string(), self.now_ns);
        let done = answer.status == 200;
        self.see(WitnessEvent::Act {
            act: act.clone(),
            done,
        });
        self.carry_frames();
        done
    }

    fn others(&mut self) {
        let name = self
            .setup
            .names
            .first()
            .map_or("BTCUSDT", |name| name.symbol.as_str());
        let symbol = name.to_owned();
        let side = if self.chance.chance(500_000) {
            "BUY"
        } else {
            "SELL"
        };
        let qty = format!("0.00{}", self.chance.between(1, 9));
        let act = match self.chance.below(10) {
            0 | 1 => {
                json!({"act": "place", "symbol": symbol, "side": side, "type": "MARKET", "quantity": qty})
            }
            2 => {
                let price = if side == "BUY" { "58000" } else { "62000" };
                json!({"act": "place", "symbol": symbol, "side": side, "price": price, "quantity": qty})
            }
            3 => {
                let rates = ["0.0001", "-0.0002", "0.0003"];
                let rate = self.chance.pick(&rates).copied().unwrap_or("0");
                json!({"act": "funding", "symbol": symbol, "rate": rate})
            }
            4 => json!({"act": "transfer", "from": "spot", "asset": "USDT", "amount": "12.5"}),
            5 => json!({"act": "adl", "symbol": symbol, "quantity": qty}),
            6 => return self.someone_fills(),
            7 => json!({"act": "liquidate", "symbol": symbol}),
            8 => {
                let tick = self.chance.pick(&TICKS).copied().unwrap_or("0.1");
                json!({"act": "rules", "symbol": symbol, "tick_size": tick})
            }
            _ => {
                json!({"act": "deposit", "surface": "futures", "asset": "USDT", "amount": "7", "cause": "ADMIN_DEPOSIT"})
            }
        };
        self.count(Kind::Others);
        self.act(&act);
        let closes = act["act"] == "adl" || act["act"] == "liquidate";
        if closes && self.setup.config.risk.on_liquidation != OnLiquidation::Continue {
            // The operator checks the account and resumes the run.
            let after_ms = self.chance.between(1_000, 60_000);
            let at_ns = self.now_ns + after_ms * MS;
            let go_on = Event::Incident(Incident::GoOn(None));
            self.queue.put(at_ns, go_on);
        }
    }

    /// People and other programs act.
    fn actors(&mut self) {
        let names: Vec<_> = self
            .setup
            .names
            .iter()
            .map(|name| name.symbol.clone())
            .collect();
        let symbol = self.actors.pick(&names).cloned();
        let symbol = symbol.unwrap_or_else(|| "BTCUSDT".to_owned());
        let act = match self.actors.below(8) {
            0 | 1 => json!({"act": "close", "symbol": symbol}),
            2 => return self.someone_cancels(),
            3 => {
                let weight = self.actors.between(100, 1_400);
                json!({"act": "weight", "weight": weight})
            }
            4 => {
                let leverage = self.actors.between(5, 20);
                json!({"act": "leverage", "symbol": symbol, "leverage": leverage})
            }
            5 => json!({"act": "margin_call", "symbol": symbol}),
            6 => json!({"act": "adl", "symbol": symbol}),
            _ => json!({"act": "withdraw", "asset": "USDT", "amount": "12.5"}),
        };
        self.count(Kind::Actors);
        self.act(&act);
    }

    /// A person cancels one of the open orders.
    fn someone_cancels(&mut self) {
        let truth = self.venue.truth(true, self.now_ns);
        let orders = truth["accounts"][0]["orders"].as_array().cloned();
        let orders = orders.unwrap_or_default();
        let Some(order) = self.actors.pick(&orders).cloned() else {
            return;
        };
        self.count(Kind::Actors);
        self.act(&json!({"act": "cancel", "order_id": order["order_id"]}));
    }

    /// One of the open orders is filled, in part or completely, or the venue ends it.
    fn someone_fills(&mut self) {
        let truth = self.venue.truth(true, self.now_ns);
        let orders = truth["accounts"][0]["orders"].as_array().cloned();
        let orders = orders.unwrap_or_default();
        let Some(order) = self.chance.pick(&orders).cloned() else {
            return;
        };
        let mut act = json!({"act": "fill", "surface": order["surface"], "symbol": order["symbol"], "order_id": order["order_id"]});
        if self.chance.chance(300_000) {
            act["act"] = json!("expire");
        } else if self.chance.chance(500_000) {
            act["quantity"] = json!("0.002");
        }
        self.count(Kind::Others);
        self.act(&act);
    }

    /// Ends all faults and their effects.
    pub(super) fn end_faults(&mut self) {
        self.faults_on = false;
        self.faults_ended_ns = self.now_ns.max(self.banned_until_ns);
        self.see(WitnessEvent::FaultsEnded);
        self.venue.control("DELETE", "/faults", "", self.now_ns);
        self.unbar();
        self.second_ends();
        self.count_missing_trades();
        if self.fault_plan.faults.modes_s > 0 {
            self.restore_modes();
        }
        if self.fault_plan.faults.documented {
            self.count(Kind::Documented);
        }
        // Others stay on the address, and the run must cope with them.
        if self.fault_plan.faults.weight_s > 0 {
            self.act(&json!({"act": "others_weight", "weight": 1_400}));
        }
        (self.crash_after, self.pause_at_order) = (None, false);
        self.stalls = [(0, 0); 3];
        self.blind_until_ns = 0;
        self.disk_hangs_until = 0;
        self.disk_fails_until = 0;
        self.kill_switches_go_on();
        if self.disk_sync_put {
            self.queue.put(self.now_ns + MS, Event::Sync(self.life));
        }
        let dead = self.links.iter().filter(|(_, link)| link.dead && link.up);
        let dead: Vec<_> = dead.map(|(name, _)| *name).collect();
        for name in dead {
            self.venue.hang_up(name);
            self.ended(name);
        }
        if self.standing == Standing::Paused {
            self.resume(self.life);
        }
        self.start();
        self.command(Command::Resume, None);
        self.queue.put(self.now_ns + S, Event::LookForRest);
    }
}
