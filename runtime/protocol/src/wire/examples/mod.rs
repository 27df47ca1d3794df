//! One request and one response of every route, with every field that the documents list. They
//! serve tests and fuzzing, and show the bytes on the wire. All values are made up.

mod chain;
mod futures;
mod futures_market;
mod spot;

use super::{Parameters, Request};

/// A request with its parameters, and a response to it.
#[derive(Clone, Debug)]
pub struct Example {
    /// The route's name in the table.
    pub route: &'static str,
    /// Business parameters.
    pub parameters: Parameters,
    /// Body of a successful response.
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

    /// Whether it is an order with a builder code, which has its own response record.
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
