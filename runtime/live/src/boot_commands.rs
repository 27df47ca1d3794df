//! Commands of the operator while a run starts. The engine's loop takes commands only once the venue has
//! answered and the strategies have started, which can take minutes. A pause, halt or flatten of the whole
//! run is stored and answered at once, so that it holds even if the process ends before; the loop carries
//! it out first.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use windvane_admin::view::State;
use windvane_admin::{Applied, Command, Steer, SteerReceiver};
use windvane_journal::Directory;
use windvane_model::kill_switch::{StoredKillSwitch, StoredKillSwitches};

const REASON: &str = "the operator commanded it while the run started";
/// The work that remains after the answer.
const PENDING: &str = "the run still starts: it sends no opening order. Own orders of an earlier process \
                       are cancelled, and positions of a flatten closed, once the venue answers; until \
                       then they are as that process left them";

/// A thread of its own takes the commands, because the start of a strategy may hold the others.
#[derive(Debug)]
pub struct BootCommands {
    stop: Arc<Notify>,
    thread: Option<JoinHandle<SteerReceiver>>,
}

impl BootCommands {
    /// Starts the thread. Call it on the runtime.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start(commands: SteerReceiver, directory: Arc<Directory>) -> io::Result<Self> {
        let stop = Arc::new(Notify::new());
        let (stopped, handle) = (Arc::clone(&stop), Handle::current());
        let thread = std::thread::Builder::new().name("boot-commands".to_owned());
        let thread = thread.spawn(move || handle.block_on(take(commands, &directory, &stopped)))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Ends the thread, and returns the commands with those that the loop has yet to carry out. `None`
    /// after a panic of the thread.
    pub fn end(mut self) -> Option<SteerReceiver> {
        self.stop.notify_one();
        self.thread.take()?.join().ok()
    }
}

impl Drop for BootCommands {
    fn drop(&mut self) {
        // The thread ends by itself; nobody needs its commands.
        self.stop.notify_one();
    }
}

async fn take(mut commands: SteerReceiver, directory: &Directory, stop: &Notify) -> SteerReceiver {
    loop {
        let steer = tokio::select! {
            biased;
            () = stop.notified() => return commands,
            steer = commands.recv_kill_switch() => steer,
        };
        let Some(steer) = steer else {
            stop.notified().await;
            return commands;
        };
        commands.postpone(stored(steer, directory));
    }
}

/// Stores the kill switch of a command and answers it. Returns the command for the loop. A command for
/// one strategy, or one that cannot be stored, is answered by the loop.
fn stored(steer: Steer, directory: &Directory) -> Steer {
    let command = steer.command;
    if steer.strategy.is_some() {
        return steer;
    }
    let mut kill_switches = directory.kill_switch();
    set(&mut kill_switches, command);
    if let Err(error) = directory.set_kill_switch(&kill_switches) {
        tracing::error!(
            %error,
            "a command of the operator during the start is not on the disk yet: it is carried out before \
             the first order, but may be lost if the process ends before; check the disk"
        );
        return steer;
    }
    tracing::warn!(
        ?command,
        "stored a command of the operator during the start"
    );
    // The caller may be gone.
    let _ = steer.answer.send(Ok(applied(&kill_switches)));
    Steer::new(command, oneshot::channel().0)
}

fn set(kill_switches: &mut StoredKillSwitches, command: Command) {
    let reason = REASON.to_owned();
    let account = &mut kill_switches.account;
    match (command, &account) {
        (_, StoredKillSwitch::Halted { .. }) => {}
        (Command::Pause, StoredKillSwitch::Clear) => *account = StoredKillSwitch::Paused { reason },
        (Command::Halt | Command::Flatten, _) => *account = StoredKillSwitch::Halted { reason },
        (Command::Pause | Command::Resume | Command::Reload, _) => {}
    }
    kill_switches.flatten |= command == Command::Flatten;
}

fn applied(kill_switches: &StoredKillSwitches) -> Applied {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    let (state, reason) = match &kill_switches.account {
        StoredKillSwitch::Clear => (State::Booting, ""),
        StoredKillSwitch::Paused { reason } => (State::Paused, reason.as_str()),
        StoredKillSwitch::Halted { reason } => (State::Halted, reason.as_str()),
    };
    Applied {
        state,
        reason: reason.to_owned(),
        since_ms: now_ms,
        pending: PENDING.to_owned(),
        durable: Some(true),
        ..Applied::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windvane_admin::{SteerSender, steering};

    use super::*;

    async fn answer(sender: &SteerSender, command: Command) -> Applied {
        let (answer, answered) = oneshot::channel();
        sender.send(Steer::new(command, answer)).await.unwrap();
        let answered = tokio::time::timeout(Duration::from_mins(1), answered).await;
        answered.unwrap().unwrap().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_command_during_a_start_is_stored_answered_and_carried_out_first() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::lock(folder.path()).unwrap());
        let (sender, commands) = steering();
        let boot = BootCommands::start(commands, Arc::clone(&directory)).unwrap();
        // Commands that start trading wait for the loop.
        let (resume, _answered) = oneshot::channel();
        sender
            .send(Steer::new(Command::Resume, resume))
            .await
            .unwrap();
        let stored = || directory.kill_switch();
        for (command, state) in [
            (Command::Pause, State::Paused),
            (Command::Halt, State::Halted),
            (Command::Pause, State::Halted),
            (Command::Flatten, State::Halted),
        ] {
            assert!(!stored().flatten);
            let applied = answer(&sender, command).await;
            assert_eq!((applied.state, applied.durable), (state, Some(true)));
        }
        assert!(matches!(stored().account, StoredKillSwitch::Halted { .. }));
        assert!(stored().flatten);
        let mut commands = boot.end().unwrap();
        let left = std::iter::from_fn(|| commands.try_recv().map(|steer| steer.command));
        let left: Vec<_> = left.collect();
        // The resume is older, so it is refused.
        let carried_out = [
            Command::Pause,
            Command::Halt,
            Command::Pause,
            Command::Flatten,
        ];
        assert_eq!(left, carried_out);
    }
}
