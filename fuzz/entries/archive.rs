//! What must hold of an archive for any bytes: one that is taken has names that stay below its root
//! and differ in more than case, is within its limit, and holds what an independent reader finds in
//! it. The first byte of the input chooses whether the sums of a tar archive's headers are mended,
//! which hardly any change of its bytes would pass otherwise.

use sema_rules::lock::Limit;
use sema_vault::archive::{Form, list};
use std::collections::HashSet;
use std::io::{Cursor, Read};

const LIMIT: Limit = Limit {
    bytes: 10_000,
    entries: 20,
};
const BLOCK: usize = 512;

/// An entry's name, without a slash at its end, and what it holds.
type Listed = Vec<(String, Vec<u8>)>;

/// Reads `input` as an archive of each form.
pub(crate) fn archive(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if choice % 2 == 1 {
        bytes.chunks_exact_mut(BLOCK).for_each(mend);
    }
    for form in [Form::Tar, Form::Tgz, Form::TarBrotli, Form::Zip] {
        let Ok(listed) = list(form, &bytes, LIMIT) else {
            continue;
        };
        check(&listed);
        let found = match form {
            Form::Tar => tar(&bytes),
            Form::Tgz => tar(&inflated(flate2::read::MultiGzDecoder::new(&bytes[..]))),
            Form::TarBrotli => tar(&inflated(brotli_decompressor::Decompressor::new(
                &bytes[..],
                4096,
            ))),
            Form::Zip => zip(&bytes),
        };
        assert_eq!(found, listed, "{form:?}");
    }
}

/// Writes the sum of a block as that of a header; empty blocks stay empty.
fn mend(block: &mut [u8]) {
    if block.iter().all(|byte| *byte == 0) {
        return;
    }
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    block[154] = 0;
}

fn check(listed: &Listed) {
    let held: usize = listed.iter().map(|(_, held)| held.len()).sum();
    assert!(held as u64 <= LIMIT.bytes + 4096 * u64::from(LIMIT.entries));
    assert!(listed.len() <= LIMIT.entries as usize);
    let ordinary = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':']);
    assert!(listed.iter().all(|(name, _)| name.split('/').all(ordinary)));
    let folded: HashSet<_> = listed.iter().map(|(name, _)| name.to_lowercase()).collect();
    assert_eq!(folded.len(), listed.len());
}

fn inflated(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it was read before");
    bytes
}

fn tar(bytes: &[u8]) -> Listed {
    let mut archive = tar::Archive::new(bytes);
    let mut found = Vec::new();
    for entry in archive.entries().expect("a tar archive") {
        let mut entry = entry.expect("an entry");
        // This reader shows the headers that speak of all that follow as entries.
        if entry.header().entry_type().is_pax_global_extensions() {
            continue;
        }
        let mut held = Vec::new();
        entry.read_to_end(&mut held).expect("the entry's bytes");
        if entry.header().entry_type().is_symlink() {
            held = entry.link_name_bytes().unwrap_or_default().into_owned();
        }
        found.push((name(&entry.path_bytes()), held));
    }
    found
}

fn zip(bytes: &[u8]) -> Listed {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).expect("a zip archive");
    let count = archive.len();
    let entry = |index| {
        let mut entry = archive.by_index(index).expect("an entry");
        let mut held = Vec::new();
        entry.read_to_end(&mut held).expect("the entry's bytes");
        (name(entry.name_raw()), held)
    };
    (0..count).map(entry).collect()
}

fn name(bytes: &[u8]) -> String {
    let name = std::str::from_utf8(bytes).expect("a name in UTF-8");
    name.strip_suffix('/').unwrap_or(name).to_owned()
}
