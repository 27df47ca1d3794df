//! Small strategies written as WebAssembly text, for behaviour that no correct strategy has. They
//! implement the contract of `sdk/wit/strategy.wit` as core modules, without the SDK.

use std::path::Path;

/// The result of `describe`. It asks for the capabilities that the guest imports.
fn description(imports: &str) -> String {
    let mut more = String::new();
    for name in ["account", "market", "timers", "log", "plot"] {
        if imports.contains(&format!("windvane:strategy/{name}@")) {
            more = more + ",\"" + name + "\"";
        }
    }
    format!(
        r#"{{"name":"guest","version":"0.1.0","state_schema":1,"capabilities":["orders"{more}]}}"#
    )
}

const SUBMIT: &str = r#"(import "windvane:strategy/orders@0.2.0" "submit"
    (func $submit_to (param i32 i32 i64 i64 i64 i64 i32 i64 i64 i64) (result i64)))"#;

/// `submit` for a single order, without a group and without a trailing distance.
const SUBMIT_ALONE: &str = "(func $submit (param i32 i32 i64 i64 i64 i64 i32 i64) (result i64)
    (call $submit_to (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)
      (local.get 5) (local.get 6) (local.get 7) (i64.const 0) (i64.const 0)))";

/// A guest that can submit orders. Its parts are WebAssembly text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guest<'a> {
    /// Code that `start` runs before it returns.
    pub start: &'a str,
    /// The reason with which `start` refuses; empty if it accepts.
    pub refusal: &'a str,
    /// Code that runs for each event. It can use `$count` (number of events, from 1), `$kind`, `$a`
    /// (the bid in a book event) and the locals `$i` and `$bid`.
    pub on_event: &'a str,
    /// Pointer and length of the state that `save` returns; empty for a constant state of 4 bytes.
    pub save: &'a str,
    /// Code that `load` runs before it returns.
    pub load: &'a str,
    /// The reason with which `load` refuses; empty if it accepts.
    pub load_refusal: &'a str,
    /// Additional imports.
    pub imports: &'a str,
    /// Additional functions and globals.
    pub more: &'a str,
}

impl Guest<'_> {
    /// A guest that does nothing.
    pub const EMPTY: Self = Self {
        start: "",
        refusal: "",
        on_event: "",
        save: "",
        load: "",
        load_refusal: "",
        imports: "",
        more: "",
    };

    /// The text of the whole module.
    pub fn text(&self) -> String {
        let Self {
            start,
            refusal,
            on_event,
            save,
            load,
            load_refusal,
            imports,
            more,
        } = self;
        let escaped = |text: &str| text.replace('"', "\\22").replace('\n', "\\0a");
        let description = description(imports);
        let described = description.len();
        let (description, reason) = (escaped(&description), escaped(refusal));
        let refused = refusal.len();
        let save = if save.is_empty() {
            "(i32.const 1024) (i32.const 4)"
        } else {
            save
        };
        let (no_load, not_loaded) = (escaped(load_refusal), load_refusal.len());
        format!(
            r#"(module {SUBMIT} {imports}
  (memory (export "memory") 1)
  (data (i32.const 1024) "{description}")
  (data (i32.const 2048) "{reason}")
  (data (i32.const 3072) "{no_load}")
  (global $heap (mut i32) (i32.const 8192))
  (global $count (mut i64) (i64.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $heap))
    (global.set $heap (i32.add (global.get $heap) (local.get 3)))
    (local.get $at))
  {SUBMIT_ALONE}
  (func $answer (param $pointer i32) (param $length i32) (result i32)
    (i32.store (i32.const 16) (local.get $pointer))
    (i32.store (i32.const 20) (local.get $length))
    (i32.const 16))
  (func (export "describe") (result i32)
    (call $answer (i32.const 1024) (i32.const {described})))
  (func (export "start") (param i32 i32 i32 i32) (result i32)
    {start}
    (call $answer (i32.const 2048) (i32.const {refused})))
  (func (export "save") (result i32) (call $answer {save}))
  (func (export "load") (param i32 i32) (result i32)
    {load}
    (call $answer (i32.const 3072) (i32.const {not_loaded})))
  (func (export "on-event")
    (param $ms i64) (param $ns i32) (param $sequence i64) (param $kind i32) (param $instrument i32)
    (param $flags i32) (param $a i64) (param $b i64) (param $c i64) (param $d i64)
    (param $e i64) (param $f i64) (param $id i64)
    (local $i i32) (local $bid i64)
    (global.set $count (i64.add (global.get $count) (i64.const 1)))
    {on_event})
  {more})"#
        )
    }

    /// Writes the module to a file.
    ///
    /// # Panics
    /// If the text is not valid WebAssembly, or the file cannot be written.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn write(&self, file: &Path) {
        let module = wat::parse_str(self.text()).expect("the text is WebAssembly");
        std::fs::write(file, module).expect("a temporary file can be written");
    }
}
