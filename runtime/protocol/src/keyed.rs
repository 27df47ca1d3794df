//! Records of stream payloads: short keys on the wire, names in the code. Reading only.

use serde::Deserialize;

/// Records of short keys: name, type, key. An `Option` may be absent or `null`; unknown keys are
/// left out.
macro_rules! keyed {
    ($($(#[$meta:meta])* $name:ident {
        $($(#[$note:meta])* $field:ident: $ty:ty = $key:literal,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
        pub struct $name {$(
            #[doc = concat!("`", $key, "`.")]
            $(#[$note])*
            #[serde(rename = $key)]
            pub $field: $ty,
        )*}
    )*};
}
pub(crate) use keyed;

/// A list that may be `null`, which is an empty one.
pub(crate) fn list<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
