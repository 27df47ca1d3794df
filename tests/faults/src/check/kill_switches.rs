//! After a halt no new order leaves, and after a pause no opening order. An order that a strategy
//! intends while it is halted is never sent, nor an order that could add to its position while it
//! is paused. Over a restart the kill switches in the file beside the journal count. Everything
//! that the operator flattened after the faults must be closed by the venue's own trades.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::Check;
use super::fills::Fills;
use super::orders::Orders;
use super::wire::{self, RequestKind};
use crate::witness::{Entry, IntentTerms, ProcessEvent, Rest, Terms, WitnessEvent};

/// The settings of a kill switch; the stricter one comes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum KillSwitch {
    #[default]
    None,
    Paused,
    Halted,
}

impl KillSwitch {
    fn of(word: &str) -> Self {
        match word {
            "halted" => Self::Halted,
            "paused" => Self::Paused,
            _ => Self::None,
        }
    }

    fn after(self, command: &str) -> Self {
        match command {
            "pause" => self.max(Self::Paused),
            "halt" | "flatten" => Self::Halted,
            _ => Self::None,
        }
    }
}

/// The largest rest that strategies may still hold on spot after a flatten: the venue accepts no
/// order worth less than 5, and a commission in the base asset leaves less than a step.
const SPOT_LEFT: Decimal = Decimal::from_parts(1, 0, 0, false, 4);

/// The rule.
#[derive(Debug)]
pub struct KillSwitches {
    orders: Orders,
    fills: Fills,
    account: KillSwitch,
    /// The kill switches of the account and of each strategy.
    on_disk: (KillSwitch, BTreeMap<String, KillSwitch>),
    strategies: BTreeMap<String, KillSwitch>,
    /// Orders that were intended under a kill switch that forbids them.
    forbidden: BTreeMap<String, KillSwitch>,
    lost: bool,
}

impl KillSwitches {
    /// The rule for these terms.
    pub fn new(terms: &Terms) -> Self {
        Self {
            orders: Orders::new(terms),
            fills: Fills::new(terms),
            account: KillSwitch::None,
            on_disk: (KillSwitch::None, BTreeMap::new()),
            strategies: BTreeMap::new(),
            forbidden: BTreeMap::new(),
            lost: false,
        }
    }

    fn commanded(&mut self, strategy: Option<&String>, command: &str) {
        let kill_switch = match strategy {
            Some(id) => self.strategies.entry(id.clone()).or_default(),
            None => &mut self.account,
        };
        *kill_switch = kill_switch.after(command);
    }

    fn intended(&mut self, id: &str, terms: &IntentTerms) {
        let own = self.strategies.get(wire::strategy(id)).copied();
        let kill_switch = self.account.max(own.unwrap_or_default());
        let forbids = match kill_switch {
            KillSwitch::None => false,
            KillSwitch::Paused => !self.lost && !terms.reduce_only && !self.reduces(id, terms),
            KillSwitch::Halted => true,
        };
        if forbids {
            self.forbidden.insert(id.to_owned(), kill_switch);
        }
    }

    /// Whether the file is as strict as all commands so far: an answered command must hold over a
    /// restart.
    fn is_kept(&self) -> Result<(), String> {
        let (account, strategies) = &self.on_disk;
        if *account < self.account {
            let kill_switch = self.account;
            return Err(format!(
                "{kill_switch:?} was answered as durable, but the file has {account:?}"
            ));
        }
        let lost = self.strategies.iter().find(|(id, kill_switch)| {
            let on_disk = strategies.get(*id).copied().unwrap_or_default();
            on_disk < **kill_switch
        });
        lost.map_or(Ok(()), |(id, kill_switch)| {
            Err(format!(
                "{kill_switch:?} of {id} was answered as durable, but the file does not have it"
            ))
        })
    }

    /// Whether an order reduces its strategy's position without closing more than that.
    fn reduces(&self, id: &str, terms: &IntentTerms) -> bool {
        let held = self.orders.position(
            wire::strategy(id),
            &wire::book(&terms.instrument, &terms.position_side),
        );
        let qty = terms.qty.as_deref().map(wire::decimal).unwrap_or_default();
        let buys = terms.side == "BUY";
        held != Decimal::ZERO && buys == held.is_sign_negative() && qty <= held.abs()
    }
}

impl Check for KillSwitches {
    fn rule(&self) -> &'static str {
        "nothing opens while halted or paused"
    }

    fn see(&mut self, entry: &Entry) -> Result<(), String> {
        match &entry.seen {
            WitnessEvent::Commanded { strategy, command } => {
                self.commanded(strategy.as_ref(), command);
            }
            WitnessEvent::KillSwitchesStored {
                account,
                strategies,
            } => {
                let strategies = strategies.iter();
                let of_each = strategies.map(|(id, word)| (id.clone(), KillSwitch::of(word)));
                self.on_disk = (KillSwitch::of(account), of_each.collect());
            }
            WitnessEvent::CommandsKept => self.is_kept()?,
            WitnessEvent::Process(ProcessEvent::Started { .. }) => {
                (self.account, self.strategies) = self.on_disk.clone();
                self.forbidden.clear();
            }
            WitnessEvent::Process(ProcessEvent::Running {
                process, journal, ..
            }) => self.lost |= *process > 1 && !matches!(journal.as_str(), "clean" | "torn"),
            WitnessEvent::Intended {
                client_order_id,
                terms,
                ..
            } => self.intended(client_order_id, terms),
            WitnessEvent::Sent(request) => {
                if let RequestKind::Place(orders) = wire::request_kind(request) {
                    for placed in orders {
                        if let Some(kill_switch) = self.forbidden.get(&placed.id) {
                            return Err(format!(
                                "{} was accepted while {kill_switch:?}",
                                placed.id
                            ));
                        }
                    }
                }
            }
            WitnessEvent::Flattened(truth) if !self.lost => {
                let held = self.fills.held(truth);
                let mut sure = held
                    .iter()
                    .filter(|((_, at), qty)| at.starts_with("futures:") || qty.abs() > SPOT_LEFT)
                    .filter(|(key, _)| !self.fills.outside_trading().is_unsure(key));
                if let Some(((strategy, instrument), qty)) = sure.next() {
                    return Err(format!(
                        "{strategy} still holds {qty} of {instrument} according to the venue's trades"
                    ));
                }
            }
            _ => {}
        }
        self.orders.see(entry);
        self.fills.learn(entry);
        Ok(())
    }

    fn at_rest(&mut self, rest: &Rest) -> Result<(), String> {
        let state = rest.view.state.as_str();
        let (on_disk, _) = &self.on_disk;
        // A degraded run may be paused too.
        if state != "degraded" && KillSwitch::of(state) != *on_disk {
            return Err(format!("the run is {state}, but the file has {on_disk:?}"));
        }
        self.is_kept()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::check::log::{Log, at_rest, terms, verdict};
    use crate::witness::View;

    fn rule() -> KillSwitches {
        KillSwitches::new(&terms())
    }

    fn orders(log: Log) -> Result<(), String> {
        verdict(rule(), &log.intend("mm.a.9").place("mm.a.9"))
    }

    #[test]
    fn a_halt_lasts_until_somebody_resumes() {
        let halted = |strategy| Log::new().start().command("halt", strategy);
        assert!(orders(halted(None)).is_err());
        assert!(orders(halted(Some("mm"))).is_err());
        assert_eq!(orders(halted(Some("other"))), Ok(()));
        assert_eq!(orders(halted(None).command("resume", None)), Ok(()));
        assert!(orders(halted(None).command("pause", None)).is_err());
    }

    #[test]
    fn orders_intended_before_a_halt_may_be_sent() {
        let sound = Log::new().intend("mm.a.1").command("halt", None);
        assert_eq!(verdict(rule(), &sound.place("mm.a.1")), Ok(()));
    }

    #[test]
    fn a_halt_in_the_file_survives_a_restart() {
        let halted = || Log::new().start().command("halt", None);
        assert!(orders(halted().kill_switch_file("halted", &[]).start()).is_err());
        assert_eq!(
            orders(halted().start()),
            Ok(()),
            "the kill came before the file was written"
        );
        let one = |id| halted().kill_switch_file("none", &[(id, "halted")]).start();
        assert!(orders(one("mm")).is_err());
        assert_eq!(orders(one("other")), Ok(()));
    }

    #[test]
    fn an_answered_command_is_in_the_file() {
        let answered = |strategy, account, own: &[_]| {
            let halted = Log::new().start().command("halt", strategy);
            verdict(
                rule(),
                &halted.kill_switch_file(account, own).commands_kept(),
            )
        };
        assert_eq!(answered(None, "halted", &[]), Ok(()));
        assert!(answered(None, "paused", &[]).is_err());
        assert_eq!(answered(Some("mm"), "none", &[("mm", "halted")]), Ok(()));
        assert!(answered(Some("mm"), "none", &[]).is_err());
    }

    #[test]
    fn at_rest_the_file_matches_the_run() {
        let rest = |state: &str, file| {
            let view = View {
                state: state.to_owned(),
                ..View::default()
            };
            at_rest(
                rule(),
                &Log::new().kill_switch_file(file, &[]),
                json!({}),
                view,
            )
        };
        assert_eq!(rest("paused", "paused"), Ok(()));
        assert_eq!(rest("ready", "none"), Ok(()));
        assert!(rest("paused", "none").is_err());
        assert!(rest("ready", "halted").is_err());
    }

    #[test]
    fn a_pause_lets_reducing_orders_pass() {
        let held = Log::new().place("mm.a.1");
        let paused = held
            .order_event("mm.a.1", "FILLED", "1")
            .command("pause", None);
        let sells = paused.clone().intend_order("mm.a.2", "SELL", None, false);
        assert_eq!(
            verdict(rule(), &sells.place_market("mm.a.2", "SELL")),
            Ok(())
        );
        assert!(orders(paused).is_err());
    }

    #[test]
    fn a_position_left_after_a_flatten_is_found() {
        let truth = |side| {
            let trade = |side, number| {
                json!({"surface": "futures", "symbol": "BTCUSDT", "order_id": number,
                    "side": side, "qty": "1"})
            };
            let order = |id, number| {
                json!({"surface": "futures", "symbol": "BTCUSDT", "order_id": number,
                    "client_order_id": id})
            };
            json!({"accounts": [{
                "orders": [order("mm.a.1", 7), order("mm.a.2", 8)],
                "trades": [trade("BUY", 7), trade(side, 8)],
            }]})
        };
        let placed = || Log::new().place("mm.a.1").place_sell("mm.a.2");
        let closed = |side| verdict(rule(), &placed().flattened(truth(side)));
        assert_eq!(closed("SELL"), Ok(()));
        assert!(closed("BUY").is_err());
    }
}
