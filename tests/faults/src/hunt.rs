//! Hunts planted bugs. It runs seed after seed with the bug until a rule about this bug is broken;
//! other broken rules do not count. A seed that breaks a rule without the bug too proves nothing
//! and is skipped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windvane_model::planted::{Planted, plant};

use crate::fault_plan::Kind;
use crate::life::{self, Options};
use crate::log::Broken;
use crate::modules::Modules;
use crate::world::kill_switch_file::AGAIN;
use crate::world::watchdog::WATCHES;
use crate::world::{BOOKS as SAME_BOOKS, CHAIN, CLOSES, CONVERGES, ROOM, TIMERS};

/// Where a bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The rule that it broke.
    pub broken: Broken,
}

const ONE_PER_INTENT: &str = "at most one live order per intent";
const FILLS_ONCE: &str = "every fill is counted once";
const FEES_ONCE: &str = "every fee is booked once, as the venue charged it";
const EXPOSURE: &str = "exposure with unknown orders is never over a limit";
const RATES: &str = "no more orders a minute than allowed";
const ARMED: &str = "no order without an armed timer";
const RENEWALS: &str = "renewals while healthy, and only then";
const OVERDUE: &str = "a countdown is renewed in time while orders rest";
const BLIND: &str = "no new exposure while blind";
const OTHERS: &str = "nothing of others is touched";
const MODES: &str = "nothing opens in another mode of the account";
const HALTED: &str = "after a halt every cancel leaves";
const HEADERS: &str = "ordinary requests keep within the weight that headers show";
const STARTS: &str = "a start reads the account soon";
const BANS: &str = "a ban is never prolonged";
const IDS: &str = "ids are never reused";
const LATE: &str = "an order leaves soon or never";
const DURABLE: &str = "an order leaves only after its record is durable";
const MEMORY: &str = "a strategy goes on from what it knew";
const TRADING: &str = "the trading status agrees with the evidence";
const LOSSES: &str = "a loss halts in time, and not early";
const BOOKS: &str = "books and entry prices are what trades make them";
const STATED: &str = "a fill that an answer states is booked";
const EXPLAINED: &str = "nothing is adjusted that trades explain";

const RULES: &str = "the rules of an instrument are the venue's present ones";
const FORCED: &str = "strategies hold what a liquidation left them";
const LAGGING: &str = "an answer that is behind changes no order";
const FLATTENED: &str = "a flatten closes while requests are answered";
const STOPS: &str = "a stop leaves what on_stop says";
const RELOADS: &str = "a reload begins each changed strategy once";
const KILL_SWITCHES: &str = "nothing opens while halted or paused";
const SIGNS: &str = "signs of health while healthy, and only then";
const STEPS: &str = "a start takes every step before it signs";
const OWN_BOOKS: &str = "the runtime's own books never contradict each other";
const MARGIN: &str = "nothing opens after a margin call";
const SIDES: &str = "a strategy closes only what it holds of a side";
const EXITS: &str = "an order that closes opens nothing";

/// The rules that check what this bug breaks.
pub const fn rules(bug: Planted) -> &'static [&'static str] {
    match bug {
        Planted::ResendOnTimeout => &[ONE_PER_INTENT],
        // An order that may still be live counts as ended.
        Planted::TimeoutIsRejected
        | Planted::AbsenceIsRejected
        | Planted::WipeOnMissing
        | Planted::CancelIsDone
        | Planted::CancelRefusedIsDone => &[EXPOSURE, ARMED, CONVERGES],
        Planted::UnknownLeavesExposure
        | Planted::UnknownCountsBuysOnly
        | Planted::OtherSideCovers
        | Planted::AccountLimitsForgotten => &[EXPOSURE],
        Planted::RateForgotten => &[RATES],
        Planted::FillsNotDeduplicated
        | Planted::TradesNotDeduplicated
        | Planted::RecoveredNotDeduplicated
        | Planted::CumulativeFill => &[FILLS_ONCE],
        Planted::FeeTwice => &[FEES_ONCE],
        Planted::BooksContradict => &[OWN_BOOKS],
        Planted::StatedFillWaits => &[STATED],
        Planted::LateFeesIgnored | Planted::LateFeeTwice | Planted::LateFeeOnFutures => {
            &[FEES_ONCE, BOOKS]
        }
        // A fill is not booked, or is booked to another owner, and the account is then adjusted.
        Planted::LateFillDropped
        | Planted::PositionSideMixed
        | Planted::SidesConfused
        | Planted::OwnTradeAsExternal
        | Planted::AccountBeforeFill
        | Planted::OlderAccountRead
        | Planted::TradesLagIgnored
        | Planted::TradeCursorShared
        | Planted::AdjustAfterOneRead => &[EXPLAINED, FILLS_ONCE, CONVERGES],
        Planted::CloseWaitsForStream
        | Planted::CloseWaitsForCountdown
        | Planted::MovingAccountWaits => &[FLATTENED],
        Planted::ExitMayOpen => &[EXITS],
        Planted::SideUnbound => &[SIDES],
        Planted::MarginCallIgnored => &[MARGIN],
        Planted::ClosedPositionBookedTwice => &[LOSSES, FILLS_ONCE, FEES_ONCE, CONVERGES],
        Planted::OldListBelieved | Planted::YoungOrderDenied => &[LAGGING],
        Planted::MissingNotAsked | Planted::UnlistedPositionKept | Planted::UnknownOrderUnread => {
            &[CONVERGES]
        }
        Planted::ExposureWhileDegraded
        | Planted::StreamDownIgnored
        | Planted::OneStreamServesBoth
        | Planted::SilenceIgnored
        | Planted::EndIsNoGap
        | Planted::KeyExpiryIgnored => &[BLIND, RENEWALS],
        Planted::ForgetToReconcile => &[RENEWALS, CONVERGES],
        // Without evidence that the stream works, the run never becomes ready.
        Planted::OwnPingsForgotten => &[OVERDUE, CONVERGES],
        Planted::PlaceBeforeArmed | Planted::LapsedStillCovers | Planted::LetGoResting => &[ARMED],
        Planted::ForgetToRenew => &[OVERDUE, RENEWALS],
        Planted::RenewUnhealthy => &[RENEWALS],
        Planted::CancelOthers | Planted::SecondInstanceAdopted => &[OTHERS],
        // Live orders are unowned after a restart.
        Planted::ForgetInFlight => &[EXPOSURE, FILLS_ONCE, ARMED, CONVERGES],
        // The id belongs to an earlier process, and no strategy intended it in this one.
        Planted::EpochReused => &[IDS, ONE_PER_INTENT],
        Planted::NonceRepeated => &[IDS],
        Planted::PlaceBeforeDurable | Planted::CancelOvertakes => &[DURABLE],
        Planted::AcknowledgedBeforeSync => &[DURABLE],
        Planted::LateOrderSent => &[LATE],
        Planted::RollLosesBlock => &[CHAIN],
        Planted::StopLeavesAnOrder => &[STOPS],
        Planted::BackpressureIgnored => &[ROOM],
        Planted::ReloadAppliedTwice => &[RELOADS],
        Planted::StaleSnapshotUsed | Planted::SnapshotFetchLost => &[SAME_BOOKS],
        Planted::RecoverySkipsStep => &[STEPS],
        Planted::WatchdogSignAfterFault => &[SIGNS],
        Planted::WatchdogSweepsOnce
        | Planted::WatchdogTakesLaterOrders
        | Planted::CountdownIgnored
        | Planted::RestingOrdersForgotten => &[WATCHES],
        Planted::KillSwitchLost | Planted::LatchAnsweredEarly => &[KILL_SWITCHES],
        Planted::EndedStopKept => &[TIMERS],
        Planted::ModeEventIgnored => &[MODES],
        Planted::LatchNotTriedAgain => &[AGAIN],
        // Without a watchdog no spot order is sent.
        Planted::WatchdogNotStartedAgain => &[CONVERGES],
        Planted::ReserveIgnored => &[HEADERS],
        Planted::LaneStarved => &[HALTED],
        Planted::BanForgotten | Planted::BanIgnored => &[BANS],
        Planted::StateBehind => &[MEMORY],
        Planted::BlockedStillReady => &[TRADING],
        Planted::BlockStopsHeartbeats => &[OVERDUE, RENEWALS],
        Planted::LiquidationIgnored => &[FORCED],
        Planted::RulesNeverReread => &[RULES],
        Planted::LossWhileDownForgotten
        | Planted::FundingIsTransfer
        | Planted::OtherFeesFree
        | Planted::OtherSymbolsIgnored => &[LOSSES],
        // The weight that others use delays cancels, closes, or the renewals of countdowns.
        Planted::EmergencyWaitsForBudget => &[HALTED, FLATTENED, CLOSES, OVERDUE],
        Planted::OthersUsageIgnored => &[HEADERS],
        Planted::StartReadsUnplanned => &[STARTS, CONVERGES],
    }
}

/// The kinds of faults of every life in this hunt, and the only ones. Used if a bug shows only in a
/// rarely drawn mixture.
const fn kinds(bug: Planted) -> &'static [Kind] {
    match bug {
        // Orders on both sides at a limit, while a person closes the position by hand.
        Planted::OtherSideCovers => &[Kind::Greedy, Kind::Actors],
        // Many orders to cancel after a halt, while others use the weight.
        Planted::EmergencyWaitsForBudget => {
            &[Kind::Weight, Kind::Actors, Kind::Operator, Kind::Greedy]
        }
        // Spot fills whose event is lost: the venue's list of trades reports them later.
        Planted::LateFeeOnFutures => &[Kind::Spot, Kind::EventLost],
        // Many orders, one of which is about to be sent when the process stops.
        Planted::LateOrderSent => &[Kind::Pause, Kind::Greedy],
        // Many orders while others use the weight.
        Planted::ReserveIgnored => &[Kind::Weight, Kind::Greedy],
        Planted::LaneStarved => &[Kind::Weight, Kind::Actors, Kind::Operator, Kind::Greedy],
        Planted::WatchdogSignAfterFault => &[Kind::Spot, Kind::Cut, Kind::Disk],
        // A run that dies, and its next process, while spot orders rest.
        Planted::WatchdogSweepsOnce
        | Planted::WatchdogTakesLaterOrders
        | Planted::RestingOrdersForgotten => &[Kind::Spot, Kind::Crash],
        Planted::EndedStopKept => &[Kind::Ban],
        Planted::ModeEventIgnored => &[Kind::Modes],
        // Commands while the disk is full.
        Planted::LatchNotTriedAgain | Planted::LatchAnsweredEarly => &[Kind::Disk, Kind::Operator],
        // A run that is stopped for a long time.
        Planted::CountdownIgnored => &[Kind::Spot, Kind::Pause],
        // A watchdog that dies or does not respond.
        Planted::WatchdogNotStartedAgain => &[Kind::Spot],
        // Halts that the disk did not store before the kill.
        Planted::KillSwitchLost => &[Kind::Full, Kind::Greedy],
        // Starts during a ban.
        Planted::BanForgotten => &[Kind::Ban, Kind::Crash],
        // Only ends of connections, so that no other fault explains a missing event.
        Planted::EndIsNoGap => &[Kind::Ends],
        _ => &[],
    }
}

/// Looks for a bug in the seeds from 1 to `seeds`, with `jobs` lives at the same time. The planted
/// bug is global to the process, so only one hunt may run at a time.
///
/// # Errors
/// If the simulator itself cannot be set up.
pub fn hunt(
    bug: Planted,
    seeds: u64,
    jobs: usize,
    modules: &Modules,
    options: &Options,
) -> Result<Option<Found>, String> {
    let mut options = options.clone();
    if options.choice.only.is_empty() {
        options.choice.only = kinds(bug).to_vec();
    }
    let about = Options {
        rules: rules(bug),
        ..options.clone()
    };
    let mut first = 1;
    while first <= seeds {
        plant(Some(bug));
        let found = first_broken(first..=seeds, jobs, modules, &about);
        plant(None);
        let Some(found) = found? else {
            return Ok(None);
        };
        if lead(found.seed, modules, &options)?.is_none() {
            return Ok(Some(found));
        }
        first = found.seed + 1;
    }
    Ok(None)
}

/// The lowest seed with a broken rule among the seeds that ran until the first one was found.
fn first_broken(
    seeds: std::ops::RangeInclusive<u64>,
    jobs: usize,
    modules: &Modules,
    options: &Options,
) -> Result<Option<Found>, String> {
    let next = AtomicU64::new(*seeds.start());
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Result<Found, String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = match lead(seed, modules, options) {
                        Ok(None) => continue,
                        Ok(Some(broken)) => Ok(Found { seed, broken }),
                        Err(error) => Err(error),
                    };
                    stop.store(true, Ordering::Relaxed);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let found: Result<Vec<_>, _> = results.into_iter().collect();
    Ok(found?.into_iter().min_by_key(|found| found.seed))
}

/// The rule that a seed breaks. If all rules are judged, a panic of the runtime counts as a broken
/// rule too.
fn lead(seed: u64, modules: &Modules, options: &Options) -> Result<Option<Broken>, String> {
    match catch_unwind(AssertUnwindSafe(|| life::lead(seed, modules, options))) {
        Ok(life) => Ok(life?.broken),
        Err(panic) => {
            if !options.rules.is_empty() {
                return Ok(None);
            }
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Ok(Some(Broken {
                rule: "no invariant of the runtime is broken".to_owned(),
                how: text.unwrap_or_default(),
                at_s: 0,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use crate::fault_plan::{Choice, FaultPlan};

    #[test]
    fn every_rule_about_a_bug_exists() {
        let terms = FaultPlan::draw(1, &Choice::default(), 0).terms;
        let all = check::all(&terms);
        let known = |rule: &str| {
            rule == CONVERGES
                || rule == CLOSES
                || rule == CHAIN
                || rule == ROOM
                || rule == TIMERS
                || rule == AGAIN
                || rule == SAME_BOOKS
                || all.iter().any(|one| one.rule() == rule)
        };
        for bug in Planted::ALL {
            for rule in rules(*bug) {
                assert!(known(rule), "{}: {rule}", bug.name());
            }
        }
    }
}
