//! The programs from the outside, as a person or an engine meets them.

#[cfg(test)]
mod suite;
