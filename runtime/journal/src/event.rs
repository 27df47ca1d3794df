//! The events that a journal reports.

use std::sync::Arc;
use std::time::Duration;

use windvane_model::record::Chain;

use crate::failure::Failure;

/// Receives the events. It is called on the journal's threads and must not block.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// An event of the journal.
#[derive(Clone, Debug)]
pub enum Event {
    /// All records up to this point are durable, except market data, which follows within some
    /// seconds.
    Durable {
        /// The end of the durable chain; [`Chain::last_record`] is the last durable record.
        chain: Chain,
        /// Blocks in this sync.
        blocks: usize,
        /// Time from the arrival of the first of them to this event.
        took: Duration,
    },
    /// A new segment began. Its checkpoint is durable, and so is everything before it.
    Rolled {
        /// Its number.
        segment: u32,
        /// The position at which it begins.
        chain: Chain,
        /// Time from the request to this event.
        took: Duration,
    },
    /// A write takes too long and has not ended: no new exposure until [`Event::Healthy`].
    Stalled {
        /// How long the write has been waiting.
        waiting: Duration,
    },
    /// The slow write has ended.
    Healthy {
        /// How long it took.
        stalled: Duration,
    },
    /// An ended segment was packed, or is left as it is. The packing thread sends this after it has
    /// read the whole segment.
    Packed {
        /// Its number.
        segment: u32,
    },
    /// Nothing becomes durable until [`Event::Rolled`]. Roll the journal when the cause may be
    /// gone.
    Failed(Failure),
}
