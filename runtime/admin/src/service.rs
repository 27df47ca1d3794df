//! Messages to a service manager: ready, status, sign of life, stopping. The protocol is
//! `sd_notify(3)`: datagrams to the socket in `NOTIFY_SOCKET`. Without that variable nothing is
//! sent.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::heartbeat::Heartbeat;
use crate::view::{Published, Status};

/// How often the status is sent without a watchdog to feed.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// The connection to the service manager.
#[derive(Debug)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

/// The service manager in the environment cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error(
    "NOTIFY_SOCKET {socket}: {error}; start the program with the service manager, or unset the \
     variable"
)]
pub struct NotifyError {
    socket: String,
    error: io::Error,
}

impl Notifier {
    /// The service manager that started this process, or none.
    pub fn from_env() -> Result<Self, NotifyError> {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(Self::nobody());
        };
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        // The variables are inherited. A watchdog for another process must not be fed from here.
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| ours && *usec > 0);
        Self::to(&name, watchdog.map(Duration::from_micros))
    }

    /// Sends nothing.
    pub const fn nobody() -> Self {
        Self {
            socket: None,
            watchdog: None,
        }
    }

    /// The service manager at a socket. A name that starts with `@` is in the abstract namespace.
    pub fn to(name: &OsStr, watchdog: Option<Duration>) -> Result<Self, NotifyError> {
        let connected = connect(name).map_err(|error| NotifyError {
            socket: name.to_string_lossy().into_owned(),
            error,
        })?;
        Ok(Self {
            socket: Some(connected),
            watchdog,
        })
    }

    /// Reports the end of the start: the admin server listens, and the run continues to `ready` by
    /// itself. Waiting for the venue here would let an outage of the venue end the service.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Sends one line of text for people.
    pub fn status(&self, text: &str) {
        // A line break would start another assignment.
        self.send(&format!("STATUS={}", text.replace(['\n', '\r'], " ")));
    }

    /// Reports that the process works.
    pub fn watchdog(&self) {
        self.send("WATCHDOG=1");
    }

    /// Reports a reload of the configuration. [`Self::ready`] follows in every case.
    pub fn reloading(&self) {
        self.send("RELOADING=1");
    }

    /// Reports that the process ends normally.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Feeds the watchdog while the engine's loop makes progress, and sends the status. Runs until
    /// the publisher is dropped; run it together with the run and stop it at its end.
    pub async fn keep(&self, heartbeat: Heartbeat, mut published: watch::Receiver<Arc<Published>>) {
        // Half of the allowed time, as the protocol asks for.
        let every = self.watchdog.map_or(TOLD_EVERY, |allowed| allowed / 2);
        let mut turns = tokio::time::interval(every.max(Duration::from_millis(1)));
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut sent = String::new();
        loop {
            tokio::select! {
                _ = turns.tick() => {}
                changed = published.changed() => if changed.is_err() { return },
            }
            // A single late turn is not a hang. A beat as old as the whole allowed time is.
            if self
                .watchdog
                .is_some_and(|allowed| heartbeat.age() < allowed)
            {
                self.watchdog();
            }
            let line = line(&published.borrow_and_update().status);
            if line != sent {
                self.status(&line);
                sent = line;
            }
        }
    }

    fn send(&self, text: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(text.as_bytes()) {
            tracing::warn!(text, %error, "could not send a message to the service manager");
        }
    }
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name)?,
        None => SocketAddr::from_pathname(Path::new(name))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    // A service manager that does not read must not delay the run.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn line(status: &Status) -> String {
    let (mode, state) = (status.mode.as_str(), status.state);
    if status.reason.is_empty() {
        return format!("{mode}, {state}");
    }
    format!("{mode}, {state}: {}", status.reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::State;

    fn manager() -> (tempfile::TempDir, UnixDatagram, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        (folder, socket, path)
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 512];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn each_message_is_sent_as_one_datagram() {
        let (_folder, socket, path) = manager();
        let notifier = Notifier::to(path.as_os_str(), None).unwrap();
        notifier.ready();
        notifier.status("two\nlines");
        notifier.watchdog();
        notifier.reloading();
        notifier.stopping();
        let all: Vec<_> = (0..5).map(|_| received(&socket)).collect();
        assert_eq!(
            all,
            [
                "READY=1",
                "STATUS=two lines",
                "WATCHDOG=1",
                "RELOADING=1",
                "STOPPING=1"
            ]
        );
    }

    #[test]
    fn an_abstract_socket_is_reached_and_a_missing_one_is_named() {
        let name = format!("windvane-notify-test-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let notifier = Notifier::to(OsStr::new(&format!("@{name}")), None).unwrap();
        notifier.ready();
        assert_eq!(received(&socket), "READY=1");
        let missing = Notifier::to(OsStr::new("/nowhere/notify"), None).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/notify"));
        Notifier::nobody().ready();
    }

    #[tokio::test]
    async fn the_watchdog_is_fed_only_while_the_loop_is_alive() {
        let (_folder, socket, path) = manager();
        let notifier = Notifier::to(path.as_os_str(), Some(Duration::from_mins(1))).unwrap();
        let heartbeat = Heartbeat::aged(Duration::from_mins(2));
        let (publish, published) = watch::channel(Arc::new(Published::default()));
        let keeping = tokio::spawn({
            let heartbeat = heartbeat.clone();
            async move { notifier.keep(heartbeat, published).await }
        });
        // The beat is too old, so the status arrives without a sign of life before it.
        let receive = move || {
            let text = received(&socket);
            (text, socket)
        };
        let (first, socket) = tokio::task::spawn_blocking(receive).await.unwrap();
        assert_eq!(first, "STATUS=paper, booting");

        heartbeat.mark();
        let mut next = Published::default();
        next.status.state = State::Degraded;
        next.status.reason = "the journal does not write in time".into();
        publish.send(Arc::new(next)).unwrap();
        let after = tokio::task::spawn_blocking(move || [received(&socket), received(&socket)]);
        let status = "STATUS=paper, degraded: the journal does not write in time";
        assert_eq!(after.await.unwrap(), ["WATCHDOG=1", status]);
        drop(publish);
        keeping.await.unwrap();
    }
}
