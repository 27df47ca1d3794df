//! Connects the admin server and the engine: token, published state, and the operator's commands.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use secrecy::ExposeSecret;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use windvane_admin::view::Status;
use windvane_admin::{
    Heartbeat, Metrics, Published, Served, Server, Settings, SteerSender, Tcp, Token, steering,
};
use windvane_journal::Directory;

use super::boot_commands::BootCommands;
use super::error::LiveError;
use super::show::mode as mode_shown;
use windvane_config::{Config, Mode, Secret};

/// The interval of the sign of life during a start. Building modules and waiting for the venue take
/// time.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// The name of the token's file in the data folder.
pub const TOKEN_FILE: &str = "admin.token";

/// The server's side.
pub struct AdminBridge {
    server: Server,
    /// The token's file, if this start made it.
    token_file: Option<TokenFile>,
    pub heartbeat: Heartbeat,
    pub published: watch::Receiver<Arc<Published>>,
    /// The sender for commands of this process itself, such as the reload of a SIGHUP.
    pub steer: SteerSender,
    publish: watch::Sender<Arc<Published>>,
    started: Instant,
}

/// The engine's side.
pub struct AdminChannel {
    pub publish: watch::Sender<Arc<Published>>,
    pub commands: BootCommands,
    pub heartbeat: Heartbeat,
    /// When the process started.
    pub started: Instant,
    /// The start of the process in Unix milliseconds: the run is booting since this time.
    pub since_ms: i64,
}

/// Shows the progress of a start.
#[derive(Clone, Debug)]
pub struct StartProgress(watch::Sender<Arc<Published>>);

impl StartProgress {
    /// Logs and publishes it.
    pub fn report(&self, reason: &str) {
        tracing::info!("{reason}");
        self.0.send_modify(|published| {
            reason.clone_into(&mut Arc::make_mut(published).status.reason);
        });
    }
}

impl AdminChannel {
    /// What shows the progress of the start.
    pub fn progress(&self) -> StartProgress {
        StartProgress(self.publish.clone())
    }
}

impl AdminBridge {
    /// Starts the admin server.
    pub async fn open(
        config: &Config,
        directory: &Arc<Directory>,
    ) -> Result<(Self, AdminChannel), LiveError> {
        let data_dir = &config.run.data_dir;
        let file = data_dir.join(TOKEN_FILE);
        let mut settings = Settings::new(data_dir);
        settings.open_metrics = config.admin.open_metrics;
        let mut token_file = None;
        match (config.admin.listen, &config.admin.token) {
            (Some(listen), Some(secret)) => {
                settings.tcp = Some(Tcp::new(listen, configured_token(secret)?));
            }
            (Some(listen), None) => {
                settings.tcp = Some(Tcp::new(listen, Token::create(&file)?));
                token_file = Some(TokenFile(file));
            }
            // The socket needs no token. One that an earlier start made must not stay.
            (None, None) => drop(TokenFile(file)),
            (None, Some(secret)) => drop(configured_token(secret)?),
        }
        let (started, since_ms) = (Instant::now(), wall_ms());
        let first = nothing_yet(config.run.mode, since_ms);
        let (publish, published) = watch::channel(Arc::new(first));
        let (steer, commands) = steering();
        let heartbeat = Heartbeat::new();
        let served = Served {
            published: published.clone(),
            steer: steer.clone(),
            heartbeat: heartbeat.clone(),
            metrics: Metrics::install()?,
        };
        let server = Server::start(settings, served).await?;
        let admin_bridge = Self {
            server,
            token_file,
            heartbeat: heartbeat.clone(),
            published,
            steer,
            publish: publish.clone(),
            started,
        };
        let commands = BootCommands::start(commands, Arc::clone(directory))?;
        let admin_channel = AdminChannel {
            publish,
            commands,
            heartbeat,
            started,
            since_ms,
        };
        Ok((admin_bridge, admin_channel))
    }

    /// Ends the admin server, and removes its files.
    pub async fn stop(self) {
        self.server.stop().await;
        drop(self.token_file);
    }

    /// Gives signs of life and updates the published time, until the result is dropped. This is a
    /// task of its own, because the `start` of a strategy may take seconds.
    pub fn keep_alive(&self) -> Alive {
        let (heartbeat, publish) = (self.heartbeat.clone(), self.publish.clone());
        let started = self.started;
        Alive(tokio::spawn(async move {
            loop {
                heartbeat.mark();
                let uptime = started.elapsed().as_millis();
                publish.send_modify(|published| {
                    let status = &mut Arc::make_mut(published).status;
                    status.as_of_ms = wall_ms();
                    status.uptime_ms = u64::try_from(uptime).unwrap_or(u64::MAX);
                });
                tokio::time::sleep(ALIVE_EVERY).await;
            }
        }))
    }
}

/// Signs of life during a start. They end when this value is dropped.
pub struct Alive(JoinHandle<()>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A token's file that a start made. Dropping it removes the file.
struct TokenFile(PathBuf);

impl Drop for TokenFile {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = self.0.display();
                tracing::warn!(%path, %error, "could not remove admin.token");
            }
            _ => {}
        }
    }
}

/// The token of the configuration.
pub(super) fn configured_token(secret: &Secret) -> Result<Token, LiveError> {
    let text = secret.read()?;
    Ok(Token::from_text(text.expose_secret(), "admin.token")?)
}

fn wall_ms() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall_ms = wall.map_or(0, |elapsed| elapsed.as_millis());
    i64::try_from(wall_ms).unwrap_or(i64::MAX)
}

fn nothing_yet(mode: Mode, since_ms: i64) -> Published {
    Published {
        status: Status {
            reason: "loading the strategies' modules; no order is sent yet".to_owned(),
            since_ms,
            as_of_ms: since_ms,
            mode: mode_shown(mode),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Status::default()
        },
        ..Published::default()
    }
}
