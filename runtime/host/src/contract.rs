//! The contract as the host checks modules against it: read from `sdk/wit/strategy.wit` itself,
//! so that there is no second list of functions and signatures.

use std::sync::LazyLock;

use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Function, Resolve, Type, TypeDefKind, WorldId, WorldItem};

use crate::capability::Capability;

const TEXT: &str = include_str!("../../../sdk/wit/0.1/strategy.wit");

/// Package of every interface that a strategy may import.
pub(crate) const PACKAGE: &str = "windvane:strategy/";

static CONTRACT: LazyLock<Contract> = LazyLock::new(Contract::parse);

/// The parsed world with a signature for each function.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) resolve: Resolve,
    pub(crate) world: WorldId,
    pub(crate) imports: Vec<Import>,
    pub(crate) exports: Vec<Export>,
}

/// A function that a strategy may import.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) capability: Capability,
    /// `windvane:strategy/orders@0.1.0`.
    pub(crate) interface: String,
    pub(crate) name: String,
    /// In the component model's words.
    pub(crate) signature: String,
    /// In the words of a core module, by the canonical ABI.
    pub(crate) core_signature: String,
}

/// A function that a strategy must export.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) core_signature: String,
}

impl Contract {
    pub(crate) fn get() -> &'static Self {
        &CONTRACT
    }

    pub(crate) fn import(&self, interface: &str, name: &str) -> Option<&Import> {
        self.imports
            .iter()
            .find(|import| import.interface == interface && import.name == name)
    }

    pub(crate) fn knows_interface(&self, interface: &str) -> bool {
        self.imports
            .iter()
            .any(|import| import.interface == interface)
    }

    #[expect(
        clippy::expect_used,
        reason = "the text is part of this binary and a unit test parses it"
    )]
    fn parse() -> Self {
        let mut resolve = Resolve::default();
        let package = resolve
            .push_source("strategy.wit", TEXT)
            .expect("sdk/wit/strategy.wit parses");
        let world = resolve
            .select_world(&[package], Some("strategy"))
            .expect("sdk/wit/strategy.wit has a world `strategy`");
        let mut imports = Vec::new();
        for (key, item) in &resolve.worlds[world].imports {
            let WorldItem::Interface { id, .. } = item else {
                continue;
            };
            let interface = resolve.name_world_key(key);
            let plain = resolve.interfaces[*id].name.as_deref().unwrap_or_default();
            let capability = Capability::from_name(plain).expect("every interface is a capability");
            for function in resolve.interfaces[*id].functions.values() {
                imports.push(Import {
                    capability,
                    interface: interface.clone(),
                    name: function.name.clone(),
                    signature: signature(&resolve, function),
                    core_signature: core_signature(&resolve, AbiVariant::GuestImport, function),
                });
            }
        }
        let mut exports = Vec::new();
        for item in resolve.worlds[world].exports.values() {
            if let WorldItem::Function(function) = item {
                exports.push(Export {
                    name: function.name.clone(),
                    signature: signature(&resolve, function),
                    core_signature: core_signature(&resolve, AbiVariant::GuestExport, function),
                });
            }
        }
        Self {
            resolve,
            world,
            imports,
            exports,
        }
    }
}

/// `(s64, list<u8>) -> s64`: what two functions must share to be called in each other's place.
pub(crate) fn signature(resolve: &Resolve, function: &Function) -> String {
    let params: Vec<String> = function
        .params
        .iter()
        .map(|param| type_name(resolve, &param.ty))
        .collect();
    let result = function
        .result
        .map(|ty| format!(" -> {}", type_name(resolve, &ty)))
        .unwrap_or_default();
    format!("({}){result}", params.join(", "))
}

/// Names the types that the contract uses; any other is shown as what it is not.
fn type_name(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Id(id) => match &resolve.types[*id].kind {
            TypeDefKind::List(item) => format!("list<{}>", type_name(resolve, item)),
            TypeDefKind::Type(alias) => type_name(resolve, alias),
            other => other.as_str().to_owned(),
        },
        plain => format!("{plain:?}").to_lowercase(),
    }
}

fn core_signature(resolve: &Resolve, variant: AbiVariant, function: &Function) -> String {
    let signature = resolve.wasm_signature(variant, function);
    let names = |types: &[WasmType]| -> Vec<&'static str> {
        types.iter().map(|ty| core_type_name(*ty)).collect()
    };
    core_signature_text(&names(&signature.params), &names(&signature.results))
}

/// `(i32, i64) -> (i64)`.
pub(crate) fn core_signature_text(params: &[&str], results: &[&str]) -> String {
    format!("({}) -> ({})", params.join(", "), results.join(", "))
}

const fn core_type_name(ty: WasmType) -> &'static str {
    match ty {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_has_every_capability_and_the_hot_functions_are_integers_only() {
        let contract = Contract::get();
        for capability in Capability::ALL {
            assert!(contract.imports.iter().any(|i| i.capability == capability));
        }
        let submit = contract
            .import("windvane:strategy/orders@0.1.0", "submit")
            .unwrap();
        assert_eq!(
            submit.core_signature,
            "(i32, i32, i64, i64, i64, i64, i32, i64) -> (i64)"
        );
        let on_event = contract
            .exports
            .iter()
            .find(|e| e.name == "on-event")
            .unwrap();
        assert_eq!(
            on_event.core_signature,
            "(i64, i64, i32, i32, i32, i64, i64, i64, i64, i64, i64, i64) -> ()"
        );
        let init = contract.exports.iter().find(|e| e.name == "init").unwrap();
        assert_eq!(init.signature, "(list<u8>, list<u8>) -> list<u8>");
        assert_eq!(init.core_signature, "(i32, i32, i32, i32) -> (i32)");
    }
}
