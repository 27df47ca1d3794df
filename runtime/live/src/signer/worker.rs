//! The signer process itself: it reads the keys, gives up everything that it does not need, and serves
//! its socket.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

use windvane_client::Settings;
use windvane_sandbox::Confinement;
use windvane_signer::{Policy, Signer};

use super::{Facts, Message, OpenedOrders};
use crate::identity::AccountDigests;
use crate::startup_steps;
use crate::watchdog::ignore_signals;
use windvane_config::{Config, assembly};

/// Why a signer process ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The operating system refuses a resource.
    #[error(
        "the operating system refused a resource of the signer process: {0}; nothing is signed"
    )]
    System(#[from] io::Error),
}

/// Serves the socket on stdin until the run and its watchdog are gone. `prepared` reads keys and
/// policy; its error is the text for the operator, and whether the configuration must be changed.
/// `account` is that of the run's first signer, so with an account this signer replaces another one, and
/// `opened` has the opening orders that count for it, if they are known.
/// With keys of another account, nothing is signed. `ready` is called once the process is confined.
///
/// # Errors
/// The operating system refuses a resource.
pub fn serve(
    config: &Config,
    account: Option<&AccountDigests>,
    opened: Option<&OpenedOrders>,
    prepared: impl FnOnce() -> Result<(Settings, Policy), (String, bool)>,
    ready: impl FnOnce(),
) -> Result<(), WorkerError> {
    let mut control = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    let (settings, policy) = match prepared() {
        Ok(prepared) => prepared,
        Err((text, is_refusal)) => {
            report(&mut control, &Message::Failed(text, is_refusal))?;
            return Ok(());
        }
    };
    let found = AccountDigests::of(&settings.credentials);
    if account.is_some_and(|account| !account.is_same(&found)) {
        let text = "the keys belong to another account than at the start of the run, so nothing is signed: \
                    put the earlier keys back, or restart the run";
        report(&mut control, &Message::Failed(text.to_owned(), true))?;
        return Ok(());
    }
    let policy = if account.is_some() {
        policy.of_replacement(opened.map(|opened| &opened.0[..]))
    } else {
        policy
    };
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.set_nonblocking(true)?;
    // One thread: nothing else runs beside the keys.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { ignore_signals() })?;
    let mut missing = Vec::new();
    let mut confinement = Vec::new();
    let in_force = windvane_sandbox::confine(&Confinement::default());
    missing.extend(in_force.missing.iter().map(ToString::to_string));
    confinement.push(in_force.to_string());
    ready();
    // Last: with a small limit, no thread could be started after it.
    match windvane_sandbox::lock_memory() {
        Ok(()) => confinement.push("memory locked".to_owned()),
        Err(error) => missing.push(format!(
            "locked memory: {error}; raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)"
        )),
    }
    let credentials = settings.credentials;
    let facts = Facts {
        user: credentials.user.map(|user| user.to_string()),
        account: found,
        policy: policy.to_string(),
        confinement: confinement.join(", "),
        missing,
    };
    report(&mut control, &Message::Ready(facts))?;
    control.set_nonblocking(true)?;
    let counting = control.try_clone()?;
    // The socket has room for thousands of lines. If it is full, the keeper hangs. A keeper that is gone
    // starts no other signer, and the signers of the next keeper know that they know nothing.
    let counted = move |count| match report(&mut &counting, &Message::Opened(count)) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::BrokenPipe,
    };
    let names = assembly::instrument_names(config);
    let signer = Signer::new(settings.dialect, credentials, policy)
        .lingering(startup_steps::is_watched(config, &names));
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let control = tokio::net::UnixStream::from_std(control)?;
        signer.serve(listener, control, counted).await
    })?;
    Ok(())
}

fn report(control: &mut impl Write, message: &Message) -> io::Result<()> {
    let mut text = serde_json::to_string(message)?;
    text.push('\n');
    // At once, so that no part of a line is written.
    control.write_all(text.as_bytes())
}
