//! `windvane deposit`: prints the exact call that the user's own wallet must send on the source
//! chain. This command signs and sends nothing.

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use windvane_protocol::deposit::{self, Credit, DepositError, EvmDeposit, SolanaMethod};

use super::Failure;
use super::printing::print_json;

#[derive(Debug, Subcommand)]
pub(super) enum Deposit {
    /// Ethereum, BSC, Arbitrum: calls of the vault contract, ABI-encoded
    Evm(Evm),
    /// Solana: a method of the program, with its accounts in order
    Solana(Solana),
    /// SUI: the route that returns the address to transfer to
    Sui,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccountWord {
    Spot,
    Futures,
}

impl From<AccountWord> for Credit {
    fn from(word: AccountWord) -> Self {
        match word {
            AccountWord::Spot => Self::Spot,
            AccountWord::Futures => Self::Futures,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Evm {
    /// 1 (Ethereum), 56 (BSC) or 42161 (Arbitrum)
    #[arg(long)]
    chain_id: u64,
    /// Vault contract on that chain
    #[arg(long, value_name = "ADDRESS")]
    vault: String,
    /// Token contract
    #[arg(long, value_name = "ADDRESS", required_unless_present = "native")]
    token: Option<String>,
    /// Deposit the native token, not a contract; ADDRESS is the venue's placeholder for it
    #[arg(long, value_name = "ADDRESS", conflicts_with = "token")]
    native: Option<String>,
    /// Wallet whose account is credited
    #[arg(long = "for", value_name = "ADDRESS")]
    for_address: String,
    /// Amount in whole tokens, such as 1.5
    #[arg(long)]
    amount: String,
    /// Decimals of the token
    #[arg(long)]
    decimals: u8,
    /// Account to credit
    #[arg(long, value_enum)]
    to: AccountWord,
}

#[derive(Debug, Args)]
pub(super) struct Solana {
    /// Program that receives deposits
    #[arg(long, value_name = "ADDRESS")]
    program: String,
    /// Deposit an SPL token; without it, the native token
    #[arg(long)]
    token: bool,
    /// Address of an account by its documented name, such as admin=ADDRESS; required for each
    /// account
    #[arg(long = "with", value_name = "NAME=ADDRESS")]
    accounts: Vec<String>,
    /// Amount in whole tokens, such as 1.5
    #[arg(long)]
    amount: String,
    /// Decimals of the token
    #[arg(long, default_value_t = 9)]
    decimals: u8,
    /// Account to credit
    #[arg(long, value_enum)]
    to: AccountWord,
}

impl From<DepositError> for Failure {
    fn from(error: DepositError) -> Self {
        Self::usage(error)
    }
}

impl Deposit {
    /// Prints JSON, because the output goes to a wallet. Long hexadecimal is hard to read for
    /// people.
    pub(super) fn run(self) -> Result<(), Failure> {
        let answer = match self {
            Self::Evm(evm) => json!({ "calls": evm.calls()? }),
            Self::Solana(solana) => json!({ "instruction": solana.call()? }),
            Self::Sui => json!(deposit::SUI),
        };
        print_json(&serde_json::to_string_pretty(&answer).map_err(Failure::failed)?)
    }
}

impl Evm {
    fn calls(&self) -> Result<Vec<deposit::EvmCall>, Failure> {
        let currency = self.native.as_ref().or(self.token.as_ref());
        Ok(deposit::evm(&EvmDeposit {
            chain_id: self.chain_id,
            vault: &self.vault,
            currency: currency.map_or("", String::as_str),
            is_native: self.native.is_some(),
            for_address: &self.for_address,
            amount: &self.amount,
            decimals: self.decimals,
            credit: self.to.into(),
        })?)
    }
}

impl Solana {
    fn call(&self) -> Result<deposit::SolanaCall, Failure> {
        let mut accounts = BTreeMap::new();
        let method = if self.token {
            SolanaMethod::DepositToken
        } else {
            SolanaMethod::DepositSol
        };
        for pair in &self.accounts {
            let (name, address) = pair
                .split_once('=')
                .ok_or_else(|| Failure::Usage(format!("--with {pair:?} must be NAME=ADDRESS")))?;
            if !method.roles().iter().any(|role| role.name == name) {
                let names: Vec<_> = method.roles().iter().map(|role| role.name).collect();
                return Err(Failure::Usage(format!(
                    "--with {name}: {} has the accounts {}",
                    method.name(),
                    names.join(", ")
                )));
            }
            accounts.insert(name.to_owned(), address.to_owned());
        }
        Ok(deposit::solana(
            method,
            &self.program,
            &accounts,
            &self.amount,
            self.decimals,
            self.to.into(),
        )?)
    }
}
