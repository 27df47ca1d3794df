//! Futures market data (spec 2) as data.

use super::Route;

pub(super) const ROUTES: &[Route] = &[];
