//! Futures account, order, agent and builder routes (spec 2; spec 4, section 4) as data.

use super::Route;

pub(super) const ROUTES: &[Route] = &[];
