//! A mirror on loopback: serves the files of one folder.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Serves the folder until the program ends; its address.
pub(super) fn serve(folder: &Path) -> Result<String, String> {
    let listener =
        TcpListener::bind("127.0.0.1:0").map_err(|e| format!("cannot listen on loopback: {e}"))?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || _ = converse(stream, &folder));
        }
    });
    Ok(format!("http://127.0.0.1:{port}"))
}

/// Answers requests until the other side closes.
fn converse(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut header = String::new();
        while reader.read_line(&mut header)? > 2 {
            header.clear();
        }
        let name = request
            .split(' ')
            .nth(1)
            .and_then(|path| path.rsplit('/').next());
        let path: PathBuf = folder.join(name.unwrap_or_default());
        match std::fs::File::open(&path) {
            Ok(mut file) => {
                let length = file.metadata()?.len();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
                )?;
                std::io::copy(&mut file, &mut stream)?;
            }
            Err(_) => write!(
                stream,
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            )?,
        }
    }
}
