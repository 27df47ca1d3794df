//! Requests to the admin server from any bytes. There is no panic and no internal error; without
//! the token no command reaches the run; a request with a proof is answered.
//!
//! Input: one byte for the way in, then the request. With a proof, the request is a line with the
//! method, a line with the path, and the body.

#![no_main]

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use windvane_admin::server::fuzzing::Connections;
use windvane_admin::{Applied, Heartbeat, Metrics, Published, Served, steering};

/// A body is refused at 4 KiB.
const BODY_MAX: usize = 4 * 1024;

struct Rig {
    runtime: Runtime,
    connections: Arc<Connections>,
    commands: Arc<AtomicUsize>,
}

fn rig() -> Rig {
    // Time moves on as soon as everything waits, so no time limit delays the target.
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let (steer, mut steered) = steering();
    // The sender is gone afterwards, and the last value stays.
    let (_, published) = watch::channel(Arc::new(Published::default()));
    let served = Served {
        published,
        steer,
        heartbeat: Heartbeat::new(),
        metrics: Metrics::install().expect("the only one"),
    };
    // Nonces have the runtime's time, which stands still.
    let connections = runtime.block_on(async { Connections::new(served).expect("random bytes") });
    let commands = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&commands);
    runtime.spawn(async move {
        while let Some(steer) = steered.recv().await {
            counted.fetch_add(1, Ordering::Relaxed);
            assert!(steer.strategy.iter().all(|name| name.len() <= BODY_MAX));
            let _ = steer.answer.send(Ok(Applied::default()));
        }
    });
    Rig {
        connections: Arc::new(connections),
        runtime,
        commands,
    }
}

impl Rig {
    fn answer(&self, request: &[u8], is_tcp: bool) -> String {
        self.runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(1 << 20);
            let connections = Arc::clone(&self.connections);
            let served = tokio::spawn(async move {
                if is_tcp {
                    connections.serve_tcp(server).await;
                } else {
                    connections.serve_socket(server).await;
                }
            });
            // The server may close the connection before it has read everything.
            let _ = client.write_all(request).await;
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            served.await.expect("no panic");
            String::from_utf8_lossy(&answer).into_owned()
        })
    }
}

/// The code of an answer; `None` if there was none.
fn code(answer: &str) -> Option<u16> {
    if answer.is_empty() {
        return None;
    }
    let code = answer
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5));
    Some(code.expect("an answer").parse().expect("a code"))
}

thread_local! {
    static RIG: RefCell<Option<Rig>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let [way, data @ ..] = data else { return };
    RIG.with_borrow_mut(|rig_of_thread| {
        let rig = rig_of_thread.get_or_insert_with(rig);
        let before = rig.commands.load(Ordering::Relaxed);
        match way % 3 {
            0 => {
                let code = code(&rig.answer(data, true));
                assert!(code != Some(500), "{code:?}");
                let after = rig.commands.load(Ordering::Relaxed);
                assert_eq!(before, after, "a command without the token");
            }
            1 => assert!(code(&rig.answer(data, false)) != Some(500)),
            _ => {
                let text = String::from_utf8_lossy(data);
                let mut parts = text.splitn(3, '\n');
                let mut next = || parts.next().unwrap_or_default();
                let (method, path, body) = (next(), next(), next());
                let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
                if method.is_empty() || !is_plain(method) || !is_plain(path) {
                    return;
                }
                let given = rig.runtime.block_on(async {
                    rig.connections.authorization(method, path, body.as_bytes())
                });
                let request = format!(
                    "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\n\
                     Content-Length: {}\r\n\r\n{body}",
                    given.expect("random bytes"),
                    body.len()
                );
                let code = code(&rig.answer(request.as_bytes(), true));
                // The path of a request that is not in its usual form is not the proven one.
                assert!(code != Some(500), "{code:?}");
                if method == "POST" && path == "/api/halt" && body.is_empty() {
                    assert_eq!(code, Some(200));
                }
            }
        }
    });
});
