//! Bytes from front to back, each step checked: nothing here panics or allocates more than the
//! bytes that are there.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decimal::Amount;
use crate::ids::{ClientOrderId, InstrumentId, StrategyId, Time};

use super::form::{Form, unzigzag, unzigzag_wide};

/// Why bytes are no records of this format. Offsets are of the field within the bytes given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within a field.
    #[error("{field} at byte {offset} needs {needed} more bytes, {left} are left: cut off?")]
    Truncated {
        /// The field.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// What it needs.
        needed: usize,
        /// What is there.
        left: usize,
    },
    /// No record has this kind.
    #[error("unknown kind of record {kind} at byte {offset}: damaged, or of a newer version?")]
    UnknownKind {
        /// Where.
        offset: usize,
        /// The kind.
        kind: u8,
    },
    /// The field has no such value.
    #[error("{field} at byte {offset} has no value {code}: damaged, or of a newer version?")]
    Code {
        /// The field.
        field: &'static str,
        /// Where.
        offset: usize,
        /// The value found.
        code: i64,
    },
    /// A text that is not UTF-8, a client order id outside its rules, or a value that no writer
    /// would write so.
    #[error("{field} at byte {offset} is no value of its kind: damaged?")]
    Text {
        /// The field.
        field: &'static str,
        /// Where.
        offset: usize,
    },
}

/// What is left of the bytes.
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

    /// An integer of format 1: all of its bytes.
    fn fixed<const N: usize, T>(
        &mut self,
        field: &'static str,
        value: impl FnOnce([u8; N]) -> T,
    ) -> Read<T> {
        self.array(field).map(value)
    }

    /// An integer as short as it can be; a longer one is an error, so that there is one encoding.
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

    /// A 64-bit number of the present format.
    pub(super) fn short(&mut self, field: &'static str) -> Read<u64> {
        // Most numbers have one byte.
        if let Some(byte) = self.bytes.get(self.offset)
            && *byte < 0x80
        {
            self.offset += 1;
            return Ok(u64::from(*byte));
        }
        self.varint(field, 64).map(|value| value as u64)
    }

    /// A signed one.
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

    /// A byte that stands for one of a closed set of values.
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

    /// Likewise, where 255 stands for nothing.
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

    /// An optional value: a byte of presence, then the value.
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

    /// A counted list. Memory grows with what is read, never with what the count claims.
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

    /// A value in the form of its type, after its length.
    pub(super) fn rare<T: DeserializeOwned + Serialize>(&mut self, field: &'static str) -> Read<T> {
        let len = self.u32(field)?;
        let offset = self.offset;
        let bytes = self.take(field, len as usize)?;
        // Only what a writer would write is read.
        postcard::from_bytes(bytes)
            .ok()
            .filter(|value| postcard::to_stdvec(value).is_ok_and(|own| own == bytes))
            .ok_or(DecodeError::Text { field, offset })
    }

    /// A decimal in the 16 bytes of its own form.
    pub(super) fn decimal(&mut self, field: &'static str) -> Read<crate::Decimal> {
        let offset = self.offset;
        let bytes = self.array(field)?;
        let value = crate::Decimal::deserialize(bytes);
        // Any 16 bytes give a decimal; only its own form is what a writer wrote.
        if value.serialize() == bytes {
            Ok(value)
        } else {
            Err(DecodeError::Text { field, offset })
        }
    }
}
