//! The table of asset names: an [`AssetId`] is an index into it.

use windvane_model::AssetId;

/// Asset names in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assets {
    names: Vec<String>,
}

impl Assets {
    /// The id of `name`; a new name is added to the table. Assets beyond 65,535 share the last id.
    /// No venue lists nearly as many.
    pub fn id(&mut self, name: &str) -> AssetId {
        let known = self.names.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        AssetId(u16::try_from(at).unwrap_or(u16::MAX))
    }

    /// The name of an asset; empty if the id is not in this table.
    pub fn name(&self, id: AssetId) -> &str {
        self.names.get(usize::from(id.0)).map_or("", String::as_str)
    }

    /// All names, in the order of their ids.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}
