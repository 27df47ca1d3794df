//! `faults`: lives of the runtime under faults, seed after seed.

fn main() {}
