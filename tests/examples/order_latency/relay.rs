//! A relay between the run and the venue's futures port. It forwards every byte and records two
//! times: when it writes the frame of a trade to the run, and when it has read the order request
//! from the run.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Number of different marks of orders. A trade's mark is its id modulo this number; the quantity
/// of the order that follows from the trade contains the mark.
pub const SYMBOLS: u64 = 200;
/// Number of trades that are kept: fewer than [`SYMBOLS`], so that no two can be confused.
const TRADES: usize = 190;

/// An order with its measured latency.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// When its request was read.
    pub at: Instant,
    /// Time since the frame of its trade was written.
    pub took: Duration,
}

#[derive(Default)]
struct Seen {
    /// Trade id modulo [`SYMBOLS`], and when its frame was written.
    trades: VecDeque<(u64, Instant)>,
    measured: Vec<Measured>,
}

/// The relay.
pub struct Relay {
    /// The address on which it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Relay {
    /// Starts a relay to the venue's address.
    pub fn start(venue: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (venue, own) = (venue.to_owned(), Arc::clone(&seen));
        std::thread::spawn(move || {
            for run in listener.incoming() {
                let (Ok(run), Ok(venue)) = (run, TcpStream::connect(&venue)) else {
                    continue;
                };
                for stream in [&run, &venue] {
                    stream.set_nodelay(true).unwrap();
                }
                let (from_run, to_venue) = (run.try_clone().unwrap(), venue.try_clone().unwrap());
                let seen = Arc::clone(&own);
                std::thread::spawn(move || pass_requests(from_run, to_venue, &seen));
                let seen = Arc::clone(&own);
                std::thread::spawn(move || pass_frames(venue, run, &seen));
            }
        });
        Self { address, seen }
    }

    /// Number of measured orders.
    pub fn received(&self) -> usize {
        self.seen.lock().unwrap().measured.len()
    }

    /// All measured orders.
    pub fn measured(&self) -> Vec<Measured> {
        self.seen.lock().unwrap().measured.clone()
    }
}

/// Forwards data from the venue to the run.
fn pass_frames(mut venue: TcpStream, mut run: TcpStream, seen: &Mutex<Seen>) {
    let mut buffer = vec![0; 64 << 10];
    // The last bytes may be the beginning of a frame that ends in the next piece.
    let mut rest = Vec::new();
    while let Ok(length @ 1..) = venue.read(&mut buffer) {
        let piece = &buffer[..length];
        rest.extend_from_slice(piece);
        let trades = trades(&rest);
        let at = Instant::now();
        if !trades.is_empty() {
            let mut seen = seen.lock().unwrap();
            seen.trades
                .extend(trades.iter().map(|id| (id % SYMBOLS, at)));
            let surplus = seen.trades.len().saturating_sub(TRADES);
            seen.trades.drain(..surplus);
        }
        let keep = rest.len().min(512);
        rest.drain(..rest.len() - keep);
        if let Some(end) = rest.iter().rposition(|byte| *byte == b'}') {
            rest.drain(..=end);
        }
        if run.write_all(piece).is_err() {
            break;
        }
    }
    let _ = run.shutdown(std::net::Shutdown::Both);
}

/// Ids of the trades whose frames end in these bytes.
fn trades(bytes: &[u8]) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut rest = bytes;
    while let Some(begin) = find(rest, b"\"e\":\"trade\"") {
        rest = &rest[begin + 1..];
        let Some(end) = find(rest, b"}") else { break };
        if let Some(id) = number_after(&rest[..end], b"\"t\":") {
            ids.push(id);
        }
    }
    ids
}

/// Forwards data from the run to the venue.
fn pass_requests(mut run: TcpStream, mut venue: TcpStream, seen: &Mutex<Seen>) {
    let mut buffer = vec![0; 64 << 10];
    let mut request = Vec::new();
    while let Ok(length @ 1..) = run.read(&mut buffer) {
        let at = Instant::now();
        let piece = &buffer[..length];
        request.extend_from_slice(piece);
        if let Some(begin) = find(&request, b"POST /fapi/v1/order") {
            if let Some(trade) = trade_of(&request[begin..]) {
                request.clear();
                let mut seen = seen.lock().unwrap();
                let frame = seen.trades.iter().rev().find(|(id, _)| *id == trade);
                if let Some(took) = frame.map(|(_, frame)| at.duration_since(*frame)) {
                    seen.measured.push(Measured { at, took });
                }
            }
        } else {
            request.clear();
        }
        if venue.write_all(piece).is_err() {
            break;
        }
    }
    let _ = venue.shutdown(std::net::Shutdown::Both);
}

/// The trade that an order's quantity names, once the request is complete.
fn trade_of(request: &[u8]) -> Option<u64> {
    // The signature is the last parameter.
    find(request, b"signature=")?;
    let place = find(request, b"quantity=")?;
    let text: String = request[place + 9..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
        .map(|byte| char::from(*byte))
        .collect();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let thousandths: u64 = format!("{whole}{fraction:0<3}").parse().ok()?;
    thousandths.checked_sub(1)
}

fn number_after(bytes: &[u8], key: &[u8]) -> Option<u64> {
    let place = find(bytes, key)? + key.len();
    let digits = bytes[place..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let text: String = digits.map(|byte| char::from(*byte)).collect();
    text.parse().ok()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
