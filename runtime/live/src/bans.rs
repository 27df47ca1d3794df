//! Bans that outlive a process: what the venue told one, the next heeds before its first request.
//! They stand in the data folder, by host, with their end by the wall clock. What counts as a ban, and
//! for how long, the gateway decides (`client-core/src/gateway.rs`); what is heeded and written down is
//! decided in `client-core/src/bans.rs`. Here are the file and the waiting.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windvane_client::Client;
use windvane_client_core::bans::WrittenBan;
use windvane_journal::{Ban, Directory};
use windvane_model::{Surface, Time};

use windvane_report::utc::seconds_text;
use windvane_session::venue_surface;

/// Has a client send nothing to hosts that told an earlier process not to.
pub fn heed(client: &Client, data_dir: &Path) {
    let written: Vec<_> = Ban::read(data_dir).into_iter().map(of_file).collect();
    client.bans_at(wall_ms()).heed(&written);
}

/// Until when one of these surfaces takes nothing, in words.
pub fn told(client: &Client, surfaces: &[Surface]) -> Option<(Duration, String)> {
    let surfaces = surfaces.iter().map(|surface| venue_surface(*surface));
    let stopped = client.bans_at(wall_ms()).longest(surfaces)?;
    let until = seconds_text(Time(stopped.until_ms.saturating_mul(1_000_000)));
    let words = format!("the venue takes nothing from this address until {until} UTC");
    Some((Duration::from_millis(stopped.left_ms), words))
}

/// Waits until every surface takes requests again, and says why.
pub async fn sit_out(client: &Client, surfaces: &[Surface], mut say: impl FnMut(&str)) {
    while let Some((left, words)) = told(client, surfaces) {
        say(&format!(
            "{words}, as it told an earlier run: it is waited for"
        ));
        tokio::time::sleep(left).await;
    }
}

/// Writes down what the client is told, for as long as the run lasts.
pub fn keep(client: &Client, directory: &Arc<Directory>) {
    let (client, directory) = (client.clone(), Arc::downgrade(directory));
    tokio::spawn(async move {
        loop {
            client.ban_told().await;
            let (client, directory) = (client.clone(), Weak::clone(&directory));
            let written = tokio::task::spawn_blocking(move || {
                directory
                    .upgrade()
                    .map(|directory| write(&client, &directory))
            });
            if !matches!(written.await, Ok(Some(()))) {
                return;
            }
        }
    });
}

/// Writes down what a client was told, for whoever starts next with this data folder; one that is
/// not there, or that an instance uses, is left alone.
pub fn hand_on(client: &Client, data_dir: &Path) {
    if client.bans_at(wall_ms()).to_write().is_empty() || !data_dir.exists() {
        return;
    }
    if let Ok(directory) = Directory::lock(data_dir) {
        write(client, &directory);
    }
}

/// Writes down what a client knows.
fn write(client: &Client, directory: &Directory) {
    let written = client.bans_at(wall_ms()).to_write();
    let bans: Vec<_> = written.into_iter().map(for_file).collect();
    if let Err(error) = directory.set_bans(&bans) {
        tracing::error!(%error, "a ban is not written down: the next start would send into it");
    }
}

fn of_file(ban: Ban) -> WrittenBan {
    let Ban { host, until_ms } = ban;
    WrittenBan { host, until_ms }
}

fn for_file(ban: WrittenBan) -> Ban {
    let WrittenBan { host, until_ms } = ban;
    Ban { host, until_ms }
}

fn wall_ms() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall_ms = wall.map_or(0, |elapsed| elapsed.as_millis());
    i64::try_from(wall_ms).unwrap_or(i64::MAX)
}
