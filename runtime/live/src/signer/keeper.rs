//! The keeper: the process that starts the signer, and starts it again when it ends or hangs. It reads
//! nothing that the venue or a strategy sent. Secrets that the run erased from its environment pass
//! through it, because a later signer needs them again.
//!
//! Its stdin is a socket to the run: the run writes [`RESTART`](super::RESTART), and the keeper repeats
//! the reports of each signer. At the end of that socket the run is gone. Then the keeper waits until
//! the signer ends, because the watchdog of spot orders may still need signatures.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use windvane_files::BoundedLines;
use windvane_sandbox::Confinement;
use windvane_signer::SocketPath;

use super::opened::Opened;
use super::{LINE_BYTES_MAX, Message, RESTART, THIS_PROGRAM, account_arguments};
use crate::identity::AccountDigests;
use crate::watchdog::ignore_signals;

/// Pause before a signer that ended at once is started again; it doubles with each such end.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A signer that lived this long did not end at once.
const LIVED: Duration = Duration::from_secs(5);
/// The first signer must be ready within this time. A keystore and a slow machine take some seconds.
pub(super) const FIRST_READY_WITHIN: Duration = Duration::from_mins(1);
/// Later ones must be ready within this time, or within four times the time that the first one took.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How many signers in a row may end at once after the end of the run.
const TRIES_ALONE: u32 = 5;

enum Event {
    /// The run wants another signer.
    Restart,
    /// The run is gone.
    RunEnded,
    /// A line of the signer with this number.
    Line(u64, String),
    /// The signer with this number closed its pipe, so it has ended.
    Closed(u64),
}

/// Keeps a signer running until the run and all users of the signer are gone. `arguments` start this
/// program as the signer.
///
/// # Errors
/// The socket cannot be created, or the first signer cannot start.
pub fn keep(
    socket: &Path,
    arguments: &[OsString],
    account: Option<AccountDigests>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { ignore_signals() })?;
    // On a system that refuses this, other programs of this user can read the run's memory too.
    let _ = windvane_sandbox::hide_memory();
    // The keeper may hold secrets. A small limit of locked memory is reported by the signer.
    let _ = windvane_sandbox::lock_memory();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (listener, place) = Place::bind(socket)?;
    // It may hold secrets, and its signers need no network either. The run reports what a system lacks.
    let _ = windvane_sandbox::confine_calls(&Confinement {
        processes: true,
        ..Confinement::default()
    });
    let (events, inbox) = channel();
    listen(control.try_clone()?, events.clone())?;
    let is_first = account.is_none();
    let mut keeper = Keeper {
        program: Path::new(THIS_PROGRAM),
        arguments,
        listener,
        place,
        account,
        control,
        events,
        opened: Opened::new(is_first),
        lives: 0,
        ready_within: FIRST_READY_WITHIN,
        has_run_ended: false,
    };
    let ended = keeper.run(&inbox);
    keeper.place.remove();
    ended
}

/// The file of the socket. It gets its final name when the first signer is ready: until then, a signer
/// of an earlier keeper is reached by that name.
struct Place {
    new: PathBuf,
    path: PathBuf,
    device_and_inode: (u64, u64),
}

impl Place {
    fn bind(path: &Path) -> io::Result<(UnixListener, Self)> {
        let new = path.with_extension("new.sock");
        let _ = std::fs::remove_file(&new);
        let unusable = |error: io::Error| {
            let folder = path.parent().unwrap_or(path).display();
            let text = format!(
                "{folder} cannot be used as data_dir: the signer's socket cannot be made there: {error}; \
                 make the folder writable for this user, or choose another"
            );
            io::Error::new(error.kind(), text)
        };
        let address = SocketPath::of(&new).map_err(unusable)?;
        let listener = UnixListener::bind(address.path()).map_err(unusable)?;
        std::fs::set_permissions(&new, Permissions::from_mode(0o600)).map_err(unusable)?;
        let metadata = std::fs::symlink_metadata(&new)?;
        let place = Self {
            new,
            path: path.to_owned(),
            device_and_inode: (metadata.dev(), metadata.ino()),
        };
        Ok((listener, place))
    }

    /// Gives the socket its final name. A second call has no effect.
    fn publish(&self) {
        if let Err(error) = std::fs::rename(&self.new, &self.path)
            && !self.has_name()
        {
            tracing::error!(
                %error,
                "the signer's socket cannot get its name: nothing can be signed. Restart the run"
            );
        }
    }

    /// Removes the file, unless another keeper replaced it.
    fn remove(&self) {
        let _ = std::fs::remove_file(&self.new);
        if self.has_name() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Whether the file with the final name is this socket.
    fn has_name(&self) -> bool {
        let found = std::fs::symlink_metadata(&self.path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == self.device_and_inode)
    }
}

struct Keeper<'a> {
    program: &'a Path,
    arguments: &'a [OsString],
    listener: UnixListener,
    place: Place,
    /// The account of the first signer.
    account: Option<AccountDigests>,
    control: UnixStream,
    events: Sender<Event>,
    /// The opening orders that its signers counted.
    opened: Opened,
    /// How many signers were started.
    lives: u64,
    /// A signer that is not ready within this time hangs.
    ready_within: Duration,
    has_run_ended: bool,
}

/// How a signer's life ended.
struct Life {
    was_ready: bool,
    lived: Duration,
    /// It ended because nobody needs it.
    is_over: bool,
}

impl Keeper<'_> {
    fn run(&mut self, inbox: &Receiver<Event>) -> io::Result<()> {
        let mut short_lives = 0;
        loop {
            let life = self.live(inbox)?;
            let is_first = self.lives == 1;
            if life.is_over || (is_first && !life.was_ready) {
                return Ok(());
            }
            tracing::warn!(
                "the signer process ended: requests are not signed until the next one is ready. It is \
                 started again"
            );
            short_lives = if life.was_ready && life.lived >= LIVED {
                0
            } else {
                short_lives + 1
            };
            if self.has_run_ended && short_lives > TRIES_ALONE {
                return Ok(());
            }
            let pause = PAUSE * 2_u32.saturating_pow(short_lives.min(10)) / 2;
            std::thread::sleep(pause.min(PAUSE_MAX));
        }
    }

    /// One signer, from its start to its end.
    fn live(&mut self, inbox: &Receiver<Event>) -> io::Result<Life> {
        let began = Instant::now();
        let (mut child, pipe) = self.spawn()?;
        if self.has_run_ended {
            let _ = pipe.shutdown(Shutdown::Write);
        }
        let mut was_ready = false;
        let mut ready_until = Some(began + self.ready_within);
        loop {
            let event = match next(inbox, ready_until) {
                Next::Event(event) => event,
                Next::TooLate => {
                    ready_until = None;
                    self.report_late_start();
                    let _ = child.kill();
                    continue;
                }
                Next::NoSender => break,
            };
            match event {
                Event::Line(life, line) if life == self.lives => {
                    match serde_json::from_str(&line) {
                        Ok(Message::Opened(count)) => {
                            self.opened.add(Instant::now(), count);
                            continue;
                        }
                        Ok(Message::Ready(facts)) => {
                            was_ready = true;
                            ready_until = None;
                            if self.lives == 1 {
                                self.ready_within = READY_WITHIN.max(began.elapsed() * 4);
                            }
                            self.account.get_or_insert(facts.account);
                            self.place.publish();
                        }
                        // The run reports the failure of the first one.
                        Ok(Message::Failed(error, _)) if self.lives > 1 => tracing::error!(
                            error,
                            "the signer cannot start again: no order, cancel or heartbeat can be \
                             signed. It is tried again; see the error, or restart the run"
                        ),
                        Ok(Message::Failed(..)) | Err(_) => {}
                    }
                    // A run that is gone does not read.
                    let _ = writeln!(self.control, "{line}");
                }
                // One that still starts has a limit of time of its own.
                Event::Restart if was_ready => {
                    let _ = child.kill();
                }
                Event::RunEnded => {
                    self.has_run_ended = true;
                    let _ = pipe.shutdown(Shutdown::Write);
                }
                Event::Closed(life) if life == self.lives => break,
                Event::Restart | Event::Line(..) | Event::Closed(_) => {}
            }
        }
        // It closed its pipe, so it ends now; a kill of a dead process does nothing.
        let is_over = self.has_run_ended && child.wait().is_ok_and(|status| status.success());
        let _ = child.wait();
        Ok(Life {
            was_ready,
            lived: began.elapsed(),
            is_over,
        })
    }

    /// Reports a signer that is not ready in time and is killed.
    fn report_late_start(&mut self) {
        if self.lives > 1 {
            tracing::error!(
                "the signer hangs at its start: no order, cancel or heartbeat is signed. It is killed and \
                 started again"
            );
            return;
        }
        let text = format!(
            "it was not ready within {} s, and was killed: a file of a key, of the configuration or of \
             the policy cannot be read in time, or the machine is overloaded; check their disks",
            self.ready_within.as_secs()
        );
        let message = Message::Failed(text, false);
        let line = serde_json::to_string(&message).unwrap_or_default();
        let _ = writeln!(self.control, "{line}");
    }

    /// Tells a signer that replaces another one what that one counted, if it is known.
    fn opened_arguments(&self) -> Vec<String> {
        let opened = self.opened.orders(Instant::now());
        let opened = opened.filter(|_| self.account.is_some());
        let text = opened.and_then(|opened| serde_json::to_string(&opened).ok());
        text.map_or_else(Vec::new, |text| vec!["--opened".to_owned(), text])
    }

    fn spawn(&mut self) -> io::Result<(Child, UnixStream)> {
        self.lives += 1;
        let (mut own, theirs) = UnixStream::pair()?;
        let secrets = windvane_config::secrets_line();
        let mut command = Command::new(self.program);
        command
            .arg0("windvane")
            .args(self.arguments)
            .args(account_arguments(self.account.as_ref()))
            .args(secrets.as_ref().map(|_| "--secrets-on-stdout"))
            .args(self.opened_arguments())
            .stdin(Stdio::from(OwnedFd::from(self.listener.try_clone()?)))
            .stdout(Stdio::from(OwnedFd::from(theirs)));
        let child = command.spawn()?;
        // The command holds the other end; the end of the signer must show here.
        drop(command);
        if let Some(secrets) = secrets {
            // A signer that ended at once is noticed by its closed socket.
            let _ = super::write_line(&mut own, &secrets);
        }
        let (lines, events, life) = (own.try_clone()?, self.events.clone(), self.lives);
        std::thread::spawn(move || {
            for line in BoundedLines::new(lines, LINE_BYTES_MAX) {
                let _ = events.send(Event::Line(life, line));
            }
            let _ = events.send(Event::Closed(life));
        });
        Ok((child, own))
    }
}

/// What the keeper waits for.
enum Next {
    Event(Event),
    /// The signer was not ready in time.
    TooLate,
    NoSender,
}

fn next(inbox: &Receiver<Event>, ready_until: Option<Instant>) -> Next {
    let Some(until) = ready_until else {
        return inbox.recv().map_or(Next::NoSender, Next::Event);
    };
    match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(event) => Next::Event(event),
        Err(RecvTimeoutError::Timeout) => Next::TooLate,
        Err(RecvTimeoutError::Disconnected) => Next::NoSender,
    }
}

/// Reads what the run wants.
fn listen(mut control: UnixStream, events: Sender<Event>) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("run".to_owned());
    thread.spawn(move || {
        let mut byte = [0; 1];
        while control.read(&mut byte).is_ok_and(|read| read == 1) {
            if byte == RESTART && events.send(Event::Restart).is_err() {
                return;
            }
        }
        let _ = events.send(Event::RunEnded);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
