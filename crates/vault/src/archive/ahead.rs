//! What the headers before a tar entry say of it: the extended headers of POSIX (PAX) and the long
//! names of GNU tar. A name is taken from them, once and from one of them. Whatever else would change
//! which bytes a file has, and all that is not known, is refused: a reader that does not know it
//! would see another file.

use super::Problem;

const MALFORMED: Problem = Problem::Unreadable("a tar archive with extended headers");

/// PAX keys that change nothing of what is unpacked.
const IDLE: [&[u8]; 12] = [
    b"atime",
    b"ctime",
    b"mtime",
    b"uid",
    b"gid",
    b"uname",
    b"gname",
    b"comment",
    b"SCHILY.dev",
    b"SCHILY.ino",
    b"SCHILY.nlink",
    b"SCHILY.fflags",
];
const IDLE_FAMILIES: [&[u8]; 5] = [
    b"SCHILY.xattr.",
    b"SCHILY.acl.",
    b"LIBARCHIVE.",
    b"RHT.security.",
    b"MSWINDOWS.",
];

/// What was said of the next entry.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    extended: bool,
}

impl Ahead {
    pub(super) fn is_empty(&self) -> bool {
        !self.extended && self.path.is_none() && self.link.is_none()
    }

    /// Takes in a header of this kind; whether it was one that speaks of another.
    pub(super) fn hear(&mut self, kind: u8, data: &[u8]) -> Result<bool, Problem> {
        match kind {
            b'x' if self.is_empty() => self.extend(data)?,
            b'g' if self.is_empty() => {
                for record in Records(data) {
                    let (key, _) = record?;
                    check_idle(key)?;
                }
            }
            b'L' if !self.extended => once(&mut self.path, long_name(data)?)?,
            b'K' if !self.extended => once(&mut self.link, long_name(data)?)?,
            b'x' | b'g' | b'L' | b'K' => return Err(MALFORMED),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn extend(&mut self, data: &[u8]) -> Result<(), Problem> {
        self.extended = true;
        for record in Records(data) {
            match record? {
                (b"path", value) => once(&mut self.path, value.to_vec())?,
                (b"linkpath", value) => once(&mut self.link, value.to_vec())?,
                (b"size", value) => {
                    let size = decimal(value).ok_or(MALFORMED)?;
                    if self.size.replace(size).is_some() {
                        return Err(MALFORMED);
                    }
                }
                (key, _) => check_idle(key)?,
            }
        }
        Ok(())
    }
}

/// An empty name would mean, to some, that the entry's own stands.
fn once(place: &mut Option<Vec<u8>>, name: Vec<u8>) -> Result<(), Problem> {
    if name.is_empty() || place.replace(name).is_some() {
        return Err(MALFORMED);
    }
    Ok(())
}

fn check_idle(key: &[u8]) -> Result<(), Problem> {
    if IDLE.contains(&key) || IDLE_FAMILIES.iter().any(|family| key.starts_with(family)) {
        return Ok(());
    }
    Err(Problem::Extension(
        String::from_utf8_lossy(key).into_owned(),
    ))
}

/// A long name of GNU tar ends with its only NUL.
fn long_name(data: &[u8]) -> Result<Vec<u8>, Problem> {
    match data.split_last() {
        Some((0, name)) if !name.contains(&0) => Ok(name.to_vec()),
        _ => Err(MALFORMED),
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    text.parse().ok().filter(|_| digits[0].is_ascii_digit())
}

/// The records `LENGTH KEY=VALUE\n` of a PAX header; the length is that of the whole record.
struct Records<'d>(&'d [u8]);

impl<'d> Records<'d> {
    fn split(&mut self) -> Option<(&'d [u8], &'d [u8])> {
        let space = self.0.iter().position(|byte| *byte == b' ')?;
        let length = usize::try_from(decimal(&self.0[..space])?).ok()?;
        let (record, rest) = self.0.split_at_checked(length)?;
        let pair = record.get(space + 1..)?.strip_suffix(b"\n")?;
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        self.0 = rest;
        Some((&pair[..equals], &pair[equals + 1..]))
    }
}

impl<'d> Iterator for Records<'d> {
    type Item = Result<(&'d [u8], &'d [u8]), Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let record = self.split().ok_or(MALFORMED);
        if record.is_err() {
            self.0 = b"";
        }
        Some(record)
    }
}
