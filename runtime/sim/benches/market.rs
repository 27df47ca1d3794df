//! What the venue costs per event.

fn main() {}
