//! Chain API (spec 3) as data.

use super::Route;

pub(super) const ROUTES: &[Route] = &[];
