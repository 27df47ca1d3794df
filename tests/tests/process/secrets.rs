//! No secret may appear in anything that a run leaves behind or shows: logs of the highest level,
//! journal, metrics, responses, refusals, and the output of a process that panics.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use windvane_tests::admin::Admin;
use windvane_tests::binary;
use windvane_tests::launch::Launch;
use windvane_tests::venue::Venue;

use super::support::{self, PATIENCE};

const TOKEN: &str = "canary-token-5f0c8e1b7a2d4c93b6e8";
const PASSWORD: &str = "canary-password-93b1fe07";

/// Secrets by name, each in all spellings in which it could appear.
struct Canaries(Vec<(String, Vec<String>)>);

impl Canaries {
    fn of(venue: &Venue) -> Self {
        let keys = &venue.line()["accounts"][0];
        let mut all = Self(Vec::new());
        for name in ["apiSecret", "signerKey", "userKey"] {
            all.add(name, keys[name].as_str().unwrap());
        }
        all.add("admin token", TOKEN);
        all.add("wallet password", PASSWORD);
        all
    }

    fn add(&mut self, name: &str, secret: &str) {
        let bare = secret.strip_prefix("0x").unwrap_or(secret);
        let hex = hex::encode(bare);
        // The form in which `{:?}` prints bytes.
        let list: Vec<_> = bare.bytes().map(|byte| byte.to_string()).collect();
        let spellings = [
            bare.to_ascii_lowercase(),
            hex,
            list.join(", "),
            base64(bare),
        ];
        self.0.push((
            name.to_owned(),
            spellings.map(|one| one.to_ascii_lowercase()).into(),
        ));
    }

    /// The names of the secrets that these bytes contain.
    fn in_bytes(&self, bytes: &[u8]) -> Vec<&str> {
        let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let found = self
            .0
            .iter()
            .filter(|(_, spellings)| spellings.iter().any(|one| text.contains(one)));
        found.map(|(name, _)| name.as_str()).collect()
    }
}

/// Base64 without the last, unfinished group: its letters depend on the bytes that follow.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = text.as_bytes().chunks_exact(3);
    groups
        .flat_map(|group| {
            let bits = group
                .iter()
                .fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|shift| char::from(LETTERS[bits >> shift & 63]))
        })
        .collect()
}

#[test]
fn the_search_finds_each_spelling_of_a_secret() {
    let mut canaries = Canaries(Vec::new());
    canaries.add("key", "0xABCDEF0123456789");
    for text in [
        "a=abcdef0123456789&b",
        "41424344454630313233343536373839",
        "SecretBox([65, 66, 67, 68, 69, 70, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57])",
        "Basic QUJDREVGMDEyMzQ1Njc4OQ==",
    ] {
        assert_eq!(canaries.in_bytes(text.as_bytes()), ["key"], "{text}");
    }
    assert!(canaries.in_bytes(b"abcdef012345678").is_empty());
}

/// Reads all files in a folder and below.
fn files(folder: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.is_file() {
            found.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
}

/// The responses of the admin server: all that it shows, and refusals.
fn answers(admin: &Admin) -> String {
    let mut all = String::new();
    for path in [
        "status",
        "orders",
        "positions",
        "balances",
        "strategies",
        "no-such-route",
    ] {
        all += &admin
            .raw("GET", &format!("/api/{path}"))
            .unwrap_or_default();
    }
    for path in ["/metrics", "/health", "/ready"] {
        all += &admin.raw("GET", path).unwrap_or_default();
        for token in [None, Some(TOKEN)] {
            all += &admin.raw_over_tcp("GET", path, token).unwrap_or_default();
        }
    }
    for token in [None, Some(TOKEN)] {
        all += &admin.raw_over_tcp("GET", "/api/status", token).unwrap();
    }
    all += &admin.raw("GET", "/api/halt").unwrap_or_default();
    all += &admin.raw("POST", "/api/pause").unwrap_or_default();
    all
}

/// Runs at the highest log level until orders rest, uses the admin server, kills the run and
/// restarts it on a damaged journal. Returns everything that the run produced.
fn traces(venue: &Venue, api: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = venue.folder();
    let token = folder.join("token");
    std::fs::write(&token, TOKEN).unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let data = folder.join(api);
    let user = venue.line()["accounts"][0]["user"].as_str().unwrap();
    let launch = Launch::new(venue, &data)
        .apart(venue)
        .modules(&["market_maker", "ema_cross"])
        .set(&format!("venue.api={api}"))
        .set(&format!("account.user=\"{user}\""))
        .set("account.signer={ env = \"WINDVANE_SIGNER_KEY\" }")
        .set(
            "account.wallet={ keystore = \"none.json\", password = { env = \"WALLET_PASSWORD\" } }",
        )
        .set("admin.listen=127.0.0.1:0")
        .set(&format!("admin.token={{ file = \"{}\" }}", token.display()))
        .env("WALLET_PASSWORD", PASSWORD)
        .env("RUST_BACKTRACE", "full")
        .env("WINDVANE_LOG", "trace");
    let mut instance = launch.start();
    support::trading(&mut instance, venue);
    // Refusals, lost responses and cut connections have their own log texts.
    for fault in [
        json!({"fault": "refuse", "code": -2010, "msg": "no", "surface": "futures", "count": 2}),
        json!({"fault": "unknown", "how": "cut", "accepted": true, "surface": "futures", "count": 2}),
        json!({"fault": "html", "status": 502, "surface": "futures", "count": 2}),
    ] {
        venue.control("/faults", &fault);
    }
    venue.control("/act", &json!({"act": "disconnect"}));
    let admin = instance.admin();
    let mut found = BTreeMap::new();
    found.insert("answers".to_owned(), answers(&admin).into_bytes());
    admin.command("/api/halt");
    venue.control_delete("/faults");
    instance.kill();
    let records = binary::run(["journal".as_ref(), "export".as_ref(), data.as_os_str()]);
    assert!(records.status.success(), "{records:?}");
    found.insert("records".to_owned(), records.stdout);
    damage(&data);
    let mut again = launch.start();
    again.until_shown(
        &again.admin(),
        "/api/status",
        support::REST,
        &support::state("halted"),
    );
    assert_eq!(again.terminate().code(), Some(0));
    files(&data, &mut found);
    found.insert(
        "log".to_owned(),
        std::fs::read(data.with_extension("log")).unwrap(),
    );
    found
}

/// Writes zeros into the middle of the newest segment.
fn damage(data: &Path) {
    let segments = std::fs::read_dir(data.join("journal")).unwrap();
    let newest = segments.map(|entry| entry.unwrap().path()).max().unwrap();
    let file = newest.join("db");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 3;
    let end = bytes.len() / 2;
    bytes[middle..end].fill(0);
    std::fs::write(&file, bytes).unwrap();
}

fn searched(api: &str, seed: &str) {
    let venue = Venue::start(&["--seed", seed]);
    let canaries = Canaries::of(&venue);
    let traces = traces(&venue, api);
    for (place, bytes) in &traces {
        assert_eq!(canaries.in_bytes(bytes), Vec::<&str>::new(), "in {place}");
    }
    // The places really contain what they should.
    let holds = |place: &str, word: &str| String::from_utf8_lossy(&traces[place]).contains(word);
    assert!(holds("answers", "windvane_info") && holds("answers", "BTCUSDT"));
    assert!(
        holds("answers", "HTTP/1.1 405"),
        "the responses must include a refusal"
    );
    assert!(
        holds("records", "maker."),
        "the records must include order ids"
    );
    assert!(holds("log", "TRACE") && holds("log", "the journal"));
    let bytes: usize = traces.values().map(Vec::len).sum();
    let panicked = holds("log", "panicked at");
    println!(
        "{api}: searched {bytes} bytes in {} places; the log has a panic: {panicked}",
        traces.len()
    );
}

#[test]
fn no_trace_contains_the_api_secret() {
    searched("v1", "61");
}

#[test]
fn no_trace_contains_the_agent_key() {
    searched("v3", "62");
}

/// A clock that fails for code that signs a request, once a file exists. The standard library then
/// panics while keys and parameters are in scope.
const FAILING_CLOCK: &str = r#"
    use std::ffi::c_void;
    unsafe extern "C" {
        fn dlsym(library: *mut c_void, name: *const i8) -> *mut c_void;
        fn access(path: *const i8, mode: i32) -> i32;
        fn getenv(name: *const i8) -> *const i8;
    }
    #[unsafe(no_mangle)]
    pub extern "C" fn clock_gettime(clock: i32, time: *mut c_void) -> i32 {
        let gate = unsafe { getenv(c"FAILING".as_ptr().cast()) };
        if !gate.is_null() && unsafe { access(gate, 0) } == 0 {
            let stack = std::backtrace::Backtrace::force_capture().to_string();
            if stack.contains("windvane_client::client") {
                return -1;
            }
        }
        let next = -1_isize as *mut c_void;
        let usual = unsafe { dlsym(next, c"clock_gettime".as_ptr().cast()) };
        let usual: extern "C" fn(i32, *mut c_void) -> i32 = unsafe { std::mem::transmute(usual) };
        usual(clock, time)
    }
"#;

/// Panics where requests are signed, with the most verbose output.
fn panics(api: &str, seed: &str) {
    let venue = Venue::start(&["--seed", seed]);
    let canaries = Canaries::of(&venue);
    let gate = venue.folder().join("failing");
    let library = support::library(venue.folder(), "failing", FAILING_CLOCK);
    let user = venue.line()["accounts"][0]["user"].as_str().unwrap();
    let mut instance = support::launch(&venue)
        .apart(&venue)
        .set(&format!("venue.api={api}"))
        .set(&format!("account.user=\"{user}\""))
        .set("account.signer={ env = \"WINDVANE_SIGNER_KEY\" }")
        .env("LD_PRELOAD", library.to_str().unwrap())
        .env("FAILING", gate.to_str().unwrap())
        .env("RUST_BACKTRACE", "full")
        .env("WINDVANE_LOG", "trace")
        .start();
    support::trading(&mut instance, &venue);
    std::fs::write(&gate, "").unwrap();
    let begin = Instant::now();
    let is_told = |log: &str| {
        let place = log.find("panicked at").unwrap_or(log.len());
        log[place..].contains("windvane_client::client")
    };
    while !is_told(&instance.log()) {
        assert!(
            begin.elapsed() < PATIENCE,
            "the run did not panic\n{}",
            instance.log()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = instance.log();
    assert_eq!(canaries.in_bytes(log.as_bytes()), Vec::<&str>::new());
    println!("{api}: {} panics", log.matches("panicked at").count());
}

#[test]
fn a_panic_does_not_print_the_api_secret() {
    panics("v1", "65");
}

#[test]
fn a_panic_does_not_print_the_agent_key() {
    panics("v3", "66");
}

/// A keystore that this password does not open.
const KEYSTORE: &str = r#"{"crypto":{"cipher":"aes-128-ctr",
    "cipherparams":{"iv":"6087dab2f9fdbbfaddc31a909735c1e6"},
    "ciphertext":"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    "kdf":"pbkdf2","kdfparams":{"c":262144,"dklen":32,"prf":"hmac-sha256",
    "salt":"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
    "mac":"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},
    "id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}"#;

#[test]
fn errors_that_end_a_run_print_no_secret() {
    let venue = Venue::start(&["--seed", "63"]);
    let canaries = Canaries::of(&venue);
    let folder = venue.folder();
    let keystore = folder.join("keystore.json");
    std::fs::write(&keystore, KEYSTORE).unwrap();
    std::fs::set_permissions(&keystore, std::fs::Permissions::from_mode(0o600)).unwrap();
    let open = folder.join("open");
    std::fs::write(&open, TOKEN).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
    let secret = venue.line()["accounts"][0]["apiSecret"].as_str().unwrap();
    let base = support::launch(&venue)
        .apart(&venue)
        .env("WINDVANE_LOG", "trace");
    let keystore = format!(
        "account.signer={{ keystore = \"{}\", password = {{ env = \"WALLET_PASSWORD\" }} }}",
        keystore.display()
    );
    for (what, launch) in [
        (
            "a wrong password",
            base.clone()
                .set("venue.api=v3")
                .set(&keystore)
                .env("WALLET_PASSWORD", PASSWORD),
        ),
        (
            "an invalid key",
            base.clone()
                .set("venue.api=v3")
                .set("account.signer={ env = \"WINDVANE_SIGNER_KEY\" }")
                .env("WINDVANE_SIGNER_KEY", PASSWORD),
        ),
        (
            "a token that others can read",
            base.clone()
                .set(&format!("admin.token={{ file = \"{}\" }}", open.display())),
        ),
        (
            "a secret instead of its source",
            base.clone().set(&format!("account.api_secret={secret}")),
        ),
    ] {
        let output = launch.output();
        let printed = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&printed).into_owned();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{what}: {text}"
        );
        assert!(!text.is_empty(), "{what}");
        assert_eq!(
            canaries.in_bytes(&printed),
            Vec::<&str>::new(),
            "{what}: {text}"
        );
        println!("{what}: {}", text.lines().last().unwrap_or_default());
    }
    // The venue's own line contains the secrets, which shows that the search can find them.
    let line = std::fs::read(venue.file()).unwrap();
    assert_eq!(canaries.in_bytes(&line).len(), 3);
    assert!(binary::root().join("configs").is_dir());
}
