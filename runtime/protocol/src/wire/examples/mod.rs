//! One request and one answer of every route, with every field that the documents list: for
//! tests, for fuzzing, and to see what goes over the wire. The figures are made up.

mod chain;
mod futures;
mod futures_market;
mod spot;

use super::{Parameters, Request};

/// A request with what it sends, and an answer to it.
#[derive(Clone, Debug)]
pub struct Example {
    /// The route's name in the table.
    pub route: &'static str,
    /// Business parameters.
    pub parameters: Parameters,
    /// Body of a successful answer.
    pub answer: &'static str,
}

impl Example {
    fn of<R: Request>(request: &R, answer: &'static str) -> Self {
        Self {
            route: R::ROUTE,
            parameters: request.parameters(),
            answer,
        }
    }

    /// Is it an order with a builder code, which has an answer of its own?
    pub fn is_builder_order(&self) -> bool {
        self.parameters.get("builder").is_some() && self.parameters.get("feeRate").is_some()
    }
}

/// Examples of every route, at least one each.
pub fn all() -> Vec<Example> {
    let mut examples = spot::examples();
    examples.extend(futures::examples());
    examples.extend(futures_market::examples());
    examples.extend(chain::examples());
    examples
}
