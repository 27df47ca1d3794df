//! Several threads draw nonces from one source.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use windvane_client_core::nonce::Nonces;

#[test]
fn threads_never_share_a_nonce() {
    let nonces = Arc::new(Nonces::new());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let nonces = Arc::clone(&nonces);
            std::thread::spawn(move || (0..5_000).map(|_| nonces.next(7)).collect::<Vec<_>>())
        })
        .collect();
    let mut seen = BTreeSet::new();
    for thread in threads {
        let drawn = thread.join().unwrap();
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
        seen.extend(drawn);
    }
    assert_eq!(seen.len(), 20_000);
}
