//! Random ids of traces and spans, drawn from the kernel many at once.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt::Write as _;

/// A pool of random bytes.
pub(super) struct Ids {
    bytes: [u8; 1024],
    left: usize,
}

impl Ids {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; 1024],
            left: 0,
        }
    }

    /// An id of so many bytes, in hexadecimal digits; never all zero, which stands for none.
    pub(super) fn hex(&mut self, bytes: usize) -> String {
        if self.left < bytes {
            self.left = getrandom(&mut self.bytes, GetRandomFlags::empty()).unwrap_or(0);
        }
        let from = self.left.saturating_sub(bytes);
        let drawn = &self.bytes[from..from + bytes];
        self.left = from;
        let mut text = String::with_capacity(2 * bytes);
        for byte in drawn {
            _ = write!(text, "{byte:02x}");
        }
        if drawn.iter().all(|byte| *byte == 0) {
            text.replace_range(2 * bytes - 1.., "1");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_never_zero() {
        let mut ids = Ids::new();
        let drawn: std::collections::BTreeSet<String> = (0..1000).map(|_| ids.hex(8)).collect();
        assert_eq!(drawn.len(), 1000);
        assert!(drawn.iter().all(|id| id.len() == 16));
        assert_eq!(ids.hex(16).len(), 32);
    }
}
