//! The last values of a series, in one allocation.

/// A ring of the last `length` values.
#[derive(Clone, Debug)]
pub(super) struct Window<T> {
    values: Vec<T>,
    length: usize,
    /// Index of the oldest value when the ring is full.
    next: usize,
}

impl<T: Copy> Window<T> {
    /// A ring of `length` values; 0 counts as 1.
    pub(super) fn new(length: u32) -> Self {
        let length = length.max(1) as usize;
        Self {
            values: Vec::with_capacity(length),
            length,
            next: 0,
        }
    }

    /// Adds a value. When the ring is full, returns the value that it replaced.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> Option<T> {
        if self.values.len() < self.length {
            self.values.push(value);
            return None;
        }
        let old = std::mem::replace(&mut self.values[self.next], value);
        self.next += 1;
        if self.next == self.length {
            self.next = 0;
        }
        Some(old)
    }

    pub(super) const fn is_full(&self) -> bool {
        self.values.len() == self.length
    }

    pub(super) const fn len(&self) -> usize {
        self.values.len()
    }
}
