//! Estimates the memory of the host that the instances of a module take besides their linear
//! memories. wasmtime's limits count instances, tables and memories. They do not count globals,
//! references to functions and elements, of which one module can have a million, and a component can
//! make many instances of one module.

use wasmparser::{ElementItems, Instance, Parser, Payload, TypeRef};

use crate::error::LoadError;
use crate::limits::Limits;

/// Bytes of the host for one imported or defined function: an import and a reference.
const FUNCTION: u64 = 64;
/// For one global, table, memory or other import.
const OTHER: u64 = 32;
/// For one element of a table segment.
const ELEMENT: u64 = 16;
/// For one instance without content.
const INSTANCE: u64 = 1 << 10;

/// Refuses a module whose instances need too much memory of the host.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    let bytes = estimate(bytes, limits.instances as u64)
        .map_err(|error| LoadError::Invalid(error.to_string()))?;
    if bytes > limits.instance_bytes as u64 {
        return Err(LoadError::Instances {
            bytes,
            limit: limits.instance_bytes,
        });
    }
    Ok(())
}

/// The estimate for a valid module or component.
fn estimate(bytes: &[u8], instances_max: u64) -> wasmparser::Result<u64> {
    if !Parser::is_component(bytes) {
        return module(bytes);
    }
    let mut modules = Vec::new();
    let mut instances = Vec::new();
    let mut is_nested = false;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ModuleSection {
                unchecked_range, ..
            } => modules.push(module(bytes.get(unchecked_range).unwrap_or_default())?),
            Payload::ComponentSection { .. } => is_nested = true,
            Payload::InstanceSection(section) => {
                for instance in section {
                    if let Instance::Instantiate { module_index, .. } = instance? {
                        instances.push(module_index as usize);
                    }
                }
            }
            _ => {}
        }
    }
    let largest = modules.iter().copied().max().unwrap_or_default();
    if is_nested {
        // An inner component can be instantiated often. Its modules have their own numbers.
        return Ok(largest.saturating_mul(instances_max));
    }
    let of = |index: &usize| modules.get(*index).copied().unwrap_or(largest);
    Ok(instances.iter().map(of).fold(0, u64::saturating_add))
}

/// The estimate for one instance of a core module.
fn module(bytes: &[u8]) -> wasmparser::Result<u64> {
    let mut total = INSTANCE;
    let mut add = |count: u64, each: u64| total = total.saturating_add(count.saturating_mul(each));
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let is_function = matches!(import?.ty, TypeRef::Func(_));
                    add(1, if is_function { FUNCTION } else { OTHER });
                }
            }
            Payload::FunctionSection(section) => add(section.count().into(), FUNCTION),
            Payload::GlobalSection(section) => add(section.count().into(), OTHER),
            Payload::TableSection(section) => add(section.count().into(), OTHER),
            Payload::MemorySection(section) => add(section.count().into(), OTHER),
            Payload::DataSection(section) => add(section.count().into(), OTHER),
            Payload::ElementSection(section) => {
                for element in section {
                    let items = match element?.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    };
                    add(items.into(), ELEMENT);
                }
            }
            _ => {}
        }
    }
    Ok(total)
}
