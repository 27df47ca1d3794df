//! Parameters that several routes of this module share, and refusals of the matching rules as
//! responses. Nothing here changes state.

use alloy_primitives::Address;
use rust_decimal::Decimal;
use windvane_model::{Amount, AssetId};
use windvane_protocol::Assets;

use crate::request::{Body, Call, Refusal, decimal, evm_address, invalid};
use crate::settings::Settings;

/// Maximum number of decimals of an amount.
const DECIMALS_MAX: u32 = 8;

/// `{code: 200, msg: "success"}` (docs/interface/futures.md#agent-and-builder-routes).
pub(super) fn success() -> Body {
    Body::json(&serde_json::json!({ "code": 200, "msg": "success" }))
}

/// A positive amount (-4055) with decimals that an asset can have (-1111).
pub(super) fn amount(call: &Call<'_>, name: &str) -> Result<Amount, Refusal> {
    let value = decimal(name, call.params.required(name)?)?;
    if value <= Decimal::ZERO {
        return Err(Refusal::new(-4055, "Amount must be positive."));
    }
    exact(value)
}

/// A fee, which must not be negative.
pub(super) fn fee(call: &Call<'_>) -> Result<Amount, Refusal> {
    let value = decimal("fee", call.params.required("fee")?)?;
    if value.is_sign_negative() && !value.is_zero() {
        return Err(invalid("fee"));
    }
    exact(value)
}

fn exact(value: Decimal) -> Result<Amount, Refusal> {
    let too_fine = || {
        let msg = "Precision is over the maximum defined for this asset.";
        Refusal::new(-1111, msg)
    };
    if value.normalize().scale() > DECIMALS_MAX {
        return Err(too_fine());
    }
    Amount::from_decimal(value).ok_or_else(too_fine)
}

/// An asset of the venue, by the parameter `asset`.
pub(super) fn asset(assets: &Assets, call: &Call<'_>) -> Result<AssetId, Refusal> {
    let name = call.params.required("asset")?;
    let place = assets.names().iter().position(|known| known == name);
    place
        .map(|place| AssetId(place as u16))
        .ok_or_else(|| invalid("asset"))
}

/// An EVM address with the prefix `0x`; case does not matter.
pub(super) fn address(call: &Call<'_>, name: &str) -> Result<Address, Refusal> {
    evm_address(call.params.required(name)?).ok_or_else(|| invalid(name))
}

/// Converts a refusal of the matching rules.
pub(super) fn refused(refusal: windvane_model::protocol::Refusal) -> Refusal {
    Refusal::new(refusal.code, refusal.msg)
}

/// Checks that the network label is that of this environment
/// (docs/interface/conventions.md#signing-management-routes).
pub(super) fn check_network(settings: &Settings, call: &Call<'_>) -> Result<(), Refusal> {
    let name = &settings.brand.chain_parameter;
    let label = if settings.testnet {
        "Testnet"
    } else {
        "Mainnet"
    };
    if call.params.get(name) == Some(label) {
        Ok(())
    } else {
        Err(invalid(name))
    }
}

/// A decimal as a JSON number with all of its digits.
pub(super) fn number(value: Decimal) -> Box<serde_json::value::RawValue> {
    // The text of a decimal is always a valid JSON number.
    serde_json::value::RawValue::from_string(value.normalize().to_string()).unwrap_or_default()
}
