//! A registry on loopback that behaves as badly as a test asks: each request for a file takes the
//! next act of that file's script, and serves the file well when the script is at its end.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a request saw.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) host: String,
    pub(super) range_from: Option<u64>,
    pub(super) if_range: Option<String>,
    pub(super) authorization: Option<String>,
}

/// How one request is answered.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// A status without a body.
    Status(u16),
    /// So many bytes of what was asked, then the connection is closed.
    Break(usize),
    /// So many bytes, then nothing for as long as the client waits.
    Stall(usize),
    /// One bit of the file differs.
    Lie,
    /// The file without its last bytes, its length not stated.
    Less(usize),
    /// The file and so many bytes more, its length not stated.
    More(usize),
    /// A `Content-Length` that is not the file's, and that many bytes.
    WrongLength(usize),
    /// Another address.
    Redirect(String),
    /// The whole file, whatever part was asked.
    NoRange,
    /// The whole file whatever part was asked, cut after so many bytes.
    NoRangeBreak(usize),
    /// Another part than the one asked.
    WrongRange,
    /// Another state of the file under a new validator: `If-Range` fails, the whole file comes.
    Changed,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    scripts: BTreeMap<String, VecDeque<Act>>,
    always: BTreeMap<String, Act>,
    seen: Vec<Seen>,
}

/// The registry; it lives as long as the test's process.
#[derive(Clone)]
pub(super) struct Registry {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<Mutex<State>>,
}

trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

impl Registry {
    pub(super) fn start() -> Self {
        Self::listen(None)
    }

    /// With TLS, as the given certificate says.
    pub(super) fn start_tls(config: Arc<rustls::ServerConfig>) -> Self {
        Self::listen(Some(config))
    }

    fn listen(tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let registry = Self {
            address,
            scheme,
            state: Arc::default(),
        };
        let server = registry.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (server, tls) = (server.clone(), tls.clone());
                std::thread::spawn(move || server.connection(stream, tls));
            }
        });
        registry
    }

    pub(super) fn url(&self) -> String {
        format!("{}://{}/", self.scheme, self.address)
    }

    /// `host:port`, as a nerf-darted key of npm names it.
    pub(super) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Serves `bytes` at every path that ends with `/name`.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        self.state
            .lock()
            .unwrap()
            .files
            .insert(name.to_owned(), bytes.to_owned());
    }

    /// The next requests for `name` are answered so.
    pub(super) fn script(&self, name: &str, acts: impl IntoIterator<Item = Act>) {
        let mut state = self.state.lock().unwrap();
        state
            .scripts
            .entry(name.to_owned())
            .or_default()
            .extend(acts);
    }

    /// Every request for `name` is answered so.
    pub(super) fn always(&self, name: &str, act: Act) {
        self.state
            .lock()
            .unwrap()
            .always
            .insert(name.to_owned(), act);
    }

    /// What was asked for `name` so far.
    pub(super) fn seen(&self, name: &str) -> Vec<Seen> {
        let state = self.state.lock().unwrap();
        state
            .seen
            .iter()
            .filter(|seen| last(&seen.path) == name)
            .cloned()
            .collect()
    }

    /// How many requests came at all.
    pub(super) fn requests(&self) -> usize {
        self.state.lock().unwrap().seen.len()
    }

    fn connection(&self, stream: TcpStream, tls: Option<Arc<rustls::ServerConfig>>) {
        let mut wire: Box<dyn Wire> = match tls {
            None => Box::new(stream),
            Some(config) => {
                let session = rustls::ServerConnection::new(config).unwrap();
                Box::new(rustls::StreamOwned::new(session, stream))
            }
        };
        while let Ok(Some(seen)) = read_request(&mut wire) {
            let (file, act) = {
                let mut state = self.state.lock().unwrap();
                state.seen.push(seen.clone());
                let name = last(&seen.path).to_owned();
                let next = state.scripts.get_mut(&name).and_then(VecDeque::pop_front);
                (
                    state.files.get(&name).cloned(),
                    next.or_else(|| state.always.get(&name).cloned()),
                )
            };
            match answer(&mut wire, &seen, file, act) {
                Ok(true) => {}
                _ => return,
            }
        }
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn read_request(wire: &mut Box<dyn Wire>) -> io::Result<Option<Seen>> {
    let mut seen = Seen::default();
    let mut reader = BufReader::with_capacity(1, wire);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    seen.path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            return Ok(Some(seen));
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "host" => seen.host = value.to_owned(),
            "range" => {
                let from = value.trim_start_matches("bytes=").trim_end_matches('-');
                seen.range_from = from.parse().ok();
            }
            "if-range" => seen.if_range = Some(value.to_owned()),
            "authorization" => seen.authorization = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// Answers one request; whether the connection can serve another.
fn answer(
    wire: &mut dyn Write,
    seen: &Seen,
    file: Option<Vec<u8>>,
    act: Option<Act>,
) -> io::Result<bool> {
    match &act {
        Some(Act::Status(status)) => {
            write!(wire, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")?;
            return wire.flush().map(|()| true);
        }
        Some(Act::Redirect(to)) => {
            write!(
                wire,
                "HTTP/1.1 302 X\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
            )?;
            return wire.flush().map(|()| true);
        }
        _ => {}
    }
    let Some(mut file) = file else {
        write!(wire, "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")?;
        return wire.flush().map(|()| true);
    };
    let whole = file.len();
    let mut tag = "\"one\"";
    let mut from = usize::try_from(seen.range_from.unwrap_or(0)).unwrap();
    let mut stated = true;
    let mut cut = None;
    match act {
        Some(Act::Break(bytes) | Act::Stall(bytes)) => cut = Some(bytes),
        Some(Act::Lie) => *file.last_mut().unwrap() ^= 1,
        Some(Act::Less(bytes)) => {
            file.truncate(whole - bytes);
            stated = false;
        }
        Some(Act::More(bytes)) => {
            file.extend(vec![0; bytes]);
            stated = false;
        }
        Some(Act::WrongLength(bytes)) => file.resize(bytes, 0),
        Some(Act::NoRange) => from = 0,
        Some(Act::NoRangeBreak(bytes)) => {
            from = 0;
            cut = Some(bytes);
        }
        Some(Act::WrongRange) => from = from.saturating_sub(1),
        Some(Act::Changed) => {
            tag = "\"two\"";
            from = 0;
        }
        _ => {}
    }
    if from > file.len() || (from == file.len() && from > 0) {
        write!(
            wire,
            "HTTP/1.1 416 X\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n",
            file.len()
        )?;
        return wire.flush().map(|()| true);
    }
    let body = &file[from..];
    if from > 0 {
        write!(
            wire,
            "HTTP/1.1 206 X\r\nContent-Range: bytes {from}-{}/{}\r\n",
            file.len() - 1,
            file.len()
        )?;
    } else {
        write!(wire, "HTTP/1.1 200 X\r\n")?;
    }
    write!(wire, "ETag: {tag}\r\n")?;
    if stated {
        write!(wire, "Content-Length: {}\r\n\r\n", body.len())?;
    } else {
        write!(wire, "Connection: close\r\n\r\n")?;
    }
    wire.write_all(&body[..cut.unwrap_or(body.len()).min(body.len())])?;
    wire.flush()?;
    if let Some(Act::Stall(_)) = act {
        std::thread::sleep(Duration::from_secs(60));
    }
    Ok(stated && cut.is_none())
}
