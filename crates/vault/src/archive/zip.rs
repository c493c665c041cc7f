//! The entries of a zip archive that lies in memory. Its bytes are the entries in a row, the central
//! directory and the end record, without a gap, and what is said twice is the same twice: a reader
//! that goes from the front and one that goes by the directory see the same files. What readers
//! understand differently is refused: the 64-bit records, a comment at the end, names in more than
//! one encoding. Every entry is inflated, and its sum compared, before any is written.

mod record;

use super::Problem;
use super::entries::Entries;
use record::Record;
use sema_rules::lock::Limit;
use std::ops::Range;

const UNREADABLE: Problem = Problem::Unreadable("a zip archive");
const END: u32 = 0x0605_4b50;
const END_SIZE: usize = 22;

/// What says where the 64-bit end record is, and how far before the end record it lies.
const LOCATOR: &[u8] = b"PK\x06\x07";
const LOCATOR_SIZE: usize = 20;

/// Reads and judges every entry. What the entries hold comes with them, one behind the other.
pub(super) fn entries(bytes: &[u8], limit: Limit) -> Result<(Vec<u8>, Entries), Problem> {
    let directory = Directory::read(bytes, limit)?;
    let mut entries = Entries::new(limit);
    let mut content = Vec::new();
    for (record, data) in directory.records.iter().zip(directory.data(bytes)?) {
        entries.count(record.size.into())?;
        let start = content.len();
        record.unpack(&bytes[data], &mut content)?;
        let kind = record.kind(&content, start..content.len())?;
        entries.add(record.name, record.mode()?, kind)?;
    }
    Ok((content, entries))
}

/// The central directory, which ends where the end record begins, which ends the archive.
struct Directory<'a> {
    start: usize,
    records: Vec<Record<'a>>,
}

impl<'a> Directory<'a> {
    fn read(bytes: &'a [u8], limit: Limit) -> Result<Self, Problem> {
        let end = End::read(bytes)?;
        if u32::from(end.count) > limit.entries {
            return Err(Problem::TooMany(limit.entries));
        }
        let mut rest = Fields(&bytes[end.start..end.at]);
        let records = (0..end.count).map(|_| Record::read(&mut rest));
        let records = records.collect::<Result<_, _>>()?;
        if !rest.0.is_empty() {
            return Err(Problem::StrayBytes);
        }
        Ok(Self {
            start: end.start,
            records,
        })
    }

    /// Where each entry's data lie. An entry begins where the one before it ends, the first at the
    /// front, and the last ends where the directory begins.
    fn data(&self, bytes: &[u8]) -> Result<Vec<Range<usize>>, Problem> {
        let mut order: Vec<usize> = (0..self.records.len()).collect();
        order.sort_by_key(|index| self.records[*index].start);
        let starts = order.iter().map(|index| self.records[*index].start);
        let ends = starts.skip(1).chain([self.start]);
        let mut data = vec![0..0; order.len()];
        let mut at = 0;
        for (index, end) in order.iter().zip(ends) {
            let record = &self.records[*index];
            if record.start != at {
                return Err(Problem::StrayBytes);
            }
            let entry = bytes.get(at..end).ok_or(UNREADABLE)?;
            let inner = record.check_entry(entry)?;
            data[*index] = at + inner.start..at + inner.end;
            at = end;
        }
        if at != self.start {
            return Err(Problem::StrayBytes);
        }
        Ok(data)
    }
}

/// The end record: where it is, and where the directory before it begins.
struct End {
    at: usize,
    start: usize,
    count: u16,
}

impl End {
    fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let at = bytes.len().checked_sub(END_SIZE).ok_or(UNREADABLE)?;
        let mut end = Fields(&bytes[at..]);
        if end.u32()? != END {
            let ended = bytes.windows(4).any(|four| four == END.to_le_bytes());
            return Err(if ended {
                Problem::TrailingBytes
            } else {
                UNREADABLE
            });
        }
        let disks = (end.u16()?, end.u16()?);
        let counts = (end.u16()?, end.u16()?);
        let (size, start, comment) = (end.u32()?, end.u32()?, end.u16()?);
        if disks != (0, 0) || counts.0 != counts.1 || comment != 0 {
            return Err(UNREADABLE);
        }
        // Some readers look for it whatever the end record says.
        if bytes[at.saturating_sub(LOCATOR_SIZE)..at].starts_with(LOCATOR) {
            return Err(UNREADABLE);
        }
        let (size, start) = (to_usize(size)?, to_usize(start)?);
        if start.checked_add(size) != Some(at) {
            return Err(Problem::StrayBytes);
        }
        Ok(Self {
            at,
            start,
            count: counts.0,
        })
    }
}

/// Little-endian fields, one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Problem> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(UNREADABLE)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(UNREADABLE)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }
}

/// A size or an offset. The greatest means that 64 bits stand elsewhere.
fn to_usize(value: u32) -> Result<usize, Problem> {
    match usize::try_from(value) {
        Ok(value) if value != 0xffff_ffff => Ok(value),
        _ => Err(UNREADABLE),
    }
}
