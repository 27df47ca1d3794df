//! How an order is named inside the venue.

use serde::{Deserialize, Serialize};

/// The index of an order in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct OrderKey(pub(crate) u32);
