//! Decompression within a limit: one stream, nothing after it, never more than was announced.

use super::Problem;
use sema_rules::lock::Limit;
use std::io::Read;

/// What a tar archive adds to the bytes of its files: a header, its padding and a long name for
/// each entry, and the end.
fn tar_bound(limit: Limit) -> u64 {
    limit
        .bytes
        .saturating_add(u64::from(limit.entries) * 4096)
        .saturating_add(64 * 1024)
}

/// Inflates one gzip member that holds a tar archive.
pub(super) fn gunzip(bytes: &[u8], limit: Limit) -> Result<Vec<u8>, Problem> {
    let mut decoder = flate2::bufread::GzDecoder::new(bytes);
    let tar = read_bounded(&mut decoder, limit)
        .map_err(|problem| problem.unwrap_or(Problem::Unreadable("a gzip file")))?;
    if !decoder.into_inner().is_empty() {
        return Err(Problem::TrailingBytes);
    }
    Ok(tar)
}

/// Decompresses a brotli stream that holds a tar archive.
pub(super) fn unbrotli(bytes: &[u8], limit: Limit) -> Result<Vec<u8>, Problem> {
    let mut decoder = Brotli::new(bytes);
    let tar = read_bounded(&mut decoder, limit)
        .map_err(|problem| problem.unwrap_or(Problem::Unreadable("a brotli file")))?;
    decoder.finish()?;
    Ok(tar)
}

/// Reads all of a stream, but not more than a tar archive within the limit takes. `Err(None)` where
/// the stream itself is broken.
fn read_bounded(reader: &mut impl Read, limit: Limit) -> Result<Vec<u8>, Option<Problem>> {
    let bound = tar_bound(limit);
    let mut content = Vec::with_capacity(usize::try_from(limit.bytes).unwrap_or(0).min(1 << 29));
    reader
        .take(bound + 1)
        .read_to_end(&mut content)
        .map_err(|_| None)?;
    if content.len() as u64 > bound {
        return Err(Some(Problem::TooLarge(limit.bytes)));
    }
    Ok(content)
}

/// Adds to `content` what raw deflate data holds: exactly `size` bytes, with nothing left of the
/// data. False where it does not.
pub(super) fn inflate(data: &[u8], size: usize, content: &mut Vec<u8>) -> bool {
    let start = content.len();
    let mut decoder = flate2::bufread::DeflateDecoder::new(data);
    let most = (size as u64).saturating_add(1);
    let read = (&mut decoder).take(most).read_to_end(content);
    read.is_ok() && content.len() - start == size && decoder.into_inner().is_empty()
}

/// A brotli stream that knows whether anything follows its end.
pub(super) struct Brotli<'a> {
    decoder: brotli_decompressor::Decompressor<&'a [u8]>,
}

impl<'a> Brotli<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            decoder: brotli_decompressor::Decompressor::new(bytes, 64 * 1024),
        }
    }

    /// Once all was read: whether the stream ended and nothing follows.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        let mut one = [0];
        match self.decoder.read(&mut one) {
            Ok(0) if self.decoder.get_ref().is_empty() => Ok(()),
            // The end was seen: what the decoder complains of lies behind it.
            Ok(_) | Err(_) => Err(Problem::TrailingBytes),
        }
    }
}

impl Read for Brotli<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.decoder.read(buffer)
    }
}
