//! A macro for records of stream payloads: short keys on the wire, full names in the code. It only
//! reads.

use serde::Deserialize;

/// Declares records with short keys: name, type, key. An `Option` may be absent or `null`; unknown
/// keys are ignored.
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

/// Reads a list; `null` counts as an empty list.
pub(crate) fn list<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
