//! Agents and builders, and the transfer between futures and spot
//! (docs/interface/futures.md#agent-and-builder-routes). The main wallet signs everything except
//! the queries; [`crate::sign`] adds the fields of the signature.

use rust_decimal::Decimal;

use crate::wire::common::{SimpleResult, TransferResult};
use crate::wire::enums::TransferKind;
use crate::wire::fields::{record, request};
use crate::wire::scalar::{Exact, Flag, OneOrMany, Text, Whole};

request! {
    /// Transfer between futures and spot (docs/interface/account.md#transfers-between-wallets).
    WalletTransfer = "futures.wallet_transfer" -> TransferResult {
        amount: Decimal = "amount",
        asset: String = "asset",
        /// Under 64 characters, unique within 7 days.
        client_tran_id: String = "clientTranId",
        kind: TransferKind = "kindType",
    }
}

request! {
    /// Allows an agent to trade for the user. With `builder`, `maxFeeRate` and `builderName` it
    /// also approves a builder.
    ApproveAgent = "futures.approve_agent" -> SimpleResult {
        agent_name: String = "agentName",
        agent_address: String = "agentAddress",
        ip_whitelist?: String = "ipWhitelist",
        /// End of the approval, milliseconds.
        expired: i64 = "expired",
        can_spot_trade: bool = "canSpotTrade",
        can_perp_trade: bool = "canPerpTrade",
        /// `false` is recommended.
        can_withdraw: bool = "canWithdraw",
        builder?: String = "builder",
        max_fee_rate?: Decimal = "maxFeeRate",
        builder_name?: String = "builderName",
    }
}

request! {
    /// Changes the permissions of an agent and the addresses from which it may connect.
    UpdateAgent = "futures.update_agent" -> SimpleResult {
        agent_address: String = "agentAddress",
        /// May be empty.
        ip_whitelist?: String = "ipWhitelist",
        can_spot_trade: bool = "canSpotTrade",
        can_perp_trade: bool = "canPerpTrade",
        can_withdraw: bool = "canWithdraw",
    }
}

request! {
    /// Revokes an agent.
    DeleteAgent = "futures.delete_agent" -> SimpleResult {
        agent_address: String = "agentAddress",
    }
}

record! {
    /// Agent (docs/interface/futures.md#agents).
    Agent {
        agent_address: String = "agentAddress",
        agent_name?: String = "agentName",
        /// The documents do not give its type: one text with addresses, or a list of them.
        ip_whitelist?: OneOrMany<String> = "ipWhitelist",
        /// Milliseconds.
        expired?: Whole = "expired",
        source?: Text = "source",
        can_read?: Flag = "canRead",
        can_spot_trade: Flag = "canSpotTrade",
        can_perp_trade: Flag = "canPerpTrade",
        can_withdraw: Flag = "canWithdraw",
    }
}

request! {
    /// The user's agents.
    GetAgents = "futures.agents" -> Vec<Agent> {}
}

request! {
    /// Allows a builder to take a fee of at most `maxFeeRate`.
    ApproveBuilder = "futures.approve_builder" -> SimpleResult {
        builder: String = "builder",
        max_fee_rate: Decimal = "maxFeeRate",
        /// Required by one description, absent from another.
        builder_name?: String = "builderName",
    }
}

request! {
    /// Changes the cap of a builder's fee.
    UpdateBuilder = "futures.update_builder" -> SimpleResult {
        builder: String = "builder",
        max_fee_rate: Decimal = "maxFeeRate",
    }
}

request! {
    /// Revokes a builder.
    DeleteBuilder = "futures.delete_builder" -> SimpleResult {
        builder: String = "builder",
    }
}

record! {
    /// Builder approval (docs/interface/futures.md#builders).
    Builder {
        user_address?: String = "userAddress",
        builder_address: String = "builderAddress",
        max_fee_rate: Exact = "maxFeeRate",
        builder_name?: String = "builderName",
    }
}

request! {
    /// The builders that the user has approved.
    GetBuilders = "futures.builders" -> Vec<Builder> {}
}
