//! The input of a handler.

use windvane_model::Time;
use windvane_protocol::route::{Listing, Route};

use super::{Params, Refusal};
use crate::account_id::AccountId;

/// The input of a handler: a request that has passed every general check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) route: &'static Route,
    pub(crate) listing: &'static Listing,
    pub(crate) params: &'a Params,
    /// The body as received, for JSON-RPC.
    pub(crate) body: &'a [u8],
    /// The time of the call.
    pub(crate) now: Time,
    /// The venue's clock, with the skew of a fault switch.
    pub(crate) now_ms: i64,
    /// The sender; `None` if the route needs no authentication.
    pub(crate) account: Option<AccountId>,
}

impl Call<'_> {
    /// The account of a signed route.
    pub(crate) fn account(&self) -> Result<AccountId, Refusal> {
        let unauthorized = || Refusal::new(-1002, "You are not authorized for this request.");
        self.account.ok_or_else(unauthorized)
    }
}
