//! The server's behaviour at the points that the documents leave open. The table of the points is
//! [`windvane_sim::choices`].

mod events;
pub(crate) mod figures;
mod shape;

pub use windvane_sim::choices::*;

pub(crate) use events::{Arranged, arrange, is_forced};
pub(crate) use shape::{Subject, shape};
