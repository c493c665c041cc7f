//! Room on the disk: what a build needs at most, and what is free.

use rustix::fd::AsFd;
use sema_rules::lock::{Archive, Nested};

/// The most that comes out of an archive, counting a block for each entry's own end.
pub(super) fn unpacked(archive: &Archive) -> u64 {
    let outer = if archive.take.0.is_empty() {
        0
    } else {
        archive.unpacked.bytes
    };
    let slack = 4096 * u64::from(archive.unpacked.entries);
    let nested = archive.nested.iter().map(|nested| match nested {
        Nested::Brotli { bytes, .. } => *bytes,
        Nested::TarBrotli { unpacked, .. } => unpacked.bytes + 4096 * u64::from(unpacked.entries),
    });
    outer + slack + nested.sum::<u64>()
}

/// The bytes that are free for us on the disk of a directory; none where the system cannot tell.
pub(super) fn free(directory: impl AsFd) -> Option<u64> {
    let stat = rustix::fs::fstatvfs(directory).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}
