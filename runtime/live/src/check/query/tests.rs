//! Tests the queries of `check` on a second exchange, over real sockets.

#[path = "../../../../engine/tests/support/mod.rs"]
mod support;
#[path = "../../../../session/tests/toy/mod.rs"]
mod toy;

use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toy::Toy;
use windvane_client::{Addresses, Settings};
use windvane_protocol::Brand;
use windvane_protocol::adapter::FuturesAccount;
use windvane_protocol::route::Surface as RouteSurface;
use windvane_protocol::sign::{Credentials, Dialect, Network};

use super::super::{Report, Verdict, account, local, streams};
use super::*;
use windvane_config::{Config, Overrides};

const CONFIG: &str = r#"
[[strategy]]
id = "mm"
module = "no/such/strategy"
instruments = ["futures:BTCUSDT"]
"#;

/// The time that the toy exchange reports, in Unix milliseconds.
const SHOWN_MS: i64 = 1_700_000_000_000;

/// Answers every request in the format of the toy exchange.
async fn serve(listener: TcpListener) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        tokio::spawn(answer(socket));
    }
}

async fn answer(mut socket: TcpStream) {
    let mut text = String::new();
    let mut bytes = [0; 4_096];
    loop {
        let length = socket.read(&mut bytes).await.unwrap();
        if length == 0 {
            return;
        }
        text.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
        let Some((_, text_sent)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let reply = match text_sent {
            "" => continue,
            "clock" => format!("it is {SHOWN_MS}"),
            "key" => "the key is k".to_owned(),
            _ => "yes".to_owned(),
        };
        let length = reply.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{reply}");
        socket.write_all(answer.as_bytes()).await.unwrap();
        text.clear();
    }
}

/// Accepts one user stream and returns the requested path.
#[expect(
    clippy::result_large_err,
    reason = "the library chooses the type of its callback"
)]
async fn stream(listener: TcpListener) -> String {
    use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
    let (socket, _) = listener.accept().await.unwrap();
    let mut path = String::new();
    let look = |request: &Request, response: Response| {
        path = request.uri().to_string();
        Ok::<_, ErrorResponse>(response)
    };
    let accepted = tokio_tungstenite::accept_hdr_async(socket, look).await;
    accepted.unwrap();
    path
}

#[tokio::test]
async fn check_works_with_an_exchange_of_another_protocol() {
    let rest = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ws = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = Addresses::default()
        .rest(
            RouteSurface::Futures,
            &format!("http://{}", rest.local_addr().unwrap()),
        )
        .unwrap()
        .ws(
            RouteSurface::Futures,
            &format!("ws://{}", ws.local_addr().unwrap()),
        )
        .unwrap();
    tokio::spawn(serve(rest));
    let path = tokio::spawn(stream(ws));
    let dialect = Dialect {
        brand: Brand::new("toy").unwrap(),
        network: Network::Mainnet,
        recv_window_ms: None,
    };
    let settings = Settings::new(addresses, dialect, Credentials::default());
    let client = Client::new(settings).unwrap();
    let toy = Toy::new(client.gateway().clone());
    let queries = QueryClient::new(&client, &toy);
    let surface = Surface::Futures;

    let offset = queries.clock(surface, 3).await.unwrap();
    let venue_ms = (client.now().local_us + offset.offset_us) / 1_000;
    assert!((venue_ms - SHOWN_MS).abs() < 10_000, "{venue_ms}");

    let config = Config::parse(CONFIG, "c.toml", &Overrides::default()).unwrap();
    let ids = local::folder_ids(Path::new("no/such/folder"));
    let mut report = Report::default();
    let from = (&FuturesAccount::Routes, &ids);
    account::look(&config, surface, queries, from, &mut report).await;
    for found in [
        "futures: read from account information",
        "futures: the key may trade",
        "futures: 0 own orders are open, 0 of others",
        "futures: account trades can be read",
    ] {
        let line = report.lines.iter().find(|line| line.found == found);
        let verdict = line.map(|line| line.verdict);
        assert_eq!(verdict, Some(Verdict::Ok), "{found}: {}", report.text());
    }

    streams::user_stream(surface, queries).await.unwrap();
    assert_eq!(path.await.unwrap(), "/listen?k");
}
