//! Wraps a core module into a component of the contract's world.

use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding};

use crate::contract::Contract;
use crate::error::LoadError;
use crate::inspect::core_contract;

/// Wraps a core module with canonical export names into a component.
///
/// A module built with `wit-bindgen` names its world in a custom section. A module without that
/// section is treated as a strategy of the contract that it imports. The same module always gives
/// the same bytes.
pub fn wrap(core: &[u8]) -> Result<Vec<u8>, LoadError> {
    let failed = |reason: String| LoadError::Wrap(reason);
    let mut module = core.to_vec();
    if !names_its_world(core) {
        let contract = Contract::of(core_contract(core)?);
        wit_component::embed_component_metadata(
            &mut module,
            &contract.resolve,
            contract.world,
            StringEncoding::UTF8,
        )
        .map_err(|e| failed(format!("{e:#}")))?;
    }
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|e| failed(format!("{e:#}")))
}

fn names_its_world(core: &[u8]) -> bool {
    Parser::new(0).parse_all(core).any(|payload| {
        matches!(payload, Ok(Payload::CustomSection(section))
            if section.name().starts_with("component-type"))
    })
}
