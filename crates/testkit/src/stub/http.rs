//! Reading requests: enough of HTTP/1.1 for the clients under test.

use std::io::{self, Read, Write};

/// A head longer than this is a broken client.
const HEAD_LIMIT: usize = 256 * 1024;

/// A request without the time and the connection it came on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Reads one request after the other from a connection; bytes of the next one wait in `held`.
pub(super) struct Requests<S> {
    stream: S,
    held: Vec<u8>,
}

impl<S: Read + Write> Requests<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, held: Vec::new() }
    }

    /// The next request, or `None` when the client is done. A request cut in the middle is an error.
    pub(super) fn next(&mut self) -> io::Result<Option<Request>> {
        let end = loop {
            if let Some(at) = find(&self.held, b"\r\n\r\n") {
                break at;
            }
            if self.held.len() > HEAD_LIMIT {
                return Err(broken("the head of a request is too long"));
            }
            if self.fill()? == 0 {
                return if self.held.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        };
        let head = self.take(end + 4)?;
        let head = String::from_utf8(head).map_err(|_| broken("the head of a request is not UTF-8"))?;
        let mut lines = head.split("\r\n").filter(|l| !l.is_empty());
        let mut first = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(path)) = (first.next(), first.next()) else {
            return Err(broken("a request line has no path"));
        };
        let headers: Vec<(String, String)> =
            lines.filter_map(|l| l.split_once(':')).map(|(k, v)| (k.to_owned(), v.trim().to_owned())).collect();
        let value = |name: &str| headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
        if value("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = if value("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            self.chunked()?
        } else {
            let len = value("content-length").map_or(Ok(0), str::parse).map_err(|_| broken("a bad content-length"))?;
            self.take(len)?
        };
        Ok(Some(Request { method: method.to_owned(), path: path.to_owned(), headers, body }))
    }

    fn chunked(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| broken("a bad chunk size"))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.take(size)?);
            if !self.line()?.is_empty() {
                return Err(broken("a chunk is longer than its size"));
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.held, b"\r\n") {
                let mut line = self.take(at + 2)?;
                line.truncate(at);
                return String::from_utf8(line).map_err(|_| broken("a chunk line is not UTF-8"));
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn take(&mut self, n: usize) -> io::Result<Vec<u8>> {
        while self.held.len() < n {
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.held.split_off(n);
        Ok(std::mem::replace(&mut self.held, rest))
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut buf = [0; 16 * 1024];
        let n = self.stream.read(&mut buf)?;
        self.held.extend_from_slice(&buf[..n]);
        Ok(n)
    }
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|w| w == needle)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes one at a time, so that every border is met.
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let Some(b) = self.0.get(self.1) else { return Ok(0) };
            buf[0] = *b;
            self.1 += 1;
            Ok(1)
        }
    }

    impl Write for Drip {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn all(text: &str) -> io::Result<Vec<Request>> {
        let mut r = Requests::new(Drip(text.as_bytes().to_vec(), 0));
        let mut out = vec![];
        while let Some(q) = r.next()? {
            out.push(q);
        }
        Ok(out)
    }

    #[test]
    fn two_requests_on_one_connection() {
        let got = all("POST /a HTTP/1.1\r\nContent-Length: 6\r\n\r\n안녕GET /b?x=1 HTTP/1.1\r\nhost: h\r\n\r\n")
            .expect("valid");
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].body, "안녕".as_bytes());
        assert_eq!((got[1].method.as_str(), got[1].path.as_str()), ("GET", "/b?x=1"));
    }

    #[test]
    fn chunks_are_joined() {
        let got = all("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n안\r\n1\r\n!\r\n0\r\n\r\n")
            .expect("valid");
        assert_eq!(got[0].body, "안!".as_bytes());
    }

    #[test]
    fn a_request_cut_short_is_an_error() {
        assert!(all("POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc").is_err());
        assert!(all("POST / HT").is_err());
        assert!(all("POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n").is_err());
    }
}
