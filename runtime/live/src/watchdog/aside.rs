//! Log lines of the watchdog process: a thread of their own writes them, so that a terminal or a
//! journal that takes nothing never holds up what they tell of.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait to be written; more are lost.
const WAITING: usize = 1_024;
/// What is still to be written at the end is waited for so long.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Begins each line.
const PREFIX: &[u8] = b"watchdog: ";

/// A writer of lines to stderr that never waits.
#[derive(Clone, Debug)]
pub struct Aside {
    lines: SyncSender<Line>,
}

#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    /// Everything before it was written.
    Flush(SyncSender<()>),
}

impl Aside {
    /// Begins the thread.
    pub fn stderr() -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write_all(&waiting))?;
        Ok(Self { lines })
    }

    /// Waits a moment for what is still to be written.
    pub fn flush(&self) {
        let (written, done) = sync_channel(1);
        if self.lines.try_send(Line::Flush(written)).is_ok() {
            // Whoever does not read is not waited for longer.
            let _ = done.recv_timeout(LAST_WORDS);
        }
    }
}

fn write_all(lines: &Receiver<Line>) {
    let mut stderr = io::stderr();
    while let Ok(line) = lines.recv() {
        match line {
            Line::Text(text) => {
                // There is nobody left to tell that nobody listens.
                let _ = stderr.write_all(&text);
            }
            Line::Flush(written) => {
                let _ = written.send(());
            }
        }
    }
}

impl Write for Aside {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self.lines.try_send(Line::Text([PREFIX, text].concat())) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Ok(text.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Aside {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
