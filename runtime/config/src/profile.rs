//! Profiles: the addresses, names, chain ids and limits of a venue, one file each in `profiles/`.
//!
//! A profile has the keys of `[venue]`. Its values are added to the configuration's tree for each
//! key that the configuration does not set, so a configuration overrides a profile key by key.

use super::choice::choice;
use super::error::ConfigError;
use super::tree::{self, Entry, Node, Value};

choice! {
    /// A venue whose data is built in.
    Profile {
        /// The interface that the simulated venue serves. No addresses.
        #[default]
        Simulated,
        /// The exchange Aster, production.
        Aster,
        /// The test environment of the exchange Aster.
        AsterTestnet,
    }
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Simulated, Self::Aster, Self::AsterTestnet];

    /// The name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Aster => "aster",
            Self::AsterTestnet => "aster-testnet",
        }
    }

    /// Whether the profile describes a venue on the internet. Nothing in such a profile was tried
    /// there.
    pub const fn is_public(self) -> bool {
        !matches!(self, Self::Simulated)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Simulated => include_str!("../profiles/simulated.toml"),
            Self::Aster => include_str!("../profiles/aster.toml"),
            Self::AsterTestnet => include_str!("../profiles/aster-testnet.toml"),
        }
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Adds the values of the profile that `venue.profile` names. An unknown name is left to the typed
/// reading, which lists the known ones.
pub(super) fn fill(root: &mut Node) -> Result<(), ConfigError> {
    let chosen = match root.get("venue").and_then(|venue| venue.get("profile")) {
        None => Some(Profile::default()),
        Some(node) => named(node),
    };
    let Some(profile) = chosen else {
        return Ok(());
    };
    let mut values = tree::parse(profile.text(), &format!("profile {profile}"))?;
    for surface in ["spot", "futures"] {
        let given = root.get("venue").and_then(|venue| venue.get(surface));
        // Streams of an own address must not be split over two venues.
        if given.is_some_and(|given| given.get("ws").is_some())
            && let Some(Value::Table(entries)) = values.get_mut(surface).map(|node| &mut node.value)
        {
            entries.retain(|entry| entry.key != "user_ws");
        }
    }
    let place = values.place.clone();
    let venue = Entry {
        key: "venue".to_owned(),
        place: place.clone(),
        node: values,
    };
    let section = Node {
        value: Value::Table(vec![venue]),
        place,
    };
    add(root, section);
    Ok(())
}

fn named(node: &Node) -> Option<Profile> {
    let Value::Text(text) = &node.value else {
        return None;
    };
    let mut all = Profile::ALL.into_iter();
    all.find(|profile| profile.as_str() == text)
}

/// Adds the keys that `to` lacks.
fn add(to: &mut Node, from: Node) {
    let (Value::Table(entries), Value::Table(more)) = (&mut to.value, from.value) else {
        return;
    };
    for entry in more {
        match entries.iter_mut().find(|own| own.key == entry.key) {
            Some(own) => add(&mut own.node, entry.node),
            None => entries.push(entry),
        }
    }
}
