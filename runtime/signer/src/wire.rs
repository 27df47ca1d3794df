//! Requests and replies on the signer's socket.
//!
//! Each frame is a length (4 bytes, little-endian), a version byte, and a postcard record. The
//! length counts the version byte and the record. A request has the route, the parameters and the
//! stamp, so the signer builds the bytes itself and its policy reads exactly what is signed.

use postcard::{from_bytes, to_extend};
use serde::{Deserialize, Serialize};
use windvane_client_core::CalledRoute;
use windvane_client_core::gateway::Unsigned;
use windvane_protocol::route::{self, Method, Version};
use windvane_protocol::sign::prepare::API_KEY_HEADER;
use windvane_protocol::sign::{Prepared, Stamp};
use windvane_protocol::wire::Parameters;

/// The version of the frames. Both ends are the same program, so another version is an error.
const VERSION: u8 = 1;
/// The largest frame, bytes. The largest request is a batch of five orders, about 2 KB.
pub const FRAME_MAX: usize = 64 * 1024;
/// The bytes of a frame before its record.
const HEAD: usize = 5;

/// A frame that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is 0 or larger than [`FRAME_MAX`].
    #[error("a frame of {0} bytes; the limit is {FRAME_MAX}")]
    Length(usize),
    /// Another version.
    #[error("a frame of version {0}; this program uses version {VERSION}")]
    Version(u8),
    /// The record is not valid.
    #[error("a frame cannot be decoded: {0}")]
    Record(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct WireRequest<'a> {
    id: u64,
    #[serde(borrow)]
    route: &'a str,
    version: Option<u8>,
    #[serde(borrow)]
    parameters: Vec<(&'a str, &'a str)>,
    timestamp_ms: i64,
    nonce_us: u64,
    inner_nonce_us: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireReply {
    id: u64,
    result: Result<WirePrepared, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WirePrepared {
    path: String,
    query: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    method: u8,
}

const METHODS: [Method; 4] = [Method::Get, Method::Post, Method::Put, Method::Delete];
const VERSIONS: [Version; 4] = [Version::V1, Version::V2, Version::V3, Version::V4];
/// The headers that a prepared request may have.
const HEADERS: [&str; 2] = [API_KEY_HEADER, "Content-Type"];

fn frame(record: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend([0, 0, 0, 0, VERSION]);
    let mut bytes =
        to_extend(record, bytes).map_err(|error| FrameError::Record(error.to_string()))?;
    let length = bytes.len() - HEAD + 1;
    let head = u32::try_from(length).ok().filter(|_| length <= FRAME_MAX);
    let head = head.ok_or(FrameError::Length(length))?;
    bytes[..4].copy_from_slice(&head.to_le_bytes());
    Ok(bytes)
}

/// Encodes a request to sign.
///
/// # Errors
/// The request is larger than [`FRAME_MAX`].
pub fn request(id: u64, unsigned: &Unsigned) -> Result<Vec<u8>, FrameError> {
    let CalledRoute { route, version } = unsigned.called_route;
    let version = version.and_then(|version| VERSIONS.iter().position(|one| *one == version));
    frame(&WireRequest {
        id,
        route: route.name,
        version: version.map(|place| place as u8),
        parameters: unsigned.parameters.iter().collect(),
        timestamp_ms: unsigned.stamp.timestamp_ms,
        nonce_us: unsigned.stamp.nonce_us,
        inner_nonce_us: unsigned.stamp.inner_nonce_us,
    })
}

/// Decodes the record of a request.
///
/// # Errors
/// The record is not valid, or names a route that does not exist.
pub fn read_request(record: &[u8]) -> Result<(u64, Unsigned), FrameError> {
    let wrong = |what: &str| FrameError::Record(what.to_owned());
    let read: WireRequest<'_> =
        from_bytes(record).map_err(|error| FrameError::Record(error.to_string()))?;
    let route = route::named(read.route).ok_or_else(|| wrong("an unknown route"))?;
    let version = match read.version {
        None => None,
        Some(place) => {
            let version = VERSIONS.get(usize::from(place));
            Some(*version.ok_or_else(|| wrong("an unknown version"))?)
        }
    };
    let unsigned = Unsigned {
        called_route: CalledRoute { route, version },
        parameters: read.parameters.into_iter().collect::<Parameters>(),
        stamp: Stamp {
            timestamp_ms: read.timestamp_ms,
            nonce_us: read.nonce_us,
            inner_nonce_us: read.inner_nonce_us,
        },
    };
    Ok((read.id, unsigned))
}

/// Encodes a reply: the bytes of the request, or why it was not signed.
///
/// # Errors
/// The reply is larger than [`FRAME_MAX`].
pub fn reply(id: u64, result: Result<Prepared, String>) -> Result<Vec<u8>, FrameError> {
    let result = result.map(|prepared| WirePrepared {
        path: prepared.path,
        query: prepared.query,
        headers: prepared
            .headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        body: prepared.body,
        method: METHODS
            .iter()
            .position(|method| *method == prepared.method)
            .unwrap_or_default() as u8,
    });
    frame(&WireReply { id, result })
}

/// Decodes the record of a reply. The signed text is not part of a reply: nothing in a run needs it.
///
/// # Errors
/// The record is not valid.
pub fn read_reply(record: &[u8]) -> Result<(u64, Result<Prepared, String>), FrameError> {
    let wrong = |what: &str| FrameError::Record(what.to_owned());
    let read: WireReply =
        from_bytes(record).map_err(|error| FrameError::Record(error.to_string()))?;
    let prepared = match read.result {
        Err(reason) => return Ok((read.id, Err(reason))),
        Ok(prepared) => prepared,
    };
    let mut headers = Vec::with_capacity(prepared.headers.len());
    for (name, value) in prepared.headers {
        let known = HEADERS.into_iter().find(|known| *known == name);
        headers.push((known.ok_or_else(|| wrong("an unknown header"))?, value));
    }
    let method = METHODS.get(usize::from(prepared.method));
    let prepared = Prepared {
        method: *method.ok_or_else(|| wrong("an unknown method"))?,
        path: prepared.path,
        query: prepared.query,
        headers,
        body: prepared.body,
        signed: None,
    };
    Ok((read.id, Ok(prepared)))
}

/// Collects bytes of a socket and gives out whole records.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// How many bytes at the front were given out.
    taken: usize,
}

impl Frames {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole record; `None` until more bytes arrive.
    ///
    /// # Errors
    /// The bytes are not a frame. The connection cannot be used any more.
    pub fn next_record(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let bytes = &self.bytes[self.taken..];
        let Some((head, rest)) = bytes.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length == 0 || length > FRAME_MAX {
            return Err(FrameError::Length(length));
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        self.taken += 4 + length;
        match content {
            [VERSION, record @ ..] => Ok(Some(record)),
            [other, ..] => Err(FrameError::Version(*other)),
            [] => Err(FrameError::Length(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unsigned(name: &str, pairs: &[(&str, &str)]) -> Unsigned {
        Unsigned {
            called_route: CalledRoute {
                route: route::named(name).unwrap(),
                version: Some(Version::V3),
            },
            parameters: pairs.iter().copied().collect(),
            stamp: Stamp {
                timestamp_ms: -1,
                nonce_us: 7,
                inner_nonce_us: u64::MAX,
            },
        }
    }

    #[test]
    fn requests_and_replies_survive_the_wire_in_any_pieces() {
        let first = unsigned(
            "futures.new_order",
            &[("symbol", "BTCUSDT"), ("side", "BUY")],
        );
        let second = unsigned("spot.account", &[]);
        let bytes = [request(1, &first).unwrap(), request(2, &second).unwrap()].concat();
        for piece in 1..bytes.len() {
            let mut frames = Frames::default();
            let mut found = Vec::new();
            for part in bytes.chunks(piece) {
                frames.push(part);
                while let Some(record) = frames.next_record().unwrap() {
                    found.push(read_request(record).unwrap());
                }
            }
            assert_eq!(found, [(1, first.clone()), (2, second.clone())]);
        }
        let prepared = Prepared {
            method: Method::Delete,
            path: "/fapi/v3/order".to_owned(),
            query: None,
            headers: vec![(API_KEY_HEADER, "k".to_owned())],
            body: Some("a=b".to_owned()),
            signed: None,
        };
        for result in [Ok(prepared), Err("no".to_owned())] {
            let mut frames = Frames::default();
            frames.push(&reply(9, result.clone()).unwrap());
            let read = read_reply(frames.next_record().unwrap().unwrap()).unwrap();
            assert_eq!(read, (9, result));
        }
    }

    #[test]
    fn long_frames_and_other_versions_are_refused() {
        let long = "x".repeat(FRAME_MAX);
        let long = unsigned("spot.account", &[("a", &long)]);
        assert!(matches!(request(1, &long), Err(FrameError::Length(_))));
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        assert_eq!(
            frames.next_record(),
            Err(FrameError::Length(u32::MAX as usize))
        );
        let mut frames = Frames::default();
        frames.push(&[1, 0, 0, 0, 9]);
        assert_eq!(frames.next_record(), Err(FrameError::Version(9)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_request(&bytes);
            let _ = read_reply(&bytes);
            let mut frames = Frames::default();
            frames.push(&bytes);
            while let Ok(Some(record)) = frames.next_record() {
                let _ = read_request(record);
            }
        }
    }
}
