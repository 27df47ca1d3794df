//! Where people ask a run: the admin server with its token, what it shows, and what it passes on.

use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::sync::{mpsc, watch};
use windvane_admin::view::Status;
use windvane_admin::{Beat, Metrics, Published, Served, Server, Settings, Steer, Token};

use super::LiveError;
use super::outside::mode as mode_shown;
use crate::config::{Config, Mode, Secret};

/// Commands that may wait for the engine.
const COMMANDS: usize = 16;
/// The sign of life while a run begins: building modules and waiting for the venue take their time.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// The file of the token in the data folder.
pub const TOKEN_FILE: &str = "admin.token";

/// The server's side.
pub struct Desk {
    pub server: Server,
    pub beat: Beat,
    pub published: watch::Receiver<Arc<Published>>,
}

/// The engine's side.
pub struct Counter {
    pub publish: watch::Sender<Arc<Published>>,
    pub steered: mpsc::Receiver<Steer>,
    pub beat: Beat,
}

impl Desk {
    /// Listens.
    pub async fn open(config: &Config) -> Result<(Self, Counter), LiveError> {
        let data_dir = &config.run.data_dir;
        let token = token(config.admin.token.as_ref(), data_dir)?;
        let mut settings = Settings::new(data_dir);
        if let Some(listen) = config.admin.listen {
            settings.listen = listen;
        }
        let (publish, published) = watch::channel(Arc::new(nothing_yet(config.run.mode)));
        let (steer, steered) = mpsc::channel(COMMANDS);
        let beat = Beat::new();
        let served = Served {
            published: published.clone(),
            steer,
            beat: beat.clone(),
            metrics: Metrics::install()?,
        };
        let server = Server::start(settings, token, served).await?;
        let desk = Self {
            server,
            beat: beat.clone(),
            published,
        };
        let counter = Counter {
            publish,
            steered,
            beat,
        };
        Ok((desk, counter))
    }

    /// Gives signs of life for as long as it is waited for.
    pub async fn keep_alive(&self) {
        loop {
            self.beat.mark();
            tokio::time::sleep(ALIVE_EVERY).await;
        }
    }
}

fn token(secret: Option<&Secret>, data_dir: &std::path::Path) -> Result<Token, LiveError> {
    Ok(match secret {
        Some(secret) => Token::from_text(secret.read()?.expose_secret(), "admin.token")?,
        None => Token::read_or_create(&data_dir.join(TOKEN_FILE))?,
    })
}

fn nothing_yet(mode: Mode) -> Published {
    Published {
        status: Status {
            reason: "the venue is asked for its instruments".to_owned(),
            mode: mode_shown(mode),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Status::default()
        },
        ..Published::default()
    }
}
