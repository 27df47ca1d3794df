//! Opens and reads files that other people may have prepared: only regular files, and at most a
//! stated number of bytes. A pipe would block the program until somebody writes into it, and a
//! device such as `/dev/zero` never ends.

use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading. It never waits, also not for the writer of a pipe.
///
/// # Errors
/// The file cannot be opened, or it is not a regular file. The check is made on the open file, so
/// nobody can exchange the file after it.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // Without NONBLOCK, opening a pipe waits for a writer. It has no effect on a regular file.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        Ok(file)
    } else {
        let what = kind_name(kind);
        Err(refused(format!(
            "is {what}; only a regular file can be read here"
        )))
    }
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
/// As [`open_regular`]; or the file is longer, or the disk failed.
pub fn read_bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_open(open_regular(path)?, max)
}

/// Reads an open file of UTF-8 text, of at most `max` bytes.
///
/// # Errors
/// As [`read_text_bounded`], without those of the path.
pub fn read_open_text(file: File, max: u64) -> io::Result<String> {
    into_text(read_open(file, max)?)
}

fn read_open(file: File, max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > max {
        return Err(too_long(length, max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file may grow while it is read.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    if read > max {
        return Err(too_long(read, max));
    }
    Ok(bytes)
}

/// Reads a regular file of UTF-8 text, of at most `max` bytes.
///
/// # Errors
/// As [`read_bounded`], or the file is not UTF-8.
pub fn read_text_bounded(path: &Path, max: u64) -> io::Result<String> {
    into_text(read_bounded(path, max)?)
}

fn into_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refused(format!("is not UTF-8 text: the byte at {at} is wrong"))
    })
}

fn too_long(length: u64, max: u64) -> io::Error {
    refused(format!(
        "has {length} bytes or more, and at most {max} bytes are read"
    ))
}

fn refused(reason: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, reason)
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str) -> String {
        read_bounded(Path::new(path), 10).unwrap_err().to_string()
    }

    #[test]
    fn a_file_up_to_the_limit_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [b'x'; 10]).unwrap();
        assert_eq!(read_bounded(&path, 10).unwrap().len(), 10);
        assert_eq!(read_text_bounded(&path, 10).unwrap(), "xxxxxxxxxx");
        let long = read_bounded(&path, 9).unwrap_err().to_string();
        assert_eq!(long, "has 10 bytes or more, and at most 9 bytes are read");
        std::fs::write(&path, b"ab\xff").unwrap();
        let error = read_text_bounded(&path, 10).unwrap_err().to_string();
        assert_eq!(error, "is not UTF-8 text: the byte at 2 is wrong");
    }

    #[test]
    fn devices_and_folders_are_refused() {
        let device = "is a device; only a regular file can be read here";
        assert_eq!(refusal("/dev/zero"), device);
        assert!(refusal("/").starts_with("is a folder"));
    }

    /// A file of `/proc` states the length 0, and has content.
    #[test]
    fn a_file_that_is_longer_than_it_states_is_refused() {
        if Path::new("/proc/self/status").exists() {
            assert!(refusal("/proc/self/status").contains("at most 10 bytes"));
        }
    }

    #[test]
    fn a_pipe_without_a_writer_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        assert!(refusal(path.to_str().unwrap()).starts_with("is a pipe"));
    }
}
