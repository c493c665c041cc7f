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

use sema_rules::manifest::{Confined, Manifest};
use sema_rules::name::{Handle, NameError};

/// The connector's name.
pub const NAME: &str = "browser";
/// The handle of the login state: a secret.
pub const STATE: &str = "BROWSER_STORAGE_STATE";
/// The handle that says `on` when a session may save its login state: no secret.
pub const EXPORT: &str = "BROWSER_EXPORT";

/// What `mount` writes for the browser: `program` is the absolute path of `sema-connector-browser`.
pub fn manifest(program: &str) -> Result<Manifest, NameError> {
    let state = Handle::parse(STATE)?;
    Ok(Manifest {
        command: vec![program.to_owned()],
        handles: vec![state.clone(), Handle::parse(EXPORT)?],
        required: vec![state],
        confined: Confined::ByItself,
        read: Vec::new(),
        write: Vec::new(),
        env: Vec::new(),
    })
}
