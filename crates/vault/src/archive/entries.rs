//! The entries of one archive, whatever its format, and the rules that hold for all of them.

use super::{Content, Problem};
use sema_rules::lock::{Limit, RelPath};
use std::collections::HashMap;

/// One entry, its name without a slash at the end.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    File { content: Content, executable: bool },
    Folder,
    Link { target: String },
}

/// Entries that were judged together.
#[derive(Debug, Default)]
pub(super) struct Entries {
    list: Vec<Entry>,
    /// The place of each entry by its name in lower case.
    by_name: HashMap<String, usize>,
    bytes: u64,
}

impl Entries {
    /// Adds an entry of `bytes` bytes. `mode` is what the archive says, as far as it says one.
    pub(super) fn add(
        &mut self,
        name: &[u8],
        mode: u32,
        bytes: u64,
        kind: Kind,
        limit: Limit,
    ) -> Result<(), Problem> {
        let text = Self::check_name(name)?;
        if mode & 0o7000 != 0 {
            return Err(Problem::entry(
                name,
                "has a set-user, set-group or sticky bit",
            ));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > limit.bytes {
            return Err(Problem::TooLarge(limit.bytes));
        }
        if self.list.len() >= limit.entries as usize {
            return Err(Problem::TooMany(limit.entries));
        }
        if self
            .by_name
            .insert(text.to_lowercase(), self.list.len())
            .is_some()
        {
            return Err(Problem::entry(
                name,
                "is there twice, or differs from another in case only",
            ));
        }
        self.list.push(Entry {
            name: text.to_owned(),
            kind,
        });
        Ok(())
    }

    fn check_name(name: &[u8]) -> Result<&str, Problem> {
        let text = std::str::from_utf8(name).map_err(|_| Problem::entry(name, "is not UTF-8"))?;
        let text = text.strip_suffix('/').unwrap_or(text);
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

    /// Judges the entries against each other, once all are there: nothing may lie below a file or
    /// a link.
    pub(super) fn finish(self) -> Result<Self, Problem> {
        for entry in &self.list {
            let name = entry.name.to_lowercase();
            for (at, _) in name.match_indices('/') {
                let Some(&parent) = self.by_name.get(&name[..at]) else {
                    continue;
                };
                let parent = &self.list[parent];
                if !matches!(parent.kind, Kind::Folder) {
                    return Err(Problem::entry(
                        entry.name.as_bytes(),
                        "lies below a file or a link",
                    ));
                }
                // The same folder in two spellings is two folders on some systems only.
                if parent.name != entry.name.get(..at).unwrap_or_default() {
                    return Err(Problem::entry(
                        entry.name.as_bytes(),
                        "differs from another in case only",
                    ));
                }
            }
        }
        Ok(self)
    }

    /// The entry `folder` and all below it.
    pub(super) fn below<'e>(&'e self, folder: &'e RelPath) -> impl Iterator<Item = &'e Entry> {
        let inside = |rest: &str| rest.is_empty() || rest.starts_with('/');
        self.list
            .iter()
            .filter(move |entry| entry.name.strip_prefix(folder.as_str()).is_some_and(inside))
    }

    /// Where the bytes of a file lie that is stored as it is.
    pub(super) fn plain_file(&self, name: &RelPath) -> Result<std::ops::Range<usize>, Problem> {
        let entry = self.list.iter().find(|entry| entry.name == name.as_str());
        match entry.map(|entry| &entry.kind) {
            Some(Kind::File {
                content: Content::Plain(range),
                ..
            }) => Ok(range.clone()),
            _ => Err(Problem::Missing(name.to_string())),
        }
    }

    /// A link must point, by a relative path, to something that is taken with it.
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
        let mut parts: Vec<&str> = name.split('/').collect();
        parts.pop();
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.pop().is_some() => {}
                ".." => return refused("is a link that leaves the archive"),
                part => parts.push(part),
            }
        }
        let found = parts.join("/");
        if !self
            .below(root)
            .any(|entry| entry.name == found && !matches!(entry.kind, Kind::Link { .. }))
        {
            return refused("is a link to nothing that is taken with it");
        }
        Ok(())
    }
}
