//! State to keep over a restart or a hot swap, as a sequence of integers.

/// Writes the values of a state.
#[derive(Clone, Debug, Default)]
pub struct StateWriter {
    bytes: Vec<u8>,
}

impl StateWriter {
    /// A state without values.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }
    /// Appends a value.
    #[must_use]
    pub fn put(mut self, value: i64) -> Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }
    /// Returns the state.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads the values of a state in the order in which they were written.
#[derive(Clone, Debug)]
pub struct StateReader<'a> {
    rest: &'a [u8],
}

impl<'a> StateReader<'a> {
    /// A reader for the bytes of [`StateWriter::finish`].
    pub const fn new(state: &'a [u8]) -> Self {
        Self { rest: state }
    }
    /// Returns the next value.
    pub fn take(&mut self) -> Result<i64, String> {
        match self.rest.split_first_chunk::<8>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(i64::from_le_bytes(*bytes))
            }
            None => Err("the state is too short".to_owned()),
        }
    }
    /// Fails if values are left.
    pub fn finish(self) -> Result<(), String> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(format!("the state has {} bytes too many", self.rest.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order() {
        let bytes = StateWriter::new().put(1).put(i64::MIN).finish();
        let mut reader = StateReader::new(&bytes);
        assert_eq!((reader.take(), reader.take()), (Ok(1), Ok(i64::MIN)));
        assert!(reader.clone().take().is_err());
        assert_eq!(reader.finish(), Ok(()));
        assert!(StateReader::new(&bytes).finish().is_err());
    }
}
