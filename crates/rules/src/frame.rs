//! Splits a byte stream into lines, whatever the chunks it comes in. A line within the limit is
//! told whole, with its end; a longer one is told in parts as it comes, so that memory stays at one
//! line of the limit's length.

use memchr::memchr;

/// The longest line that a side may send, without its end: 4 MiB.
pub const LINE_LIMIT: usize = 4 * 1024 * 1024;

/// What a reader is asked for at a time.
const CHUNK: usize = 64 * 1024;

/// One step of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A line with its end (`\n` or `\r\n`); only the last line of a stream may lack it.
    Line(&'a [u8]),
    /// The next bytes of a line that is over the limit. The last part holds the line's end.
    Part {
        /// The bytes, in order.
        bytes: &'a [u8],
        /// Where in the line they lie.
        place: Place,
    },
}

/// Where in an over-long line a part lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The line begins here.
    First,
    /// Neither its beginning nor its end.
    Middle,
    /// The line ends here.
    Last,
}

/// Cuts a stream into pieces. Fill `space`, say how much with `filled`, then take pieces until
/// there are none.
pub struct Splitter {
    buffer: Vec<u8>,
    /// Bytes before this were told.
    start: usize,
    /// Bytes before this hold no line end.
    searched: usize,
    /// Bytes before this were read.
    end: usize,
    limit: usize,
    in_long: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::with_limit(LINE_LIMIT)
    }
}

impl Splitter {
    /// A splitter for lines of at most `limit` bytes without their end.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            end: 0,
            limit,
            in_long: false,
        }
    }

    /// Room for the next read, never empty. Its length is bounded by the limit and what was told.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.searched = 0;
            self.end = 0;
            if self.buffer.len() > 4 * CHUNK {
                self.buffer = Vec::new();
            }
        } else if self.start > 0 && self.buffer.len() - self.end < CHUNK {
            self.buffer.copy_within(self.start..self.end, 0);
            self.searched -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK {
            let wanted = (self.end + CHUNK).max((self.buffer.len() * 2).min(self.limit + CHUNK));
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Says that the first `count` bytes of `space` were read.
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }

    /// How much was read of a line whose end has not come, in bytes; of one over the limit, the
    /// limit.
    pub fn pending(&self) -> usize {
        if self.in_long {
            self.limit
        } else {
            self.end - self.start
        }
    }

    /// The next piece, or none until more is read.
    pub fn take(&mut self) -> Option<Piece<'_>> {
        let found = memchr(b'\n', &self.buffer[self.searched..self.end]);
        let Some(found) = found else {
            self.searched = self.end;
            return self.unended();
        };
        let stop = self.searched + found + 1;
        let bytes = self.start..stop;
        self.start = stop;
        self.searched = stop;
        let bytes = &self.buffer[bytes];
        if self.in_long {
            self.in_long = false;
            return Some(Piece::Part {
                bytes,
                place: Place::Last,
            });
        }
        if content(bytes).len() <= self.limit {
            return Some(Piece::Line(bytes));
        }
        // An over-long line that arrived whole: its first part now, its end at the next call.
        let half = self.start - 1;
        self.start = half;
        self.searched = half;
        self.in_long = true;
        let bytes = &bytes[..bytes.len() - 1];
        Some(Piece::Part {
            bytes,
            place: Place::First,
        })
    }

    /// The rest of the stream once it has ended: a last line without an end, if there is one.
    pub fn finish(&mut self) -> Option<Piece<'_>> {
        let bytes = self.start..self.end;
        self.start = self.end;
        self.searched = self.end;
        let bytes = &self.buffer[bytes];
        match (self.in_long, bytes.is_empty()) {
            (true, _) => {
                self.in_long = false;
                Some(Piece::Part {
                    bytes,
                    place: Place::Last,
                })
            }
            (false, false) => Some(Piece::Line(bytes)),
            (false, true) => None,
        }
    }

    /// What to tell of a line whose end has not come yet: nothing, until it is surely too long.
    fn unended(&mut self) -> Option<Piece<'_>> {
        let pending = &self.buffer[self.start..self.end];
        let place = match self.in_long {
            true if pending.is_empty() => return None,
            true => Place::Middle,
            false if pending.len() > self.limit + 1 => Place::First,
            false if pending.len() > self.limit && pending.last() != Some(&b'\r') => Place::First,
            false => return None,
        };
        self.in_long = true;
        let bytes = self.start..self.end;
        self.start = self.end;
        Some(Piece::Part {
            bytes: &self.buffer[bytes],
            place,
        })
    }
}

/// A line without its end.
pub fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `stream` in chunks and returns its lines, over-long ones joined and marked.
    fn split(stream: &[u8], limit: usize, chunks: &[usize]) -> Vec<(bool, Vec<u8>)> {
        let mut splitter = Splitter::with_limit(limit);
        let (mut lines, mut long) = (Vec::new(), Vec::new());
        let mut take = |piece: Piece<'_>| match piece {
            Piece::Line(line) => lines.push((false, line.to_vec())),
            Piece::Part { bytes, place } => {
                assert_eq!(place == Place::First, long.is_empty(), "{place:?}");
                long.extend_from_slice(bytes);
                if place == Place::Last {
                    lines.push((true, std::mem::take(&mut long)));
                }
            }
        };
        let mut rest = stream;
        let mut sizes = chunks.iter().copied().cycle();
        while !rest.is_empty() {
            let space = splitter.space();
            let count = sizes
                .next()
                .unwrap_or(1)
                .clamp(1, rest.len())
                .min(space.len());
            space[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            splitter.filled(count);
            while let Some(piece) = splitter.take() {
                take(piece);
            }
        }
        while let Some(piece) = splitter.finish() {
            take(piece);
        }
        lines
    }

    #[test]
    fn the_limit_counts_a_line_without_its_end() {
        for chunk in [1, 2, 3, 100] {
            assert_eq!(split(b"1234\n", 4, &[chunk]), [(false, b"1234\n".to_vec())]);
            assert_eq!(
                split(b"1234\r\n", 4, &[chunk]),
                [(false, b"1234\r\n".to_vec())]
            );
            assert_eq!(
                split(b"12345\n", 4, &[chunk]),
                [(true, b"12345\n".to_vec())]
            );
            assert_eq!(
                split(b"1234\rx\n", 4, &[chunk]),
                [(true, b"1234\rx\n".to_vec())]
            );
            assert_eq!(split(b"12345", 4, &[chunk]), [(true, b"12345".to_vec())]);
            assert_eq!(split(b"1234", 4, &[chunk]), [(false, b"1234".to_vec())]);
        }
    }

    #[test]
    fn a_gigabyte_without_an_end_takes_one_line_of_memory() {
        let mut splitter = Splitter::default();
        let mut told = 0;
        while told < 1 << 30 {
            let count = splitter.space().len();
            splitter.filled(count);
            while let Some(Piece::Part { bytes, .. }) = splitter.take() {
                told += bytes.len();
            }
            assert!(
                splitter.buffer.len() <= LINE_LIMIT + 2 * CHUNK,
                "{}",
                splitter.buffer.len()
            );
        }
    }

    proptest! {
        #[test]
        fn what_comes_out_is_what_came_in(
            stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'x')], 0..200),
            chunks in proptest::collection::vec(1usize..20, 1..5),
            limit in 1usize..12,
        ) {
            let lines = split(&stream, limit, &chunks);
            let joined: Vec<u8> = lines.iter().flat_map(|(_, line)| line.clone()).collect();
            prop_assert_eq!(&joined, &stream);
            for (long, line) in &lines {
                prop_assert_eq!(*long, content(line).len() > limit, "{:?}", line);
            }
        }
    }
}
