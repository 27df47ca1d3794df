//! Spot market data (spec 1) as data.

use super::Route;

pub(super) const ROUTES: &[Route] = &[];
