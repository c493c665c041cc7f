//! The entries of a tar archive that lies in memory. It is one of POSIX or of GNU tar, each header's
//! sum is right, and the end is there with nothing behind it. What readers understand differently is
//! refused: numbers in binary, sparse files, a folder or a link with bytes.

use super::Problem;
use super::ahead::Ahead;
use super::entries::{Entries, Kind};
use sema_rules::lock::Limit;
use std::ops::Range;

const BLOCK: usize = 512;
const UNREADABLE: Problem = Problem::Unreadable("a tar archive");

/// Where a header's fields lie.
const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const SIZE: Range<usize> = 124..136;
const SUM: Range<usize> = 148..156;
const KIND: usize = 156;
const LINK: Range<usize> = 157..257;
const MAGIC: Range<usize> = 257..265;
const PREFIX: Range<usize> = 345..500;

const POSIX: &[u8] = b"ustar\x0000";
const GNU: &[u8] = b"ustar  \0";

/// Reads and judges every entry.
pub(super) fn entries(content: &[u8], limit: Limit) -> Result<Entries, Problem> {
    let mut entries = Entries::new(limit);
    let mut blocks = Blocks { content, at: 0 };
    let mut ahead = Ahead::default();
    while let Some(header) = blocks.header()? {
        let data = blocks.data(&header)?;
        let told = ahead.hear(header.kind, content.get(data.clone()).unwrap_or_default())?;
        if !told {
            add(&mut entries, &header, std::mem::take(&mut ahead), data)?;
        }
    }
    if !ahead.is_empty() {
        return Err(UNREADABLE);
    }
    Ok(entries)
}

fn add(
    entries: &mut Entries,
    header: &Header<'_>,
    ahead: Ahead,
    data: Range<usize>,
) -> Result<(), Problem> {
    let name = ahead.path.unwrap_or_else(|| header.name());
    let refused = |why| Err(Problem::entry(&name, why));
    if ahead.size.is_some_and(|size| size != header.size) {
        return refused("has two sizes");
    }
    let kind = match header.kind {
        b'0' | 0 => Kind::File {
            content: data,
            executable: header.mode & 0o111 != 0,
        },
        b'5' | b'2' if header.size != 0 => return refused("is a folder or a link with bytes"),
        b'5' => Kind::Folder,
        b'2' => {
            let target = ahead.link.unwrap_or_else(|| text(header.field(LINK)));
            match String::from_utf8(target) {
                Ok(target) => Kind::Link { target },
                Err(_) => return refused("is a link to a name that is not UTF-8"),
            }
        }
        b'1' => return refused("is a hard link"),
        b'3' | b'4' | b'6' => return refused("is a device or a pipe"),
        _ => return refused("is of a kind that is not unpacked"),
    };
    entries.count(header.size)?;
    entries.add(&name, header.mode, kind)
}

/// What is left of an archive.
struct Blocks<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Blocks<'a> {
    /// The next header; none at the end, behind which nothing but empty blocks may follow.
    fn header(&mut self) -> Result<Option<Header<'a>>, Problem> {
        let rest = self.content.get(self.at..).ok_or(UNREADABLE)?;
        let (block, _) = rest.split_first_chunk::<BLOCK>().ok_or(UNREADABLE)?;
        if block.iter().any(|byte| *byte != 0) {
            self.at += BLOCK;
            return Header::read(block).map(Some);
        }
        // Two empty blocks end an archive.
        let end = rest.get(..2 * BLOCK).ok_or(UNREADABLE)?;
        if end.iter().any(|byte| *byte != 0) {
            return Err(UNREADABLE);
        }
        if rest.len() % BLOCK != 0 || rest.iter().any(|byte| *byte != 0) {
            return Err(Problem::TrailingBytes);
        }
        Ok(None)
    }

    /// Where an entry's bytes lie, all of which must be there, and the empty padding too.
    fn data(&mut self, header: &Header<'_>) -> Result<Range<usize>, Problem> {
        let size = usize::try_from(header.size).map_err(|_| UNREADABLE)?;
        let padded = size.checked_next_multiple_of(BLOCK).ok_or(UNREADABLE)?;
        let rest = self.content.get(self.at..).ok_or(UNREADABLE)?;
        let padding = rest.get(size..padded).ok_or(UNREADABLE)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(Problem::entry(&header.name(), "has bytes in its padding"));
        }
        let start = self.at;
        self.at += padded;
        Ok(start..start + size)
    }
}

/// A header whose sum is right.
struct Header<'a> {
    block: &'a [u8; BLOCK],
    mode: u32,
    size: u64,
    kind: u8,
}

impl<'a> Header<'a> {
    fn read(block: &'a [u8; BLOCK]) -> Result<Self, Problem> {
        let number = |field: Range<usize>| octal(&block[field]).ok_or(UNREADABLE);
        let apart = |at: usize| if SUM.contains(&at) { b' ' } else { block[at] };
        let sum: u64 = (0..BLOCK).map(|at| u64::from(apart(at))).sum();
        if number(SUM)? != sum || ![POSIX, GNU].contains(&&block[MAGIC]) {
            return Err(UNREADABLE);
        }
        Ok(Self {
            block,
            mode: u32::try_from(number(MODE)?).map_err(|_| UNREADABLE)?,
            size: number(SIZE)?,
            kind: block[KIND],
        })
    }

    fn field(&self, field: Range<usize>) -> &'a [u8] {
        &self.block[field]
    }

    /// GNU tar has times where POSIX has the first part of a long name.
    fn name(&self) -> Vec<u8> {
        let name = text(self.field(NAME));
        match text(self.field(PREFIX)) {
            prefix if prefix.is_empty() || self.field(MAGIC) == GNU => name,
            prefix => [&prefix, b"/".as_slice(), &name].concat(),
        }
    }
}

/// A field's bytes before the first NUL.
fn text(field: &[u8]) -> Vec<u8> {
    let end = field.iter().position(|byte| *byte == 0);
    field[..end.unwrap_or(field.len())].to_vec()
}

/// A number in octal digits, spaces before it, spaces and NULs behind it. The binary form, for
/// numbers that digits do not hold, is none that an archive in memory needs.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = field.trim_ascii_start();
    let end = digits
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'7'))
        .unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() || rest.iter().any(|byte| !matches!(byte, 0 | b' ')) {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(8)?.checked_add(u64::from(digit - b'0'))
    })
}
