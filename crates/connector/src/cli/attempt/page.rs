//! The page that `try` opens: served on this machine, to this machine.
#![expect(
    clippy::disallowed_methods,
    reason = "the one listener: a page on the loopback address"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// The name of the page's button.
pub(super) const BUTTON: &str = "Click here";
/// What the page shows once its button was clicked.
pub(super) const CLICKED: &str = "The click was seen";

const HTML: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
<title>sema-connectors</title><style>body{font:20px sans-serif;margin:4rem;color:#1b2733}\
button{font:inherit;padding:.5rem 1.5rem}</style></head><body>\
<h1>A pinned browser, behind walls</h1><p id=\"said\">Nothing was clicked yet. \u{1f512}</p>\
<button onclick=\"document.getElementById('said').textContent='The click was seen \u{2705}'\">\
Click here</button></body></html>";

/// A page that is served until the program ends.
pub(super) struct Page {
    address: SocketAddr,
}

impl Page {
    /// Serves it on a free port of the loopback address.
    pub(super) fn serve() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || _ = answer(stream));
            }
        });
        Ok(Self { address })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// Answers one request with the page, whatever it asks for.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    for line in BufReader::new(stream.try_clone()?).lines() {
        if line?.is_empty() {
            break;
        }
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{HTML}", HTML.len())
}
