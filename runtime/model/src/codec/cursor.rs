//! Reads bytes from front to back and checks each step. Nothing here panics, or allocates more than
//! the bytes that are present.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decimal::Amount;
use crate::ids::{ClientOrderId, InstrumentId, StrategyId, Time};

use super::form::{Form, unzigzag, unzigzag_wide};

/// Why bytes are not valid records of this format. Offsets are positions of the field within the
/// given bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within a field.
    #[error("{field} at byte {offset} needs {needed} bytes, but {left} are left: truncated data?")]
    Truncated {
        /// Name of the field.
        field: &'static str,
        /// Offset where the field starts.
        offset: usize,
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// The kind of record is unknown.
    #[error("unknown record kind {kind} at byte {offset}: damaged, or from a newer version?")]
    UnknownKind {
        /// Offset of the value.
        offset: usize,
        /// The unknown kind.
        kind: u8,
    },
    /// The value is not valid for the field.
    #[error("{field} at byte {offset} cannot be {code}: damaged, or from a newer version?")]
    Code {
        /// Name of the field.
        field: &'static str,
        /// Offset of the value.
        offset: usize,
        /// The value that was read.
        code: i64,
    },
    /// A text that is not UTF-8, an invalid client order id, or a value that no writer would encode
    /// this way.
    #[error("{field} at byte {offset} is not a valid value: damaged data?")]
    Text {
        /// Name of the field.
        field: &'static str,
        /// Offset of the value.
        offset: usize,
    },
}

/// The bytes that are left to read.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
    form: Form,
}

pub(super) type Read<T> = Result<T, DecodeError>;

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a [u8], form: Form) -> Self {
        Self {
            bytes,
            offset: 0,
            form,
        }
    }

    pub(super) const fn form(&self) -> Form {
        self.form
    }

    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.offset >= self.bytes.len()
    }

    pub(super) const fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.offset)
    }

    fn take(&mut self, field: &'static str, len: usize) -> Read<&'a [u8]> {
        let rest = &self.bytes[self.offset..];
        let Some(taken) = rest.get(..len) else {
            return Err(DecodeError::Truncated {
                field,
                offset: self.offset,
                needed: len,
                left: rest.len(),
            });
        };
        self.offset += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Read<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(field, N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Read<u8> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// An integer of format 1, which has a fixed length.
    fn fixed<const N: usize, T>(
        &mut self,
        field: &'static str,
        value: impl FnOnce([u8; N]) -> T,
    ) -> Read<T> {
        self.array(field).map(value)
    }

    /// An integer of variable length. A longer encoding than necessary is an error, so that each
    /// value has only one encoding.
    fn varint(&mut self, field: &'static str, bits: u32) -> Read<u128> {
        let offset = self.offset;
        let (mut value, mut shift) = (0_u128, 0);
        loop {
            let byte = self.u8(field)?;
            let part = u128::from(byte & 0x7f);
            let is_last = byte & 0x80 == 0;
            let fits = shift < bits && (bits - shift >= 7 || part >> (bits - shift) == 0);
            let is_padded = is_last && byte == 0 && shift > 0;
            if !fits || is_padded {
                return Err(DecodeError::Text { field, offset });
            }
            value |= part << shift;
            if is_last {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A 64-bit number of variable length.
    pub(super) fn short(&mut self, field: &'static str) -> Read<u64> {
        // Most numbers take one byte.
        if let Some(byte) = self.bytes.get(self.offset)
            && *byte < 0x80
        {
            self.offset += 1;
            return Ok(u64::from(*byte));
        }
        self.varint(field, 64).map(|value| value as u64)
    }

    /// A signed 64-bit number of variable length.
    pub(super) fn short_signed(&mut self, field: &'static str) -> Read<i64> {
        self.short(field).map(unzigzag)
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Read<u16> {
        match self.form {
            Form::Fixed => self.fixed(field, u16::from_le_bytes),
            Form::Short => self.varint(field, 16).map(|value| value as u16),
        }
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Read<u32> {
        match self.form {
            Form::Fixed => self.fixed(field, u32::from_le_bytes),
            Form::Short => self.varint(field, 32).map(|value| value as u32),
        }
    }

    pub(super) fn i32(&mut self, field: &'static str) -> Read<i32> {
        match self.form {
            Form::Fixed => self.fixed(field, i32::from_le_bytes),
            Form::Short => {
                let value = self.varint(field, 32)?;
                Ok(unzigzag(value as u64) as i32)
            }
        }
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Read<u64> {
        match self.form {
            Form::Fixed => self.fixed(field, u64::from_le_bytes),
            Form::Short => self.short(field),
        }
    }

    pub(super) fn i64(&mut self, field: &'static str) -> Read<i64> {
        match self.form {
            Form::Fixed => self.fixed(field, i64::from_le_bytes),
            Form::Short => self.short_signed(field),
        }
    }

    pub(super) fn amount(&mut self, field: &'static str) -> Read<Amount> {
        match self.form {
            Form::Fixed => self.fixed(field, i128::from_le_bytes),
            Form::Short => self.varint(field, 128).map(unzigzag_wide),
        }
        .map(Amount)
    }

    pub(super) fn time(&mut self, field: &'static str) -> Read<Time> {
        self.i64(field).map(Time)
    }

    pub(super) fn instrument(&mut self) -> Read<InstrumentId> {
        self.u16("instrument").map(InstrumentId)
    }

    pub(super) fn strategy(&mut self) -> Read<StrategyId> {
        self.u16("strategy").map(StrategyId)
    }

    /// A byte that encodes one of a closed set of values.
    pub(super) fn code<T>(
        &mut self,
        field: &'static str,
        value: impl FnOnce(u8) -> Option<T>,
    ) -> Read<T> {
        let offset = self.offset;
        let code = self.u8(field)?;
        value(code).ok_or(DecodeError::Code {
            field,
            offset,
            code: code.into(),
        })
    }

    /// A byte that encodes one of a closed set of values; 255 means `None`.
    pub(super) fn code_or_none<T>(
        &mut self,
        field: &'static str,
        value: impl FnOnce(u8) -> Option<T>,
    ) -> Read<Option<T>> {
        if self.bytes.get(self.offset) == Some(&u8::MAX) {
            self.offset += 1;
            return Ok(None);
        }
        self.code(field, value).map(Some)
    }

    pub(super) fn bool(&mut self, field: &'static str) -> Read<bool> {
        self.code(field, |code| match code {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }

    /// An optional value: a presence byte, then the value.
    pub(super) fn option<T>(
        &mut self,
        field: &'static str,
        value: impl FnOnce(&mut Self) -> Read<T>,
    ) -> Read<Option<T>> {
        let present = self.bool(field)?;
        present.then(|| value(self)).transpose()
    }

    /// A 64-bit number that must fit a smaller type.
    pub(super) fn narrow<T: TryFrom<i64>>(&mut self, field: &'static str) -> Read<T> {
        let offset = self.offset;
        let code = self.i64(field)?;
        T::try_from(code).map_err(|_| DecodeError::Code {
            field,
            offset,
            code,
        })
    }

    /// A list after its length. Memory grows with the items that are read, not with the stated
    /// length.
    pub(super) fn list<T>(
        &mut self,
        field: &'static str,
        mut item: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let count = self.u32(field)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn bytes(&mut self, field: &'static str) -> Read<Vec<u8>> {
        let len = self.u32(field)?;
        Ok(self.take(field, len as usize)?.to_vec())
    }

    pub(super) fn text(&mut self, field: &'static str) -> Read<&'a str> {
        let len = self.u32(field)?;
        let offset = self.offset;
        let bytes = self.take(field, len as usize)?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::Text { field, offset })
    }

    pub(super) fn client_order_id(&mut self) -> Read<ClientOrderId> {
        let field = "client order id";
        let len = self.u8(field)?;
        let offset = self.offset;
        let bytes = self.take(field, usize::from(len))?;
        std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| ClientOrderId::new(text).ok())
            .ok_or(DecodeError::Text { field, offset })
    }

    /// A value in its serialized form, after its length.
    pub(super) fn rare<T: DeserializeOwned + Serialize>(&mut self, field: &'static str) -> Read<T> {
        let len = self.u32(field)?;
        let offset = self.offset;
        let bytes = self.take(field, len as usize)?;
        // Accepts only the bytes that a writer would write.
        postcard::from_bytes(bytes)
            .ok()
            .filter(|value| postcard::to_stdvec(value).is_ok_and(|own| own == bytes))
            .ok_or(DecodeError::Text { field, offset })
    }

    /// A decimal in its own 16-byte form.
    pub(super) fn decimal(&mut self, field: &'static str) -> Read<crate::Decimal> {
        let offset = self.offset;
        let bytes = self.array(field)?;
        let value = crate::Decimal::deserialize(bytes);
        // Any 16 bytes decode to a decimal. Accept only the canonical form, which a writer writes.
        if value.serialize() == bytes {
            Ok(value)
        } else {
            Err(DecodeError::Text { field, offset })
        }
    }
}
