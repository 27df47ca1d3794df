//! One example.

use windvane_protocol::wire::{Parameters, Request};

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
    pub(crate) fn of<R: Request>(request: &R, answer: &'static str) -> Self {
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
