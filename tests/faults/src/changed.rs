//! The binary `windvane`, in which one constant of the session may be changed: see the test `one_core`.

use std::process::ExitCode;

use windvane_engine::planted::{Constant, change};

/// Names the constant.
const VARIABLE: &str = "WINDVANE_CHANGED";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(VARIABLE) {
        let mut all = Constant::ALL.into_iter();
        let Some(constant) = all.find(|constant| constant.name() == name) else {
            eprintln!("{VARIABLE} = {name:?} is no constant that can be changed");
            return ExitCode::from(2);
        };
        change(Some(constant));
    }
    windvane::cli::main()
}
