//! The entries of a tar archive that lies in memory.

use super::entries::{Entries, Kind};
use super::{Content, Problem};
use sema_rules::lock::Limit;
use tar::EntryType;

const BLOCK: usize = 512;
const UNREADABLE: Problem = Problem::Unreadable("a tar archive");

/// Reads and judges every entry.
pub(super) fn entries(content: &[u8], limit: Limit) -> Result<Entries, Problem> {
    let mut archive = tar::Archive::new(content);
    let mut entries = Entries::default();
    let mut end = 0;
    for entry in archive.entries().map_err(|_| UNREADABLE)? {
        let entry = entry.map_err(|_| UNREADABLE)?;
        let name = entry.path_bytes();
        let mode = entry.header().mode().map_err(|_| UNREADABLE)?;
        let start = usize::try_from(entry.raw_file_position()).map_err(|_| UNREADABLE)?;
        let size = usize::try_from(entry.size()).map_err(|_| UNREADABLE)?;
        let stop = start
            .checked_add(size)
            .filter(|stop| *stop <= content.len())
            .ok_or(UNREADABLE)?;
        let kind = match entry.header().entry_type() {
            EntryType::Regular => Kind::File {
                content: Content::Plain(start..stop),
                executable: mode & 0o111 != 0,
            },
            EntryType::Directory if size == 0 => Kind::Folder,
            EntryType::Symlink if size == 0 => Kind::Link {
                target: target(&entry)?,
            },
            EntryType::Link => return Err(Problem::entry(&name, "is a hard link")),
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                return Err(Problem::entry(&name, "is a device or a pipe"));
            }
            _ => return Err(Problem::entry(&name, "is of a kind that is not unpacked")),
        };
        entries.add(&name, mode, size as u64, kind, limit)?;
        end = stop.next_multiple_of(BLOCK);
    }
    // Two empty blocks end an archive, and nothing but padding may follow.
    let rest = content.get(end..).ok_or(UNREADABLE)?;
    if rest.len() < 2 * BLOCK {
        return Err(UNREADABLE);
    }
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Problem::TrailingBytes);
    }
    entries.finish()
}

fn target(entry: &tar::Entry<'_, &[u8]>) -> Result<String, Problem> {
    let target = entry.link_name_bytes().ok_or(UNREADABLE)?;
    let text = std::str::from_utf8(&target);
    text.map(str::to_owned)
        .map_err(|_| Problem::entry(&entry.path_bytes(), "is a link to a name that is not UTF-8"))
}
