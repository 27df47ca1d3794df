//! Log lines of the watchdog process and of the signer process. Their own thread writes them, so a terminal or log service
//! that does not read can never delay their work.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How many lines may wait to be written; further lines are lost.
const WAITING: usize = 1_024;
/// How long the process waits at its end for lines that are not written yet.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// A writer of lines to stderr that never waits.
#[derive(Clone, Debug)]
pub struct StderrWriter {
    lines: SyncSender<Line>,
    /// The start of each line.
    prefix: &'static str,
}

#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    /// Replies once every line before it is written.
    Flush(SyncSender<()>),
}

impl StderrWriter {
    /// Starts the thread. Each line begins with `prefix`.
    pub fn stderr(prefix: &'static str) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write_all(&waiting))?;
        Ok(Self { lines, prefix })
    }

    /// Waits a moment for lines that are not written yet.
    pub fn flush(&self) {
        let (written, done) = sync_channel(1);
        if self.lines.try_send(Line::Flush(written)).is_ok() {
            // A reader that does not read must not delay the end of the process.
            let _ = done.recv_timeout(LAST_WORDS);
        }
    }
}

fn write_all(lines: &Receiver<Line>) {
    let mut stderr = io::stderr();
    while let Ok(line) = lines.recv() {
        match line {
            Line::Text(text) => {
                // Nothing can be done when nobody reads stderr.
                let _ = stderr.write_all(&text);
            }
            Line::Flush(written) => {
                let _ = written.send(());
            }
        }
    }
}

impl Write for StderrWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self
            .lines
            .try_send(Line::Text([self.prefix.as_bytes(), text].concat()))
        {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Ok(text.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for StderrWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
