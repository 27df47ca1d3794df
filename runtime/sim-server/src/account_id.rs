//! The id of an account.

/// An account of the venue: its index in the list of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId(pub(crate) u16);

impl AccountId {
    /// The index in the list of accounts.
    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }
}
