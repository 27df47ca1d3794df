//! The binary `windvane`.

fn main() -> std::process::ExitCode {
    windvane::cli::main()
}
