//! The whole road with real parts: an engine, the launcher, the connector, the pinned server and
//! the pinned browser. `cargo xtask test` installs what these tests need.
#![expect(clippy::disallowed_methods, reason = "tests make what they test")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod build;
mod clients;
mod compare;
mod differences;
mod ending;
mod files;
mod lab;
mod looks;
mod others;
mod saves;
mod session;
mod site;
mod trying;
mod user;
