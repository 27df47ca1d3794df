//! Checks and compiles a module in a process of its own, `compile-module`, a hidden command of the
//! binary. It has limits of memory and time, sees no key, and can write only to the cache. The
//! trading process loads the finished native code.
//!
//! A hostile module can make the compiler use gigabytes and minutes. Then this process ends, and
//! nothing else is affected.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use windvane_config::Compile;
use windvane_host::{
    Capabilities, ContractVersion, Grant, Host, HostOptions, Limits, LoadError, Prepared,
};

use crate::program::program;

/// The hidden command.
const COMPILE_MODULE: &str = "compile-module";
/// The largest answer, bytes: the largest module in hexadecimal digits, and a little more.
const ANSWER_MAX: u64 = 136 << 20;
/// How long the process may take to end after its answer.
const END: Duration = Duration::from_secs(5);
/// Pause between two checks whether it has ended.
const LOOK: Duration = Duration::from_millis(1);
/// How much less important the process is for the scheduler than the trading process.
const NICE: i32 = 10;

/// What the process does with the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Work {
    /// Checks it and puts its native code into the cache.
    Prepare,
    /// Wraps a core module into a component, and checks it.
    Wrap,
}

/// One module to compile. The module itself comes through stdin.
#[derive(Debug, Serialize, Deserialize)]
pub struct CompileTask {
    work: Work,
    options: HostOptions,
    limits: Limits,
    grant: Grant,
    compile: Compile,
    /// The process that waits for the answer.
    parent: u32,
    /// Size of the module, bytes.
    size: usize,
}

/// The answer of the process: one JSON value on stdout.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    result: Result<Done, String>,
    /// Why the cache could not be pruned.
    not_pruned: Option<String>,
}

/// The result of a [`Work`].
#[derive(Debug, Serialize, Deserialize)]
enum Done {
    Prepared(Box<Prepared>),
    /// The component in hexadecimal digits, and its contract.
    Wrapped(String, ContractVersion),
}

/// Wraps a core module into a component and checks it: in another process, if this program has the
/// hidden command.
pub(crate) fn wrap(core: &[u8], compile: Compile) -> Result<(Vec<u8>, ContractVersion), LoadError> {
    let Some(program) = program() else {
        return wrapped(core);
    };
    let task = CompileTask::new(Work::Wrap, core, compile);
    match ask(program, &task, core)? {
        Done::Wrapped(digits, contract) => match hex::decode(digits) {
            Ok(component) => Ok((component, contract)),
            Err(error) => Err(failed("gave no component", &error)),
        },
        Done::Prepared(_) => Err(failed("gave another answer", &"native code")),
    }
}

fn wrapped(core: &[u8]) -> Result<(Vec<u8>, ContractVersion), LoadError> {
    let component = windvane_host::wrap(core)?;
    let contract = windvane_host::validate(&component)?.contract;
    Ok((component, contract))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> LoadError {
    LoadError::CompileProcess(format!("{what}: {error}"))
}

/// Compiles in another process of `program`.
pub(super) fn prepare(
    program: &Path,
    options: HostOptions,
    module: &[u8],
    (limits, grant): (Limits, Grant),
    compile: Compile,
) -> Result<Prepared, LoadError> {
    let task = CompileTask {
        options,
        limits,
        grant,
        ..CompileTask::new(Work::Prepare, module, compile)
    };
    match ask(program, &task, module)? {
        Done::Prepared(prepared) => Ok(*prepared),
        Done::Wrapped(..) => Err(failed("gave another answer", &"a component")),
    }
}

/// Starts the process and waits for its answer.
fn ask(program: &Path, task: &CompileTask, module: &[u8]) -> Result<Done, LoadError> {
    let compile = task.compile;
    let task = serde_json::to_string(task).map_err(|error| failed("has no task", &error))?;
    let child = Command::new(program)
        .args([COMPILE_MODULE, "--task", &task])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed("cannot be started", &error))?;
    let began = Instant::now();
    let ended = Compiler(child).run(module, Duration::from_secs(compile.seconds.into()));
    let ended = ended.map_err(|error| failed("cannot be used", &error))?;
    if ended.late {
        return Err(LoadError::CompileTime {
            limit: compile.seconds,
        });
    }
    match serde_json::from_slice::<Answer>(&ended.answer) {
        Ok(answer) if ended.status.success() => {
            if let Some(reason) = answer.not_pruned {
                tracing::warn!(
                    reason,
                    "could not prune the cache of native code: it may grow over its limit. Trading \
                     is not affected"
                );
            }
            answer.result.map_err(|text| match () {
                () if is_out_of_memory(&text) => LoadError::CompileMemory {
                    limit_mb: compile.memory_mb,
                },
                () => LoadError::Reported(text),
            })
        }
        _ => Err(ended.failure(began.elapsed(), compile)),
    }
}

/// A process that compiles. When this value is dropped, the process is killed.
struct Compiler(Child);

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How the process ended.
struct Ended {
    status: ExitStatus,
    answer: Vec<u8>,
    /// The end of its error output.
    errors: String,
    /// It was stopped at the time limit.
    late: bool,
}

impl Compiler {
    fn run(mut self, module: &[u8], within: Duration) -> std::io::Result<Ended> {
        let deadline = Instant::now() + within;
        let (done, answered) = channel();
        let answer = reader(self.0.stdout.take(), Some(done));
        let errors = reader(self.0.stderr.take(), None);
        std::thread::scope(|scope| {
            let stdin = self.0.stdin.take();
            // The process may never read its input. Then it is killed below, and the pipe breaks.
            scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(module)));
            let left = deadline.saturating_duration_since(Instant::now());
            let late = answered.recv_timeout(left).is_err();
            let status = self.end(late)?;
            Ok(Ended {
                status,
                answer: answer.join().unwrap_or_default(),
                errors: String::from_utf8_lossy(&errors.join().unwrap_or_default()).into_owned(),
                late,
            })
        })
    }

    /// Waits for the end of the process, which has closed its output, or kills it.
    fn end(&mut self, late: bool) -> std::io::Result<ExitStatus> {
        let deadline = Instant::now() + END;
        while !late && Instant::now() < deadline {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(LOOK);
        }
        // It may have ended meanwhile.
        let _ = self.0.kill();
        self.0.wait()
    }
}

/// Reads a pipe to its end on another thread, which reports the end to `done`.
fn reader(
    pipe: Option<impl Read + Send + 'static>,
    done: Option<std::sync::mpsc::Sender<()>>,
) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let mut pipe = pipe.take(ANSWER_MAX);
            // A pipe that breaks has ended.
            let _ = pipe.read_to_end(&mut bytes);
        }
        if let Some(done) = done {
            let _ = done.send(());
        }
        bytes
    })
}

impl Ended {
    /// The error of a process that gave no answer.
    fn failure(&self, took: Duration, compile: Compile) -> LoadError {
        use std::os::unix::process::ExitStatusExt as _;
        let of_time = [rustix::process::Signal::XCPU, rustix::process::Signal::KILL];
        let signal = self.status.signal();
        let near = took.as_secs() + 1 >= compile.seconds.into();
        if near && of_time.iter().any(|one| signal == Some(one.as_raw())) {
            return LoadError::CompileTime {
                limit: compile.seconds,
            };
        }
        if is_out_of_memory(&self.errors) {
            return LoadError::CompileMemory {
                limit_mb: compile.memory_mb,
            };
        }
        let last = self.errors.trim().lines().next_back().unwrap_or_default();
        LoadError::CompileProcess(format!(
            "ended without an answer ({}): {last}. If the machine has little memory, the system \
             may have killed it",
            self.status
        ))
    }
}

/// Whether a text is of a process that got no memory.
fn is_out_of_memory(text: &str) -> bool {
    let signs = [
        "memory allocation of",
        "Cannot allocate memory",
        "os error 12",
    ];
    signs.iter().any(|sign| text.contains(sign))
}

impl CompileTask {
    fn new(work: Work, module: &[u8], compile: Compile) -> Self {
        Self {
            work,
            options: HostOptions::default(),
            limits: Limits::default(),
            grant: Grant::Only(Capabilities::NONE),
            compile,
            parent: std::process::id(),
            size: module.len(),
        }
    }

    /// The work of the process: reads the module from stdin, compiles it into the cache, prunes the
    /// cache, and returns the answer.
    ///
    /// # Errors
    /// There is no answer, because the process cannot limit itself or did not get the module.
    pub fn run(self) -> Result<String, String> {
        self.limit_this_process()?;
        let mut module = Vec::with_capacity(self.size);
        let input = std::io::stdin();
        let read = input.take(self.size as u64).read_to_end(&mut module);
        read.map_err(|error| format!("cannot read the module: {error}"))?;
        if module.len() != self.size {
            return Err("the module is not complete: the caller has ended".to_owned());
        }
        let host = Host::new(self.options.clone()).map_err(|error| error.to_string())?;
        self.confine();
        let done = match self.work {
            Work::Wrap => wrapped(&module)
                .map(|(component, contract)| Done::Wrapped(hex::encode(component), contract)),
            Work::Prepare => host
                .prepare(&module, &self.limits, self.grant)
                .map(|prepared| Done::Prepared(Box::new(prepared))),
        };
        let age = Duration::from_hours(u64::from(self.compile.cache_days) * 24);
        let pruned = host.prune_cache(u64::from(self.compile.cache_mb) << 20, age);
        let answer = Answer {
            result: done.map_err(|error| error.to_string()),
            not_pruned: pruned.err().map(|error| error.to_string()),
        };
        serde_json::to_string(&answer).map_err(|error| error.to_string())
    }

    fn limit_this_process(&self) -> Result<(), String> {
        use rustix::process::{Resource, Rlimit, getppid, getrlimit, nice, setrlimit};
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Signal, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| e.to_string())?;
        }
        let parent = getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        if parent != Some(self.parent) {
            return Err("the caller has ended".to_owned());
        }
        // Without the right to be less important, the process is as important as its caller.
        let _ = nice(NICE);
        let memory = u64::from(self.compile.memory_mb) << 20;
        let seconds = u64::from(self.compile.seconds);
        // Linux counts all memory of the process in `Data`. It does not count the program itself.
        for (resource, limit) in [
            (Resource::Data, memory),
            (Resource::Cpu, seconds),
            (Resource::Core, 0),
        ] {
            let limit = getrlimit(resource)
                .maximum
                .map_or(limit, |maximum| maximum.min(limit));
            let limits = Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            };
            setrlimit(resource, limits).map_err(|error| format!("cannot set a limit: {error}"))?;
        }
        Ok(())
    }

    /// Leaves the process only the folder of the cache. A system that cannot confine it still has
    /// the limits.
    fn confine(&self) {
        let folder = self.options.compile_cache.iter();
        let _ = windvane_sandbox::confine(&windvane_sandbox::Confinement {
            write: folder.cloned().collect(),
            network: windvane_sandbox::Network::None,
            processes: true,
            ..windvane_sandbox::Confinement::default()
        });
    }
}
