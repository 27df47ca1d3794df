//! Starts cargo.

use std::process::Command;

/// A call of cargo with the lock file as it is.
pub(crate) struct Cargo {
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
}

impl Cargo {
    pub(crate) fn new(verb: &str) -> Self {
        Self {
            variables: Vec::new(),
            arguments: vec![verb.to_owned(), "--locked".to_owned()],
        }
    }

    pub(crate) fn package(self, name: &str) -> Self {
        self.arguments(["-p", name])
    }

    pub(crate) fn arguments<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(str::to_owned));
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The command as it is typed.
    pub(crate) fn typed(&self) -> String {
        let variables = self.variables.iter();
        let mut words: Vec<String> = variables
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        words.push("cargo".to_owned());
        words.extend(self.arguments.iter().cloned());
        words.join(" ")
    }

    /// Runs it to its end. It fails with the command if the command fails.
    pub(crate) fn run(&self) -> Result<(), String> {
        eprintln!("+ {}", self.typed());
        // Inside cargo, this variable names the cargo that runs.
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(program)
            .current_dir(crate::root())
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.typed())),
            Err(error) => Err(format!("cannot start cargo: {error}")),
        }
    }
}
