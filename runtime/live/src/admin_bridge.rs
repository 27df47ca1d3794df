//! Connects the admin server and the engine: token, published state, and the operator's commands.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use secrecy::ExposeSecret;
use tokio::sync::{mpsc, watch};
use windvane_admin::view::Status;
use windvane_admin::{
    Heartbeat, Metrics, Published, Served, Server, Settings, Steer, Token, TokenError,
};

use super::error::LiveError;
use super::show::mode as mode_shown;
use windvane_config::{Config, Mode, Secret};

/// How many commands may wait for the engine.
const COMMANDS: usize = 16;
/// The interval of the sign of life during a start. Building modules and waiting for the venue take
/// time.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// The name of the token's file in the data folder.
pub const TOKEN_FILE: &str = "admin.token";

/// The server's side.
pub struct AdminBridge {
    pub server: Server,
    pub heartbeat: Heartbeat,
    pub published: watch::Receiver<Arc<Published>>,
    /// The sender for commands of this process itself, such as the reload of a SIGHUP.
    pub steer: mpsc::Sender<Steer>,
    publish: watch::Sender<Arc<Published>>,
    started: Instant,
}

/// The engine's side.
pub struct AdminChannel {
    pub publish: watch::Sender<Arc<Published>>,
    pub commands: mpsc::Receiver<Steer>,
    pub heartbeat: Heartbeat,
    /// When the process started.
    pub started: Instant,
    /// The start of the process in Unix milliseconds: the run is booting since this time.
    pub since_ms: i64,
}

impl AdminChannel {
    /// Logs and publishes the progress of the start.
    pub fn report_progress(&self, reason: &str) {
        tracing::info!("{reason}");
        self.publish.send_modify(|published| {
            reason.clone_into(&mut Arc::make_mut(published).status.reason);
        });
    }
}

impl AdminBridge {
    /// Starts the admin server.
    pub async fn open(config: &Config) -> Result<(Self, AdminChannel), LiveError> {
        let data_dir = &config.run.data_dir;
        let file = data_dir.join(TOKEN_FILE);
        let token = match token(config.admin.token.as_ref(), &file)? {
            Some(token) => token,
            None => Token::read_or_create(&file)?,
        };
        let mut settings = Settings::new(data_dir);
        if let Some(listen) = config.admin.listen {
            settings.listen = listen;
        }
        let (started, since_ms) = (Instant::now(), wall_ms());
        let first = nothing_yet(config.run.mode, since_ms);
        let (publish, published) = watch::channel(Arc::new(first));
        let (steer, commands) = mpsc::channel(COMMANDS);
        let heartbeat = Heartbeat::new();
        let served = Served {
            published: published.clone(),
            steer: steer.clone(),
            heartbeat: heartbeat.clone(),
            metrics: Metrics::install()?,
        };
        let server = Server::start(settings, token, served).await?;
        let admin_bridge = Self {
            server,
            heartbeat: heartbeat.clone(),
            published,
            steer,
            publish: publish.clone(),
            started,
        };
        let admin_channel = AdminChannel {
            publish,
            commands,
            heartbeat,
            started,
            since_ms,
        };
        Ok((admin_bridge, admin_channel))
    }

    /// Gives signs of life and updates the published time, until it is dropped.
    pub async fn keep_alive(&self) {
        loop {
            self.heartbeat.mark();
            let uptime = self.started.elapsed().as_millis();
            self.publish.send_modify(|published| {
                let status = &mut Arc::make_mut(published).status;
                status.as_of_ms = wall_ms();
                status.uptime_ms = u64::try_from(uptime).unwrap_or(u64::MAX);
            });
            tokio::time::sleep(ALIVE_EVERY).await;
        }
    }
}

/// The token of the configuration, or else the one in the data folder. `None` before the first run
/// made one.
pub(super) fn token(secret: Option<&Secret>, file: &Path) -> Result<Option<Token>, LiveError> {
    if let Some(secret) = secret {
        let token = Token::from_text(secret.read()?.expose_secret(), "admin.token")?;
        return Ok(Some(token));
    }
    match Token::read(file) {
        Err(TokenError::File { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => Ok(Some(read?)),
    }
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
