//! Blocking work during a start.

use super::error::LiveError;

/// Runs blocking work (disk access, compilers) outside the async runtime.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LiveError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| LiveError::Broken)
}
