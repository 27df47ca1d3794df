//! Writes the generated pages of the documentation. With `--check` it writes nothing, and fails at
//! the first line that differs from the types.
//!
//! ```sh
//! cargo xtask docs
//! cargo xtask docs --check
//! ```

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let is_check = std::env::args().skip(1).any(|word| word == "--check");
    match run(is_check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(is_check: bool) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in windvane::reference::pages()? {
        let path = root.join(page.path);
        if is_check {
            page.compare(&std::fs::read_to_string(&path).unwrap_or_default())?;
            continue;
        }
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", page.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(&path, &page.text).map_err(failed)?;
        println!("{}", page.path);
    }
    Ok(())
}
