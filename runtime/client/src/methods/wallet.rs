//! Transfers, withdrawals and API keys of the spot surface
//! (docs/interface/account.md#account). They move assets or give access to them:
//! settle an unknown outcome with a query, and never send the request again.

use windvane_protocol::route::Surface;
use windvane_protocol::sign::Stamp;
use windvane_protocol::wire::spot::{
    ApiKeyPair, CreateApiKey, GetNonce, GetWithdrawFee, SendToAddress, WalletTransfer, Withdraw,
};

use crate::Outcome;
use crate::methods::Spot;

super::methods! {
    Spot, "spot";
    /// Moves assets between the spot and the perp account.
    wallet_transfer(WalletTransfer,
        WalletTransfer::new(10, "USDT", "transfer-1", TransferKind::SpotToFuture));
    /// Sends assets to another account.
    send_to_address(SendToAddress,
        SendToAddress::new(10, "USDT", "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0"));
    /// Estimates the fee of a withdrawal.
    withdraw_fee(GetWithdrawFee, GetWithdrawFee::new("56", "USDT"));
    /// Withdraws to the chain; the client adds the wallet's signature if it is not given.
    withdraw(Withdraw, Withdraw::new("56", "USDT", 31, Decimal::new(3, 1),
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"));
    /// The nonce that [`Self::create_api_key`] signs.
    get_nonce(GetNonce, GetNonce::new("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        UserOperation::CreateApiKey));
}

impl Spot<'_> {
    /// Creates an API key with the number that [`Self::get_nonce`] returned. The client adds the
    /// wallet's signature over sentence and nonce if it is not given.
    ///
    /// ```no_run
    /// use windvane_protocol::wire::spot::{CreateApiKey, GetNonce};
    /// use windvane_protocol::wire::enums::UserOperation;
    ///
    /// # async fn example(client: windvane_client::Client) -> Option<()> {
    /// let address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    /// let operation = UserOperation::CreateApiKey;
    /// let nonce = client.spot().get_nonce(&GetNonce::new(address, operation)).await.done()?;
    /// let request = CreateApiKey::new(address, operation, "desk");
    /// let outcome = client.spot().create_api_key(&request, nonce.0.try_into().ok()?).await;
    /// # Some(())
    /// # }
    /// ```
    pub async fn create_api_key(self, request: &CreateApiKey, nonce: u64) -> Outcome<ApiKeyPair> {
        let stamp = Stamp {
            nonce_us: nonce,
            ..self.client.stamp(Surface::Spot)
        };
        self.client.send_stamped(request, Some(stamp)).await
    }
}
