//! Bugs that are planted on purpose, so that the simulator of faults can prove that it would see
//! them. They exist under the feature `planted` alone; without it every `planted!` is the constant
//! `false`, and nothing of them is compiled into a program.
//!
//! What may not enter: a bug that no programmer would write. Each stands where such a mistake would
//! really be made, in the code that real money runs through.

/// Whether a bug is planted; the constant `false` without the feature `planted`.
///
/// A macro and not a function, so that crates which use it need no feature of their own, and the
/// names need not exist without it.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is($crate::planted::Planted::$bug)
    };
}

/// Whether a bug is planted; the constant `false` without the feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

/// A constant that a test changes, to prove that the live run and the simulator of faults run the same
/// code; the first value, and nothing else, without the feature `planted`.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! constant {
    ($constant:ident, $value:expr, changed: $changed:expr) => {
        if $crate::planted::is_changed($crate::planted::Constant::$constant) {
            $changed
        } else {
            $value
        }
    };
}

/// A constant that a test changes, to prove that the live run and the simulator of faults run the same
/// code; the first value, and nothing else, without the feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! constant {
    ($constant:ident, $value:expr, changed: $changed:expr) => {
        $value
    };
}

#[cfg(feature = "planted")]
pub use change::{Constant, change, is_changed};

#[cfg(feature = "planted")]
mod change {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A constant of the session that can be changed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Constant {
        /// An order that could not leave within this does not leave.
        LateOrder,
        /// The part of the limits that is kept for cancels.
        LaneReserve,
        /// A segment of the journal ends after so many blocks.
        SegmentBlocks,
        /// How long `on_stop` may take.
        StopWithin,
    }

    impl Constant {
        /// Each of them.
        pub const ALL: [Self; 4] = [
            Self::LateOrder,
            Self::LaneReserve,
            Self::SegmentBlocks,
            Self::StopWithin,
        ];

        /// Its name in the environment of a process.
        pub const fn name(self) -> &'static str {
            match self {
                Self::LateOrder => "late-order",
                Self::LaneReserve => "lane-reserve",
                Self::SegmentBlocks => "segment-blocks",
                Self::StopWithin => "stop-within",
            }
        }
    }

    /// The changed constant of this process, by its place in [`Constant::ALL`] plus one; 0 is none.
    static CHANGED: AtomicUsize = AtomicUsize::new(0);

    /// Changes this constant in this process, or none.
    pub fn change(constant: Option<Constant>) {
        let place = constant.map_or(0, |constant| constant as usize + 1);
        CHANGED.store(place, Ordering::Relaxed);
    }

    /// Whether this constant is the changed one.
    pub fn is_changed(constant: Constant) -> bool {
        CHANGED.load(Ordering::Relaxed) == constant as usize + 1
    }
}

#[cfg(feature = "planted")]
pub use choice::{Planted, UnknownBug, is, plant};

#[cfg(feature = "planted")]
mod choice {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The bug of this process, by its place in [`Planted::ALL`] plus one; 0 is none.
    ///
    /// The engine has no other state outside of its own value, and this is none that a run can
    /// see: it is set before the first engine is made, and a bug is a property of the program, not
    /// of an engine. A field would have to travel through every snapshot and every type that may
    /// be wrong.
    static CHOSEN: AtomicUsize = AtomicUsize::new(0);

    /// Chooses the bug of this process, or none.
    pub fn plant(bug: Option<Planted>) {
        CHOSEN.store(bug.map_or(0, |bug| bug as usize + 1), Ordering::Relaxed);
    }

    /// Whether this bug is the chosen one.
    pub fn is(bug: Planted) -> bool {
        CHOSEN.load(Ordering::Relaxed) == bug as usize + 1
    }

    /// A text that names no bug.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("{0:?} is no planted bug; the list of their names shows those that are")]
    pub struct UnknownBug(pub String);

    /// The bugs, their names and what is wrong, in one table.
    macro_rules! bugs {
        ($($bug:ident $name:literal $about:literal)*) => {
            /// A bug that can be planted.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub enum Planted {
                $(#[doc = $about] $bug,)*
            }

            impl Planted {
                /// Every bug.
                pub const ALL: &'static [Self] = &[$(Self::$bug,)*];

                /// Its name on the command line.
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$bug => $name,)* }
                }

                /// What is wrong.
                pub const fn about(self) -> &'static str {
                    match self { $(Self::$bug => $about,)* }
                }
            }
        };
    }

    bugs! {
        ResendOnTimeout "resend-on-timeout"
            "an order of unknown outcome is sent again under a new id"
        TimeoutIsRejected "timeout-is-rejected"
            "an order of unknown outcome counts as rejected"
        AbsenceIsRejected "absence-is-rejected"
            "an order that the venue does not know yet counts as rejected at once"
        FillsNotDeduplicated "fills-not-deduplicated"
            "a fill that the stream tells twice counts twice"
        TradesNotDeduplicated "trades-not-deduplicated"
            "a fill that was streamed counts again when account trades are read"
        RecoveredNotDeduplicated "recovered-not-deduplicated"
            "a fill made up from an order's totals counts again when its event comes late"
        CumulativeFill "cumulative-fill"
            "a partial fill counts with the order's cumulative quantity"
        LateFillDropped "late-fill-dropped"
            "a fill that is told after the end of its order is dropped"
        FeeTwice "fee-twice"
            "the fee of a fill is booked twice"
        BooksContradict "books-contradict"
            "a strategy's ledger counts a fee that the account's does not"
        PositionSideMixed "position-side-mixed"
            "a sale of somebody else that account trades tell counts as a purchase"
        OwnTradeAsExternal "own-trade-as-external"
            "a trade of an own order whose number is not known yet counts as somebody else's"
        AccountBeforeFill "account-before-fill"
            "an account event that comes before its fill is taken, and the fill after it again"
        ClosedPositionBookedTwice "closed-position-booked-twice"
            "an account event that lists no position which differs is taken, and its fill after it again"
        UnlistedPositionKept "unlisted-position-kept"
            "a position that the account does not list is held for ever, and nothing is in doubt"
        OlderAccountRead "older-account-read"
            "an account read is believed although user events came while it was on its way"
        AdjustAfterOneRead "adjust-after-one-read"
            "a difference of the account is taken after a single read"
        WipeOnMissing "wipe-on-missing"
            "orders that are not in the list of open orders end without being asked for"
        MissingNotAsked "missing-not-asked"
            "orders that are not in the list of open orders are never asked for"
        CancelIsDone "cancel-is-done"
            "an order ends when its cancel is sent"
        CancelRefusedIsDone "cancel-refused-is-done"
            "an order ends when its cancel is refused, or its outcome unknown"
        UnknownLeavesExposure "unknown-leaves-exposure"
            "an order of unknown outcome reserves nothing"
        UnknownCountsBuysOnly "unknown-counts-buys-only"
            "a sell order of unknown outcome reserves nothing"
        AccountLimitsForgotten "account-limits-forgotten"
            "an order is held against the limits of its strategy alone"
        OtherSideCovers "other-side-covers"
            "an order passes the position limit while open orders of the other side are over it"
        OldListBelieved "old-list-believed"
            "an ended order is open again by a list that is behind the stream"
        YoungOrderDenied "young-order-denied"
            "a new order that a query does not have yet counts as denied"
        RateForgotten "rate-forgotten"
            "orders are not counted for the limits of a minute"
        ExposureWhileDegraded "exposure-while-degraded"
            "orders pass while the run is degraded"
        StreamDownIgnored "stream-down-ignored"
            "a user stream that went down is trusted"
        SilenceIgnored "silence-ignored"
            "a user stream that is silent is trusted"
        ForgetToReconcile "forget-to-reconcile"
            "no round of reconciliation follows the first"
        PlaceBeforeArmed "place-before-armed"
            "an order leaves before the venue confirmed the countdown"
        ForgetToRenew "forget-to-renew"
            "the countdown is not renewed"
        RenewUnhealthy "renew-unhealthy"
            "the countdown is renewed whatever is in doubt"
        LapsedStillCovers "lapsed-still-covers"
            "a countdown that ended covers orders until somebody looks"
        LetGoResting "let-go-resting"
            "the countdown of a symbol is stopped while orders rest on it"
        CancelOthers "cancel-others"
            "orders of others are taken for strays and cancelled"
        ForgetInFlight "forget-in-flight"
            "a restart forgets orders that were on their way"
        EpochReused "epoch-reused"
            "a restart goes on with the epoch that its journal remembers"
        PlaceBeforeDurable "place-before-durable"
            "an order leaves before the record of its intent is durable"
        LateOrderSent "late-order-sent"
            "an order leaves long after it was decided, when the process was stopped in between"
        AcknowledgedBeforeSync "acknowledged-before-sync"
            "a block counts as durable once the journal was given it"
        StopLeavesAnOrder "stop-leaves-an-order"
            "a stop ends as soon as no request is under way, although orders are left"
        BackpressureIgnored "backpressure-ignored"
            "the journal is given blocks that it has no room for"
        ReloadAppliedTwice "reload-applied-twice"
            "a strategy that a reload changes begins twice"
        StaleSnapshotUsed "stale-snapshot-used"
            "a book is made of the levels that were read before its snapshot"
        SnapshotFetchLost "snapshot-fetch-lost"
            "a depth snapshot whose question failed is not asked for again"
        RecoverySkipsStep "recovery-skips-step"
            "a start that could not read the venue's clock goes on without"
        ReserveIgnored "reserve-ignored"
            "orders take the weight that is reserved for cancels and closes"
        LaneStarved "lane-starved"
            "cancels wait for weight in the lane of orders"
        WatchdogSweepsOnce "watchdog-sweeps-once"
            "the watchdog of spot orders ends after one listing that shows nothing"
        WatchdogNotStartedAgain "watchdog-not-started-again"
            "no watchdog process follows one that ended"
        WatchdogTakesLaterOrders "watchdog-takes-later-orders"
            "the watchdog of spot orders cancels those of a later run too"
        WatchdogSignAfterFault "watchdog-sign-after-a-fault"
            "a timer of the session gives signs of health for spot, whatever is in doubt"
        KillSwitchLost "kill-switch-lost-at-restart"
            "a start does not latch what the file beside the journal says"
        EndedStopKept "ended-stop-kept"
            "a stop of the venue that is over stays among the timers"
        CountdownIgnored "countdown-ignored"
            "the watchdog of spot orders acts on the death of its run alone, not on silence"
        ModeEventIgnored "mode-event-ignored"
            "an event that tells of another position mode changes nothing"
        LatchAnsweredEarly "latch-answered-early"
            "what is latched counts as durable before the file is"
        RestingOrdersForgotten "resting-orders-forgotten"
            "a watchdog process that follows another does not know that orders may rest"
        LatchNotTriedAgain "latch-not-tried-again"
            "the file of the latches is not written again after the disk refused it"
        BanForgotten "ban-forgotten"
            "a start does not heed the ban that the process before was told of"
        RollLosesBlock "roll-loses-block"
            "blocks that wait for the journal are dropped when a segment ends"
        StateBehind "state-behind"
            "what strategies know is recorded with segments alone"
        CancelOvertakes "cancel-overtakes"
            "a cancel leaves while its order waits for the journal"
        BlockedStillReady "blocked-still-ready"
            "refusals that say that the account cannot trade leave the state ready"
        BlockStopsHeartbeats "block-stops-heartbeats"
            "a blocked instrument stops the renewals of every countdown"
        BanIgnored "ban-ignored"
            "requests go on although the venue said stop"
        NonceRepeated "nonce-repeated"
            "two requests of one microsecond have the same nonce"
        KeyExpiryIgnored "key-expiry-ignored"
            "a user stream whose listen key expired is trusted"
        UnknownOrderUnread "unknown-order-unread"
            "a query that is answered with -2011 leaves the order unknown for ever"
        EmergencyWaitsForBudget "emergency-waits-for-budget"
            "cancels, closes and renewals wait for the runtime's own count of weight"
        OthersUsageIgnored "others-usage-ignored"
            "headers that show what others on the address used are ignored"
        StartReadsUnplanned "start-reads-unplanned"
            "the reads of a start leave free what is reserved for lanes that are not in use yet"
        SecondInstanceAdopted "second-instance-adopted"
            "orders of another instance that is alive are adopted or cancelled"
        LiquidationIgnored "liquidation-ignored"
            "a liquidation or an ADL leaves the strategies' positions as they were"
        RulesNeverReread "rules-never-reread"
            "the rules of instruments are read at the start alone"
        LossWhileDownForgotten "loss-while-down-forgotten"
            "what own orders lost while the process was down does not reach the loss limits"
        FundingIsTransfer "funding-is-transfer"
            "whatever moved a balance without an event counts as a transfer"
        OtherSymbolsIgnored "other-symbols-ignored"
            "positions on symbols that are not configured do not reach the loss limits"
        TradeCursorShared "trade-cursor-shared"
            "account trades are read from the newest trade of any symbol on"
        EndIsNoGap "end-is-no-gap"
            "a user stream that the venue ended and that is opened again counts as complete"
        OwnPingsForgotten "own-pings-forgotten"
            "a stream sends no pings of its own"
        TradesLagIgnored "trades-lag-ignored"
            "a difference is taken although the list of trades may be behind the account"
        CloseWaitsForStream "close-waits-for-stream"
            "a close waits until the user stream is up and the account is reconciled"
        MovingAccountWaits "moving-account-waits"
            "a start, and each close with it, waits for two readings without an event between them"
        CloseWaitsForCountdown "close-waits-for-countdown"
            "a close waits until the venue confirms a countdown"
        ExitMayOpen "exit-may-open"
            "closes and exits leave without reduceOnly"
        OtherFeesFree "other-fees-free"
            "commissions in another asset do not reach the loss limits"
        LateFeesIgnored "late-fees-ignored"
            "a commission that account trades alone state is not booked"
        LateFeeTwice "late-fee-twice"
            "a commission that account trades alone state is booked with each reading of them"
        MarginCallIgnored "margin-call-ignored"
            "a margin call leaves the state ready"
        SideUnbound "side-unbound"
            "in hedge mode a strategy may close what another one holds"
        SidesConfused "sides-confused"
            "in hedge mode a fill is booked to the side that its order would open"
        OneStreamServesBoth "one-stream-serves-both"
            "a user stream of one surface that comes up counts for the other one"
        LateFeeOnFutures "late-fee-on-futures"
            "a late commission of spot is booked to the balance of futures"
        StatedFillWaits "stated-fill-waits"
            "a fill that an answer states waits for its event, or for account trades"
    }

    impl std::str::FromStr for Planted {
        type Err = UnknownBug;

        fn from_str(text: &str) -> Result<Self, UnknownBug> {
            let found = Self::ALL.iter().find(|bug| bug.name() == text);
            found.copied().ok_or_else(|| UnknownBug(text.to_owned()))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_bug_is_found_by_its_name() {
            for bug in Planted::ALL {
                assert_eq!(bug.name().parse(), Ok(*bug));
            }
            assert!("no-such-bug".parse::<Planted>().is_err());
        }
    }
}
