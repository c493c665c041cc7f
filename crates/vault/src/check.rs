//! What the mode, owner and links of an open descriptor must be.

use crate::error::Reason;
use rustix::fs::{FileType, Stat};

/// What a file must be before it is read.
#[derive(Clone, Copy)]
pub(crate) enum Demand {
    /// Ours, 0600, one name.
    Secret,
    /// Ours, and written by nobody else.
    Policy,
}

/// Ours and closed to everybody else.
pub(crate) fn private(stat: &Stat, want: u32) -> Result<(), Reason> {
    owned(stat)?;
    let mode = stat.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Reason::Exposed { mode, want });
    }
    Ok(())
}

fn owned(stat: &Stat) -> Result<(), Reason> {
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid == us {
        return Ok(());
    }
    Err(Reason::Owner {
        owner: stat.st_uid,
        us,
    })
}

pub(crate) fn file(stat: &Stat, demand: Demand) -> Result<(), Reason> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Reason::NotFile);
    }
    match demand {
        Demand::Secret => {
            private(stat, 0o600)?;
            if stat.st_nlink > 1 {
                return Err(Reason::HardLinked);
            }
            Ok(())
        }
        Demand::Policy => {
            owned(stat)?;
            let mode = stat.st_mode & 0o7777;
            if mode & 0o022 != 0 {
                Err(Reason::Writable { mode })
            } else {
                Ok(())
            }
        }
    }
}
