//! The entries of one archive, whatever its format, and the rules that hold for all of them.

use super::Problem;
use super::names::{Names, Place};
use sema_rules::lock::{Limit, RelPath};
use std::ops::Range;

/// One entry, its name without a slash at the end.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What an entry is. A file's bytes lie in the archive's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File {
        content: Range<usize>,
        executable: bool,
    },
    Folder,
    Link {
        target: String,
    },
}

impl Kind {
    pub(super) fn place(&self) -> Place {
        match self {
            Self::File { .. } => Place::File,
            Self::Folder => Place::Folder,
            Self::Link { .. } => Place::Link,
        }
    }
}

/// Entries that were judged together.
#[derive(Debug)]
pub(super) struct Entries {
    limit: Limit,
    list: Vec<Entry>,
    names: Names,
    counted: u32,
    bytes: u64,
}

impl Entries {
    pub(super) fn new(limit: Limit) -> Self {
        Self {
            limit,
            list: Vec::new(),
            names: Names::default(),
            counted: 0,
            bytes: 0,
        }
    }

    /// Counts an entry of `bytes` bytes, before anything is made of it.
    pub(super) fn count(&mut self, bytes: u64) -> Result<(), Problem> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit.bytes {
            return Err(Problem::TooLarge(self.limit.bytes));
        }
        if self.counted >= self.limit.entries {
            return Err(Problem::TooMany(self.limit.entries));
        }
        self.counted += 1;
        Ok(())
    }

    /// Adds an entry that was counted. `mode` is what the archive says, as far as it says one.
    pub(super) fn add(&mut self, name: &[u8], mode: u32, kind: Kind) -> Result<(), Problem> {
        let text = check_name(name, &kind)?;
        if mode & 0o7000 != 0 {
            return Err(Problem::entry(
                name,
                "has a set-user, set-group or sticky bit",
            ));
        }
        let claimed = self.names.claim(text, kind.place());
        claimed.map_err(|why| Problem::entry(name, why))?;
        self.list.push(Entry {
            name: text.to_owned(),
            kind,
        });
        Ok(())
    }

    /// In the order in which they were added.
    pub(super) fn all(&self) -> &[Entry] {
        &self.list
    }

    /// The entry `folder` and all below it.
    pub(super) fn below<'e>(&'e self, folder: &'e RelPath) -> impl Iterator<Item = &'e Entry> {
        self.list
            .iter()
            .filter(move |entry| is_in(&entry.name, folder))
    }

    /// Where the bytes of a file lie.
    pub(super) fn file(&self, name: &RelPath) -> Result<Range<usize>, Problem> {
        let entry = self.list.iter().find(|entry| entry.name == name.as_str());
        match entry.map(|entry| &entry.kind) {
            Some(Kind::File { content, .. }) => Ok(content.clone()),
            _ => Err(Problem::Missing(name.to_string())),
        }
    }

    /// A link must point, by a relative path, to something that is taken with it. Its path climbs
    /// first, never above what is taken, and then only descends: what a link on its way would make
    /// of a `..` behind it, the names do not tell.
    pub(super) fn check_link(
        &self,
        root: &RelPath,
        name: &str,
        target: &str,
    ) -> Result<(), Problem> {
        let refused = |why| Err(Problem::entry(name.as_bytes(), why));
        if target.starts_with('/') || target.contains(['\\', '\0']) {
            return refused("is a link to an absolute path");
        }
        let top = root.as_str().split('/').count();
        let mut parts: Vec<&str> = name.split('/').collect();
        parts.pop();
        let mut descends = false;
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." if descends => return refused("is a link that turns back on its way"),
                ".." if parts.len() <= top => {
                    return refused("is a link that leaves what is taken with it");
                }
                ".." => _ = parts.pop(),
                part => {
                    descends = true;
                    parts.push(part);
                }
            }
        }
        let found = parts.join("/");
        match self.names.at(&found) {
            Some(Place::File | Place::Folder | Place::Implied) if is_in(&found, root) => Ok(()),
            _ => refused("is a link to nothing that is taken with it"),
        }
    }
}

fn is_in(name: &str, folder: &RelPath) -> bool {
    let inside = |rest: &str| rest.is_empty() || rest.starts_with('/');
    name.strip_prefix(folder.as_str()).is_some_and(inside)
}

/// A name without a slash at its end, which only a folder's may have: some readers make a folder of
/// whatever has one.
fn check_name<'n>(name: &'n [u8], kind: &Kind) -> Result<&'n str, Problem> {
    let text = std::str::from_utf8(name).map_err(|_| Problem::entry(name, "is not UTF-8"))?;
    let text = match kind {
        Kind::Folder => text.strip_suffix('/').unwrap_or(text),
        Kind::File { .. } | Kind::Link { .. } => text,
    };
    if text.starts_with('/') || text.contains(['\\', ':', '\0']) {
        return Err(Problem::entry(
            name,
            "is an absolute name or one of another system",
        ));
    }
    let ordinary =
        |part: &str| !matches!(part, "" | "." | "..") && !part.chars().any(char::is_control);
    if !text.split('/').all(ordinary) {
        return Err(Problem::entry(
            name,
            "is not a path of ordinary names below the archive's root",
        ));
    }
    Ok(text)
}
