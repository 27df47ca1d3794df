//! Tells a listener when requests leave.

use std::fmt;
use std::sync::Arc;

/// A callback that runs when a request leaves: it is signed, and its bytes are passed to the HTTP
/// connection.
#[derive(Clone)]
pub struct Departure(Arc<dyn Fn() + Send + Sync>);

impl Departure {
    /// Calls `listener` for each request. The listener must not block.
    pub fn new(listener: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(crate) fn notify(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Departure")
    }
}
