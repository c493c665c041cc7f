//! The programs from the outside, as a person or an engine meets them.
#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests make what they test")
)]

#[cfg(test)]
mod suite;
