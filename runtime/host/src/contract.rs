//! The versions of the contract against which the host checks modules. They are parsed from the
//! texts in `sdk/wit`, so that the functions and signatures are listed only once.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Function, Resolve, Type, TypeDefKind, WorldId, WorldItem};

use crate::capability::Capability;

/// Package of all interfaces that a strategy may import.
pub(crate) const PACKAGE: &str = "windvane:strategy/";

/// Interfaces that every strategy has without a grant.
const ALWAYS: [&str; 1] = ["fault"];

static CONTRACTS: LazyLock<[Contract; 2]> =
    LazyLock::new(|| ContractVersion::ALL.map(Contract::parse));

/// A version of the strategy contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ContractVersion {
    /// Version 0.1, for the replay of journals whose modules were built for it.
    V0_1,
    /// Version 0.2, the present one.
    V0_2,
}

impl ContractVersion {
    /// Every version, oldest first.
    pub const ALL: [Self; 2] = [Self::V0_1, Self::V0_2];
    /// The version of modules that may trade.
    pub const PRESENT: Self = Self::V0_2;

    /// The version number without the patch level.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
            Self::V0_2 => "0.2",
        }
    }

    /// The export that is called before any event.
    pub(crate) const fn start(self) -> &'static str {
        match self {
            Self::V0_1 => "init",
            Self::V0_2 => "start",
        }
    }

    /// The text of the contract.
    const fn text(self) -> &'static str {
        match self {
            Self::V0_1 => include_str!("../../../sdk/wit/0.1/strategy.wit"),
            Self::V0_2 => include_str!("../../../sdk/wit/strategy.wit"),
        }
    }

    /// The version of a module, from its imports. If it imports nothing from our package, its
    /// exports decide.
    pub(crate) fn of<'a>(
        mut imports: impl Iterator<Item = &'a str>,
        exports: impl Fn(&str) -> bool,
    ) -> Self {
        let known = |interface: &str| {
            let mut all = Self::ALL.into_iter();
            all.find(|version| Contract::of(*version).knows_interface(interface))
        };
        if let Some(version) = imports.find_map(known) {
            return version;
        }
        let is_old = exports(Self::V0_1.start()) && !exports(Self::V0_2.start());
        if is_old { Self::V0_1 } else { Self::PRESENT }
    }
}

impl std::fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parsed world, with a signature for each function.
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
    /// The capability that must be granted; `None` if every strategy may import the function.
    pub(crate) capability: Option<Capability>,
    /// For example `windvane:strategy/orders@0.2.0`.
    pub(crate) interface: String,
    pub(crate) name: String,
    /// Signature in the component model.
    pub(crate) signature: String,
    /// Signature in a core module, by the canonical ABI.
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
    pub(crate) fn of(version: ContractVersion) -> &'static Self {
        match version {
            ContractVersion::V0_1 => &CONTRACTS[0],
            ContractVersion::V0_2 => &CONTRACTS[1],
        }
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
        reason = "the texts are part of this binary and a unit test parses them"
    )]
    fn parse(version: ContractVersion) -> Self {
        let mut resolve = Resolve::default();
        let package = resolve
            .push_source("strategy.wit", version.text())
            .expect("the contract parses");
        let world = resolve
            .select_world(&[package], Some("strategy"))
            .expect("the contract has a world `strategy`");
        let mut imports = Vec::new();
        for (key, item) in &resolve.worlds[world].imports {
            let WorldItem::Interface { id, .. } = item else {
                continue;
            };
            let interface = resolve.name_world_key(key);
            let plain = resolve.interfaces[*id].name.as_deref().unwrap_or_default();
            let capability = Capability::from_name(plain);
            assert!(
                capability.is_some() || ALWAYS.contains(&plain),
                "every interface must be a capability or always linked"
            );
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

/// The signature as text, for example `(s64, list<u8>) -> s64`. Functions with equal signatures can
/// replace each other.
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

/// Names the types that the contract uses. Any other type is shown by its kind.
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

/// The signature as text, for example `(i32, i64) -> (i64)`.
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

    fn imports(version: ContractVersion, interface: &str, name: &str) -> String {
        let interface = format!("{PACKAGE}{interface}@{version}.0");
        let import = Contract::of(version).import(&interface, name);
        import.unwrap().core_signature.clone()
    }

    fn exports(version: ContractVersion, name: &str) -> (String, String) {
        let mut all = Contract::of(version).exports.iter();
        let export = all.find(|export| export.name == name).unwrap();
        (export.signature.clone(), export.core_signature.clone())
    }

    #[test]
    fn hot_functions_are_integers_only() {
        for version in ContractVersion::ALL {
            for capability in Capability::ALL {
                let mut imports = Contract::of(version).imports.iter();
                assert!(imports.any(|one| one.capability == Some(capability)));
            }
            let (signature, core) = exports(version, version.start());
            assert_eq!(signature, "(list<u8>, list<u8>) -> list<u8>");
            assert_eq!(core, "(i32, i32, i32, i32) -> (i32)");
            let hot = Contract::of(version).imports.iter();
            for one in hot.filter(|one| !["log", "plot", "report"].contains(&one.name.as_str())) {
                assert!(!one.signature.contains("list"), "{one:?}");
            }
        }
    }

    #[test]
    fn the_signatures_of_0_1_do_not_change() {
        let old = ContractVersion::V0_1;
        assert_eq!(
            imports(old, "orders", "submit"),
            "(i32, i32, i64, i64, i64, i64, i32, i64) -> (i64)"
        );
        assert_eq!(imports(old, "timers", "set"), "(i64, i64) -> (i64)");
        assert_eq!(
            exports(old, "on-event").1,
            "(i64, i64, i32, i32, i32, i64, i64, i64, i64, i64, i64, i64) -> ()"
        );
        assert_eq!(Contract::of(old).imports.len(), 15);
        assert!(!Contract::of(old).knows_interface("windvane:strategy/fault@0.1.0"));
    }

    #[test]
    fn the_signatures_of_0_2_do_not_change() {
        let new = ContractVersion::V0_2;
        assert_eq!(
            imports(new, "orders", "submit"),
            "(i32, i32, i64, i64, i64, i64, i32, i64, i64, i64) -> (i64)"
        );
        assert_eq!(
            imports(new, "orders", "amend"),
            "(i64, i64, i64, i64, i64) -> (i64)"
        );
        assert_eq!(
            imports(new, "orders", "begin-group"),
            "(i32, i32, i32) -> (i64)"
        );
        assert_eq!(
            imports(new, "orders", "cancel-group"),
            "(i64, i32) -> (i64)"
        );
        assert_eq!(
            imports(new, "market", "history"),
            "(i32, i64, i32) -> (i64)"
        );
        assert_eq!(imports(new, "timers", "set"), "(i64, i32, i64) -> (i64)");
        assert_eq!(imports(new, "fault", "report"), "(i32, i32) -> ()");
        // The canonical ABI passes at most 16 parameters as separate values.
        assert_eq!(
            exports(new, "on-event").1,
            "(i64, i32, i64, i32, i32, i32, i64, i64, i64, i64, i64, i64, i64) -> ()"
        );
        assert_eq!(Contract::of(new).imports.len(), 23);
    }

    #[test]
    fn imports_or_exports_decide_the_version() {
        use ContractVersion::{V0_1, V0_2};
        let of = |imports: &[&str], exports: &[&str]| {
            let exports = |name: &str| exports.contains(&name);
            ContractVersion::of(imports.iter().copied(), exports)
        };
        assert_eq!(of(&["windvane:strategy/log@0.1.0"], &["start"]), V0_1);
        assert_eq!(of(&["env", "windvane:strategy/log@0.2.0"], &["init"]), V0_2);
        assert_eq!(of(&[], &["init", "save"]), V0_1);
        assert_eq!(of(&[], &["init", "start"]), V0_2);
        assert_eq!(of(&[], &[]), V0_2);
    }
}
