//! Examples of the chain API and the JSON-RPC info endpoint.

use rust_decimal::Decimal;

use crate::example::Example;
use windvane_protocol::wire::chain::{
    GetAccountStatus, GetDepositAddress, GetDepositWithdrawHistory, GetLockedStaking,
    GetWithdrawFee, GetWithdrawInfo, ModifyAccountStatus, PerpSolanaWithdraw, PerpWalletTransfer,
    PerpWithdraw, SpotSolanaWithdraw, SpotWalletTransfer, SpotWithdraw, Transfer,
};
use windvane_protocol::wire::enums::{PrivacyStatus, SignatureType, TransferKind};
use windvane_protocol::wire::info::{GetBalance, GetOpenOrders, GetUserFills};

const ADDRESS: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const SOLANA_ADDRESS: &str = "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV";
const WITHDRAWN: &str = r#"{"withdrawId":"1014729574755487744","hash":"0xa6d1"}"#;
const TRANSFERRED: &str = r#"{"tranId":21841,"status":"SUCCESS"}"#;

const WITHDRAW_INFO: &str = r#"{"userDailyLimit":"100000","userRemainingDailyLimit":"99969",
"totalDailyLimit":"1000000","totalRemainingDailyLimit":"999969","balances":{"USDT":{
"currency":"USDT","spotTotalWithdrawAmount":"9760.25","perpTotalWithdrawAmount":"9970",
"dailyLimit":"100000","chainBalances":{"56":{"chainId":56,"spotMaxWithdrawAmount":"9760.25",
"perpMaxWithdrawAmount":"9970","chainLimit":"50000","withdrawFee":"0.3"}}}}}"#;

const BALANCE: &str = r#"{"result":{"address":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
"accountPrivacy":"disabled","perpAssets":[{"asset":"USDT","walletBalance":10000.00000001}],
"positions":[{"tradingProduct":"perps","positions":[{"id":"1","symbol":"BTCUSDT",
"collateral":"USDT","positionAmount":"0.01","entryPrice":"60000.1","unrealizedProfit":"1.5",
"notionalValue":"598.501","markPrice":"59850.1","leverage":20,"isolated":false,
"isolatedWallet":"0","adl":1,"positionSide":"BOTH","marginValue":"30","askNotional":"0",
"bidNotional":"0"}]}]},"id":1,"jsonrpc":"2.0"}"#;

const OPEN_ORDERS: &str = r#"{"result":{"address":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
"accountPrivacy":"disabled","openOrders":[{"orderId":"22542179","symbol":"BTCUSDT",
"side":"BUY","type":"LIMIT","origQty":"0.01","status":"NEW"}]},"id":3,"jsonrpc":"2.0"}"#;

const FILLS: &str = r#"{"result":{"address":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
"accountPrivacy":"enabled","startTime":1772678119418,"endTime":1773282919418,
"fills":[{"symbol":"BTCUSDT","side":"SELL","price":"60000.1","qty":"0.01",
"time":1772678119999}]},"id":2,"jsonrpc":"2.0"}"#;

pub(crate) fn examples() -> Vec<Example> {
    let mut examples = chain();
    examples.extend(withdrawals());
    examples.extend(info());
    examples
}

fn chain() -> Vec<Example> {
    let kind = TransferKind::SpotToFuture;
    vec![
        Example::of(&GetAccountStatus::new(), r#"{"status":"PUBLIC"}"#),
        Example::of(
            &ModifyAccountStatus::new(PrivacyStatus::Private),
            r#"{"status":"PRIVATE"}"#,
        ),
        Example::of(
            &GetLockedStaking::new(),
            r#"{"periodCode":"208W","totalVolume":123456789.123456789}"#,
        ),
        Example::of(
            &Transfer::new("USDT", 5, "0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0")
                .client_tran_id("send-1"),
            r#"{"transferId":"77","asset":"USDT","amount":"5",
"toAddress":"0x21cF8Ae13Bb72632562c6Fff438652Ba1a151bb0","timestamp":1772678119999,
"status":"PENDING"}"#,
        ),
        Example::of(
            &GetDepositAddress::new().network("SUI"),
            r#"{"network":"SUI","address":"0x4f2e"}"#,
        ),
        Example::of(&GetWithdrawInfo::new(), WITHDRAW_INFO),
        Example::of(
            &GetDepositWithdrawHistory::new().chain_id("56"),
            r#"[{"id":"12","type":"DEPOSIT","asset":"USDT","amount":"31","state":"COMPLETED",
"txHash":"0xa6d1","time":1772678119999,"chainId":56,"accountType":"perp"}]"#,
        ),
        Example::of(
            &PerpWalletTransfer::new("USDT", 10, "transfer-3", kind),
            TRANSFERRED,
        ),
        Example::of(
            &SpotWalletTransfer::new("USDT", 10, "transfer-4", kind),
            TRANSFERRED,
        ),
        Example::of(
            &GetWithdrawFee::new(56, "USDT"),
            r#"{"gasPrice":1000000000,"gasLimit":210000,"nativePrice":"652.1",
"tokenPrice":"1.0002","gasCost":"0.13691","gasUsdValue":"0.136941"}"#,
        ),
    ]
}

fn withdrawals() -> Vec<Example> {
    let (amount, fee) = (Decimal::from(31), Decimal::new(3, 1));
    vec![
        Example::of(
            &PerpWithdraw::new("USDT", 56, amount, fee, ADDRESS),
            WITHDRAWN,
        ),
        Example::of(
            &SpotWithdraw::new("USDT", 56, amount, fee, ADDRESS)
                .signature_chain_id(56)
                .signature_type(SignatureType::Eoa),
            WITHDRAWN,
        ),
        Example::of(
            &PerpSolanaWithdraw::new("USDT", 101, amount, fee, SOLANA_ADDRESS),
            WITHDRAWN,
        ),
        Example::of(
            &SpotSolanaWithdraw::new("USDT", 101, amount, fee, SOLANA_ADDRESS),
            WITHDRAWN,
        ),
    ]
}

fn info() -> Vec<Example> {
    vec![
        Example::of(&GetBalance::new(ADDRESS, "latest"), BALANCE),
        Example::of(
            &GetOpenOrders::new(ADDRESS, "latest").symbol("BTCUSDT"),
            OPEN_ORDERS,
        ),
        Example::of(
            &GetUserFills::new(ADDRESS, "latest").from(1_772_678_119_418_i64),
            FILLS,
        ),
    ]
}
