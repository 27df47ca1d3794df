//! Spot account and order routes (spec 1) as data.

use super::Route;

pub(super) const ROUTES: &[Route] = &[];
