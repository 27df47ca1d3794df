//! User and market streams as event iterators.

mod settings;

pub use settings::StreamSettings;
