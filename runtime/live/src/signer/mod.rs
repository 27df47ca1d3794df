//! The signer process: it holds the keys of a live run and does nothing but sign
//! (`docs/internals/signer.md`).
//!
//! There are two processes beside the run. The *keeper* starts the *signer*, and starts it again when it
//! ends or hangs. It keeps the secrets that the run erased from its environment, and uses none. It is started before the run confines itself, so the signer
//! can read keys that the run cannot read. Both are this program, as the hidden command `signer`.
//!
//! The run and its watchdog process reach the signer through a socket in the data folder. Decisions
//! about requests are in the crate `windvane_signer`.

mod keeper;
mod opened;
mod policy;
mod reach;
mod worker;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use windvane_files::BoundedLines;
use windvane_journal::{Directory, LockError};
use windvane_protocol::sign::{Credentials, PrepareError};
use windvane_session::Signing;
use windvane_signer::client::Trouble;
use windvane_signer::{Client, SocketPath};

use crate::identity::AccountDigests;
use crate::mailbox::Mailbox;
use windvane_config::{Config, Secret};

pub use keeper::keep;
pub use opened::OpenedOrders;
pub use policy::policy;
pub use reach::Reach;
pub use worker::{WorkerError, serve};

/// This program's executable, even if the file was replaced since the start.
pub const THIS_PROGRAM: &str = "/proc/self/exe";
/// The socket's name in the data folder is this, the process id of the run, and [`SOCKET_END`].
const SOCKET_BEGIN: &str = "signer.";
const SOCKET_END: &str = ".sock";
/// The keeper's command to replace the signer.
const RESTART: &[u8] = b"R";
/// Longest report of a signer, bytes. A longer one is cut, and then not valid.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Pause before the keeper is started again; it doubles with each failure in a row.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_mins(1);
/// The keeper reports within this time. It kills a first signer that hangs sooner.
const REPORTED_WITHIN: Duration =
    keeper::FIRST_READY_WITHIN.saturating_add(Duration::from_secs(15));
/// A socket that was made this recently may belong to a keeper that does not listen yet.
const FRESH: Duration = Duration::from_secs(10);

/// What the run must know of the keys. Nothing here is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The main address, if the configuration names one.
    user: Option<String>,
    /// Digests that name the account.
    pub(crate) account: AccountDigests,
    /// What the policy allows, as text.
    policy: String,
    /// How the process is confined, as text.
    confinement: String,
    /// Protections that this system does not offer.
    missing: Vec<String>,
}

impl Facts {
    /// Names the main address in the credentials of a process that has no keys.
    pub fn name_user(&self, credentials: &mut Credentials) {
        credentials.user = self.user.as_deref().and_then(|user| user.parse().ok());
    }
}

/// What the signer says when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Message {
    /// It can sign.
    Ready(Facts),
    /// It counted opening orders. Only the keeper reads this.
    Opened(u32),
    /// It cannot start, and why. With `true`, the configuration or a key must be changed.
    Failed(String, bool),
}

/// Why a run has no signer.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// The configuration, a key or the policy is wrong.
    #[error("{0}")]
    Refused(String),
    /// The process could not be started.
    #[error(
        "the signer process could not start, so nothing can be signed and the run did not start: {0}"
    )]
    Failed(String),
}

impl From<io::Error> for SignerError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The signer process of this run, with its first report.
#[derive(Debug)]
pub struct Process {
    starter: Starter,
    control: BoundedLines<UnixStream>,
    facts: Facts,
}

/// How a keeper is started.
#[derive(Clone, Debug)]
struct Starter {
    program: PathBuf,
    arguments: Vec<OsString>,
    socket: PathBuf,
    /// The first report must come within this time.
    report_within: Duration,
    /// The account of the first signer. A later one with keys of another account does not sign.
    account: Option<AccountDigests>,
    /// The configuration names environment variables or descriptors. Only the first keeper has what
    /// they contained, because this process forgets it.
    has_keys_of_once: bool,
    reach: Reach,
}

impl Process {
    /// Starts the processes and waits until the signer has read its keys. `arguments` give it the same
    /// configuration as the run. Starts no thread.
    ///
    /// # Errors
    /// The signer cannot start: see [`SignerError`].
    pub fn start(
        program: &Path,
        arguments: Vec<OsString>,
        config: &Config,
    ) -> Result<Self, SignerError> {
        let data_dir = &config.run.data_dir;
        let refused = |error: &dyn Display| {
            SignerError::Refused(format!(
                "data_dir {} cannot be used: {error}. Nothing was started, and no order was touched",
                data_dir.display()
            ))
        };
        let unsafe_place = |error: LockError| SignerError::Refused(error.to_string());
        Directory::require_place(data_dir).map_err(unsafe_place)?;
        windvane_files::parents(data_dir).map_err(|error| refused(&error))?;
        windvane_files::folder(data_dir).map_err(|error| refused(&error))?;
        Directory::require_own(data_dir).map_err(unsafe_place)?;
        remove_old_sockets(data_dir);
        let mut starter = Starter {
            program: program.to_owned(),
            arguments,
            socket: new_socket(data_dir),
            report_within: REPORTED_WITHIN,
            account: None,
            has_keys_of_once: config.account_secrets().into_iter().any(is_of_once),
            reach: Reach::new(Duration::from_millis(config.heartbeat.countdown_ms)),
        };
        let (control, facts) = starter.start()?;
        starter.account = Some(facts.account.clone());
        tracing::info!(
            policy = facts.policy,
            confinement = facts.confinement,
            "started the signer process: it alone holds the keys"
        );
        for missing in &facts.missing {
            tracing::warn!(
                missing,
                "a protection of the signer process is not in force: its keys are less safe against \
                 other programs of this machine. Trading is not affected"
            );
        }
        Ok(Self {
            starter,
            control,
            facts,
        })
    }

    /// What the run must know of the keys.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Starts the thread that starts the keeper again if it ends.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub(crate) fn keep(self) -> io::Result<Keeping> {
        let writer = Arc::new(Mutex::new(self.control.get_ref().try_clone()?));
        let keeping = Keeping {
            socket: self.starter.socket.clone(),
            facts: self.facts,
            control: Arc::clone(&writer),
            reach: self.starter.reach.clone(),
        };
        let thread = std::thread::Builder::new().name("signer".to_owned());
        let (starter, control) = (self.starter, self.control);
        thread.spawn(move || watch(&starter, control, &writer))?;
        Ok(keeping)
    }
}

impl Starter {
    /// Starts a keeper. Waits for the first report of its signer.
    fn start(&self) -> Result<(BoundedLines<UnixStream>, Facts), SignerError> {
        let (mut own, theirs) = UnixStream::pair()?;
        // Secrets that this process erased from its environment.
        let secrets = windvane_config::secrets_line();
        let mut command = Command::new(&self.program);
        command
            .arg0("windvane")
            .arg("signer")
            .args(&self.arguments)
            .arg("--socket")
            .arg(&self.socket)
            .args(account_arguments(self.account.as_ref()))
            .args(secrets.as_ref().map(|_| "--secrets-on-stdin"))
            .env_remove(windvane_config::SECRETS_VARIABLE)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // The terminal's signals must reach the run alone.
            .process_group(0);
        let mut child = command.spawn()?;
        // The command holds the other end; the end of the keeper must show here.
        drop(command);
        if let Some(secrets) = secrets {
            // A keeper that ended at once is noticed below.
            let _ = write_line(&mut own, &secrets);
        }
        own.set_read_timeout(Some(self.report_within))?;
        let mut control = BoundedLines::new(own, LINE_BYTES_MAX);
        let line = control.next();
        control.get_ref().set_read_timeout(None)?;
        match line.map(|line| serde_json::from_str(&line)) {
            Some(Ok(Message::Ready(facts))) => Ok((control, facts)),
            Some(Ok(Message::Failed(text, is_refusal))) => {
                let _ = child.wait();
                Err(if is_refusal {
                    SignerError::Refused(text)
                } else {
                    SignerError::Failed(text)
                })
            }
            Some(Ok(Message::Opened(_)) | Err(_)) | None => {
                let _ = child.kill();
                let status = child.wait().map(|status| status.to_string());
                let status = status.unwrap_or_else(|error| error.to_string());
                Err(SignerError::Failed(format!(
                    "it ended, or hung for {} s, without a report ({status})",
                    self.report_within.as_secs()
                )))
            }
        }
    }
}

/// The arguments that name the account to sign for.
fn account_arguments(account: Option<&AccountDigests>) -> Vec<String> {
    let text = account.and_then(|account| serde_json::to_string(account).ok());
    text.map_or_else(Vec::new, |text| vec!["--signed-account".to_owned(), text])
}

/// Writes the line of [`windvane_config::secrets_line`].
fn write_line(to: &mut UnixStream, secrets: &str) -> io::Result<()> {
    to.write_all(secrets.as_bytes())?;
    to.write_all(b"\n")
}

/// Waits for the end of the keeper, and starts another one if that can read the keys. Ends with the
/// process.
fn watch(starter: &Starter, mut control: BoundedLines<UnixStream>, writer: &Mutex<UnixStream>) {
    let reach = &starter.reach;
    loop {
        // The keeper repeats the reports of each signer.
        for line in control.by_ref() {
            if matches!(serde_json::from_str(&line), Ok(Message::Ready(_))) {
                reach.answered();
            }
        }
        tracing::error!(
            "the process that starts the signer ended: if the signer ends too, nothing can be signed. \
             It is started again"
        );
        let Some(next) = start_again(starter) else {
            return;
        };
        control = next;
        if let Ok(next) = control.get_ref().try_clone() {
            *writer.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
        reach.has_keeper();
        tracing::warn!("the signer process was started again");
    }
}

/// Tries until a keeper runs; `None` if that is not possible. An error is logged once, and again if it
/// changes.
fn start_again(starter: &Starter) -> Option<BoundedLines<UnixStream>> {
    let mut reported = String::new();
    let mut pause = AGAIN;
    loop {
        let error = match starter.start() {
            Ok((control, _)) => return Some(control),
            Err(error) => error.to_string(),
        };
        starter.reach.lost_keeper();
        if starter.has_keys_of_once {
            tracing::error!(
                error,
                "no other signer can be started: keys came from environment variables or descriptors, and \
                 only the process that ended had them. The present signer goes on. When it ends, no \
                 order, cancel or renewal can be signed: the venue then cancels the futures orders at the \
                 end of their countdown, and spot orders stay open. Restart the run now"
            );
            return None;
        }
        if error != reported {
            tracing::error!(
                error,
                "cannot start the signer again: no order, cancel or renewal can be signed once the \
                 present one ends. The venue then cancels the futures orders at the end of their \
                 countdown, and spot orders stay open. A key file that only the start of a run may read \
                 needs a restart of the run; otherwise mend the error, it is tried again each minute"
            );
            reported = error;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(AGAIN_MAX);
    }
}

/// Whether a secret can be read only by the process that this program was started as.
const fn is_of_once(secret: &Secret) -> bool {
    matches!(secret, Secret::Env(_) | Secret::Descriptor(_))
}

/// A path for the socket of a new run. No other run has it: process ids repeat in containers that share
/// a folder, so the name has the time too.
fn new_socket(data_dir: &Path) -> PathBuf {
    let begun = SystemTime::now().duration_since(UNIX_EPOCH);
    let begun = begun.map_or(0, |since| since.as_nanos());
    data_dir.join(format!(
        "{SOCKET_BEGIN}{}-{begun:x}{SOCKET_END}",
        std::process::id()
    ))
}

/// Sockets of runs that were killed. One that still answers belongs to another run.
fn remove_old_sockets(data_dir: &Path) {
    let entries = std::fs::read_dir(data_dir).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(SOCKET_BEGIN) && name.ends_with(SOCKET_END)) {
            continue;
        }
        let path = entry.path();
        let made = entry.metadata().and_then(|metadata| metadata.modified());
        if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age < FRESH)) {
            continue;
        }
        let reached = SocketPath::of(&path).and_then(|at| UnixStream::connect(at.path()));
        if reached.is_err() {
            // If it cannot be removed, it does no harm: its name is not used again.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The signer process of a run that goes on.
#[derive(Debug)]
pub struct Keeping {
    socket: PathBuf,
    facts: Facts,
    control: Arc<Mutex<UnixStream>>,
    reach: Reach,
}

impl Keeping {
    /// What the run must know of the keys.
    pub(crate) const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The signer's socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether the signer answers.
    pub(crate) const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Replaces the signer process: it hangs, or must read the configuration again.
    pub(crate) fn restart(&self) {
        restart(&self.control);
    }

    /// A connection whose tasks run on `handle`. Replies go to `mailbox`.
    pub(crate) fn client(&self, handle: &Handle, mailbox: &Mailbox) -> Client {
        let control = Arc::clone(&self.control);
        let (reach, answers) = (self.reach.clone(), self.reach.clone());
        let troubled = move |trouble| {
            reach.troubled();
            match trouble {
                _ if !reach.is_replaceable() => tracing::error!(
                    "the signer does not answer, and no other can be started: no order, cancel or \
                     renewal is signed. The venue cancels the futures orders at the end of their \
                     countdown, and spot orders stay open: cancel them at the exchange. Restart the run"
                ),
                Trouble::Hangs => {
                    tracing::warn!(
                        "the signer does not answer: requests that wait for a signature are not sent in \
                         time. It is replaced"
                    );
                    restart(&control);
                }
                Trouble::Lost => tracing::warn!(
                    "the connection to the signer ended: requests wait for the next one"
                ),
            }
        };
        let mailbox = mailbox.clone();
        let answered = move |id, result: Result<_, String>| {
            answers.answered();
            mailbox.signed((id, result.map_err(PrepareError::NotSigned)));
        };
        Client::start(self.socket.clone(), handle, answered, troubled)
    }
}

fn restart(control: &Mutex<UnixStream>) {
    let mut control = control.lock().unwrap_or_else(PoisonError::into_inner);
    // If the keeper is gone, its thread notices that.
    let _ = control.write_all(RESTART);
}

/// A connection to the signer's socket. `troubled` is called when it ends.
pub(crate) fn connect(
    socket: &Path,
    handle: &Handle,
    mailbox: &Mailbox,
    troubled: impl Fn(Trouble) + Send + Sync + 'static,
) -> Client {
    let mailbox = mailbox.clone();
    let answered = move |id, result: Result<_, String>| {
        mailbox.signed((id, result.map_err(PrepareError::NotSigned)));
    };
    Client::start(socket.to_owned(), handle, answered, troubled)
}

/// Where requests are signed.
pub const fn place(is_in_signer: bool) -> Signing {
    if is_in_signer {
        Signing::Elsewhere
    } else {
        Signing::Here
    }
}

/// What the engine's thread needs of the signer.
#[derive(Debug)]
pub struct SignerLink {
    /// The connection.
    pub(crate) client: Client,
    /// The process.
    pub(crate) process: Arc<Keeping>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_signer_without_a_report_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("silent");
        // It writes nothing until the other end of the socket is closed.
        std::fs::write(&program, "#!/bin/sh\nexec cat > /dev/null\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let starter = Starter {
            program,
            arguments: Vec::new(),
            socket: folder.path().join("signer.sock"),
            report_within: Duration::from_millis(50),
            account: None,
            has_keys_of_once: false,
            reach: Reach::new(Duration::from_secs(30)),
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(starter.start().map(drop)));
        let result = receiver.recv_timeout(Duration::from_mins(1)).unwrap();
        let error = result.unwrap_err().to_string();
        assert!(error.contains("without a report"), "{error}");
    }
}
