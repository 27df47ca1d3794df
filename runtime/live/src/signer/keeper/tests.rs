//! The keeper with a shell as the signer, so that a test chooses how a signer starts and ends.

use std::thread::JoinHandle;

use super::*;
use crate::signer::{Facts, OpenedOrders, new_socket, remove_old_sockets};

/// A hang of the keeper is detected within this time, on a machine that also runs other work.
const PATIENCE: Duration = Duration::from_mins(1);

/// A keeper on a thread, and the run's end of its socket.
struct Run {
    control: BoundedLines<UnixStream>,
    keeper: JoinHandle<io::Result<()>>,
}

/// Starts a keeper. Its signers run `script`, in which `$READY` is the line of a signer that is ready.
fn start(socket: &Path, script: &str, ready_within: Duration) -> (Run, UnixListener) {
    let ready = serde_json::to_string(&Message::Ready(Facts::default())).unwrap();
    let script = format!("READY='{ready}'; {script}");
    let (own, control) = UnixStream::pair().unwrap();
    own.set_read_timeout(Some(PATIENCE)).unwrap();
    let (listener, place) = Place::bind(socket).unwrap();
    let accepts = listener.try_clone().unwrap();
    let keeper = std::thread::spawn(move || {
        let (events, inbox) = channel();
        listen(control.try_clone()?, events.clone())?;
        let mut keeper = Keeper {
            program: Path::new("/bin/sh"),
            arguments: &["-c".into(), script.into(), "signer".into()],
            listener,
            place,
            account: None,
            control,
            events,
            opened: Opened::new(true),
            lives: 0,
            ready_within,
            has_run_ended: false,
        };
        let ended = keeper.run(&inbox);
        keeper.place.remove();
        ended
    });
    let run = Run {
        control: BoundedLines::new(own, LINE_BYTES_MAX),
        keeper,
    };
    (run, accepts)
}

impl Run {
    fn message(&mut self) -> Message {
        let line = self.control.next().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The run ends. The keeper must follow.
    fn end(self) {
        drop(self.control);
        self.keeper.join().unwrap().unwrap();
    }
}

#[test]
fn a_signer_that_hangs_at_its_start_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let count = count.display();
    // The first is ready and ends, the second hangs, each later one is ready.
    let script = format!(
        "echo x >> {count}; case $(wc -l < {count}) in \
         1) echo \"$READY\"; exit 1;; \
         2) exec sleep 1000;; \
         *) echo \"$READY\"; read line <&1; exit 0;; esac"
    );
    let socket = new_socket(folder.path());
    let (mut run, _) = start(&socket, &script, PATIENCE);
    assert!(matches!(run.message(), Message::Ready(_)));
    assert!(matches!(run.message(), Message::Ready(_)));
    run.end();
}

#[test]
fn the_next_signer_learns_what_the_earlier_one_counted() {
    let folder = tempfile::tempdir().unwrap();
    let opened = serde_json::to_string(&Message::Opened(3)).unwrap();
    let (count, seen) = (folder.path().join("count"), folder.path().join("seen"));
    let script = format!(
        "echo x >> {0}; echo \"$READY\"; case $(wc -l < {0}) in \
         1) echo \"$@\" > {1}.first; echo '{opened}'; exit 1;; \
         *) echo \"$@\" > {1}; echo \"$READY\"; read line <&1; exit 0;; esac",
        count.display(),
        seen.display()
    );
    let socket = new_socket(folder.path());
    let (mut run, _) = start(&socket, &script, PATIENCE);
    // The run does not see the count.
    for _ in 0..3 {
        assert!(matches!(run.message(), Message::Ready(_)));
    }
    let seen = std::fs::read_to_string(seen).unwrap();
    let (_, orders) = seen.trim().split_once("--opened ").unwrap();
    let orders: OpenedOrders = serde_json::from_str(orders).unwrap();
    let [(age_ms, 3)] = orders.0[..] else {
        panic!("{orders:?}");
    };
    assert!(age_ms < 59_000);
    let first = std::fs::read_to_string(folder.path().join("seen.first")).unwrap();
    assert!(!first.contains("--opened"), "{first}");
    run.end();
}

#[test]
fn a_first_signer_that_hangs_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let socket = new_socket(folder.path());
    let (mut run, _) = start(&socket, "exec sleep 1000", Duration::from_millis(10));
    let message = run.message();
    let Message::Failed(text, false) = message else {
        panic!("{message:?}");
    };
    assert!(text.contains("not ready"), "{text}");
    run.end();
    assert!(!socket.exists());
}

/// Whether a connection to the path reaches this listener.
fn reaches(path: &Path, listener: &UnixListener) -> bool {
    let Ok(stream) = UnixStream::connect(SocketPath::of(path).unwrap().path()) else {
        return false;
    };
    listener.set_nonblocking(true).unwrap();
    let is_reached = listener.accept().is_ok();
    drop(stream);
    is_reached
}

#[test]
fn two_keepers_of_a_data_folder_keep_their_own_sockets() {
    const READY_UNTIL_END: &str = "echo \"$READY\"; read line <&1; exit 0";
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    let (first, second) = (new_socket(data), new_socket(data));
    let (mut one, of_one) = start(&first, READY_UNTIL_END, PATIENCE);
    remove_old_sockets(data);
    let (mut other, of_other) = start(&second, READY_UNTIL_END, PATIENCE);
    remove_old_sockets(data);
    for run in [&mut one, &mut other] {
        assert!(matches!(run.message(), Message::Ready(_)));
    }
    assert!(reaches(&first, &of_one));
    assert!(reaches(&second, &of_other));
    one.end();
    remove_old_sockets(data);
    assert!(!first.exists());
    assert!(reaches(&second, &of_other));
    other.end();
}

#[test]
fn a_later_keeper_of_the_same_path_keeps_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = new_socket(folder.path());
    let (old, first) = Place::bind(&path).unwrap();
    first.publish();
    let (new, second) = Place::bind(&path).unwrap();
    // Until the new signer is ready, the path reaches the old one.
    assert!(reaches(&path, &old));
    second.publish();
    assert!(reaches(&path, &new));
    first.remove();
    assert!(reaches(&path, &new));
    second.remove();
    assert!(!path.exists());
}

#[test]
fn a_socket_that_does_not_listen_yet_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let socket = new_socket(folder.path());
    // A file that refuses a connection, as a socket does before it listens.
    std::fs::write(&socket, "").unwrap();
    remove_old_sockets(folder.path());
    assert!(socket.exists());
    let file = std::fs::File::options().write(true).open(&socket).unwrap();
    let hour_ago = std::time::SystemTime::now() - Duration::from_hours(1);
    file.set_modified(hour_ago).unwrap();
    remove_old_sockets(folder.path());
    assert!(!socket.exists());
}
