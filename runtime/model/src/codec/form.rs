//! The encodings of integers in both record formats.

/// An encoding of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Fixed length, little endian: format 1.
    Fixed,
    /// LEB128, with zigzag encoding of signed integers: since format 3.
    Short,
}

/// Maps small negative numbers to small unsigned numbers.
#[inline]
pub(super) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(super) const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

const fn zigzag_wide(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

/// The inverse of [`zigzag_wide`].
pub(super) const fn unzigzag_wide(value: u128) -> i128 {
    (value >> 1) as i128 ^ -((value & 1) as i128)
}

/// Writes the fields of a record.
pub(crate) struct Out<'a> {
    bytes: &'a mut Vec<u8>,
    form: Form,
}

impl<'a> Out<'a> {
    pub(crate) const fn new(bytes: &'a mut Vec<u8>, form: Form) -> Self {
        Self { bytes, form }
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn put_u16(&mut self, value: u16) {
        match self.form {
            Form::Fixed => self.put(&value.to_le_bytes()),
            Form::Short => self.put_short(value.into()),
        }
    }

    #[inline]
    pub(crate) fn put_u32(&mut self, value: u32) {
        match self.form {
            Form::Fixed => self.put(&value.to_le_bytes()),
            Form::Short => self.put_short(value.into()),
        }
    }

    #[inline]
    pub(crate) fn put_i32(&mut self, value: i32) {
        match self.form {
            Form::Fixed => self.put(&value.to_le_bytes()),
            Form::Short => self.put_short(zigzag(value.into())),
        }
    }

    #[inline]
    pub(crate) fn put_u64(&mut self, value: u64) {
        match self.form {
            Form::Fixed => self.put(&value.to_le_bytes()),
            Form::Short => self.put_short(value),
        }
    }

    #[inline]
    pub(crate) fn put_i64(&mut self, value: i64) {
        match self.form {
            Form::Fixed => self.put(&value.to_le_bytes()),
            Form::Short => self.put_short(zigzag(value)),
        }
    }

    pub(crate) fn put_i128(&mut self, value: i128) {
        match self.form {
            Form::Fixed => self.put(&value.to_le_bytes()),
            Form::Short => {
                let mut rest = zigzag_wide(value);
                if let Ok(small) = u64::try_from(rest) {
                    return self.put_short(small);
                }
                while rest >= 0x80 {
                    self.bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                self.bytes.push(rest as u8);
            }
        }
    }

    /// A number of variable length. Most take one byte.
    #[inline]
    pub(crate) fn put_short(&mut self, value: u64) {
        if value < 0x80 {
            self.bytes.push(value as u8);
        } else {
            self.put_long(value);
        }
    }

    fn put_long(&mut self, value: u64) {
        let mut small = Small::<10>::new();
        small.put(value);
        // A copy of a fixed length is faster than a copy of the exact length.
        let len = self.bytes.len() + small.len;
        self.bytes.extend_from_slice(&small.bytes);
        self.bytes.truncate(len);
    }

    pub(crate) const fn form(&self) -> Form {
        self.form
    }
}

/// A stack buffer for a few numbers of variable length, to append them at once.
pub(super) struct Small<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Small<N> {
    #[inline]
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; N],
            len: 0,
        }
    }

    #[inline]
    pub(super) const fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Sets bits in the first byte.
    #[inline]
    pub(super) const fn flag(&mut self, bits: u8) {
        self.bytes[0] |= bits;
    }

    #[inline]
    pub(super) const fn put(&mut self, value: u64) {
        let mut rest = value;
        while rest >= 0x80 {
            self.byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.byte(rest as u8);
    }

    #[inline]
    pub(super) const fn put_signed(&mut self, value: i64) {
        self.put(zigzag(value));
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
