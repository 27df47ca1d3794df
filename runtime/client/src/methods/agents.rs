//! The transfer between futures and spot, and agents and builders
//! (docs/interface/account.md#transfers-between-wallets,
//! docs/interface/futures.md#agent-and-builder-routes). The main wallet signs the requests for
//! agents and builders.

use windvane_protocol::wire::futures::{
    ApproveAgent, ApproveBuilder, DeleteAgent, DeleteBuilder, GetAgents, GetBuilders, UpdateAgent,
    UpdateBuilder, WalletTransfer,
};

super::methods! {
    Futures, "futures";
    /// Moves assets between the futures and the spot account.
    wallet_transfer(WalletTransfer,
        WalletTransfer::new(10, "USDT", "transfer-2", TransferKind::FutureToSpot));
    /// Allows an agent to trade for the user.
    approve_agent(ApproveAgent, ApproveAgent::new("bot1",
        "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0", 1_967_945_395_040_i64, true, true, false));
    /// Changes the permissions of an agent and the addresses from which it may connect.
    update_agent(UpdateAgent, UpdateAgent::new(
        "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0", false, true, false));
    /// Revokes an agent.
    delete_agent(DeleteAgent, DeleteAgent::new("0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0"));
    /// The user's agents.
    agents(GetAgents);
    /// Allows a builder to take a fee.
    approve_builder(ApproveBuilder, ApproveBuilder::new(
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", Decimal::new(1, 5)));
    /// Changes the cap of a builder's fee.
    update_builder(UpdateBuilder, UpdateBuilder::new(
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", Decimal::new(2, 5)));
    /// Revokes a builder.
    delete_builder(DeleteBuilder, DeleteBuilder::new("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"));
    /// The builders that the user has approved.
    builders(GetBuilders);
}
