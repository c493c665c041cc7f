//! The whole road with real parts: an engine, the launcher, the connector, the pinned server and
//! the pinned browser. `cargo xtask test` installs what these tests need.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod clients;
mod ending;
mod lab;
mod looks;
mod others;
mod session;
mod site;
