//! The entries of a zip archive that lies in memory. Only what the central directory names is
//! read, each local header must agree with it, and the archive must begin with its first entry and
//! end with its directory: two readers of such an archive see the same files.

use super::entries::{Entries, Kind};
use super::{Content, Problem};
use sema_rules::lock::Limit;
use std::io::Cursor;
use zip::CompressionMethod;

const UNREADABLE: Problem = Problem::Unreadable("a zip archive");
const LOCAL: &[u8] = b"PK\x03\x04";
const END: &[u8] = b"PK\x05\x06";
const LOCAL_SIZE: usize = 30;
const END_SIZE: usize = 22;

/// Reads and judges every entry.
pub(super) fn entries(bytes: &[u8], limit: Limit) -> Result<Entries, Problem> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|_| UNREADABLE)?;
    check_frame(bytes, &archive)?;
    let mut entries = Entries::default();
    let mut spans = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index_raw(index).map_err(|_| UNREADABLE)?;
        let name = file.name_raw().to_vec();
        let start = usize::try_from(file.header_start()).map_err(|_| UNREADABLE)?;
        let data = file
            .data_start()
            .and_then(|at| usize::try_from(at).ok())
            .ok_or(UNREADABLE)?;
        let length = usize::try_from(file.compressed_size()).map_err(|_| UNREADABLE)?;
        let stop = data
            .checked_add(length)
            .filter(|stop| *stop <= bytes.len())
            .ok_or(UNREADABLE)?;
        check_local(bytes, start, &name)?;
        spans.push(start..stop);
        if file.encrypted() {
            return Err(Problem::entry(&name, "is encrypted"));
        }
        let mode = file.unix_mode().unwrap_or(0o100_644);
        let content = match file.compression() {
            CompressionMethod::Stored if file.size() == length as u64 => Content::Plain(data..stop),
            CompressionMethod::Deflated => Content::Deflated {
                content: data..stop,
                bytes: file.size(),
            },
            _ => {
                return Err(Problem::entry(
                    &name,
                    "is compressed in a way that is not read",
                ));
            }
        };
        let kind = match (mode & 0o170_000, file.is_dir()) {
            (0o040_000 | 0, true) => Kind::Folder,
            (0o100_000 | 0, false) => Kind::File {
                content,
                executable: mode & 0o111 != 0,
            },
            (0o120_000, false) => Kind::Link {
                target: link_target(bytes, &name, &content)?,
            },
            _ => return Err(Problem::entry(&name, "is a device or of two kinds at once")),
        };
        entries.add(&name, mode & 0o7777, file.size(), kind, limit)?;
    }
    check_spans(spans, bytes)?;
    entries.finish()
}

/// The archive begins with an entry, and its end record is the last thing in it.
fn check_frame(bytes: &[u8], archive: &zip::ZipArchive<Cursor<&[u8]>>) -> Result<(), Problem> {
    let end = bytes.len().checked_sub(END_SIZE).ok_or(UNREADABLE)?;
    if archive.offset() != 0 || !bytes.starts_with(LOCAL) || !bytes[end..].starts_with(END) {
        return Err(Problem::TrailingBytes);
    }
    Ok(())
}

/// A local header must name the file as the central directory does.
fn check_local(bytes: &[u8], start: usize, name: &[u8]) -> Result<(), Problem> {
    let header = bytes.get(start..start + LOCAL_SIZE).ok_or(UNREADABLE)?;
    let length = usize::from(u16::from_le_bytes([header[26], header[27]]));
    let local = bytes.get(start + LOCAL_SIZE..start + LOCAL_SIZE + length);
    if !header.starts_with(LOCAL) || local != Some(name) {
        return Err(Problem::entry(name, "has another name in its own header"));
    }
    Ok(())
}

/// No two entries may share bytes: the way of a bomb that is small in every count.
fn check_spans(mut spans: Vec<std::ops::Range<usize>>, bytes: &[u8]) -> Result<(), Problem> {
    spans.sort_by_key(|span| span.start);
    let overlap = spans.windows(2).any(|pair| pair[0].end > pair[1].start);
    let first = spans.first().is_none_or(|span| span.start == 0);
    if overlap || !first || spans.last().is_some_and(|span| span.end > bytes.len()) {
        return Err(UNREADABLE);
    }
    Ok(())
}

fn link_target(bytes: &[u8], name: &[u8], content: &Content) -> Result<String, Problem> {
    let target = match content {
        Content::Plain(range) => bytes[range.clone()].to_vec(),
        Content::Deflated {
            content,
            bytes: length,
        } if *length <= 4096 => {
            super::write::inflate(&bytes[content.clone()], *length).ok_or(UNREADABLE)?
        }
        Content::Deflated { .. } => {
            return Err(Problem::entry(name, "is a link to a very long name"));
        }
    };
    String::from_utf8(target)
        .map_err(|_| Problem::entry(name, "is a link to a name that is not UTF-8"))
}
