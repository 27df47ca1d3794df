//! The output of the commands on stdout and stderr. Text may come from a strategy, the venue or a
//! file's name, so no command writes to a terminal by itself: these functions escape characters that
//! would control the terminal, and cut messages.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Display};
use std::io::{ErrorKind, Write};
use std::panic::PanicHookInfo;

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use windvane_model::outside_text::{self, MESSAGE_MAX, OneLine};

use super::Failure;

/// Longest text of the venue that is written as a result: a response that is not JSON, or a frame.
/// Bytes.
pub(super) const RESULT_MAX: usize = 64 << 10;

/// Writes one line to stdout. A closed pipe is not an error.
pub(super) fn print_line(text: &str) -> Result<(), Failure> {
    has_reader_for(&outside_text::message(text)).map(|_| ())
}

/// Writes text of several lines. Its parts from outside must be on one
/// line already ([`outside_text`]).
pub(super) fn print_lines(text: &str) -> Result<(), Failure> {
    has_reader_for(&outside_text::lines(text)).map(|_| ())
}

/// Writes JSON. Its value does not change: hidden characters become `\uXXXX`.
pub(super) fn print_json(text: &str) -> Result<(), Failure> {
    has_reader_for(&outside_text::json(text)).map(|_| ())
}

/// Writes a line, for commands that run until they are stopped. Returns `false` once the reader has
/// closed the pipe. The text must be escaped.
pub(super) fn has_reader_for(text: &str) -> Result<bool, Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Failed(format!("cannot write to stdout: {error}"))),
    }
}

/// Writes one line to stderr.
pub(super) fn note(text: impl Display) {
    eprintln!("{}", outside_text::message(&text.to_string()));
}

/// Writes the sentence with which a command ends. The output of a compiler has several lines. Each
/// further line is indented, so that no text from outside can look like a line of this program.
pub(super) fn ending(kind: &str, sentence: &str) {
    eprintln!("{}", ending_text(kind, sentence));
}

fn ending_text(kind: &str, sentence: &str) -> String {
    let lines: Vec<_> = sentence.lines().map(outside_text::message).collect();
    format!("{kind}: {}", lines.join("\n    "))
}

/// From now on a panic of any thread is one line on stderr. Its message may hold text of a strategy
/// or of the venue. With `RUST_BACKTRACE`, the stack follows.
pub(super) fn escape_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let mut text = panic_line(thread.name(), panic);
        let stack = Backtrace::capture();
        if stack.status() == BacktraceStatus::Captured {
            text = format!("{text}\n{}", outside_text::lines(&stack.to_string()));
        }
        // A panic within the hook would end the process, so a closed stderr is ignored.
        let _ = writeln!(std::io::stderr(), "{text}");
    }));
}

fn panic_line(thread: Option<&str>, panic: &PanicHookInfo<'_>) -> String {
    let thread = outside_text::name(thread.unwrap_or("unnamed"));
    let place = panic
        .location()
        .map_or_else(String::new, |it| format!(" at {it}"));
    let message = panic.payload_as_str().unwrap_or("(without a message)");
    let message = outside_text::message(message);
    format!("thread '{thread}' panicked{place}: {message}")
}

/// Formats the fields of a log line: the message, then `name=value`. Each value is on one line and
/// at most [`MESSAGE_MAX`] bytes long.
#[derive(Debug, Default)]
pub(super) struct EscapedFields;

impl<'writer> FormatFields<'writer> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut visitor = Fields {
            writer,
            is_first: true,
            result: Ok(()),
        };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct Fields<'writer> {
    writer: Writer<'writer>,
    is_first: bool,
    result: fmt::Result,
}

impl Fields<'_> {
    fn write(&mut self, field: &Field, value: fmt::Arguments<'_>) -> fmt::Result {
        use fmt::Write;
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        let name = field.name();
        if name != "message" {
            write!(self.writer, "{}=", name.strip_prefix("r#").unwrap_or(name))?;
        }
        let mut line = OneLine::new(self.writer.by_ref(), MESSAGE_MAX);
        line.write_fmt(value)?;
        line.finish().map(|_| ())
    }

    fn record(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = self.write(field, value);
        }
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.record(field, format_args!("{value}")),
            _ => self.record(field, format_args!("{value:?}")),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.record(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(work: impl FnOnce()) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = crate::log_layer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_from_outside_is_one_line_of_the_log() {
        let hostile = "x\r\n2026-01-01T00:00:00Z ERROR halted\u{1b}[2J\u{9b}31m\u{202e}\u{200b}";
        let log = logged(|| {
            let error = std::io::Error::other(hostile);
            let error: &dyn std::error::Error = &error;
            let _span = tracing::info_span!("span", venue = %hostile).entered();
            tracing::error!(target: "strategy", name = %hostile, text = hostile, error, "{hostile}");
        });
        assert_eq!(log.matches('\n').count(), 1, "{log:?}");
        let line = log.trim_end_matches('\n');
        assert!(!line.chars().any(outside_text::is_hidden), "{line:?}");
        assert!(line.contains(r"x\r\n2026-01-01T00:00:00Z ERROR halted\u{1b}[2J\u{9b}31m"));
        assert!(
            line.contains(" name=x") && line.contains(" text=\"x"),
            "{line}"
        );
    }

    #[test]
    fn a_field_of_the_log_is_cut_at_the_stated_length() {
        let long = "x".repeat(100_000);
        let log = logged(|| tracing::warn!(reason = %long, "{long}"));
        assert!(log.len() < 2 * MESSAGE_MAX + 200, "{} bytes", log.len());
        assert_eq!(log.matches(" [95904 more bytes]").count(), 2, "{log}");
    }

    #[test]
    fn an_ordinary_log_line_looks_as_before() {
        let log = logged(|| tracing::warn!(symbol = "BTCUSDT", count = 2, id = ?Some(1), "lost"));
        let (_, line) = log.split_once(" WARN ").unwrap();
        assert_eq!(line, "lost symbol=\"BTCUSDT\" count=2 id=Some(1)\n");
    }

    #[test]
    fn a_sentence_with_line_breaks_cannot_look_like_a_second_one() {
        let text = ending_text("error", "a\u{1b}[1m\nerror: b\r\nc");
        assert_eq!(text, "error: a\\u{1b}[1m\n    error: b\n    c");
    }

    /// The hook belongs to the whole process, so the test runs itself in another process.
    #[test]
    fn a_panic_is_one_line_that_controls_no_terminal() {
        const IN_CHILD: &str = "WINDVANE_TEST_OF_PANICS";
        if std::env::var_os(IN_CHILD).is_some() {
            escape_panics();
            let thread = std::thread::Builder::new().name("en\u{1b}gine".to_owned());
            let panics = || {
                let text = format!("bad symbol \u{1b}[2J\nerror: x{}", "y".repeat(10_000));
                std::panic::panic_any(text)
            };
            let _ = thread.spawn(panics).unwrap().join();
            return;
        }
        let name = "printing::tests::a_panic_is_one_line_that_controls_no_terminal";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(IN_CHILD, "1")
            .env_remove("RUST_BACKTRACE")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.trim_end().contains(outside_text::is_hidden), "{text}");
        assert!(
            text.starts_with(r"thread 'en\u{1b}gine' panicked at "),
            "{text}"
        );
        assert!(
            text.contains(r": bad symbol \u{1b}[2J\nerror: xyyy"),
            "{text}"
        );
        assert!(text.len() < MESSAGE_MAX + 300, "{}", text.len());
    }
}
