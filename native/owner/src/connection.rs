//! One TCP connection to the coordinator: bytes in, frames out, and the other way round.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use belay_proto::v1::Frame;
use belay_proto::v1::frame::Body;
use belay_proto::{Decoder, FrameError, encode};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

pub(crate) const SOCKET: Token = Token(0);
/// Written bytes that are kept before the rest moves to the front.
const WRITTEN_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    out: Vec<u8>,
    written: usize,
    /// TCP's handshake is done.
    pub established: bool,
    pub welcomed: bool,
    pub opened_at: u64,
    pub heard_at: u64,
    pub pinged_at: u64,
}

impl Connection {
    /// Begins to connect; `establish` tells how it went.
    pub fn open(address: SocketAddr, registry: &Registry, now: u64) -> io::Result<Connection> {
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, SOCKET, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Connection {
            stream,
            decoder: Decoder::new(),
            out: Vec::new(),
            written: 0,
            established: false,
            welcomed: false,
            opened_at: now,
            heard_at: now,
            pinged_at: now,
        })
    }

    /// Once the socket is writable: `true` when the connection stands, for the first time.
    pub fn establish(&mut self) -> io::Result<bool> {
        if self.established {
            return Ok(false);
        }
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        self.established = self.stream.peer_addr().is_ok();
        if self.established {
            // Small frames must not wait for acknowledgements; without it they are only slower.
            let _ = self.stream.set_nodelay(true);
        }
        Ok(self.established)
    }

    /// Bytes read into the decoder; `None`: there are no more now.
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof)),
                Ok(count) => {
                    self.decoder.push(&buffer[..count]);
                    return Ok(Some(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        self.decoder.next_frame()
    }

    pub fn queue(&mut self, body: Body) -> Result<(), FrameError> {
        encode(&Frame { body: Some(body) }, &mut self.out)
    }

    /// Writes what the socket takes; returns what is left.
    pub fn flush(&mut self) -> io::Result<usize> {
        while self.established && self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => break,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.written == self.out.len() || self.written > WRITTEN_BYTES_MAX {
            self.out.drain(..self.written);
            self.written = 0;
        }
        Ok(self.out.len() - self.written)
    }

    /// To be told again of what is still to be read: readiness is told once.
    pub fn rearm(&mut self, registry: &Registry) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.reregister(&mut self.stream, SOCKET, interest)
    }

    pub fn close(mut self, registry: &Registry) {
        // Closing removes it from the poller in any case.
        let _ = registry.deregister(&mut self.stream);
    }
}
