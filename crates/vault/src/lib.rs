//! What sema-connectors keeps on disk: private directories, secrets, the lock, launches.
//!
//! Every check of a mode, an owner or a link is made on an open descriptor, and what was checked
//! is what is used: no path is resolved twice. Every error carries the path that it is about.
#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests make what they test")
)]
#![forbid(unsafe_code)]

pub mod archive;
mod bytes;
mod check;
pub mod config;
pub mod connector_dir;
pub mod dir;
pub mod error;
pub mod fault;
pub mod foreign;
pub mod hash;
pub mod input;
pub mod journal;
pub mod launch;
pub mod lock;
pub mod secret;
pub mod staging;
mod sweep;
pub mod tree;

pub use config::ConfigDir;
pub use connector_dir::{Change, ConnectorDir};
pub use dir::Dir;
pub use error::VaultError;
pub use launch::LaunchDir;
pub use lock::{Exclusive, Shared, WaitNotice};
pub use secret::Secret;
pub use staging::Staging;
