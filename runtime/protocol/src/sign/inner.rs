//! The additional signature `userSignature` inside a request's business parameters. The main wallet
//! makes it over the content of the request.

use crate::route::InnerSignature;
use crate::sign::prepare::{Draft, PrepareError};
use crate::sign::{Wallet, chain_name, sentence, solana, typed};

const SIGNATURE: &str = "userSignature";

impl Draft<'_> {
    /// Adds the inner signature and the nonce that it covers, unless the caller gave them.
    pub(super) fn sign_inner(&mut self, inner: InnerSignature) -> Result<(), PrepareError> {
        match inner {
            InnerSignature::Withdrawal { nonce } => self.sign_withdrawal(nonce),
            InnerSignature::SolanaWithdrawal => self.sign_solana_withdrawal(),
            InnerSignature::Sentence => self.sign_sentence(),
        }
    }

    fn sign_withdrawal(&mut self, nonce: &'static str) -> Result<(), PrepareError> {
        self.fill_inner_nonce(nonce);
        if self.get(SIGNATURE).is_some() {
            return Ok(());
        }
        let chain_id = self.whole("chainId")?;
        let chain = chain_name(chain_id).ok_or(PrepareError::UnknownChain { chain_id })?;
        // The default of signatureChainId is chainId (docs/interface/chain.md#withdrawals).
        let signed_for = match self.get("signatureChainId") {
            Some(_) => self.whole("signatureChainId")?,
            None => chain_id,
        };
        let withdrawal = typed::Withdrawal {
            destination: self.needed("receiver")?,
            chain,
            token: self.needed("asset")?,
            amount: self.needed("amount")?,
            fee: self.needed("fee")?,
            nonce: self.needed(nonce)?,
        };
        let (brand, network) = (&self.dialect.brand, self.dialect.network);
        let data = typed::withdrawal_action(brand, network, signed_for, &withdrawal)?;
        let signature = self.wallet()?.sign(&data.digest());
        self.push(SIGNATURE, signature);
        self.inner_signed = Some(data.json().to_owned());
        Ok(())
    }

    fn sign_solana_withdrawal(&mut self) -> Result<(), PrepareError> {
        self.fill_inner_nonce("userNonce");
        if self.get(SIGNATURE).is_some() {
            return Ok(());
        }
        let withdrawal = solana::Withdrawal {
            destination: self.needed("receiver")?,
            token: self.needed("asset")?,
            amount: self.needed("amount")?,
            fee: self.needed("fee")?,
            nonce: self.needed("userNonce")?,
        };
        let text = solana::text(&self.dialect.brand, self.dialect.network, &withdrawal);
        let key = self.credentials.solana.as_ref();
        let key = key.ok_or(PrepareError::NoSolanaKey {
            route: self.route.name,
        })?;
        self.push(SIGNATURE, key.sign(&text));
        self.inner_signed = Some(text);
        Ok(())
    }

    /// The nonce is the one that `getNonce` returned; the caller puts it into the stamp
    /// (docs/interface/conventions.md#signing-the-api-key-sentence). The documents do not show how
    /// a Solana wallet signs the sentence.
    fn sign_sentence(&mut self) -> Result<(), PrepareError> {
        if self.get(SIGNATURE).is_some() {
            return Ok(());
        }
        if self
            .get("network")
            .is_some_and(|network| network.eq_ignore_ascii_case("SOL"))
        {
            return Err(PrepareError::SolanaSentence);
        }
        let address = self.wallet().map(Wallet::address)?;
        self.fill("address", || address.to_string());
        let nonce = self.stamp.nonce_us.to_string();
        let text = sentence::text(&self.dialect.brand, &nonce).ok_or(PrepareError::NoSentence)?;
        let signature = self.wallet()?.sign(&sentence::digest(&text));
        self.push(SIGNATURE, signature);
        self.inner_signed = Some(text);
        Ok(())
    }
}
