//! The forms of an archive, each read into its content and its judged entries.

use super::entries::{Entries, Kind};
use super::{Problem, compressed, tar, zip};
use sema_rules::lock::{Format, Limit};
use std::borrow::Cow;

/// How an archive comes: by itself or in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A tar archive as it is.
    Tar,
    /// A tar archive in one gzip member.
    Tgz,
    /// A tar archive in a brotli stream.
    TarBrotli,
    /// A zip archive.
    Zip,
}

impl From<Format> for Form {
    fn from(format: Format) -> Self {
        match format {
            Format::Tgz => Self::Tgz,
            Format::Zip => Self::Zip,
        }
    }
}

/// Reads and judges any bytes as an archive of a form. Tells of each entry, in the archive's order,
/// its name and what it holds: a file's bytes, a link's target, nothing for a folder.
pub fn list(form: Form, bytes: &[u8], limit: Limit) -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let (content, entries) = read(form, bytes.into(), limit)?;
    let held = |kind: &Kind| match kind {
        Kind::File { content: range, .. } => content[range.clone()].to_vec(),
        Kind::Folder => Vec::new(),
        Kind::Link { target } => target.clone().into_bytes(),
    };
    let all = entries.all().iter();
    Ok(all
        .map(|entry| (entry.name.clone(), held(&entry.kind)))
        .collect())
}

/// The bytes in which the entries' files lie, and the entries. Compressed bytes that are the
/// caller's gift are let go of once they are inflated.
pub(super) fn read(
    form: Form,
    bytes: Cow<'_, [u8]>,
    limit: Limit,
) -> Result<(Cow<'_, [u8]>, Entries), Problem> {
    let tar = match form {
        Form::Tar => bytes,
        Form::Tgz => compressed::gunzip(&bytes, limit)?.into(),
        Form::TarBrotli => compressed::unbrotli(&bytes, limit)?.into(),
        Form::Zip => {
            let (content, entries) = zip::entries(&bytes, limit)?;
            return Ok((content.into(), entries));
        }
    };
    let entries = tar::entries(&tar, limit)?;
    Ok((tar, entries))
}
