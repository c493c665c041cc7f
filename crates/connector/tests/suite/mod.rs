pub(crate) mod stage;
pub(crate) mod terminal;

mod auth;
mod closed;
mod hang;
mod install;
mod json;
mod live;
mod machine;
mod mount;
mod pin;
mod registry;
mod status;
mod tls;
mod trace;
mod usage;
mod wild;
mod words;
