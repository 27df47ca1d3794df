//! Macros that declare requests and records: one line per field with its Rust name, its type and
//! its name on the wire. `?:` marks an optional field. Nothing here is specific to one route.

/// Declares a request of a route: documentation, name, route and response, then its parameters in
/// the documents' order. Required parameters are arguments of `new`; each optional one has a
/// setter.
macro_rules! request {
    ($(#[$meta:meta])* $name:ident = $route:literal -> $answer:ty { $($fields:tt)* }) => {
        $crate::wire::fields::parameters! {
            $(#[$meta])*
            #[doc = ""]
            #[doc = concat!("Route `", $route, "`.")]
            $name { $($fields)* }
        }

        impl $crate::wire::Request for $name {
            const ROUTE: &'static str = $route;
            const NAMES: &'static [&'static str] = $name::NAMES;
            type Answer = $answer;

            fn parameters(&self) -> $crate::wire::Parameters {
                $name::parameters(self)
            }
        }
    };
}

/// Declares a set of parameters: of a request, or of one order of a batch.
macro_rules! parameters {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$note:meta])* $field:ident $(?: $opt:ty)? $(: $ty:ty)? = $wire:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {$(
            #[doc = concat!("`", $wire, "`.")]
            $(#[$note])*
            $(pub $field: $ty,)?
            $(pub $field: Option<$opt>,)?
        )*}

        impl $name {
            /// Names on the wire, in the documents' order.
            pub const NAMES: &'static [&'static str] = &[$($wire),*];

            /// Creates the set with the required parameters only.
            #[allow(clippy::new_without_default, reason = "only some of them need nothing")]
            pub fn new($($($field: impl Into<$ty>,)?)*) -> Self {
                Self {$(
                    $($field: Into::<$ty>::into($field),)?
                    $($field: None::<$opt>,)?
                )*}
            }

            $($(
                #[doc = concat!("Sends `", $wire, "`.")]
                #[must_use]
                pub fn $field(mut self, value: impl Into<$opt>) -> Self {
                    self.$field = Some(value.into());
                    self
                }
            )?)*

            /// The parameters to send, in the documents' order.
            #[allow(unused_mut, reason = "some have no parameters")]
            pub fn parameters(&self) -> $crate::wire::Parameters {
                let mut sent = $crate::wire::Parameters::with_capacity(Self::NAMES.len());
                $(
                    $(sent.push_known($wire, <$ty as ToString>::to_string(&self.$field));)?
                    $(if let Some(value) = &self.$field {
                        sent.push_known($wire, <$opt as ToString>::to_string(value));
                    })?
                )*
                sent
            }
        }
    };
}

/// Declares a record of a response. The parser ignores fields that the record does not have.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$note:meta])* $field:ident $(?: $opt:ty)? $(: $ty:ty)? = $wire:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
        pub struct $name {$(
            #[doc = concat!("`", $wire, "`.")]
            $(#[$note])*
            $(
                #[serde(rename = $wire)]
                pub $field: $ty,
            )?
            $(
                #[serde(rename = $wire, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$opt>,
            )?
        )*}
    };
}

pub(crate) use {parameters, record, request};
