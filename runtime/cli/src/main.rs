//! The binary `windvane`.

fn main() -> std::process::ExitCode {
    windvane::main()
}
