//! Digests of what is on disk or on its way there.

use sema_rules::digest::{Sha256, Sha512};
use sha2::Digest as _;

/// Computes the digests of a stream as it goes by.
#[derive(Clone, Default)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The SHA-256 of all that was taken.
    pub fn finish(self) -> Sha256 {
        Sha256(self.0.finalize().into())
    }
}

/// The SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> Sha256 {
    Sha256(sha2::Sha256::digest(bytes).into())
}

/// The SHA-512 of `bytes`.
pub fn sha512(bytes: &[u8]) -> Sha512 {
    Sha512(sha2::Sha512::digest(bytes).into())
}

/// Both digests of `bytes`, each on a processor of its own where there are two.
pub fn both(bytes: &[u8]) -> (Sha256, Sha512) {
    std::thread::scope(|scope| {
        let long = scope.spawn(|| sha512(bytes));
        let short = sha256(bytes);
        let long = long.join();
        (
            short,
            long.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    })
}
