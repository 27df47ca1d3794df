//! The venue's language, pure: bytes to engine input, engine request to bytes.
