//! Strategies that try to hold a run: each sets 64 timers that set each other, and does something
//! dear at each event.

use std::path::Path;

use crate::guest::Guest;

const SET_TIMER: &str = r#"(import "windvane:strategy/timers@0.2.0" "set"
    (func $set_timer (param i64 i32 i64) (result i64)))"#;

/// Sets 64 timers at the start. Each is set again when it fires.
const SET_ALL: &str = "(local $token i64)
    (loop $more
      (drop (call $set_timer (i64.const 0) (i32.const 0) (local.get $token)))
      (local.set $token (i64.add (local.get $token) (i64.const 1)))
      (br_if $more (i64.lt_u (local.get $token) (i64.const 64))))";

/// Sets the timer again.
const SET_AGAIN: &str = "(if (i32.eq (local.get $kind) (i32.const 11))
    (then (drop (call $set_timer (i64.const 0) (i32.const 0) (local.get $a)))))";

/// A hostile strategy.
#[derive(Clone, Copy, Debug)]
pub struct Hostile {
    /// Its code for each event.
    on_event: &'static str,
    /// Its code for `start`.
    start: &'static str,
    /// Pointer and length of its saved state.
    save: &'static str,
    imports: &'static str,
    /// `limits.fuel_per_event`.
    pub fuel: u64,
    /// The faults that may end it; empty if it may also stay within its share of the processor.
    pub faults: &'static [&'static str],
}

const QUIET: Hostile = Hostile {
    on_event: "",
    start: "",
    save: "",
    imports: "",
    fuel: 2_000_000,
    faults: &[],
};

/// 64 timers that set each other, each with a long callback.
pub const TIMERS: Hostile = Hostile {
    // Divisions take long for their fuel.
    on_event: "(local.set $bid (i64.const -1))
        (loop $again
          (local.set $bid (i64.or (i64.div_u (local.get $bid)
            (i64.add (i64.extend_i32_u (local.get $i)) (i64.const 3))) (i64.const -256)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 100000))))",
    faults: &["cpu"],
    ..QUIET
};

/// An endless loop that has fuel for minutes.
pub const LOOP_WITH_FUEL: Hostile = Hostile {
    on_event: "(loop $again (br $again))",
    fuel: 1_000_000_000_000,
    faults: &["time"],
    ..QUIET
};

/// An endless loop.
pub const LOOP: Hostile = Hostile {
    on_event: "(loop $again (br $again))",
    faults: &["fuel"],
    ..QUIET
};

/// Fills of the whole memory.
pub const FILLS: Hostile = Hostile {
    start: "(drop (memory.grow (i32.const 1000)))",
    on_event: "(memory.fill (i32.const 65536) (i32.const 1) (i32.const 65536000))",
    faults: &["fuel"],
    ..QUIET
};

/// Reads all over 64 MiB of memory, each of which misses the caches.
pub const CACHE_MISSES: Hostile = Hostile {
    start: "(drop (memory.grow (i32.const 1023)))",
    on_event: "(local.set $bid (local.get $sequence))
        (loop $again
          (local.set $bid (i64.add
            (i64.mul (local.get $bid) (i64.const 6364136223846793005))
            (i64.const 1442695040888963407)))
          (local.set $bid (i64.add (local.get $bid) (i64.and (i64.const 1)
            (i64.load (i32.and (i32.wrap_i64 (i64.shr_u (local.get $bid) (i64.const 33)))
              (i32.const 0x3fffff8))))))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 65000))))",
    faults: &["cpu", "time"],
    ..QUIET
};

/// Calls of a dear host function.
pub const HOST_CALLS: Hostile = Hostile {
    imports: r#"(import "windvane:strategy/account@0.2.0" "open-order"
        (func $open_order (param i32 i32) (result i64)))"#,
    on_event: "(loop $again
          (drop (call $open_order (i32.const 0) (local.get $i)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 30000))))",
    faults: &["cpu"],
    ..QUIET
};

/// A flood of log lines.
pub const LOG_LINES: Hostile = Hostile {
    imports: r#"(import "windvane:strategy/log@0.2.0" "log" (func $log (param i32 i32 i32)))"#,
    on_event: "(loop $again
          (i32.store (i32.const 1024) (i32.or (i32.const 0x30303030)
            (i32.and (local.get $i) (i32.const 0x07070707))))
          (call $log (i32.const 2) (i32.const 1024) (i32.const 60))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 1000))))",
    ..QUIET
};

/// A flood of plot points.
pub const POINTS: Hostile = Hostile {
    imports: r#"(import "windvane:strategy/plot@0.2.0" "plot"
        (func $plot (param i32 i32 i64 i32)))"#,
    on_event: "(loop $again
          (call $plot (i32.const 1024) (i32.const 6) (local.get $sequence) (i32.const 0))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 1000))))",
    ..QUIET
};

/// Fills 18 MB with bytes that no compression makes smaller.
const FILL_STATE: &str = "(drop (memory.grow (i32.const 300)))
    (local.set $token (i64.const 8192))
    (loop $fill
      (i64.store (i32.wrap_i64 (i64.shl (local.get $token) (i64.const 3)))
        (i64.xor (i64.mul (local.get $token) (i64.const 6364136223846793005))
          (i64.shr_u (i64.mul (local.get $token) (i64.const 6364136223846793005))
            (i64.const 29))))
      (local.set $token (i64.add (local.get $token) (i64.const 1)))
      (br_if $fill (i64.lt_u (local.get $token) (i64.const 2240000))))";

/// The largest saved state that is allowed. Each event changes all of it.
pub const LARGE_STATE: Hostile = Hostile {
    start: FILL_STATE,
    save: "(i32.add (i32.const 65536) (i32.wrap_i64 (i64.rem_u
          (i64.mul (global.get $count) (i64.const 4099)) (i64.const 1000000))))
        (i32.const 4194304)",
    ..QUIET
};

/// A saved state of 16 MiB. Each event changes all of it.
pub const TOO_LARGE_STATE: Hostile = Hostile {
    save: "(i32.add (i32.const 65536) (i32.wrap_i64 (i64.rem_u
          (i64.mul (global.get $count) (i64.const 4099)) (i64.const 1000000))))
        (i32.const 16777216)",
    faults: &["contract"],
    ..LARGE_STATE
};

/// Orders that are cancelled before they leave. Each event about one of them places five more.
pub const CANCELLED_ORDERS: Hostile = Hostile {
    imports: r#"(import "windvane:strategy/orders@0.2.0" "cancel-all"
        (func $cancel_all (param i32) (result i64)))"#,
    on_event: "(loop $again
          (drop (call $submit (i32.const 0) (i32.const 0x10) (i64.const 10) (i64.const 590000)
            (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 5))))
        (drop (call $cancel_all (i32.const -1)))",
    faults: &["intents"],
    ..QUIET
};

/// Orders for instruments that the run does not have.
pub const UNKNOWN_INSTRUMENTS: Hostile = Hostile {
    on_event: "(drop (call $submit (i32.const 1) (i32.const 0x10) (i64.const 10) (i64.const 590000)
          (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))
        (drop (call $submit (i32.const -1) (i32.const 2) (i64.const 10) (i64.const 0)
          (i64.const 0) (i64.const 0) (i32.const 0) (i64.const 0)))",
    ..QUIET
};

/// All of them, with a name for the command line.
pub const ALL: [(&str, Hostile); 12] = [
    ("timers", TIMERS),
    ("loop-with-fuel", LOOP_WITH_FUEL),
    ("loop", LOOP),
    ("fills", FILLS),
    ("cache-misses", CACHE_MISSES),
    ("host-calls", HOST_CALLS),
    ("log-lines", LOG_LINES),
    ("points", POINTS),
    ("large-state", LARGE_STATE),
    ("too-large-state", TOO_LARGE_STATE),
    ("cancelled-orders", CANCELLED_ORDERS),
    ("unknown-instruments", UNKNOWN_INSTRUMENTS),
];

impl Hostile {
    /// Writes the module to a file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, file: &Path) {
        let hostile = Guest {
            start: &format!("{SET_ALL} {}", self.start),
            on_event: &format!("{SET_AGAIN} {}", self.on_event),
            save: self.save,
            imports: &format!("{SET_TIMER} {}", self.imports),
            ..Guest::EMPTY
        };
        hostile.write(file);
    }

    /// Its section of the configuration.
    pub fn section(&self, file: &Path) -> String {
        let (file, fuel) = (file.display(), self.fuel);
        format!(
            r#"
[[strategy]]
id = "hostile"
module = "{file}"
instruments = ["futures:BTCUSDT"]
capabilities = ["orders", "account", "market", "timers", "log", "plot"]
limits = {{ fuel_per_event = {fuel} }}
"#
        )
    }
}
