//! An HTTP/1.1 server that does as little as possible: a fixed answer to each request, so that what is
//! measured is the proxy. `bench-upstream PORT...`: one listener a port, one thread a connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n";
const BUFFER_BYTES: usize = 256 * 1024;

/// Where the head of the first request in `bytes` ends, and how long its body is.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let mut length = 0;
    for line in bytes[..end].split(|byte| *byte == b'\n') {
        let name = b"content-length:";
        if line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name) {
            let digits = std::str::from_utf8(&line[name.len()..]).ok()?;
            length = digits.trim().parse().ok()?;
        }
    }
    Some((end, length))
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    let mut skip = 0;
    // An answer goes out when its request's body is in.
    let mut is_owed = false;
    loop {
        let read = stream.read(&mut buffer[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let mut at = 0;
        let mut answers = 0;
        loop {
            let body = skip.min(filled - at);
            at += body;
            skip -= body;
            if skip > 0 {
                break;
            }
            if is_owed {
                is_owed = false;
                answers += 1;
            }
            let Some((end, length)) = head(&buffer[at..filled]) else {
                break;
            };
            at += end;
            skip = length;
            is_owed = true;
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
        for _ in 0..answers {
            stream.write_all(ANSWER)?;
        }
    }
}

fn main() -> std::io::Result<()> {
    let mut listening = Vec::new();
    for port in std::env::args().skip(1) {
        let port: u16 = port.parse().map_err(std::io::Error::other)?;
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        listening.push(thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        }));
    }
    println!("ready");
    for thread in listening {
        let _ = thread.join();
    }
    Ok(())
}
