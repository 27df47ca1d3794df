//! EIP-712 typed data of the service: the v3 `Message`
//! (docs/interface/conventions.md#signing-with-a-wallet), the management routes
//! (docs/interface/conventions.md#signing-management-routes) and the withdrawal `Action`
//! (docs/interface/conventions.md#signing-withdrawals).

use alloy_dyn_abi::Eip712Domain;
use alloy_dyn_abi::eip712::{PropertyDef, Resolver, TypeDef};
use alloy_primitives::{Address, B256, U256, keccak256};
use serde_json::{Map, Value, json};

use crate::Brand;
use crate::brand::upper_first;
use crate::route::{Kind, Route};
use crate::sign::Network;

/// The version in every domain of the service.
const DOMAIN_VERSION: &str = "1";

/// Parameters of a management route that are sent but not signed
/// (docs/interface/conventions.md#signing-management-routes).
const UNSIGNED: [&str; 2] = ["signatureChainId", "signature"];

/// The domain of the v3 `Message`. It is hashed once, so that a message needs only three short
/// hashes.
#[derive(Clone, Debug)]
pub struct MessageDomain {
    domain: Eip712Domain,
    type_hash: B256,
    separator: B256,
}

impl MessageDomain {
    /// Name and chain from the brand, or chain 1666 or 714
    /// (docs/interface/conventions.md#signing-with-a-wallet).
    pub fn new(brand: &Brand, network: Network) -> Self {
        let domain = domain(&brand.signing_domain, brand.signing_chain(network));
        Self {
            type_hash: keccak256("Message(string msg)"),
            separator: domain.separator(),
            domain,
        }
    }

    /// The digest to sign for a message. The message is the query string or form body as sent,
    /// without `&signature=...`.
    pub fn digest(&self, msg: &[u8]) -> B256 {
        let mut data = [0; 64];
        data[..32].copy_from_slice(self.type_hash.as_slice());
        data[32..].copy_from_slice(keccak256(msg).as_slice());
        let mut envelope = [0; 66];
        envelope[..2].copy_from_slice(&[0x19, 0x01]);
        envelope[2..34].copy_from_slice(self.separator.as_slice());
        envelope[34..].copy_from_slice(keccak256(data).as_slice());
        keccak256(envelope)
    }

    /// The complete typed data in the form that wallets accept.
    pub fn json(&self, msg: &str) -> String {
        let fields = [Field::text("msg", msg)];
        typed_json(&self.domain, "Message", &fields).to_string()
    }
}

/// Typed data whose fields are known only when the request is built: its digest and its JSON form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedData {
    digest: B256,
    json: String,
}

/// The parameters cannot form typed data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypedError {
    /// A value does not fit its type.
    #[error("{name} = {value:?} is no {kind}; send {wanted}")]
    Value {
        /// Parameter.
        name: String,
        /// Its value.
        value: String,
        /// Type in the typed data.
        kind: &'static str,
        /// A value that would fit.
        wanted: &'static str,
    },
    /// The fields cannot form a struct type.
    #[error("{primary}: its fields make no typed data ({reason}); check the parameter names")]
    Type {
        /// Primary type.
        primary: String,
        /// Why.
        reason: String,
    },
}

/// One field: name and value in the typed data.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: &'static str,
    value: Value,
}

/// The fields of a withdrawal to an EVM chain. Amounts are the texts of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawal<'a> {
    /// Receiver's address.
    pub destination: &'a str,
    /// Short name of the chain ([`crate::sign::chain_name`]).
    pub chain: &'a str,
    /// Asset.
    pub token: &'a str,
    /// Amount.
    pub amount: &'a str,
    /// Fee.
    pub fee: &'a str,
    /// Microseconds.
    pub nonce: &'a str,
}

impl TypedData {
    /// The digest that the wallet signs.
    pub const fn digest(&self) -> B256 {
        self.digest
    }

    /// The complete typed data in the form that wallets accept.
    pub fn json(&self) -> &str {
        &self.json
    }

    fn new(domain: &Eip712Domain, primary: &str, fields: &[Field]) -> Result<Self, TypedError> {
        let json = typed_json(domain, primary, fields);
        let data = alloy_dyn_abi::TypedData {
            domain: domain.clone(),
            resolver: resolver(primary, fields)?,
            primary_type: primary.to_owned(),
            message: json["message"].clone(),
        };
        let digest = data.eip712_signing_hash();
        Ok(Self {
            digest: digest.map_err(|error| not_a_type(primary, &error))?,
            json: json.to_string(),
        })
    }
}

/// Typed data of a management route (docs/interface/conventions.md#signing-management-routes). It
/// has the sent business parameters in their order, then those of `<Brand>Chain`, `User` and
/// `Nonce` that were sent. Names start with an upper-case letter. `parameters` are decoded, and
/// their names may be in any case.
pub fn management<'a>(
    brand: &Brand,
    route: &Route,
    primary: &str,
    parameters: impl Iterator<Item = (&'a str, &'a str)>,
    signature_chain: u64,
) -> Result<TypedData, TypedError> {
    let fields = management_fields(brand, route, parameters)?;
    let domain = domain(&brand.signing_domain, signature_chain);
    TypedData::new(&domain, primary, &fields)
}

/// Like [`management`], with the business fields in the documents' order instead of the order sent.
/// Both orders are possible (docs/interface/conventions.md#signing-management-routes). Clients that
/// define the type once sign the order of the list.
pub fn management_as_listed<'a>(
    brand: &Brand,
    route: &Route,
    primary: &str,
    parameters: impl Iterator<Item = (&'a str, &'a str)>,
    signature_chain: u64,
) -> Result<TypedData, TypedError> {
    let mut fields = management_fields(brand, route, parameters)?;
    fields.sort_by_key(|field| sent_place(brand, route, &field.name));
    let domain = domain(&brand.signing_domain, signature_chain);
    TypedData::new(&domain, primary, &fields)
}

/// The position of a parameter of a management route. The order is: business parameters as the
/// documents list them, unlisted parameters, parameters whose fields end the type, and unsigned
/// parameters. The name may also be a field's name.
pub(super) fn sent_place(brand: &Brand, route: &Route, name: &str) -> (u8, usize) {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    let listed = route.params.iter().position(|param| same(param.name));
    let last = || trailing(brand).iter().position(|known| same(known));
    if UNSIGNED.iter().any(|known| same(known)) {
        (3, 0)
    } else if let Some(place) = last() {
        (2, place)
    } else {
        listed.map_or((1, 0), |place| (0, place))
    }
}

/// The parameters whose fields come last.
fn trailing(brand: &Brand) -> [&str; 3] {
    [&brand.chain_parameter, "user", "nonce"]
}

fn management_fields<'a>(
    brand: &Brand,
    route: &Route,
    parameters: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Field>, TypedError> {
    let last = trailing(brand);
    let mut fields = Vec::new();
    let mut at_end: [Option<Field>; 3] = [const { None }; 3];
    for (name, value) in parameters {
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        if UNSIGNED.iter().any(|unsigned| same(unsigned)) {
            continue;
        }
        if let Some(place) = last.iter().position(|known| same(known)) {
            let kind = if place == 2 { Kind::Long } else { Kind::String };
            at_end[place] = Some(Field::read(last[place], kind, value)?);
        } else {
            let known = route.params.iter().find(|param| same(param.name));
            let (name, kind) = known.map_or((name, Kind::String), |param| (param.name, param.kind));
            fields.push(Field::read(name, kind, value)?);
        }
    }
    fields.extend(at_end.into_iter().flatten());
    Ok(fields)
}

/// Typed data of a withdrawal: primary type `Action`
/// (docs/interface/conventions.md#signing-withdrawals), signed for this chain.
pub fn withdrawal_action(
    brand: &Brand,
    network: Network,
    signature_chain: u64,
    withdrawal: &Withdrawal<'_>,
) -> Result<TypedData, TypedError> {
    let destination: Address = withdrawal
        .destination
        .parse()
        .map_err(|_| TypedError::Value {
            name: "receiver".to_owned(),
            value: withdrawal.destination.to_owned(),
            kind: "address",
            wanted: "an EVM address, 0x and 40 hexadecimal digits",
        })?;
    let fields = [
        Field::text("type", "Withdraw"),
        Field {
            kind: "address",
            ..Field::text("destination", &destination.to_string())
        },
        Field::text("destination Chain", withdrawal.chain),
        Field::text("token", withdrawal.token),
        Field::text("amount", withdrawal.amount),
        Field::text("fee", withdrawal.fee),
        Field::uint("nonce", withdrawal.nonce)?,
        Field::text(&brand.withdrawal_field, network.label()),
    ];
    TypedData::new(
        &domain(&brand.withdrawal_domain, signature_chain),
        "Action",
        &fields,
    )
}

impl Field {
    fn text(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: "string",
            value: Value::from(value),
        }
    }

    /// A number: as a JSON number if it fits 64 bits, otherwise as text.
    fn uint(name: &str, value: &str) -> Result<Self, TypedError> {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || U256::from_str_radix(value, 10).is_err() {
            return Err(wrong(
                name,
                value,
                "uint256",
                "an integer that is not negative",
            ));
        }
        let number = value.parse::<u64>();
        Ok(Self {
            name: name.to_owned(),
            kind: "uint256",
            value: number.map_or_else(|_| Value::from(value), Value::from),
        })
    }

    /// A field of a management route: booleans become `bool`, integers `uint256`, all others
    /// `string`.
    fn read(name: &str, kind: Kind, value: &str) -> Result<Self, TypedError> {
        let typed = upper_first(name);
        match kind {
            Kind::Boolean => {
                let truth = value.eq_ignore_ascii_case("true");
                if !truth && !value.eq_ignore_ascii_case("false") {
                    return Err(wrong(name, value, "bool", "true or false"));
                }
                Ok(Self {
                    name: typed,
                    kind: "bool",
                    value: Value::from(truth),
                })
            }
            Kind::Long | Kind::Int => Self::uint(&typed, value),
            _ => Ok(Self::text(&typed, value)),
        }
    }
}

fn wrong(name: &str, value: &str, kind: &'static str, wanted: &'static str) -> TypedError {
    TypedError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        kind,
        wanted,
    }
}

fn not_a_type(primary: &str, reason: &dyn std::fmt::Display) -> TypedError {
    TypedError::Type {
        primary: primary.to_owned(),
        reason: reason.to_string(),
    }
}

/// The verifying contract is always the zero address.
fn domain(name: &str, chain_id: u64) -> Eip712Domain {
    Eip712Domain {
        name: Some(name.to_owned().into()),
        version: Some(DOMAIN_VERSION.into()),
        chain_id: Some(U256::from(chain_id)),
        verifying_contract: Some(Address::ZERO),
        salt: None,
    }
}

fn resolver(primary: &str, fields: &[Field]) -> Result<Resolver, TypedError> {
    let properties = fields
        .iter()
        .map(|field| PropertyDef::new(field.kind, field.name.as_str()));
    let properties = properties.collect::<Result<Vec<_>, _>>();
    let definition = properties.and_then(|properties| TypeDef::new(primary, properties));
    let mut resolver = Resolver::default();
    resolver.ingest(definition.map_err(|error| not_a_type(primary, &error))?);
    Ok(resolver)
}

fn typed_json(domain: &Eip712Domain, primary: &str, fields: &[Field]) -> Value {
    let named = |name: &str, kind: &str| json!({ "name": name, "type": kind });
    let types: Vec<Value> = fields
        .iter()
        .map(|field| named(&field.name, field.kind))
        .collect();
    let message: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.clone(), field.value.clone()))
        .collect();
    json!({
        "domain": {
            "name": domain.name,
            "version": domain.version,
            "chainId": domain.chain_id.map(|id| id.saturating_to::<u64>()),
            "verifyingContract": domain.verifying_contract,
        },
        "primaryType": primary,
        "types": {
            "EIP712Domain": [
                named("name", "string"),
                named("version", "string"),
                named("chainId", "uint256"),
                named("verifyingContract", "address"),
            ],
            primary: types,
        },
        "message": message,
    })
}
