//! Parameters that several routes of this module share, and refusals of the matching rules as
//! responses. Nothing here changes state.

use alloy_primitives::Address;
use rust_decimal::Decimal;
use windvane_model::{Amount, AssetId};

use crate::accounts::AccountId;
use crate::request::{Body, Call, Refusal, decimal, invalid};
use crate::state::State;

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
pub(super) fn asset(state: &State, call: &Call<'_>) -> Result<AssetId, Refusal> {
    let name = call.params.required("asset")?;
    let place = state.assets.names().iter().position(|known| known == name);
    place
        .map(|place| AssetId(place as u16))
        .ok_or_else(|| invalid("asset"))
}

/// An EVM address with the prefix `0x`; case does not matter.
pub(super) fn address(call: &Call<'_>, name: &str) -> Result<Address, Refusal> {
    evm_address(call.params.required(name)?).ok_or_else(|| invalid(name))
}

/// Parses an EVM address with the prefix `0x`; case does not matter. `None` if the text is not an
/// address.
pub(super) fn evm_address(text: &str) -> Option<Address> {
    text.strip_prefix("0x")
        .or(text.strip_prefix("0X"))?
        .parse()
        .ok()
}

/// The account with this main wallet.
pub(super) fn account_of(state: &State, user: Address) -> Option<AccountId> {
    let place = state
        .accounts
        .iter()
        .position(|account| account.user == user)?;
    Some(AccountId(place as u16))
}

/// Converts a refusal of the matching rules.
pub(super) fn refused(refusal: windvane_model::protocol::Refusal) -> Refusal {
    Refusal::new(refusal.code, refusal.msg)
}

/// An amount in the form of the wire.
pub(super) fn text(amount: Amount) -> String {
    amount.to_decimal().to_string()
}
