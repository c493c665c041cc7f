//! The browser connector: what `sema-connector-browser` is when the launcher starts it.
//!
//! It is trusted and stands outside the jail: it checks what it was given, starts the upstream
//! inside, and is the only road from a session back to the stored login state.

mod build;
mod environment;
mod fonts;
pub mod keep;
mod relay;
mod saved;
mod start;
mod stdio;
mod table;

pub use start::run;

/// The connector's name.
pub const NAME: &str = "browser";
/// The handle of the login state: a secret.
pub const STATE: &str = "BROWSER_STORAGE_STATE";
/// The handle that says `on` when a session may save its login state: no secret.
pub const EXPORT: &str = "BROWSER_EXPORT";
