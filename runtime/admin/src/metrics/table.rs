//! Every metric with name, unit, labels and meaning. The page `METRICS.md` is generated from it.
//!
//! No other code of the program contains the name of a metric.

use super::family::{Counters, Gauges, Line, Summaries};

/// Makes a static for each line, and [`LINES`] with all of them, so none can be missing.
macro_rules! table {
    ($($id:ident: $family:ident<$labels:literal>, $kind:ident, $name:literal, $unit:literal,
        $label:expr, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub static $id: $family<$labels> = $family::$kind($name, $unit, &$label, $meaning);
        )*

        /// All lines of the table.
        pub static LINES: &[Line] = &[
            $($family::<$labels>::$kind($name, $unit, &$label, $meaning).line()),*
        ];
    };
}

table! {
    INFO: Gauges<2>, gauge, "windvane_info", "1", ["version", "mode"],
        "Always 1; the version of the program and the mode of the run (paper, live).";
    STATE: Gauges<1>, gauge, "windvane_state", "0 or 1", ["state"],
        "1 for the state of the run (booting, syncing, ready, degraded, paused, halted), 0 for \
         the others.";
    STATE_SINCE: Gauges<0>, gauge, "windvane_state_since_seconds", "Unix seconds", [],
        "When the run entered its state.";
    STATE_MOVES: Counters<2>, counter, "windvane_state_moves_total", "moves", ["from", "to"],
        "Moves from one state of the run to another.";
    DEGRADED_REASONS: Gauges<0>, gauge, "windvane_degraded_reasons", "degraded reasons", [],
        "Number of degraded reasons; the run is degraded while it is not 0.";
    DOUBTS: Gauges<0>, gauge, "windvane_doubts", "degraded reasons", [],
        "Deprecated: the old name of windvane_degraded_reasons, with the same value. It is \
         removed after one release.";
    UPTIME: Gauges<0>, gauge, "windvane_uptime_seconds", "seconds", [],
        "Time since the process started.";
    RECOVERY: Gauges<0>, gauge, "windvane_recovery_seconds", "seconds", [],
        "Time from the start of the process to its first state ready.";
    LOOP_AGE: Gauges<0>, gauge, "windvane_loop_age_seconds", "seconds", [],
        "Time since the engine's loop last made progress.";
    MEMORY: Gauges<0>, gauge, "windvane_memory_bytes", "bytes", [],
        "Resident memory of the process.";

    MARKET_EVENTS: Counters<1>, counter, "windvane_market_events_total", "events", ["surface"],
        "Market events that entered the engine.";
    ORDERS: Counters<2>, counter, "windvane_orders_total", "orders", ["strategy", "outcome"],
        "Orders by outcome: sent, rejected (by a local rule, nothing was sent), not_sent (accepted \
         by the rules, but it never left the process), refused (rejected by the venue), absent \
         (sent, but it never reached the venue), unknown (its outcome is unknown and is queried), \
         filled, canceled, expired.";
    ORDERS_NOT_PLACED: Counters<3>, counter, "windvane_orders_not_placed_total", "orders",
        ["strategy", "instrument", "code"],
        "Orders that were not placed, by the venue's code, or by not_sent if they never left the \
         process.";
    TRADING_BLOCKED: Gauges<1>, gauge, "windvane_trading_blocked", "0 or 1", ["what"],
        "1 while opening orders of the account (futures account), the instrument \
         (futures:BTCUSDT) or the asset (futures USDT) are blocked.";
    TRADING_BLOCKED_SINCE: Gauges<1>, gauge, "windvane_trading_blocked_since_seconds",
        "Unix seconds", ["what"],
        "Start of the block; 0 while nothing is blocked.";
    TRADING_BLOCKS: Counters<1>, counter, "windvane_trading_blocks_total", "blocks", ["what"],
        "How often opening orders were blocked.";
    OPEN_ORDERS: Gauges<1>, gauge, "windvane_open_orders", "orders", ["strategy"],
        "Own orders that may be open at the venue, including those of unknown outcome.";
    FILLS: Counters<1>, counter, "windvane_fills_total", "fills", ["strategy"],
        "Fills of own orders, including recovered ones.";
    FILLS_RECOVERED: Counters<1>, counter, "windvane_fills_recovered_total", "fills", ["strategy"],
        "Fills that the user stream missed and that were read over REST.";
    EXTERNAL: Counters<1>, counter, "windvane_external_total", "events", ["surface"],
        "Orders and fills from outside this run on the account, including liquidations.";
    FORCED_CLOSES: Counters<2>, counter, "windvane_forced_closes_total", "closes",
        ["instrument", "reason"],
        "Orders of the venue that closed positions of the account, each counted once: liquidation, \
         ADL, unreported (without an order event), insurance_clear (reported only by an account \
         event so far).";
    RULE_CHANGES: Counters<1>, counter, "windvane_rule_changes_total", "changes", ["instrument"],
        "Changes that the venue made to an instrument's rules (status, filters) during the run.";
    REALIZED_PNL: Gauges<1>, gauge, "windvane_realized_pnl", "quote asset", ["strategy"],
        "Realized profit before fees.";
    UNREALIZED_PNL: Gauges<1>, gauge, "windvane_unrealized_pnl", "quote asset", ["strategy"],
        "Unrealized profit; NaN while an open position has no price.";
    FEES: Gauges<1>, gauge, "windvane_fees", "quote asset", ["strategy"],
        "Fees, positive when paid.";
    FUNDING: Gauges<1>, gauge, "windvane_funding", "quote asset", ["strategy"],
        "Funding, positive when received.";

    ORDER_LATENCY: Summaries<0>, summary, "windvane_order_latency_seconds", "seconds", [],
        "Time from the arrival of a market event until the signed order request is handed to the \
         socket, including the durable record of the order.";
    JOURNAL_DURABLE: Summaries<0>, summary, "windvane_journal_durable_seconds", "seconds", [],
        "Time from handing a block of records to the journal until it is durable.";
    JOURNAL_BEHIND_RECORDS: Gauges<0>, gauge, "windvane_journal_behind_records", "records", [],
        "Records of the engine that are not durable yet.";
    JOURNAL_BEHIND_SECONDS: Gauges<0>, gauge, "windvane_journal_behind_seconds", "seconds", [],
        "Age of the oldest record that is not durable yet.";
    JOURNAL_BYTES: Gauges<0>, gauge, "windvane_journal_bytes", "bytes", [],
        "Size of the journal on disk.";

    HEARTBEATS: Counters<2>, counter, "windvane_heartbeats_total", "countdowns",
        ["instrument", "outcome"],
        "Dead man's switches: renewed, failed (not confirmed by the venue), withheld (the run \
         is not healthy), lapsed (not renewed in time).";
    WATCHDOG: Gauges<0>, gauge, "windvane_watchdog_armed", "0 or 1", [],
        "1 while a watchdog process protects spot orders.";
    RECONCILIATIONS: Counters<2>, counter, "windvane_reconciliations_total", "rounds",
        ["surface", "outcome"],
        "Rounds of reconciliation: clean, or unexplained (a difference remained).";
    ADJUSTMENTS: Counters<1>, counter, "windvane_adjustments_total", "adjustments", ["kind"],
        "Corrections to the venue's values: balance, rounding (a balance, by the venue's rounding \
         of a fill), position, absent (an order that the venue does not know), alive (an order \
         that counted as ended but is open), settled (opposite positions of two strategies that \
         are being closed, settled without an order).";
    STREAM_UP: Gauges<2>, gauge, "windvane_stream_up", "0 or 1", ["surface", "stream"],
        "1 while the stream (user, market) is connected.";
    STREAM_GAPS: Counters<2>, counter, "windvane_stream_gaps_total", "gaps", ["surface", "stream"],
        "How often a stream was cut, was silent or skipped events, and REST was read to recover.";
    CLOCK_OFFSET: Gauges<1>, gauge, "windvane_clock_offset_seconds", "seconds", ["surface"],
        "The venue's clock minus the clock of this machine.";

    REQUESTS: Counters<2>, counter, "windvane_requests_total", "requests", ["surface", "outcome"],
        "Requests to the venue: done, refused, unknown, wait (the venue or the budget asked to \
         wait).";
    REQUEST_SECONDS: Summaries<1>, summary, "windvane_request_seconds", "seconds", ["surface"],
        "Time from handing a request to the socket until its response.";
    WEIGHT_USED: Gauges<1>, gauge, "windvane_weight_used", "weight", ["surface"],
        "Request weight used in the current minute, as the venue counts it.";
    WEIGHT_LIMIT: Gauges<1>, gauge, "windvane_weight_limit", "weight", ["surface"],
        "Request weight that the venue allows in a minute.";
    BUDGET_WAIT: Summaries<1>, summary, "windvane_budget_wait_seconds", "seconds", ["lane"],
        "Time that a request waited for its share of the weight, or until it gave up; requests \
         that did not wait are not counted. Lanes: `cancel`, `close`, `heartbeat`, `start`, \
         `reconcile`, `place`, `query`. The first three wait only if the venue itself asks for \
         it.";
    BANS: Counters<1>, counter, "windvane_bans_total", "bans", ["surface"],
        "How often the venue responded with 418 (ban).";

    QUARANTINES: Counters<2>, counter, "windvane_quarantines_total", "quarantines",
        ["strategy", "fault"],
        "Quarantines by fault (trap, fuel, memory, stack, intents, output, contract, host, loss, \
         state, time, cpu).";
    QUARANTINED: Gauges<1>, gauge, "windvane_quarantined", "0 or 1", ["strategy"],
        "1 while the strategy is quarantined.";
    CALLBACK_SECONDS: Summaries<1>, summary, "windvane_callback_seconds", "seconds", ["strategy"],
        "Duration of a callback of the strategy.";
    STRATEGY_CPU: Counters<1>, counter, "windvane_strategy_cpu_microseconds_total", "microseconds",
        ["strategy"],
        "Processor time that events and saves of the strategy used, with the writing of its log.";
    CALLBACKS_DELAYED: Counters<1>, counter, "windvane_callbacks_delayed_total", "callbacks",
        ["strategy"],
        "Callbacks that took longer than limits.callback_ms without using this processor time, \
         because the machine was busy.";

    COMMANDS: Counters<2>, counter, "windvane_commands_total", "commands", ["command", "outcome"],
        "Commands of the operator: applied, refused, unanswered.";
    ADMIN_REQUESTS: Counters<1>, counter, "windvane_admin_requests_total", "requests", ["status"],
        "Requests to the admin server by the status of the response.";
}
