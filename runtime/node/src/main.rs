//! The binary `windvane`.

fn main() {}
