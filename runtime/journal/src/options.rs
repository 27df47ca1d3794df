//! The settings of a journal, and the hooks with which tests make its disk fail.

use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Called before a sync. An error counts as an error of the sync.
pub type SyncHook = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// Hooks with which tests make a disk fail or hang.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Called before the sync that orders wait for, and before the sync of the database.
    pub sync: Option<SyncHook>,
    /// Called before the sync of market parts.
    pub market: Option<SyncHook>,
}

/// Settings of a journal.
#[derive(Clone)]
pub struct Options {
    /// Maximum number of blocks that wait to be written. More are refused.
    pub queue_blocks: usize,
    /// A write that takes longer is reported while it still runs.
    pub stall_after: Duration,
    /// Interval between writes of the mark. Orders do not wait for them.
    pub mark_every: Duration,
    /// Hooks for tests.
    pub hooks: Hooks,
    /// Whether ended segments are packed, on a separate thread.
    pub packs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queue_blocks: 4096,
            stall_after: Duration::from_millis(250),
            mark_every: Duration::from_secs(1),
            hooks: Hooks::default(),
            packs: true,
        }
    }
}
