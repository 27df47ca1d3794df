//! What long work shows on a terminal, on stderr: one bar, and lines for what should be kept.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr; nothing is drawn where stderr is no terminal.
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

    /// How far the work of this name is; a new name begins a new bar.
    pub(super) fn show(&mut self, label: &str, done: u64, of: u64) {
        if self.label != label {
            self.clear();
            label.clone_into(&mut self.label);
            self.bar = ProgressBar::new(of).with_message(self.label.clone());
            // The default style is fine too, should this template ever be wrong.
            if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:40}] {percent}% {eta}") {
                self.bar.set_style(style.progress_chars("=> "));
            }
        }
        self.bar.set_position(done);
    }

    /// A line that stays.
    pub(super) fn line(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Takes the bar away.
    pub(super) fn clear(&mut self) {
        self.bar.finish_and_clear();
        self.label.clear();
    }
}
