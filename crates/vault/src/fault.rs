//! Places at which a test kills the program. Release builds hold none of this: the functions are
//! empty there and read no environment.
#![cfg_attr(
    debug_assertions,
    expect(
        clippy::disallowed_methods,
        reason = "tests bend debug builds by the environment"
    )
)]

/// Ends the process by SIGKILL here if a test asked for it: `SEMA_FAULT` names the point, or gives
/// its number in the order in which this process reaches them, from 1.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static REACHED: AtomicUsize = AtomicUsize::new(0);
    let number = REACHED.fetch_add(1, Ordering::Relaxed) + 1;
    let Some(wanted) = std::env::var_os("SEMA_FAULT") else {
        return;
    };
    if wanted == name || wanted == number.to_string().as_str() {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &str) {}

/// How long a held lock is waited for, in milliseconds, where a test shortens it
/// (`SEMA_LOCK_GIVE_UP_MS`).
#[cfg(debug_assertions)]
pub(crate) fn give_up_ms() -> Option<u64> {
    std::env::var("SEMA_LOCK_GIVE_UP_MS").ok()?.parse().ok()
}

/// Never shortened in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn give_up_ms() -> Option<u64> {
    None
}
