//! The byte stream under a WebSocket, with two bounds against a hostile venue.
//!
//! The WebSocket library reads until a message is complete, and checks only the length of a
//! message. Empty fragments add nothing to the length. So a venue that sends them without an end
//! would keep the library in its loop, and no other task of the thread would run.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::fragments::Fragments;

/// Most bytes of one read.
pub(super) const READ_MAX: usize = 16 << 10;

/// Most bytes that are read before other tasks run.
const TURN_MAX: usize = 64 << 10;

/// A stream that lets other tasks run after [`TURN_MAX`] bytes, and ends with an error after a
/// message of too many fragments. It carries the venue's response to the handshake and then its
/// frames, so TLS is below it.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    stream: S,
    /// Bytes since the task last returned to its executor.
    turn: usize,
    fragments: Fragments,
}

impl<S> Bounded<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            turn: 0,
            fragments: Fragments::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The bytes of the read before are passed on first, because they may end with the venue's
        // refusal of the handshake, or with a complete message.
        self.fragments.check()?;
        if self.turn >= TURN_MAX {
            self.turn = 0;
            // Unlike a plain wake, this also lets the runtime look for events of sockets and timers.
            let _ = pin!(tokio::task::yield_now()).poll(cx);
            return Poll::Pending;
        }
        let length = buf.remaining().min(READ_MAX);
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(length));
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        if read.is_pending() {
            self.turn = 0;
        }
        ready!(read)?;
        self.turn += part.filled().len();
        self.fragments.read(part.filled());
        let filled = part.filled().len();
        buf.advance(filled);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Error;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    /// Bytes after which the venue ends, so that a reader without bounds fails instead of hanging.
    const END: usize = 16 << 20;

    /// A venue that always has more bytes: its response to the handshake, then `frame` again and
    /// again. It counts what was read.
    struct Endless {
        head: &'static [u8],
        frame: &'static [u8],
        read: usize,
    }

    impl AsyncRead for Endless {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            while buf.remaining() > 0 && self.read < END {
                let byte = match self.head.get(self.read) {
                    Some(byte) => *byte,
                    None => self.frame[(self.read - self.head.len()) % self.frame.len()],
                };
                buf.put_slice(&[byte]);
                self.read += 1;
            }
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn endless(head: &'static [u8], frame: &'static [u8]) -> Bounded<Endless> {
        Bounded::new(Endless {
            head,
            frame,
            read: 0,
        })
    }

    #[tokio::test]
    async fn a_reader_returns_to_the_executor_after_64_kib() {
        let mut stream = endless(b"HTTP/1.1 101 \r\n\r\n", b"\x82\x00");
        let mut buf = vec![0; 1 << 20];
        for turn in 1..=3 {
            let pending = std::future::poll_fn(|cx| {
                loop {
                    let mut buf = ReadBuf::new(&mut buf);
                    if Pin::new(&mut stream).poll_read(cx, &mut buf).is_pending() {
                        return Poll::Ready(());
                    }
                    assert!((1..=READ_MAX).contains(&buf.filled().len()));
                }
            });
            pending.await;
            assert_eq!(stream.stream.read, turn * TURN_MAX);
        }
    }

    #[tokio::test]
    async fn a_long_message_leaves_turns_to_other_tasks() {
        let stream = endless(
            b"HTTP/1.1 101 \r\n\r\n",
            b"\x82\x7f\x00\x00\x00\x00\x00\x40\x00\x00",
        );
        let mut socket = handshaken(stream).await;
        let before = socket.get_ref().stream.read;
        assert!(socket.next().now_or_never().is_none());
        let read = socket.get_ref().stream.read - before;
        assert!(read <= TURN_MAX, "{read} bytes in one poll");
    }

    #[tokio::test]
    async fn endless_empty_fragments_end_the_connection() {
        let stream = endless(b"HTTP/1.1 101 \r\n\r\n\x01\x01[", b"\x00\x00");
        let mut socket = handshaken(stream).await;
        let message = socket.next().now_or_never();
        let Some(Some(Err(Error::Io(error)))) = message else {
            panic!("{message:?}")
        };
        assert!(error.to_string().contains("fragments"), "{error}");
        assert!(socket.get_ref().stream.read <= TURN_MAX);
    }

    /// A WebSocket behind the head of the venue's response.
    async fn handshaken(mut stream: Bounded<Endless>) -> WebSocketStream<Bounded<Endless>> {
        use tokio::io::AsyncReadExt;

        let mut head = [0; b"HTTP/1.1 101 \r\n\r\n".len()];
        stream.read_exact(&mut head).await.unwrap();
        WebSocketStream::from_raw_socket(stream, Role::Client, None).await
    }
}
