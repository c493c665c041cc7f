//! Names that cannot be guessed.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt::Write as _;

/// 32 hexadecimal digits from the kernel's random source, or why there are none.
pub(crate) fn name() -> Result<String, String> {
    let mut bytes = [0; 16];
    match rustix::io::retry_on_intr(|| getrandom(&mut bytes, GetRandomFlags::empty())) {
        Ok(16) => {}
        Ok(_) => return Err("the system gave too little randomness".to_owned()),
        Err(error) => return Err(format!("the system gave no randomness: {error}")),
    }
    let mut name = String::with_capacity(32);
    for byte in bytes {
        _ = write!(name, "{byte:02x}");
    }
    Ok(name)
}
