//! The one door to files that are not ours: npm's configuration, certificates, mirror folders.
//! Everything below the configuration directory goes through the vault instead.
#![expect(
    clippy::disallowed_methods,
    reason = "the door to files that are not ours"
)]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most that a configuration or certificate file may hold.
const LIMIT: u64 = 4 << 20;

/// The text of a small file, or `None` where there is none.
pub(super) fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(io::Error::other("the file is over 4 MiB"));
    }
    Ok(Some(bytes))
}

/// Opens a regular file of a mirror folder, or `None` where there is none.
pub(super) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(Some(file))
}

/// The full path of a program found in `PATH`, links resolved.
pub(super) fn program_in_path(path: &str, program: &str) -> Option<std::path::PathBuf> {
    path.split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(program))
        .find_map(|candidate| candidate.is_file().then(|| candidate.canonicalize().ok())?)
}
