//! Sets of capabilities.

use serde::{Deserialize, Serialize};
pub use windvane_model::capability::Capability;

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities(u8);

impl Capabilities {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Every capability of the contract.
    pub const ALL: Self = Self((1 << Capability::ALL.len()) - 1);

    /// Whether `capability` is in the set.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// The set with `capability` in it.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | (1 << capability as u8))
    }

    /// The set without `capability`.
    #[must_use]
    pub const fn without(self, capability: Capability) -> Self {
        Self(self.0 & !(1 << capability as u8))
    }

    /// The capabilities in the set, in the order of the contract.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL
            .into_iter()
            .filter(move |c| self.contains(*c))
    }
}

/// The capabilities that a module may import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Grant {
    /// Those that its own description asks for.
    Described,
    /// These.
    Only(Capabilities),
}

impl Grant {
    /// What is linked before the module has described itself. It has no engine then, so its imports
    /// have no effect.
    pub(crate) const fn before_description(self, imported: Capabilities) -> Capabilities {
        match self {
            Self::Only(granted) => granted,
            Self::Described => imported,
        }
    }
}

impl From<Capabilities> for Grant {
    fn from(capabilities: Capabilities) -> Self {
        Self::Only(capabilities)
    }
}

impl std::fmt::Display for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::NONE {
            return f.write_str("nothing");
        }
        let names: Vec<_> = self.iter().map(Capability::name).collect();
        f.write_str(&names.join(", "))
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(items: I) -> Self {
        items.into_iter().fold(Self::NONE, Self::with)
    }
}
