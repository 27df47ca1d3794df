//! A caller with a clock can end a callback. Fuel counts bulk operations by their length, so that
//! no instruction runs for long between two checks.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use support::{Bench, IMPORTS, PATHS, guest, text};
use windvane_host::{FaultKind, Limits, Watch};

/// Fuel for hours, so that only the watch can end a callback.
fn endless() -> Limits {
    Limits {
        fuel_per_event: u64::MAX >> 2,
        ..Limits::default()
    }
}

/// Ends a callback when it was asked this often.
struct EndsAt {
    ask: u32,
    asked: AtomicU32,
}

impl Watch for EndsAt {
    fn exceeded(&self) -> Option<String> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        (asked == self.ask).then(|| "it used 61 ms".to_owned())
    }
}

/// Delivers an event while another thread ticks.
fn deliver_with_ticks(bench: &mut Bench) -> Result<(), windvane_host::Fault> {
    let ticker = bench.strategy.ticker();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert!(ticker.tick());
                std::thread::yield_now();
            }
        });
        let result = bench.deliver(1);
        over.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_watch_ends_an_endless_loop() {
    for path in PATHS {
        let mut bench = Bench::new(path, &guest("(loop $again (br $again))"), endless());
        let watch = Arc::new(EndsAt {
            ask: 3,
            asked: AtomicU32::new(0),
        });
        bench.strategy.watch(watch);
        let fault = deliver_with_ticks(&mut bench).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Time, "{fault}");
        assert!(fault.detail.starts_with("it used 61 ms"), "{fault}");
        assert!(!bench.strategy.is_live());
    }
}

#[test]
fn a_watch_that_allows_it_leaves_a_callback_to_its_fuel() {
    let limits = Limits {
        fuel_per_event: 50_000_000,
        ..Limits::default()
    };
    for path in PATHS {
        let mut bench = Bench::new(path, &guest("(loop $again (br $again))"), limits);
        bench.strategy.watch(Arc::new(EndsAt {
            ask: 0,
            asked: AtomicU32::new(0),
        }));
        let fault = deliver_with_ticks(&mut bench).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Fuel, "{fault}");
        assert_eq!(bench.strategy.fuel_used(), 50_000_000);
    }
}

#[test]
fn ticks_without_a_watch_have_no_effect() {
    let limits = Limits {
        fuel_per_event: 50_000_000,
        ..Limits::default()
    };
    for path in PATHS {
        let mut bench = Bench::new(path, &guest("(loop $again (br $again))"), limits);
        let fault = deliver_with_ticks(&mut bench).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Fuel, "{fault}");
    }
}

#[test]
fn a_ticker_ends_with_its_engine() {
    let bench = Bench::new(PATHS[0], &guest(""), Limits::default());
    let ticker = bench.strategy.ticker();
    assert!(ticker.tick());
    drop(bench);
    assert!(!ticker.tick());
}

/// The fault of a callback with this code and the default fuel, in a module with 4 MiB of memory.
fn fault_of(code: &str) -> windvane_host::Fault {
    let text = text(IMPORTS, code, "(table $table 10000 funcref)").replace(
        "(memory (export \"memory\") 1)",
        "(memory (export \"memory\") 64)",
    );
    let module = wat::parse_str(text).unwrap();
    let mut bench = Bench::new(PATHS[0], &module, Limits::default());
    bench.deliver(1).unwrap_err()
}

#[test]
fn bulk_operations_use_fuel_by_their_length() {
    let whole = "(i32.const 0) (i32.const 0) (i32.const 4194304)";
    let dynamic = "(i32.const 0) (i32.const 0) (i32.wrap_i64 (i64.add (local.get $sequence) (i64.const 4000000)))";
    let table = "(table.fill $table (i32.const 0) (ref.null func) (i32.const 10000))";
    for code in [
        format!("(memory.fill {whole})"),
        format!("(memory.fill {dynamic})"),
        format!("(memory.copy {whole})"),
        format!("(memory.copy {dynamic})"),
        table.repeat(300),
    ] {
        let fault = fault_of(&code);
        assert_eq!(fault.kind, FaultKind::Fuel, "{fault}");
    }
}

#[test]
fn many_small_fills_in_straight_code_use_fuel_by_their_length() {
    // 2,000 fills of 1,100 bytes are more than the fuel of a callback.
    let fill = "(memory.fill (i32.const 0) (i32.const 0) (i32.const 1100))";
    assert_eq!(fault_of(&fill.repeat(2_000)).kind, FaultKind::Fuel);
}

#[test]
fn a_state_of_4_mib_can_be_written_byte_by_byte() {
    let save = "(func (export \"save\") (result i32) (local $i i32)
        (if (i32.lt_u (memory.size) (i32.const 70)) (then (drop (memory.grow (i32.const 70)))))
        (loop $again
          (i32.store8 (i32.add (i32.const 65536) (local.get $i))
            (i32.and (i32.mul (local.get $i) (i32.const 31)) (i32.const 255)))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 4194304))))
        (call $answer (i32.const 65536) (i32.const 4194304)))
      (func (export \"unused\") (result i32)";
    let text = text(IMPORTS, "", "").replace("(func (export \"save\") (result i32)", save);
    let module = wat::parse_str(text).unwrap();
    for path in PATHS {
        let mut bench = Bench::new(path, &module, Limits::default());
        bench.deliver(1).unwrap();
        // The time depends on the machine: about 15 ms (docs/internals/live-run.md).
        assert_eq!(bench.strategy.save().unwrap().len(), 4_194_304);
        let fuel = bench.strategy.fuel_of_save();
        assert!(fuel < 50 * Limits::default().fuel_per_event, "{fuel}");
    }
}
