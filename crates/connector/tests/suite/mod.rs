pub(crate) mod stage;
pub(crate) mod terminal;

mod auth;
mod mount;
mod usage;
