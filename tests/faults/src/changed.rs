//! The binary `windvane` with an error that a test chooses: another value of a session constant
//! (the test `one_core`), or a planted bug (the test `bug_report`).

use std::process::ExitCode;

use windvane_model::planted::{Constant, Planted, change, plant};

/// Environment variable with the name of the constant.
const CONSTANT: &str = "WINDVANE_CHANGED";
/// Environment variable with the name of the bug.
const BUG: &str = "WINDVANE_PLANTED";

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CONSTANT) {
        let mut all = Constant::ALL.into_iter();
        let Some(constant) = all.find(|constant| constant.name() == name) else {
            eprintln!("{CONSTANT} = {name:?} is not a constant that can be changed");
            return ExitCode::from(2);
        };
        change(Some(constant));
    }
    if let Ok(name) = std::env::var(BUG) {
        match name.parse::<Planted>() {
            Ok(bug) => plant(Some(bug)),
            Err(error) => {
                eprintln!("{BUG}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    windvane::main()
}
