//! The programs `sema-connector` and `sema-connector-browser`.
#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests make what they test")
)]
#![forbid(unsafe_code)]

pub mod browser;
pub mod cli;
pub mod install;
pub mod launcher;
mod random;
mod stream;
