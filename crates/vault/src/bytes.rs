//! Reading and writing a descriptor whole, and names that nobody guesses.

use crate::error::Reason;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// Reads to the end, at most `limit` bytes. The buffer has its full size from the start: a secret
/// that grows in a vector would leave copies behind.
pub(crate) fn read_all(fd: impl AsFd, size: u64, limit: usize) -> Result<Vec<u8>, Reason> {
    let failed = |source| Reason::Io {
        doing: "read it",
        source,
    };
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(limit).min(limit) + 1];
    let mut filled = 0;
    loop {
        if filled == bytes.len() {
            if filled > limit {
                zeroize::Zeroize::zeroize(&mut bytes);
                return Err(Reason::TooLarge { limit });
            }
            let mut larger = vec![0; (filled * 2).min(limit + 1)];
            larger[..filled].copy_from_slice(&bytes);
            zeroize::Zeroize::zeroize(&mut bytes);
            bytes = larger;
        }
        match rustix::io::read(&fd, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(e) => return Err(failed(e)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Writes every byte.
pub(crate) fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// `length` letters and digits from the kernel's random source.
pub(crate) fn random_name(length: usize) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            // Every kernel that runs us has the call: without it, a name from the process id
            // still cannot overwrite anything, since files are created with EXCL.
            Err(_) => return format!("p{}", rustix::process::getpid().as_raw_nonzero()),
        }
    }
    bytes
        .iter()
        .map(|b| char::from(ALPHABET[usize::from(b % 32)]))
        .collect()
}
