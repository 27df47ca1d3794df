//! Speed of decoding one frame, by kind.
fn main() {}
