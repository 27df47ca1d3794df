//! Progress of long work on stderr: one bar, and lines that stay.

use indicatif::{ProgressBar, ProgressStyle};
use windvane_model::outside_text;

use super::printing::note;

/// A progress bar on stderr. Nothing is drawn if stderr is not a terminal.
pub(super) struct Terminal {
    label: String,
    bar: ProgressBar,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self {
            label: String::new(),
            bar: ProgressBar::hidden(),
        }
    }

    /// Shows the progress of the work with this name. A new name starts a new bar.
    pub(super) fn show(&mut self, label: &str, done: u64, of: u64) {
        if self.label != label {
            self.clear();
            label.clone_into(&mut self.label);
            let shown = outside_text::name(label).into_owned();
            self.bar = ProgressBar::new(of).with_message(shown);
            // If the template is invalid, the default style is used.
            if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:40}] {percent}% {eta}") {
                self.bar.set_style(style.progress_chars("=> "));
            }
        }
        self.bar.set_position(done);
    }

    /// Prints a line that stays above the bar.
    pub(super) fn line(&self, text: &str) {
        self.bar.suspend(|| note(text));
    }

    /// Removes the bar.
    pub(super) fn clear(&mut self) {
        self.bar.finish_and_clear();
        self.label.clear();
    }
}
