//! How a test starts `windvane run`: configuration, settings, environment, and a shell script that
//! may prepare the process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::binary;
use crate::instance::Instance;
use crate::modules;
use crate::venue::Venue;

/// A start of `windvane run` against a venue; it can be repeated.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The file with the venue's line; without it, settings and environment name the venue.
    line: Option<PathBuf>,
    data: PathBuf,
    config: PathBuf,
    settings: Vec<String>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
    shell: Option<String>,
}

impl Launch {
    /// Starts `configs/live-sim.toml` against a venue, with this data folder.
    pub fn new(venue: &Venue, data: &Path) -> Self {
        Self {
            line: Some(venue.file()),
            data: data.to_owned(),
            config: PathBuf::from("configs/live-sim.toml"),
            settings: Vec::new(),
            environment: Vec::new(),
            arguments: Vec::new(),
            shell: None,
        }
    }

    /// Starts `configs/paper.toml` on the public data of a venue: with its addresses, without its
    /// keys.
    pub fn paper(venue: &Venue, data: &Path) -> Self {
        let mut launch = Self::new(venue, data).config(Path::new("configs/paper.toml"));
        launch.line = None;
        launch.addresses(venue)
    }

    /// Starts a configuration that names the venue's addresses itself.
    pub fn own(config: &Path, data: &Path) -> Self {
        Self {
            line: None,
            data: data.to_owned(),
            config: config.to_owned(),
            settings: Vec::new(),
            environment: Vec::new(),
            arguments: Vec::new(),
            shell: None,
        }
    }

    /// Starts `configs/paper.toml` on a recording.
    pub fn playing(file: &Path, pace: &str, data: &Path) -> Self {
        Self {
            line: None,
            data: data.to_owned(),
            config: PathBuf::from("configs/paper.toml"),
            settings: Vec::new(),
            environment: Vec::new(),
            arguments: vec![
                "--pace".to_owned(),
                pace.to_owned(),
                "--data".to_owned(),
                file.display().to_string(),
            ],
            shell: None,
        }
    }

    /// Sets another configuration file.
    #[must_use]
    pub fn config(mut self, file: &Path) -> Self {
        file.clone_into(&mut self.config);
        self
    }

    /// Adds a setting, such as `run.on_stop=keep`.
    #[must_use]
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// Passes the addresses by settings and the keys by the environment, as for a venue that prints
    /// no line.
    #[must_use]
    pub fn apart(mut self, venue: &Venue) -> Self {
        self.line = None;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let keys = &venue.line()["accounts"][0];
        self.addresses(venue)
            .env("WINDVANE_API_KEY", &text(&keys["apiKey"]))
            .env("WINDVANE_API_SECRET", &text(&keys["apiSecret"]))
            .env("WINDVANE_SIGNER_KEY", &text(&keys["signerKey"]))
    }

    fn addresses(mut self, venue: &Venue) -> Self {
        let line = venue.line();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        for (setting, value) in [
            ("venue.spot.rest", &line["spot"]["rest"]),
            ("venue.spot.ws", &line["spot"]["ws"]),
            ("venue.futures.rest", &line["futures"]["rest"]),
            ("venue.futures.ws", &line["futures"]["ws"]),
        ] {
            self = self.set(&format!("{setting}={}", text(value)));
        }
        self
    }

    /// Adds a command line argument, such as `--take-over`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Uses modules that are already built, in the order of the strategies in the configuration.
    #[must_use]
    pub fn modules(mut self, strategies: &[&str]) -> Self {
        for (place, strategy) in strategies.iter().enumerate() {
            let file = modules::built(strategy);
            let setting = format!("strategy.{place}.module={}", file.display());
            self.settings.push(setting);
        }
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs a shell script in the process before it becomes `windvane run`.
    #[must_use]
    pub fn after(mut self, script: &str) -> Self {
        self.shell = Some(format!("{script}; exec \"$@\""));
        self
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts the instance; its log goes to a `.log` file beside the data folder.
    ///
    /// # Panics
    /// If it cannot be started.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn start(&self) -> Instance {
        std::fs::create_dir_all(&self.data).expect("the data folder can be created");
        let log = self.data.with_extension("log");
        let file = File::options().create(true).append(true).open(&log);
        let child = self
            .command()
            .stdin(Stdio::null())
            .stderr(Stdio::from(file.expect("the log can be opened")))
            .spawn()
            .expect("the instance starts");
        Instance::of(child, &self.data, &log, &self.config)
    }

    /// Runs it in the foreground, for a start that must be refused.
    ///
    /// # Panics
    /// If it cannot be started.
    #[expect(clippy::expect_used, reason = "a panic is how a test fails")]
    pub fn output(&self) -> Output {
        self.command().output().expect("the instance starts")
    }

    fn command(&self) -> Command {
        let mut command = match &self.shell {
            None => Command::new(binary::path()),
            Some(script) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", script, "sh"]).arg(binary::path());
                shell
            }
        };
        command
            .current_dir(binary::root())
            .arg("run")
            .arg("--config")
            .arg(&self.config)
            .arg("--set")
            .arg(format!("run.data_dir={}", self.data.display()))
            .envs(self.environment.iter().cloned());
        if let Some(line) = &self.line {
            command.arg("--venue").arg(line);
        }
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        command.args(&self.arguments);
        command
    }
}
