//! Archives: what they hold is checked as a whole before the first byte of it is written.
//!
//! [`Checked::read`] inflates an archive within the lock's limits and judges every entry, taken or
//! not. [`Checked::unpack`] then writes what the lock takes from it. An archive that lies about
//! anything is refused whole. The one thing that is judged while it is written is the length of a
//! single compressed file: it has no names to lie with.

mod ahead;
mod compressed;
mod entries;
mod form;
mod names;
mod tar;
mod write;
mod zip;

pub use form::{Form, list};
pub use write::Written;

use crate::dir::Dir;
use crate::error::VaultError;
use entries::{Entries, Kind};
use sema_rules::lock::{Archive, FileName, Nested, RelPath, Take};
use std::borrow::Cow;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
#[error("{archive}: {problem}")]
pub struct ArchiveError {
    /// The archive's name in the lock.
    pub archive: FileName,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with an archive. Names are shown with their control characters escaped.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not of its format.
    #[error("is not {0} that can be read")]
    Unreadable(&'static str),
    /// Bytes follow its end.
    #[error("holds bytes after its end")]
    TrailingBytes,
    /// Bytes lie before, between or behind its entries.
    #[error("holds bytes that belong to none of its entries")]
    StrayBytes,
    /// More comes out of it than the lock states.
    #[error("unpacks to more than the {0} bytes that the lock states")]
    TooLarge(u64),
    /// It has more entries than the lock states.
    #[error("has more than the {0} entries that the lock states")]
    TooMany(u32),
    /// A compressed file has another length than the lock states.
    #[error("{from} does not unpack to the {bytes} bytes that the lock states")]
    Length {
        /// The file in the archive.
        from: String,
        /// What the lock states.
        bytes: u64,
    },
    /// One of its entries is refused.
    #[error("the entry {name:?} {why}")]
    Entry {
        /// The entry's name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A tar archive says something of an entry in a way that not every reader knows.
    #[error("has an extended header {0:?}, which is not read")]
    Extension(String),
    /// The lock takes something from it that it does not hold.
    #[error("holds no {0:?}")]
    Missing(String),
    /// What was taken from it could not be written.
    #[error(transparent)]
    Write(VaultError),
}

impl Problem {
    pub(super) fn entry(name: &[u8], why: &'static str) -> Self {
        let name = String::from_utf8_lossy(name).into_owned();
        Self::Entry { name, why }
    }
}

/// An archive that was found good: its bytes, inflated, and what is to be written of them.
pub struct Checked<'a> {
    archive: &'a Archive,
    /// In what its files lie: the inflated tar, or what a zip's entries hold in a row.
    content: Cow<'a, [u8]>,
    outer: Vec<Item>,
    nested: Vec<CheckedNested>,
}

enum CheckedNested {
    File {
        content: std::ops::Range<usize>,
        to: RelPath,
        bytes: u64,
        executable: bool,
    },
    Tar {
        content: Vec<u8>,
        items: Vec<Item>,
    },
}

/// One file, folder or link to write.
#[derive(Debug)]
struct Item {
    to: String,
    kind: Kind,
}

impl<'a> Checked<'a> {
    /// Reads an archive whose hash was compared already, and checks all that it holds. Given its
    /// bytes as its own, it lets go of those of a compressed archive once they are inflated.
    pub fn read(
        archive: &'a Archive,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Self, ArchiveError> {
        let failed = |problem| ArchiveError {
            archive: archive.file.clone(),
            problem,
        };
        Self::judge(archive, bytes.into()).map_err(failed)
    }

    fn judge(archive: &'a Archive, bytes: Cow<'a, [u8]>) -> Result<Self, Problem> {
        let (content, entries) = form::read(archive.format.into(), bytes, archive.unpacked)?;
        let outer = take(&entries, &archive.take)?;
        let mut nested = Vec::new();
        for inner in &archive.nested {
            nested.push(judge_nested(&entries, &content, inner)?);
        }
        Ok(Self {
            archive,
            content,
            outer,
            nested,
        })
    }

    /// Writes what the lock takes from it below `root`, which holds nothing of that yet. Tells how
    /// many bytes were written, as they are.
    pub fn unpack(
        &self,
        root: &Dir,
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<Written>, ArchiveError> {
        let failed = |problem| ArchiveError {
            archive: self.archive.file.clone(),
            problem,
        };
        let mut written = Vec::new();
        let mut all = || {
            write::items(
                root,
                &self.content,
                &self.outer,
                &mut written,
                &mut progress,
            )?;
            for nested in &self.nested {
                match nested {
                    CheckedNested::Tar { content, items } => {
                        write::items(root, content, items, &mut written, &mut progress)?;
                    }
                    CheckedNested::File {
                        content,
                        to,
                        bytes,
                        executable,
                    } => {
                        let source = &self.content[content.clone()];
                        let file =
                            write::brotli(root, source, to, *bytes, *executable, &mut progress)?;
                        written.push(file);
                    }
                }
            }
            Ok(())
        };
        all().map_err(failed)?;
        Ok(written)
    }
}

fn judge_nested(
    entries: &Entries,
    content: &[u8],
    nested: &Nested,
) -> Result<CheckedNested, Problem> {
    match nested {
        Nested::Brotli {
            from,
            to,
            bytes,
            executable,
        } => Ok(CheckedNested::File {
            content: entries.file(from)?,
            to: to.clone(),
            bytes: *bytes,
            executable: *executable,
        }),
        Nested::TarBrotli {
            from,
            unpacked,
            take: wanted,
        } => {
            let bytes = &content[entries.file(from)?];
            let (tar, entries) = form::read(Form::TarBrotli, bytes.into(), *unpacked)?;
            Ok(CheckedNested::Tar {
                items: take(&entries, wanted)?,
                content: tar.into_owned(),
            })
        }
    }
}

/// What is to be written of an archive's entries. Everything that is taken must be there.
fn take(entries: &Entries, wanted: &Take) -> Result<Vec<Item>, Problem> {
    let mut items = Vec::new();
    for (from, to) in &wanted.0 {
        let before = items.len();
        for entry in entries.below(from) {
            let rest = &entry.name[from.as_str().len()..];
            if let Kind::Link { target } = &entry.kind {
                entries.check_link(from, &entry.name, target)?;
            }
            items.push(Item {
                to: format!("{to}{rest}"),
                kind: entry.kind.clone(),
            });
        }
        if items.len() == before {
            return Err(Problem::Missing(from.to_string()));
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests;
