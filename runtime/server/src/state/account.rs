//! One account: who it belongs to and what it holds. Matching and sums are `windvane-sim`'s.

/// The test keys of one account, as the ready line shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountKeys {
    /// v1 API key.
    pub api_key: String,
    /// v1 API secret.
    pub api_secret: String,
    /// Main wallet's address.
    pub user: String,
    /// Main wallet's private key.
    pub user_key: String,
    /// Agent's address, approved for everything but withdrawals.
    pub signer: String,
    /// Agent's private key.
    pub signer_key: String,
}

/// One account.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) venue: windvane_sim::Venue,
}
