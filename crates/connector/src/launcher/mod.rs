//! The launcher: what an engine starts with `sema-connector run NAME`. It starts the connector,
//! carries lines between the two, and ends what it started.

mod reason;
mod session;
mod stream;
mod trace;
