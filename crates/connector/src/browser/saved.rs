//! The road from a session back to the stored login state: one file that the upstream wrote under
//! a name of ours, held to the rule, stored, and removed.

use super::STATE;
use crate::cli::output;
use rustix::io::Errno;
use sema_rules::name::Handle;
use sema_rules::state::check_storage_state;
use sema_vault::connector_dir::HANDLE_LIMIT;
use sema_vault::error::Reason;
use sema_vault::{Change, ConnectorDir, Dir, Secret, VaultError, foreign};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// What a save's file is called, around 128 bits of chance: a page can put files of names of its
/// own choosing into the output directory, and none of them is ever read.
const NAME: [&str; 2] = ["login-state-", ".json"];
const DIGITS: usize = 32;

/// Where saves are stored, and the directory in which their files lie.
pub(super) struct Store {
    connector: ConnectorDir,
    out: Dir,
}

impl Store {
    pub(super) fn new(connector: ConnectorDir, out: Dir) -> Self {
        Self { connector, out }
    }

    /// The path of the directory in which the files lie.
    pub(super) fn folder(&self) -> String {
        self.out.path().to_string_lossy().into_owned()
    }

    /// A new file's name, or why there is none.
    pub(super) fn fresh(&self) -> Result<String, String> {
        let name = crate::random::name()?;
        Ok([NAME[0], &name, NAME[1]].concat())
    }

    /// Stores what a save's file holds. The error is the reason, without any of the content.
    pub(super) fn store(&self, file: &str) -> Result<(), String> {
        let state =
            foreign::read(&self.out, file, HANDLE_LIMIT).map_err(|error| unreadable(&error))?;
        check_storage_state(state.bytes()).map_err(|error| error.to_string())?;
        self.write(state).map_err(|error| error.to_string())
    }

    fn write(&self, state: Secret) -> Result<(), VaultError> {
        let Ok(handle) = Handle::parse(STATE) else {
            return Ok(());
        };
        let held = self.connector.lock_exclusive(&mut output::waiting)?;
        let change = Change::Put {
            handle,
            bytes: state,
            secret: true,
        };
        self.connector.write_group(&held, &[change])
    }

    /// Removes a save's file. One that cannot be removed goes with the launch's directory.
    pub(super) fn remove(&self, file: &str) {
        if let Err(error) = self.out.remove_tree(file) {
            output::labelled(output::Label::Warning, &error.to_string());
        }
    }
}

/// Whether a file in an output directory is called as a save's, which is never copied out of it.
pub(super) fn is_save(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(NAME[0].as_bytes());
    let digits = digits.and_then(|rest| rest.strip_suffix(NAME[1].as_bytes()));
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

fn unreadable(error: &VaultError) -> String {
    match error.reason() {
        Reason::Io {
            source: Errno::NOENT,
            ..
        } => "the upstream wrote no file".to_owned(),
        Reason::Link => "the file is a symbolic link".to_owned(),
        Reason::NotFile => "the file is not a regular file".to_owned(),
        Reason::TooLarge { .. } => "the file is over 4 MiB".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_of_ours_is_a_saves() {
        let name = format!("login-state-{}.json", "0a".repeat(16));
        assert!(is_save(name.as_ref()));
        for other in [
            "login-state-.json",
            "login-state-1.json",
            "storage-state.json",
            &name[1..],
            &name[..30],
        ] {
            assert!(!is_save(other.as_ref()), "{other}");
        }
    }
}
