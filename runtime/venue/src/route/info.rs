//! JSON-RPC info endpoint (spec 3) as data.

use super::Route;

pub(super) const ROUTES: &[Route] = &[];
