//! One row of the table of error codes, and how rows are declared.

/// The meaning of a failure for the sender of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The request was refused and changed nothing; a different request may pass.
    Definite,
    /// The request may or may not have been carried out. Query its state; never send it again
    /// blindly.
    Unknown,
    /// The request was refused because of a limit: send nothing until the limit is over.
    Wait,
    /// The request was refused. Every request of this kind is refused until a person changes keys,
    /// permissions or configuration.
    Fatal,
}

impl Class {
    /// The name in logs and in the output of the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Definite => "definite",
            Self::Unknown => "unknown",
            Self::Wait => "wait",
            Self::Fatal => "fatal",
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// The code, negative.
    pub code: i64,
    /// The name as the documents spell it, their typing errors included.
    pub name: &'static str,
    /// The meaning that the documents give.
    pub meaning: &'static str,
    /// The meaning for the sender of the request.
    pub class: Class,
    /// The next step for a person.
    pub advice: &'static str,
}

/// Declares rows `code NAME Class: meaning; advice`: each as a constant of its name, and all of
/// them in `TABLE`.
macro_rules! codes {
    ($($code:literal $name:ident $class:ident: $meaning:literal; $advice:literal)*) => {
        use super::row::{Class, ErrorCode};

        $(
            #[doc = concat!("`", stringify!($code), "`: ", $meaning, ".")]
            pub const $name: ErrorCode = ErrorCode {
                code: $code,
                name: stringify!($name),
                meaning: $meaning,
                class: Class::$class,
                advice: $advice,
            };
        )*

        pub(super) const TABLE: &[ErrorCode] = &[$($name),*];
    };
}

pub(super) use codes;
