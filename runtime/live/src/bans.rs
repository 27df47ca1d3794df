//! Bans that outlive a process. When the venue bans this address, the next process must know it
//! before its first request.
//!
//! The data folder keeps each ban by host, with its end by the wall clock. The gateway decides what
//! counts as a ban and for how long (`client-core/src/gateway.rs`). `client-core/src/bans.rs`
//! decides which bans are applied and which are written. This file reads and writes the file, and
//! waits.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windvane_client::Client;
use windvane_client_core::bans::WrittenBan;
use windvane_journal::{Ban, Directory};
use windvane_model::{Surface, Time};

use windvane_report::utc::seconds_text;
use windvane_session::venue_surface;

/// Stops a client from sending to hosts that banned an earlier process.
pub fn heed(client: &Client, data_dir: &Path) {
    let written: Vec<_> = Ban::read(data_dir).into_iter().map(of_file).collect();
    client.bans_at(wall_ms()).heed(&written);
}

/// How long one of these surfaces is still banned, and a sentence about it for people.
pub fn current_ban(client: &Client, surfaces: &[Surface]) -> Option<(Duration, String)> {
    let surfaces = surfaces.iter().map(|surface| venue_surface(*surface));
    let stopped = client.bans_at(wall_ms()).longest(surfaces)?;
    let until = seconds_text(Time(stopped.until_ms.saturating_mul(1_000_000)));
    let text = format!("the venue accepts no requests from this address until {until} UTC");
    Some((Duration::from_millis(stopped.left_ms), text))
}

/// Waits until every surface accepts requests again. `say` receives the reason.
pub async fn sit_out(client: &Client, surfaces: &[Surface], mut say: impl FnMut(&str)) {
    while let Some((left, text)) = current_ban(client, surfaces) {
        say(&format!(
            "{text} (a ban from an earlier run). Nothing is sent meanwhile; this program waits \
             and then goes on"
        ));
        tokio::time::sleep(left).await;
    }
}

/// Writes every ban that the client learns of to the data folder, for as long as the run lasts.
pub fn keep(client: &Client, directory: &Arc<Directory>) {
    let (client, directory) = (client.clone(), Arc::downgrade(directory));
    tokio::spawn(async move {
        loop {
            client.ban_reported().await;
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

/// Writes the client's bans for the next process that uses this data folder. Does nothing if the
/// folder does not exist or if a running instance uses it.
pub fn hand_on(client: &Client, data_dir: &Path) {
    if client.bans_at(wall_ms()).to_write().is_empty() || !data_dir.exists() {
        return;
    }
    if let Ok(directory) = Directory::lock(data_dir) {
        write(client, &directory);
    }
}

/// Writes the client's bans to the data folder.
fn write(client: &Client, directory: &Directory) {
    let written = client.bans_at(wall_ms()).to_write();
    let bans: Vec<_> = written.into_iter().map(for_file).collect();
    if let Err(error) = directory.set_bans(&bans) {
        tracing::error!(%error, "could not save a ban of the venue: a restart before the ban ends \
                                 would send requests and may extend it; check the data folder's \
                                 disk");
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
