//! A web site on the loopback address, for one test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What is served at one path: its type, further header lines, and the bytes.
pub(crate) type Page = (&'static str, String, Vec<u8>);

pub(crate) struct Site {
    pub(crate) port: u16,
    /// The bodies that were posted.
    pub(crate) posted: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Site {
    /// Serves what `page` gives for a path; nothing is ever answered where it gives none.
    pub(crate) fn serve(page: impl Fn(&str) -> Option<Page> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (page, posted) = (Arc::new(page), Arc::new(Mutex::new(Vec::new())));
        let bodies = Arc::clone(&posted);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (page, bodies) = (Arc::clone(&page), Arc::clone(&bodies));
                std::thread::spawn(move || _ = answer(stream, page.as_ref(), &bodies));
            }
        });
        Self { port, posted }
    }

    /// Serves one page of HTML at every path.
    pub(crate) fn html(html: &'static str) -> Self {
        Self::serve(move |_| Some(page(html)))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// A page of HTML.
pub(crate) fn page(html: &str) -> Page {
    let whole = format!("<!doctype html><meta charset=utf-8><title>t</title>{html}");
    (
        "text/html; charset=utf-8",
        String::new(),
        whole.into_bytes(),
    )
}

fn answer(
    mut stream: TcpStream,
    page: &(dyn Fn(&str) -> Option<Page> + Send + Sync),
    posted: &Mutex<Vec<Vec<u8>>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    if length > 0 {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        posted.lock().unwrap().push(body);
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let Some((kind, headers, body)) = page(path) else {
        // A page that never comes: the connection stays open until the browser gives up.
        _ = reader.read(&mut [0]);
        return Ok(());
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(&body)
}
