//! Lines from another process. A process that writes no line end must not fill the memory.

use std::io::{BufRead, BufReader, ErrorKind, Read};

/// The lines of a pipe or a socket, without their line ends. A line is cut at a stated number of
/// bytes, and the rest of it is skipped. Bytes that are not UTF-8 become `U+FFFD`. An error of the
/// reader ends the lines.
#[derive(Debug)]
pub struct BoundedLines<R> {
    reader: BufReader<R>,
    max: usize,
}

impl<R: Read> BoundedLines<R> {
    /// The lines of `reader`, each of at most `max` bytes.
    pub fn new(reader: R, max: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            max,
        }
    }

    /// The reader. Bytes that are already in the buffer are not in it any more.
    pub fn get_ref(&self) -> &R {
        self.reader.get_ref()
    }
}

impl<R: Read> Iterator for BoundedLines<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let mut is_begun = false;
        loop {
            let read = match self.reader.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => &[],
            };
            if read.is_empty() && !is_begun {
                return None;
            }
            is_begun = true;
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let room = self.max - line.len();
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            let is_last = end.is_some() || read.is_empty();
            self.reader.consume(used);
            if is_last {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], max: usize) -> Vec<String> {
        BoundedLines::new(text, max).collect()
    }

    #[test]
    fn lines_are_separated_as_usual() {
        assert!(lines(b"", 9).is_empty());
        assert_eq!(lines(b"one\r\n\ntwo", 9), ["one", "", "two"]);
        assert_eq!(lines(b"one\n", 9), ["one"]);
        assert_eq!(lines(b"a\xffb\n", 9), ["a\u{fffd}b"]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_read() {
        let mut text = vec![b'x'; 100_000];
        text.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&text, 3), ["xxx", "nex"]);
    }

    #[test]
    fn a_text_without_a_line_end_takes_the_memory_of_one_line() {
        let endless = std::io::repeat(b'x').take(16 << 20);
        let mut lines = BoundedLines::new(endless, 1000);
        let line = lines.next().unwrap();
        assert!(line.len() == 1000 && line.capacity() < 3000);
        assert_eq!(lines.next(), None);
    }
}
