//! The mutual proof over TCP. A stale `admin.addr` may contain a port that another program uses now.
//! So the client sends the token to nobody:
//!
//! 1. The client sends a random nonce to `GET /proof`. The server answers with a nonce of its own and
//!    an HMAC of both with the token as the key. A program without the token cannot do that.
//! 2. The client sends its request with an HMAC over the server's nonce, method, path and body. The
//!    server takes a nonce once, and only within [`NONCE_FOR`].
//! 3. The server answers with an HMAC over the nonce, the status and the body. So a program between
//!    the two cannot claim that a command was carried out.
//!
//! The Unix socket needs none of this: the kernel tells each side the user of the other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use crate::token::{Token, TokenError, mac, random};

/// The path of the challenge. The query has the client's nonce.
pub(crate) const PATH: &str = "/proof";
/// The scheme of the `Authorization` header: `Windvane NONCE:MAC`, both in hex.
pub(crate) const SCHEME: &str = "windvane ";
/// The header of the answer's proof.
pub(crate) const ANSWER_HEADER: &str = "windvane-proof";
/// How long the server accepts its nonce.
pub(crate) const NONCE_FOR: Duration = Duration::from_secs(10);

const CLIENT_NONCE_BYTES: usize = 32;
const SERVER: &[u8] = b"windvane admin server";
const REQUEST: &[u8] = b"windvane admin request";
const ANSWER: &[u8] = b"windvane admin answer";

/// The server's answer to a challenge.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Challenge {
    /// For one request of the client.
    pub(crate) nonce: String,
    /// The server's proof that it knows the token.
    pub(crate) proof: String,
}

/// A new nonce of the client, in hex.
pub(crate) fn client_nonce() -> Result<String, TokenError> {
    Ok(hex::encode(random::<CLIENT_NONCE_BYTES>()?))
}

/// Whether a text is a nonce of a client.
pub(crate) fn is_client_nonce(text: &str) -> bool {
    text.len() == 2 * CLIENT_NONCE_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Token {
    /// The server's proof for both nonces.
    pub(crate) fn server_proof(&self, client: &str, server: &str) -> String {
        hex::encode(self.mac(&[SERVER, client.as_bytes(), server.as_bytes()]))
    }

    /// Whether the challenge was answered by a server that knows the token.
    pub(crate) fn is_server(&self, client: &str, answer: &Challenge) -> bool {
        let parts = [SERVER, client.as_bytes(), answer.nonce.as_bytes()];
        self.verifies(&parts, answer.proof.as_bytes())
    }

    /// The value of the `Authorization` header of one request.
    pub(crate) fn authorization(
        &self,
        nonce: &str,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> String {
        let mac = hex::encode(self.mac(&request_parts(nonce, method, path, body)));
        format!("Windvane {nonce}:{mac}")
    }

    /// Whether `given` is the client's proof of one request.
    pub(crate) fn is_request(
        &self,
        (nonce, given): (&str, &str),
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> bool {
        let parts = request_parts(nonce, method, path, body);
        self.verifies(&parts, given.as_bytes())
    }

    /// The server's proof of one answer.
    pub(crate) fn answer_proof(&self, nonce: &str, status: u16, body: &[u8]) -> String {
        hex::encode(self.mac(&[ANSWER, nonce.as_bytes(), &status.to_be_bytes(), body]))
    }

    /// Whether `given` is the server's proof of one answer.
    pub(crate) fn is_answer(&self, nonce: &str, status: u16, body: &[u8], given: &[u8]) -> bool {
        let status = status.to_be_bytes();
        self.verifies(&[ANSWER, nonce.as_bytes(), &status, body], given)
    }
}

fn request_parts<'a>(
    nonce: &'a str,
    method: &'a Method,
    path: &'a str,
    body: &'a [u8],
) -> [&'a [u8]; 5] {
    let (nonce, method) = (nonce.as_bytes(), method.as_str().as_bytes());
    [REQUEST, nonce, method, path.as_bytes(), body]
}

/// The nonces of a server. It stores only the used ones, which a client without the token cannot
/// add: a flood of challenges cannot displace the nonce of the operator.
#[derive(Debug)]
pub(crate) struct Nonces {
    /// Marks own nonces.
    key: [u8; 32],
    started: Instant,
    /// Used nonces, and when they end.
    used: Mutex<BTreeMap<String, Instant>>,
}

const TIME: usize = 16;
const RANDOM: usize = 32;
const MARK: usize = 64;

impl Nonces {
    pub(crate) fn new() -> Result<Self, TokenError> {
        Ok(Self {
            key: random()?,
            started: Instant::now(),
            used: Mutex::new(BTreeMap::new()),
        })
    }

    /// A new nonce: time, random bytes and the mark of this server, in hex.
    pub(crate) fn issue(&self) -> Result<String, TokenError> {
        let now = self.started.elapsed().as_millis() as u64;
        let text = format!("{now:016x}{}", hex::encode(random::<{ RANDOM / 2 }>()?));
        let mark = hex::encode(mac(&self.key, &[text.as_bytes()]));
        Ok(text + &mark)
    }

    /// Whether this is an own nonce that is not too old.
    pub(crate) fn is_valid(&self, nonce: &str) -> bool {
        if nonce.len() != TIME + RANDOM + MARK || !nonce.is_ascii() {
            return false;
        }
        let (text, given) = nonce.split_at(TIME + RANDOM);
        let mark = hex::encode(mac(&self.key, &[text.as_bytes()]));
        let is_own: bool = mark.as_bytes().ct_eq(given.as_bytes()).into();
        let issued = u64::from_str_radix(&text[..TIME], 16).map(Duration::from_millis);
        is_own && issued.is_ok_and(|issued| self.started.elapsed() <= issued + NONCE_FOR)
    }

    /// Marks a valid nonce as used; `false` if it was used before. To be called only for a request
    /// with the right proof.
    pub(crate) fn spend(&self, nonce: &str) -> bool {
        let now = Instant::now();
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, until| *until >= now);
        // One second more than a nonce is valid, because its time is in whole milliseconds.
        let until = now + NONCE_FOR + Duration::from_secs(1);
        used.insert(nonce.to_owned(), until).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(letter: &str) -> Token {
        Token::from_text(&letter.repeat(32), "test").unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_nonce_is_valid_once_and_for_a_short_time() {
        let (nonces, others) = (Nonces::new().unwrap(), Nonces::new().unwrap());
        let nonce = nonces.issue().unwrap();
        assert!(nonces.is_valid(&nonce));
        assert!(nonces.spend(&nonce) && !nonces.spend(&nonce));
        assert!(!others.is_valid(&nonce), "of another start");
        for wrong in ["", &nonce[1..], &nonce.to_uppercase(), &"ä".repeat(56)] {
            assert!(!nonces.is_valid(wrong), "{wrong}");
        }
        tokio::time::advance(NONCE_FOR + Duration::from_millis(2)).await;
        assert!(!nonces.is_valid(&nonce));
        let next = nonces.issue().unwrap();
        tokio::time::advance(NONCE_FOR).await;
        assert!(nonces.spend(&next));
        assert_eq!(
            nonces.used.lock().unwrap().len(),
            1,
            "the old one is forgotten"
        );
    }

    #[test]
    fn only_the_token_proves_a_side() {
        let (ours, other) = (token("a"), token("b"));
        let client = client_nonce().unwrap();
        assert!(is_client_nonce(&client));
        let answer = |token: &Token| Challenge {
            nonce: "n".to_owned(),
            proof: token.server_proof(&client, "n"),
        };
        assert!(ours.is_server(&client, &answer(&ours)));
        assert!(!ours.is_server(&client, &answer(&other)));
        assert!(
            !ours.is_server(&client_nonce().unwrap(), &answer(&ours)),
            "a repeated answer"
        );

        let sent = ours.authorization("n", &Method::POST, "/api/halt", b"{}");
        let given = sent.split_once(' ').unwrap().1.split_once(':').unwrap();
        assert!(ours.is_request(given, &Method::POST, "/api/halt", b"{}"));
        assert!(!ours.is_request(given, &Method::POST, "/api/resume", b"{}"));
        assert!(!ours.is_request(given, &Method::GET, "/api/halt", b"{}"));
        assert!(!ours.is_request(given, &Method::POST, "/api/halt", b"{ }"));
        assert!(!other.is_request(given, &Method::POST, "/api/halt", b"{}"));

        let proof = ours.answer_proof("n", 200, b"halted");
        assert!(ours.is_answer("n", 200, b"halted", proof.as_bytes()));
        assert!(!ours.is_answer("m", 200, b"halted", proof.as_bytes()));
        assert!(!ours.is_answer("n", 409, b"halted", proof.as_bytes()));
    }
}
