//! One entry as the central directory describes it, compared with what stands at the entry itself.

use super::{Fields, UNREADABLE, to_usize};
use crate::archive::Problem;
use crate::archive::compressed::inflate;
use crate::archive::entries::Kind;
use std::ops::Range;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;

/// Flags: encrypted, how hard it was compressed (2 bits), sizes behind the data, a name in UTF-8.
const ENCRYPTED: u16 = 1;
const LEVEL: u16 = 6;
const SIZES_BEHIND: u16 = 8;
const UTF8: u16 = 1 << 11;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Systems whose attributes hold a mode in their upper half.
const UNIX: [u8; 2] = [3, 19];
const DOS_FOLDER: u32 = 0x10;

/// Extra fields that change nothing of what is unpacked: times of NTFS and of Unix, owners, and the
/// mark of a Java archive. Others can replace the sizes (0x0001), the name (0x7075), the cipher or
/// the mode.
const IDLE: [u16; 6] = [0x000a, 0x5455, 0x5855, 0x7855, 0x7875, 0xcafe];

/// What the central directory says of an entry.
pub(super) struct Record<'a> {
    pub(super) name: &'a [u8],
    flags: u16,
    method: u16,
    crc: u32,
    packed: u32,
    pub(super) size: u32,
    system: u8,
    attributes: u32,
    pub(super) start: usize,
}

impl<'a> Record<'a> {
    pub(super) fn read(rest: &mut Fields<'a>) -> Result<Self, Problem> {
        if rest.u32()? != CENTRAL {
            return Err(UNREADABLE);
        }
        let [_, system] = rest.u16()?.to_le_bytes();
        let _needed = rest.u16()?;
        let (flags, method, _time) = (rest.u16()?, rest.u16()?, rest.u32()?);
        let (crc, packed, size) = (rest.u32()?, rest.u32()?, rest.u32()?);
        let (name, extra, comment) = (rest.u16()?, rest.u16()?, rest.u16()?);
        let (disk, _internal, attributes, start) =
            (rest.u16()?, rest.u16()?, rest.u32()?, rest.u32()?);
        let name = rest.take(name.into())?;
        let extra = rest.take(extra.into())?;
        rest.take(comment.into())?;
        let record = Self {
            name,
            flags,
            method,
            crc,
            packed,
            size,
            system,
            attributes,
            start: to_usize(start)?,
        };
        record.check(disk)?;
        record.check_extra(extra)?;
        Ok(record)
    }

    fn refused<T>(&self, why: &'static str) -> Result<T, Problem> {
        Err(Problem::entry(self.name, why))
    }

    fn check(&self, disk: u16) -> Result<(), Problem> {
        if self.flags & ENCRYPTED != 0 {
            return self.refused("is encrypted");
        }
        if self.flags & !(LEVEL | SIZES_BEHIND | UTF8) != 0 || disk != 0 {
            return self.refused("is stored in a way that is not read");
        }
        if self.flags & UTF8 == 0 && !self.name.is_ascii() {
            return self.refused("has a name that does not say that it is UTF-8");
        }
        match self.method {
            STORED if self.packed != self.size => self.refused("is stored with two sizes"),
            STORED | DEFLATED => Ok(()),
            _ => self.refused("is compressed in a way that is not read"),
        }
    }

    fn check_extra(&self, extra: &[u8]) -> Result<(), Problem> {
        let mut rest = Fields(extra);
        while !rest.0.is_empty() {
            let (id, length) = (rest.u16()?, rest.u16()?);
            rest.take(length.into())?;
            if !IDLE.contains(&id) {
                return self.refused("has an extra field that may replace what its header says");
            }
        }
        Ok(())
    }

    /// Compares an entry (its own header, its data, what follows them) with the directory. Where
    /// its data lie in it.
    pub(super) fn check_entry(&self, entry: &[u8]) -> Result<Range<usize>, Problem> {
        let mut rest = Fields(entry);
        if rest.u32()? != LOCAL {
            return Err(UNREADABLE);
        }
        let _needed = rest.u16()?;
        let (flags, method, _time) = (rest.u16()?, rest.u16()?, rest.u32()?);
        let own = (rest.u32()?, rest.u32()?, rest.u32()?);
        let (name, extra) = (rest.u16()?, rest.u16()?);
        if rest.take(name.into())? != self.name {
            return self.refused("has another name in its own header");
        }
        self.check_extra(rest.take(extra.into())?)?;
        let sums = (self.crc, self.packed, self.size);
        let behind = flags & SIZES_BEHIND != 0;
        let agrees = own == sums || (behind && own == (0, 0, 0));
        if (flags, method) != (self.flags, self.method) || !agrees {
            return self.refused("is described otherwise in its own header");
        }
        let start = entry.len() - rest.0.len();
        let packed = to_usize(self.packed)?;
        rest.take(packed)?;
        if behind {
            self.check_descriptor(&mut rest)?;
        }
        if !rest.0.is_empty() {
            return Err(Problem::StrayBytes);
        }
        Ok(start..start + packed)
    }

    /// The sums behind the data, where they are there. Whether a signature comes first, their length
    /// tells.
    fn check_descriptor(&self, rest: &mut Fields<'_>) -> Result<(), Problem> {
        let signed = rest.0.len() == 16;
        if signed && rest.u32()? != DESCRIPTOR {
            return self.refused("is described otherwise behind its data");
        }
        if (rest.u32()?, rest.u32()?, rest.u32()?) != (self.crc, self.packed, self.size) {
            return self.refused("is described otherwise behind its data");
        }
        Ok(())
    }

    /// Adds what the entry holds to `content`: its size and its sum are those that it states.
    pub(super) fn unpack(&self, data: &[u8], content: &mut Vec<u8>) -> Result<(), Problem> {
        let start = content.len();
        match self.method {
            STORED => content.extend_from_slice(data),
            _ => {
                if !inflate(data, to_usize(self.size)?, content) {
                    return self.refused("does not inflate to the size that it states");
                }
            }
        }
        let mut crc = flate2::Crc::new();
        crc.update(&content[start..]);
        if crc.sum() != self.crc {
            return self.refused("holds other bytes than its sum says");
        }
        Ok(())
    }

    /// The mode with its kind; without one, that of an ordinary file or folder.
    pub(super) fn mode(&self) -> Result<u32, Problem> {
        match (UNIX.contains(&self.system), self.attributes >> 16) {
            (_, 0) if self.name.ends_with(b"/") => Ok(0o040_755),
            (_, 0) => Ok(0o100_644),
            (true, mode) => Ok(mode),
            (false, _) => self.refused("has a mode of one system and attributes of another"),
        }
    }

    pub(super) fn kind(&self, content: &[u8], data: Range<usize>) -> Result<Kind, Problem> {
        let mode = self.mode()?;
        let is_folder = self.name.ends_with(b"/");
        if self.attributes & DOS_FOLDER != 0 && !is_folder {
            return self.refused("is a device or of two kinds at once");
        }
        match (mode & 0o170_000, is_folder) {
            (0o040_000 | 0, true) if self.packed == 0 && self.size == 0 => Ok(Kind::Folder),
            (0o040_000 | 0, true) => self.refused("is a folder or a link with bytes"),
            (0o100_000 | 0, false) => Ok(Kind::File {
                content: data,
                executable: mode & 0o111 != 0,
            }),
            (0o120_000, false) => match std::str::from_utf8(&content[data]) {
                Ok(target) => Ok(Kind::Link {
                    target: target.to_owned(),
                }),
                Err(_) => self.refused("is a link to a name that is not UTF-8"),
            },
            _ => self.refused("is a device or of two kinds at once"),
        }
    }
}
