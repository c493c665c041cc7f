//! The programs `sema-connector` and `sema-connector-browser`.
#![forbid(unsafe_code)]

pub mod browser;
pub mod cli;
pub mod install;
pub mod launcher;
mod stream;
