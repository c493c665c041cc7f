//! The pure rules of sema-connectors: every decision about bytes, names and policies, as plain
//! functions. Nothing here touches a descriptor, a file, the network, a clock or the environment.
#![forbid(unsafe_code)]

pub mod auth;
pub mod call;
pub mod catalog;
pub mod digest;
pub mod edit;
pub mod envelope;
pub mod eras;
pub mod frame;
pub mod hop;
pub mod json;
pub mod lock;
pub mod long;
pub mod manifest;
pub mod name;
pub mod policy;
pub mod quote;
pub mod relay;
pub mod state;
pub mod strict;
pub mod traceparent;
pub mod wire;
pub mod withhold;
