//! Secrets that can be read only once: from an environment variable that is erased, and from a
//! descriptor. They stay in the memory of the process, because a process that it starts may need
//! them, such as the watchdog of spot orders.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::sync::{Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::Secret;

/// Where a kept secret came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// An environment variable.
    Env(String),
    /// A descriptor.
    Descriptor(u32),
}

static STORE: Mutex<BTreeMap<Slot, SecretString>> = Mutex::new(BTreeMap::new());

pub(crate) fn get(slot: &Slot) -> Option<SecretString> {
    let store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    store.get(slot).cloned()
}

pub(crate) fn put(slot: Slot, secret: SecretString) {
    let mut store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    store.insert(slot, secret);
}

/// Wipes the kept texts of these secrets: another process has them now.
pub fn forget_secrets(secrets: &[&Secret]) {
    let mut store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    for secret in secrets {
        let slot = match secret {
            Secret::Env(name) => Slot::Env(name.clone()),
            Secret::Descriptor(number) => Slot::Descriptor(*number),
            Secret::File(_) | Secret::Credential(_) => continue,
        };
        store.remove(&slot);
    }
}

/// The kept secrets as one line of text, for a child process that must read the same configuration;
/// `None` if there are none. The child reads it with [`take_secrets`].
pub fn secrets_line() -> Option<Zeroizing<String>> {
    let store = STORE.lock().unwrap_or_else(PoisonError::into_inner);
    if store.is_empty() {
        return None;
    }
    let names: Vec<_> = store
        .iter()
        .map(|(slot, secret)| (slot.name(), secret))
        .collect();
    let entry = |(name, secret): &(String, &SecretString)| {
        2 * (name.len() + secret.expose_secret().len()) + 2
    };
    // Reserve enough space at once: a `String` that grows leaves unwiped copies in memory.
    let length = names.iter().map(entry).sum();
    let mut line = Zeroizing::new(String::with_capacity(length));
    for (name, secret) in &names {
        push_hex(&mut line, name);
        line.push('=');
        push_hex(&mut line, secret.expose_secret());
        line.push(',');
    }
    Some(line)
}

/// Keeps the secrets in the first line of `reader`, which [`secrets_line`] made in another process.
///
/// # Errors
/// The line cannot be read, or is another one.
pub fn take_secrets(reader: &mut impl BufRead) -> io::Result<()> {
    const LINE_MAX: usize = 1024 * 1024;
    let mut line = Zeroizing::new(String::with_capacity(LINE_MAX));
    io::Read::take(&mut *reader, LINE_MAX as u64).read_line(&mut line)?;
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the line has no secrets");
    for entry in line.trim_end().split_terminator(',') {
        let (name, secret) = entry.split_once('=').ok_or_else(invalid)?;
        let (name, secret) = (from_hex(name), from_hex(secret));
        let slot = name.and_then(|name| Slot::of(&name)).ok_or_else(invalid)?;
        let secret = secret.ok_or_else(invalid)?;
        put(slot, SecretString::from(secret.as_str()));
    }
    Ok(())
}

impl Slot {
    fn name(&self) -> String {
        match self {
            Self::Env(name) => format!("env {name}"),
            Self::Descriptor(number) => format!("fd {number}"),
        }
    }

    fn of(name: &str) -> Option<Self> {
        match name.split_once(' ')? {
            ("env", name) => Some(Self::Env(name.to_owned())),
            ("fd", number) => Some(Self::Descriptor(number.parse().ok()?)),
            _ => None,
        }
    }
}

fn push_hex(line: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in text.bytes() {
        line.push(char::from(DIGITS[usize::from(byte >> 4)]));
        line.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<String>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    for [high, low] in pairs {
        bytes.push(u8::try_from(digit(high)? << 4 | digit(low)?).ok()?);
    }
    let text = std::str::from_utf8(&bytes)
        .ok()
        .filter(|_| rest.is_empty())?;
    Some(Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_secrets_pass_to_another_process_in_one_line() {
        let slots = [
            Slot::Env("WINDVANE_TEST_STORE".to_owned()),
            Slot::Descriptor(700),
        ];
        for slot in &slots {
            put(slot.clone(), SecretString::from("a=b,\u{e4} c"));
        }
        let line = secrets_line().unwrap();
        assert!(!line.contains('\n') && !line.contains("a=b"), "{}", *line);
        for slot in &slots {
            put(slot.clone(), SecretString::from("other"));
        }
        let mut text = line.as_bytes().to_vec();
        text.extend(b"\nmore\n");
        let mut reader = text.as_slice();
        take_secrets(&mut reader).unwrap();
        assert_eq!(reader, b"more\n");
        for slot in &slots {
            assert_eq!(get(slot).unwrap().expose_secret(), "a=b,\u{e4} c");
        }
        assert!(take_secrets(&mut "{}\n".as_bytes()).is_err());
    }
}
