//! Deliberate bugs ("planted" bugs). With them the fault simulator proves that it detects such
//! bugs. They exist only under the feature `planted`. Without it, every `planted!` is the constant
//! `false`, and no bug is compiled into a program.
//!
//! A planted bug must be one that a programmer could really write. It must be at a place where such
//! a mistake would really be made, in the code that handles real money.

/// Whether a bug is active; the constant `false` without the feature `planted`.
///
/// It is a macro and not a function, so that crates that use it need no such feature. Without the
/// feature, the names of the bugs need not exist.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is($crate::planted::Planted::$bug)
    };
}

/// Whether a bug is active; the constant `false` without the feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

/// A constant that a test can change, to prove that the live run and the fault simulator run the
/// same code. Without the feature `planted` it is always the first value.
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

/// A constant that a test can change, to prove that the live run and the fault simulator run the
/// same code. Without the feature `planted` it is always the first value.
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

    /// A constant of the session that a test can change.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Constant {
        /// The longest delay after which an order is still sent.
        LateOrder,
        /// The part of the rate limits that is reserved for cancels.
        LaneReserve,
        /// The number of blocks after which a segment of the journal ends.
        SegmentBlocks,
        /// The longest duration of `on_stop`.
        StopWithin,
    }

    impl Constant {
        /// All constants.
        pub const ALL: [Self; 4] = [
            Self::LateOrder,
            Self::LaneReserve,
            Self::SegmentBlocks,
            Self::StopWithin,
        ];

        /// Its name in the environment variable of a process.
        pub const fn name(self) -> &'static str {
            match self {
                Self::LateOrder => "late-order",
                Self::LaneReserve => "lane-reserve",
                Self::SegmentBlocks => "segment-blocks",
                Self::StopWithin => "stop-within",
            }
        }
    }

    /// The changed constant of this process: its index in [`Constant::ALL`] plus one. 0 means that
    /// no constant is changed.
    static CHANGED: AtomicUsize = AtomicUsize::new(0);

    /// Changes this constant in this process. `None` restores all constants.
    pub fn change(constant: Option<Constant>) {
        let place = constant.map_or(0, |constant| constant as usize + 1);
        CHANGED.store(place, Ordering::Relaxed);
    }

    /// Whether this constant is changed.
    pub fn is_changed(constant: Constant) -> bool {
        CHANGED.load(Ordering::Relaxed) == constant as usize + 1
    }
}

#[cfg(feature = "planted")]
pub use choice::{Planted, UnknownBug, is, plant};

#[cfg(feature = "planted")]
mod choice {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The active bug of this process: its index in [`Planted::ALL`] plus one. 0 means that no bug
    /// is active.
    ///
    /// This is the engine's only global state. A run cannot notice it, because it is set before the
    /// first engine is made. It is global because a bug is a property of the program. As a field,
    /// it would have to pass through every snapshot and every type that may contain a bug.
    static CHOSEN: AtomicUsize = AtomicUsize::new(0);

    /// Activates a bug in this process, or none.
    pub fn plant(bug: Option<Planted>) {
        CHOSEN.store(bug.map_or(0, |bug| bug as usize + 1), Ordering::Relaxed);
    }

    /// Whether this bug is active.
    pub fn is(bug: Planted) -> bool {
        CHOSEN.load(Ordering::Relaxed) == bug as usize + 1
    }

    /// A text is not the name of a planted bug.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("{0:?} is not the name of a planted bug; choose a name from the list of bugs")]
    pub struct UnknownBug(pub String);

    /// The bugs, their names and their descriptions, in one table.
    macro_rules! bugs {
        ($($bug:ident $name:literal $about:literal)*) => {
            /// A planted bug.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
            pub enum Planted {
                $(#[doc = $about] $bug,)*
            }

            impl Planted {
                /// All bugs.
                pub const ALL: &'static [Self] = &[$(Self::$bug,)*];

                /// Its name on the command line.
                pub const fn name(self) -> &'static str {
                    match self { $(Self::$bug => $name,)* }
                }

                /// A description of the wrong behaviour.
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
            "a fill that the stream sends twice counts twice"
        TradesNotDeduplicated "trades-not-deduplicated"
            "a fill that was streamed counts again when account trades are read"
        RecoveredNotDeduplicated "recovered-not-deduplicated"
            "a fill derived from an order's totals counts again when its event comes late"
        CumulativeFill "cumulative-fill"
            "a partial fill counts with the order's cumulative quantity"
        LateFillDropped "late-fill-dropped"
            "a fill that is reported after the end of its order is dropped"
        FeeTwice "fee-twice"
            "the fee of a fill is booked twice"
        BooksContradict "books-contradict"
            "a strategy's ledger counts a fee that the account's does not"
        PositionSideMixed "position-side-mixed"
            "an outside sale in the account trades counts as a purchase"
        OwnTradeAsExternal "own-trade-as-external"
            "a trade of an own order whose venue id is not known yet counts as an outside trade"
        AccountBeforeFill "account-before-fill"
            "an account event that comes before its fill is booked, and then the fill is booked too"
        ClosedPositionBookedTwice "closed-position-booked-twice"
            "an account event without a changed position is booked, and then its fill is booked too"
        UnlistedPositionKept "unlisted-position-kept"
            "a position that the account does not list is kept for ever, without a degraded reason"
        OlderAccountRead "older-account-read"
            "an account snapshot is used although user events arrived while it was in flight"
        AdjustAfterOneRead "adjust-after-one-read"
            "the engine adopts an account difference after a single snapshot"
        WipeOnMissing "wipe-on-missing"
            "orders that are missing from the list of open orders end without a query"
        MissingNotAsked "missing-not-asked"
            "orders that are missing from the list of open orders are never queried"
        CancelIsDone "cancel-is-done"
            "an order ends when its cancel is sent"
        CancelRefusedIsDone "cancel-refused-is-done"
            "an order ends when its cancel is rejected or has an unknown outcome"
        UnknownLeavesExposure "unknown-leaves-exposure"
            "an order of unknown outcome reserves nothing"
        UnknownCountsBuysOnly "unknown-counts-buys-only"
            "a sell order of unknown outcome reserves nothing"
        AccountLimitsForgotten "account-limits-forgotten"
            "an order is checked only against the limits of its strategy"
        OtherSideCovers "other-side-covers"
            "an order passes the position limit while open orders of the other side exceed it"
        OldListBelieved "old-list-believed"
            "a list of open orders that is older than the stream reopens an ended order"
        YoungOrderDenied "young-order-denied"
            "a new order that a query does not find yet counts as denied"
        RateForgotten "rate-forgotten"
            "orders do not count for the limit per minute"
        ExposureWhileDegraded "exposure-while-degraded"
            "orders pass while the run is degraded"
        StreamDownIgnored "stream-down-ignored"
            "a user stream that is disconnected is trusted"
        SilenceIgnored "silence-ignored"
            "a user stream that is silent is trusted"
        ForgetToReconcile "forget-to-reconcile"
            "no round of reconciliation follows the first"
        PlaceBeforeArmed "place-before-armed"
            "an order is sent before the venue confirmed the countdown"
        ForgetToRenew "forget-to-renew"
            "the countdown is not renewed"
        RenewUnhealthy "renew-unhealthy"
            "the countdown is renewed in spite of degraded reasons"
        LapsedStillCovers "lapsed-still-covers"
            "a countdown that ended counts as active until the next check"
        LetGoResting "let-go-resting"
            "the countdown of a symbol is disarmed while orders are open on it"
        CancelOthers "cancel-others"
            "outside orders are treated as own stray orders and cancelled"
        ForgetInFlight "forget-in-flight"
            "a restart forgets orders that were in flight"
        EpochReused "epoch-reused"
            "a restart reuses the epoch of its journal"
        PlaceBeforeDurable "place-before-durable"
            "an order is sent before the record of its intent is durable"
        LateOrderSent "late-order-sent"
            "an order is sent long after its decision, because the process was suspended in between"
        AcknowledgedBeforeSync "acknowledged-before-sync"
            "a block counts as durable as soon as it is passed to the journal"
        StopLeavesAnOrder "stop-leaves-an-order"
            "a stop ends as soon as no request is in flight, although orders are open"
        BackpressureIgnored "backpressure-ignored"
            "blocks are passed to the journal although it has no room for them"
        ReloadAppliedTwice "reload-applied-twice"
            "a strategy that a reload changes is started twice"
        StaleSnapshotUsed "stale-snapshot-used"
            "a book is built from levels that are older than its snapshot"
        SnapshotFetchLost "snapshot-fetch-lost"
            "a depth snapshot is not requested again after a failed request"
        RecoverySkipsStep "recovery-skips-step"
            "a start continues although it could not read the venue's clock"
        ReserveIgnored "reserve-ignored"
            "orders use the request weight that is reserved for cancels and closes"
        LaneStarved "lane-starved"
            "cancels wait for request weight in the lane of orders"
        WatchdogSweepsOnce "watchdog-sweeps-once"
            "the watchdog of spot orders ends after one empty list of open orders"
        WatchdogNotStartedAgain "watchdog-not-started-again"
            "no new watchdog process is started after one ended"
        WatchdogTakesLaterOrders "watchdog-takes-later-orders"
            "the watchdog of spot orders also cancels orders of a later run"
        WatchdogSignAfterFault "watchdog-sign-after-a-fault"
            "a timer of the session sends heartbeats for spot in spite of degraded reasons"
        KillSwitchLost "kill-switch-lost-at-restart"
            "a start ignores the kill switch file beside the journal"
        EndedStopKept "ended-stop-kept"
            "a timer for a stop of the venue remains after the stop ended"
        CountdownIgnored "countdown-ignored"
            "the watchdog of spot orders acts only when its run ends, not when heartbeats stop"
        ModeEventIgnored "mode-event-ignored"
            "an event that reports another position mode has no effect"
        LatchAnsweredEarly "latch-answered-early"
            "a kill switch counts as durable before its file is durable"
        RestingOrdersForgotten "resting-orders-forgotten"
            "a restarted watchdog process does not know that orders may be open"
        LatchNotTriedAgain "latch-not-tried-again"
            "the kill switch file is not written again after a disk error"
        BanForgotten "ban-forgotten"
            "a start ignores the ban that the venue reported to the previous process"
        RollLosesBlock "roll-loses-block"
            "blocks that wait for the journal are dropped when a segment ends"
        StateBehind "state-behind"
            "the state of strategies is recorded only at the start of segments"
        CancelOvertakes "cancel-overtakes"
            "a cancel is sent while its order still waits for the journal"
        BlockedStillReady "blocked-still-ready"
            "the state stays ready after rejections because the account cannot trade"
        BlockStopsHeartbeats "block-stops-heartbeats"
            "a blocked instrument stops the renewals of every countdown"
        BanIgnored "ban-ignored"
            "requests continue although the venue banned the address"
        NonceRepeated "nonce-repeated"
            "two requests in the same microsecond have the same nonce"
        KeyExpiryIgnored "key-expiry-ignored"
            "a user stream whose listen key expired is trusted"
        UnknownOrderUnread "unknown-order-unread"
            "an order whose query returns -2011 stays unknown for ever"
        EmergencyWaitsForBudget "emergency-waits-for-budget"
            "cancels, closes and renewals wait for the runtime's own weight budget"
        OthersUsageIgnored "others-usage-ignored"
            "headers that show the weight used by other programs on the address are ignored"
        StartReadsUnplanned "start-reads-unplanned"
            "the reads of a start do not use weight reserved for lanes that are not in use yet"
        SecondInstanceAdopted "second-instance-adopted"
            "orders of another running instance are adopted or cancelled"
        LiquidationIgnored "liquidation-ignored"
            "a liquidation or an ADL does not change the strategies' positions"
        RulesNeverReread "rules-never-reread"
            "the rules of instruments are read only at the start"
        LossWhileDownForgotten "loss-while-down-forgotten"
            "losses of own orders while the process was down do not reach the loss limits"
        FundingIsTransfer "funding-is-transfer"
            "every balance change without an event counts as a transfer"
        OtherSymbolsIgnored "other-symbols-ignored"
            "positions on symbols that are not configured do not reach the loss limits"
        TradeCursorShared "trade-cursor-shared"
            "account trades are read starting from the newest trade of any symbol"
        EndIsNoGap "end-is-no-gap"
            "a user stream counts as complete although the venue ended it and it was reopened"
        OwnPingsForgotten "own-pings-forgotten"
            "a stream does not send its own pings"
        TradesLagIgnored "trades-lag-ignored"
            "a difference is adopted although the list of trades may be older than the account"
        CloseWaitsForStream "close-waits-for-stream"
            "a close waits until the user stream is connected and the account is reconciled"
        MovingAccountWaits "moving-account-waits"
            "a start, and each close with it, waits for two account snapshots with no event between"
        CloseWaitsForCountdown "close-waits-for-countdown"
            "a close waits until the venue confirms a countdown"
        ExitMayOpen "exit-may-open"
            "closes and exits are sent without reduceOnly"
        OtherFeesFree "other-fees-free"
            "commissions in another asset do not reach the loss limits"
        LateFeesIgnored "late-fees-ignored"
            "a commission that only account trades report is not booked"
        LateFeeTwice "late-fee-twice"
            "a commission that only account trades report is booked on each read of them"
        MarginCallIgnored "margin-call-ignored"
            "a margin call leaves the state ready"
        SideUnbound "side-unbound"
            "in hedge mode a strategy may close the position of another strategy"
        SidesConfused "sides-confused"
            "in hedge mode a fill is booked to the side that its order would open"
        OneStreamServesBoth "one-stream-serves-both"
            "a connected user stream of one surface counts for the other surface too"
        LateFeeOnFutures "late-fee-on-futures"
            "a late commission of spot is booked to the balance of futures"
        StatedFillWaits "stated-fill-waits"
            "a fill that a response reports waits for its event or for account trades"
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
