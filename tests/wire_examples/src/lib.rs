//! One request and one response of every route, with every field that the documents list. They show
//! the bytes on the wire. All values are made up.
//!
//! The tests of `protocol` and `sim-server`, and the generator of seeds for fuzzing, use it. No
//! crate of the product may depend on it, and it must not contain code that checks or decodes.

#![forbid(unsafe_code)]

mod chain;
mod example;
mod futures;
mod futures_market;
mod spot;

pub use example::Example;

/// Examples of every route, at least one each.
pub fn all() -> Vec<Example> {
    let mut examples = spot::examples();
    examples.extend(futures::examples());
    examples.extend(futures_market::examples());
    examples.extend(chain::examples());
    examples
}
