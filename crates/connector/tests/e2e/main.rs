//! The programs with the real upstream and the real browser. `cargo xtask test` installs the pinned
//! build for these tests.
#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests make what they test")
)]

#[cfg(test)]
mod bare;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod export;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod start;
