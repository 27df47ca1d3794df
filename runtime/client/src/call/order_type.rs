//! The parameters that the type of an order requires.

use windvane_protocol::route::{self, Surface};

use super::error::CallError;

/// Checks that an order has the mandatory parameters of its type.
pub(super) fn check_type<'a>(
    order: &str,
    surface: Surface,
    get: impl Fn(&str) -> Option<&'a str>,
) -> Result<(), CallError> {
    let order_type = get("type").unwrap_or_default();
    for names in route::mandatory(surface, order_type) {
        if !names.iter().any(|name| get(name).is_some()) {
            return Err(CallError::MissingOfType {
                order: order.to_owned(),
                order_type: order_type.to_owned(),
                names: names.join(" or "),
            });
        }
    }
    Ok(())
}
