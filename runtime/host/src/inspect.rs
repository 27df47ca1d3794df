//! Checks a module against the contract without running it, and finds the core module in a
//! component that only wraps one.
//!
//! A component that `wit-component` makes from a Rust module contains that module unchanged, and
//! two tiny modules that fill a table with the lowered imports. A direct call of the module has the
//! same effect and takes a sixth of the time. A component that does not look exactly like this is
//! called as a component.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef, ValType, Validator, WasmFeatures};
use wit_component::DecodedWasm;
use wit_parser::{WorldItem, WorldKey};

use crate::capability::Capabilities;
use crate::contract::{self, Contract, ContractVersion};
use crate::error::LoadError;

/// The kind of a strategy's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// A core module with the canonical export names.
    Core,
    /// A component.
    Component,
}

/// Properties of a module that are known without running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleInfo {
    /// Core module or component.
    pub format: Format,
    /// The version of the contract for which it was built.
    pub contract: ContractVersion,
    /// The capabilities that it imports.
    pub capabilities: Capabilities,
    /// Whether the direct path can call it.
    pub direct: bool,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Size of the file, in bytes.
    pub size: usize,
}

/// Checks imports, exports and signatures against the contract, without making an instance.
pub fn validate(bytes: &[u8]) -> Result<ModuleInfo, LoadError> {
    inspect(bytes).map(|inspected| inspected.info)
}

/// A module, and the core module in it that the direct path may call.
pub(crate) struct Inspected<'a> {
    pub(crate) info: ModuleInfo,
    pub(crate) core: Option<&'a [u8]>,
}

pub(crate) fn inspect(bytes: &[u8]) -> Result<Inspected<'_>, LoadError> {
    if !bytes.starts_with(b"\0asm") {
        return Err(invalid(&"the file does not begin with `\\0asm`"));
    }
    Validator::new_with_features(features())
        .validate_all(bytes)
        .map_err(|e| invalid(&e))?;
    let (format, (contract, capabilities), core) = if Parser::is_component(bytes) {
        let (contract, capabilities) = check_component(bytes)?;
        // A core module without the names of the direct path is not an error here.
        let keeps_naming = |core: &&[u8]| check_core(core).is_ok_and(|(of, _)| of == contract);
        let core = wrapped_core(bytes).filter(keeps_naming);
        (Format::Component, (contract, capabilities), core)
    } else {
        (Format::Core, check_core(bytes)?, Some(bytes))
    };
    let info = ModuleInfo {
        format,
        contract,
        capabilities,
        direct: core.is_some(),
        sha256: Sha256::digest(bytes).into(),
        size: bytes.len(),
    };
    Ok(Inspected { info, core })
}

/// The proposals that are on: deterministic ones that need no garbage collector. The configuration
/// in `config.rs` must agree with this.
fn features() -> WasmFeatures {
    WasmFeatures::WASM2
        .difference(WasmFeatures::GC_TYPES)
        .union(WasmFeatures::EXTENDED_CONST)
        .union(WasmFeatures::TAIL_CALL)
        .union(WasmFeatures::MULTI_MEMORY)
        .union(WasmFeatures::COMPONENT_MODEL)
}

/// Puts the validator's reason on one line. Some of its messages show bytes on many lines.
fn invalid(reason: &dyn Display) -> LoadError {
    let reason = reason.to_string();
    LoadError::Invalid(reason.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The contract version of a core module, and the capabilities that it imports.
type Checked = Result<(ContractVersion, Capabilities), LoadError>;

/// The version of the contract for which a core module was built.
pub(crate) fn core_contract(bytes: &[u8]) -> Result<ContractVersion, LoadError> {
    Outline::of(bytes).map(|outline| outline.contract())
}

/// Checks the world of a component, from its types, against the contract.
fn check_component(bytes: &[u8]) -> Checked {
    let decoded = wit_component::decode(bytes).map_err(|e| invalid(&format!("{e:#}")))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(invalid(&"a WIT package, not a component"));
    };
    let world = &resolve.worlds[world];
    let imports: Vec<_> = world.imports.keys().collect();
    let imports: Vec<_> = imports
        .iter()
        .map(|key| resolve.name_world_key(key))
        .collect();
    let exports = |name: &str| world.exports.contains_key(&WorldKey::Name(name.to_owned()));
    let version = ContractVersion::of(imports.iter().map(String::as_str), exports);
    let contract = Contract::of(version);
    let mut capabilities = Capabilities::NONE;
    for (key, item) in &world.imports {
        let interface = resolve.name_world_key(key);
        let WorldItem::Interface { id, .. } = item else {
            return Err(LoadError::ForeignImport { name: interface });
        };
        refuse_unknown(contract, &interface)?;
        for function in resolve.interfaces[*id].functions.values() {
            let found = contract::signature(&resolve, function);
            let import = known_import(contract, &interface, &function.name)?;
            expect_signature(&function.name, found, &import.signature)?;
            capabilities = import
                .capability
                .map_or(capabilities, |one| capabilities.with(one));
        }
    }
    for export in &contract.exports {
        let key = WorldKey::Name(export.name.clone());
        let Some(WorldItem::Function(function)) = world.exports.get(&key) else {
            return Err(LoadError::MissingExport {
                name: export.name.clone(),
            });
        };
        let found = contract::signature(&resolve, function);
        expect_signature(&export.name, found, &export.signature)?;
    }
    Ok((version, capabilities))
}

/// Checks imports and exports of a core module, by their canonical names, against the contract.
fn check_core(bytes: &[u8]) -> Checked {
    let outline = Outline::of(bytes)?;
    let version = outline.contract();
    let contract = Contract::of(version);
    let mut capabilities = Capabilities::NONE;
    for (module, name, ty) in &outline.imports {
        refuse_unknown(contract, module).map_err(|error| match error {
            LoadError::ForeignImport { .. } => LoadError::ForeignImport {
                name: format!("{module}.{name}"),
            },
            other => other,
        })?;
        let import = known_import(contract, module, name)?;
        expect_signature(name, ty.clone(), &import.core_signature)?;
        capabilities = import
            .capability
            .map_or(capabilities, |one| capabilities.with(one));
    }
    for export in &contract.exports {
        outline.expect_export(&export.name, &export.core_signature)?;
        let post_return = format!("cabi_post_{}", export.name);
        if outline.export(&post_return).is_some() {
            outline.expect_export(&post_return, "(i32) -> ()")?;
        }
    }
    outline.expect_export("cabi_realloc", "(i32, i32, i32, i32) -> (i32)")?;
    outline.expect_export("memory", "memory")?;
    if outline.export("_initialize").is_some() {
        outline.expect_export("_initialize", "() -> ()")?;
    }
    Ok((version, capabilities))
}

fn refuse_unknown(contract: &Contract, interface: &str) -> Result<(), LoadError> {
    let name = interface.to_owned();
    if contract.knows_interface(interface) {
        Ok(())
    } else if interface.starts_with(contract::PACKAGE) {
        Err(LoadError::UnknownInterface { name })
    } else {
        Err(LoadError::ForeignImport { name })
    }
}

fn known_import<'a>(
    contract: &'a Contract,
    interface: &str,
    name: &str,
) -> Result<&'a contract::Import, LoadError> {
    contract
        .import(interface, name)
        .ok_or_else(|| LoadError::UnknownInterface {
            name: format!("{interface}.{name}"),
        })
}

fn expect_signature(name: &str, found: String, expected: &str) -> Result<(), LoadError> {
    if found == expected {
        return Ok(());
    }
    Err(LoadError::Signature {
        name: name.to_owned(),
        found,
        expected: expected.to_owned(),
    })
}

/// Imports and exports of a core module, with their types as text.
#[derive(Default)]
struct Outline {
    imports: Vec<(String, String, String)>,
    exports: Vec<(String, String)>,
    memories: usize,
}

impl Outline {
    fn of(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::read(bytes).map_err(|e| invalid(&e))
    }

    fn read(bytes: &[u8]) -> wasmparser::Result<Self> {
        let types = Validator::new_with_features(features()).validate_all(bytes)?;
        let types = types.as_ref();
        let mut outline = Self::default();
        let mut functions = 0;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        let ty = if matches!(import.ty, TypeRef::Func(_)) {
                            functions += 1;
                            function_text(types, functions - 1)
                        } else {
                            "not a function".to_owned()
                        };
                        let entry = (import.module.to_owned(), import.name.to_owned(), ty);
                        outline.imports.push(entry);
                    }
                }
                Payload::MemorySection(section) => outline.memories += section.count() as usize,
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        let ty = match export.kind {
                            ExternalKind::Func => function_text(types, export.index),
                            ExternalKind::Memory => "memory".to_owned(),
                            _ => "not a function".to_owned(),
                        };
                        outline.exports.push((export.name.to_owned(), ty));
                    }
                }
                _ => {}
            }
        }
        Ok(outline)
    }

    fn contract(&self) -> ContractVersion {
        let imports = self.imports.iter().map(|(module, _, _)| module.as_str());
        ContractVersion::of(imports, |name| self.export(name).is_some())
    }

    fn export(&self, name: &str) -> Option<&str> {
        self.exports
            .iter()
            .find(|(export, _)| export == name)
            .map(|(_, ty)| ty.as_str())
    }

    fn expect_export(&self, name: &str, expected: &str) -> Result<(), LoadError> {
        match self.export(name) {
            Some(found) => expect_signature(name, found.to_owned(), expected),
            None => Err(LoadError::MissingExport {
                name: name.to_owned(),
            }),
        }
    }
}

fn function_text(types: wasmparser::types::TypesRef<'_>, index: u32) -> String {
    let function = types[types.core_function_at(index)].unwrap_func();
    let names = |types: &[ValType]| -> Vec<&'static str> {
        types.iter().map(|ty| value_type_name(*ty)).collect()
    };
    contract::core_signature_text(&names(function.params()), &names(function.results()))
}

const fn value_type_name(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "f32",
        ValType::F64 => "f64",
        ValType::V128 => "v128",
        ValType::Ref(_) => "ref",
    }
}

/// The only module with `on-event` in a component. The component may otherwise contain only
/// `wit-component`'s shim and fixup modules: modules without a memory that import only from the
/// module with the empty name.
fn wrapped_core(bytes: &[u8]) -> Option<&[u8]> {
    let mut main = None;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::ComponentSection { .. } => return None,
            Payload::ModuleSection {
                unchecked_range, ..
            } => {
                let module = bytes.get(unchecked_range)?;
                let outline = Outline::read(module).ok()?;
                if outline.export("on-event").is_some() {
                    if main.replace(module).is_some() {
                        return None;
                    }
                } else if !outline.is_shim() {
                    return None;
                }
            }
            _ => {}
        }
    }
    main
}

impl Outline {
    fn is_shim(&self) -> bool {
        self.memories == 0 && self.imports.iter().all(|(module, _, _)| module.is_empty())
    }
}
