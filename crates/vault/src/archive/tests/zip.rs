use super::zipped::{CRC, Zipped, zip_made};
use super::*;

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, data) in entries {
        let options = ::zip::write::SimpleFileOptions::default().unix_permissions(0o755);
        writer.start_file(*name, options).unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn zip_refusal(bytes: &[u8]) -> String {
    let archive = lock(bytes, "zip", r#"{"p": "m"}"#);
    Checked::read(&archive, bytes)
        .err()
        .map_or("accepted".to_owned(), |error| error.to_string())
}

#[test]
fn zip_archives_are_held_to_the_same_rules() {
    let good = zip_of(&[("p/x", b"data"), ("q", b"")]);
    assert_eq!(zip_refusal(&good), "accepted");
    insta::assert_snapshot!(zip_refusal(&zip_of(&[("p/../x", b"")])), @r#"a.tgz: the entry "p/../x" is not a path of ordinary names below the archive's root"#);
    insta::assert_snapshot!(zip_refusal(&zip_of(&[("p/x", b""), ("P/X", b"")])), @r#"a.tgz: the entry "P/X" differs from another in case only"#);
    insta::assert_snapshot!(zip_refusal(&zip_of(&[("p/x", &[0; 2000])])), @"a.tgz: unpacks to more than the 1000 bytes that the lock states");
    insta::assert_snapshot!(zip_refusal(&[good.clone(), b"x".to_vec()].concat()), @"a.tgz: holds bytes after its end");
    insta::assert_snapshot!(zip_refusal(&[b"#!/bin/sh\n".to_vec(), good.clone()].concat()), @"a.tgz: holds bytes that belong to none of its entries");
    let mut renamed = good.clone();
    let at = renamed
        .windows(3)
        .position(|window| window == b"p/x")
        .unwrap();
    renamed[at] = b'z';
    insta::assert_snapshot!(zip_refusal(&renamed), @r#"a.tgz: the entry "p/x" has another name in its own header"#);
}

#[test]
fn a_zip_is_unpacked_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let root = Dir::create_private(&dir.path().join("tree")).unwrap();
    let text = b"data ".repeat(50);
    let bytes = zip_of(&[("p/x", &text)]);
    let archive = lock(&bytes, "zip", r#"{"p": "m"}"#);
    Checked::read(&archive, &bytes)
        .unwrap()
        .unpack(&root, |_| ())
        .unwrap();
    assert_eq!(std::fs::read(root.path().join("m/x")).unwrap(), text);
}

fn made(entry: Zipped) -> String {
    zip_refusal(&zip_made(&[entry]))
}

/// With these bytes at this place of the archive of one file `p/x`: its own header is at 0, the
/// directory at 37, the end record at 86.
fn changed(at: usize, value: &[u8]) -> String {
    let mut bytes = zip_made(&[Zipped::file("p/x")]);
    bytes[at..at + value.len()].copy_from_slice(value);
    zip_refusal(&bytes)
}

#[test]
fn a_zip_header_says_what_the_directory_says() {
    assert_eq!(changed(0, b"PK"), "accepted");
    let differs = r#"a.tgz: the entry "p/x" is described otherwise in its own header"#;
    for field in [6, 8, 14, 18, 22] {
        assert_eq!(changed(field, b"\x02"), differs, "{field}");
    }
    insta::assert_snapshot!(changed(32, b"y"), @r#"a.tgz: the entry "p/x" has another name in its own header"#);
    insta::assert_snapshot!(changed(26, b"\xff\xff"), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(28, b"\xff\xff"), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(0, b"X"), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(34, b"D"), @r#"a.tgz: the entry "p/x" holds other bytes than its sum says"#);
}

#[test]
fn the_sums_behind_a_zip_entry_are_the_directorys() {
    let sums = [CRC.to_le_bytes(), 4_u32.to_le_bytes(), 4_u32.to_le_bytes()].concat();
    let signed = [b"PK\x07\x08".as_slice(), &sums].concat();
    let behind = |behind: &[u8]| {
        made(Zipped {
            flags: 8,
            behind: behind.to_vec(),
            ..Zipped::file("p/x")
        })
    };
    assert_eq!(behind(&sums), "accepted");
    assert_eq!(behind(&signed), "accepted");
    insta::assert_snapshot!(behind(&[&sums[..8], &[5, 0, 0, 0]].concat()), @r#"a.tgz: the entry "p/x" is described otherwise behind its data"#);
    insta::assert_snapshot!(behind(&[&sums[..], &[0; 4]].concat()), @r#"a.tgz: the entry "p/x" is described otherwise behind its data"#);
    insta::assert_snapshot!(behind(&[&sums[..], &[0; 8]].concat()), @"a.tgz: holds bytes that belong to none of its entries");
    insta::assert_snapshot!(behind(b""), @"a.tgz: is not a zip archive that can be read");
}

#[test]
fn what_zip_readers_understand_differently_is_refused() {
    let flags = |flags| {
        made(Zipped {
            flags,
            ..Zipped::file("p/x")
        })
    };
    assert_eq!(flags(0x806), "accepted");
    insta::assert_snapshot!(flags(1), @r#"a.tgz: the entry "p/x" is encrypted"#);
    insta::assert_snapshot!(flags(1 << 13), @r#"a.tgz: the entry "p/x" is stored in a way that is not read"#);
    let extra = |extra: &[u8]| {
        made(Zipped {
            extra: extra.to_vec(),
            ..Zipped::file("p/x")
        })
    };
    assert_eq!(extra(b"UT\x05\0\x01data"), "accepted");
    for id in [b"\x01\0", b"up", b"\x17\0", b"\x01\x99", b"nu"] {
        let replacing = [id, b"\0\0".as_slice()].concat();
        assert_eq!(
            extra(&replacing),
            r#"a.tgz: the entry "p/x" has an extra field that may replace what its header says"#
        );
    }
    insta::assert_snapshot!(extra(b"UT\x05\0"), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(extra(b"UT"), @"a.tgz: is not a zip archive that can be read");
    let name = |name, flags| {
        made(Zipped {
            name,
            flags,
            ..Zipped::file("")
        })
    };
    assert_eq!(name("p/é".as_bytes(), 0x800), "accepted");
    insta::assert_snapshot!(name("p/é".as_bytes(), 0), @r#"a.tgz: the entry "p/é" has a name that does not say that it is UTF-8"#);
    insta::assert_snapshot!(name(b"p/\xe9", 0x800), @r#"a.tgz: the entry "p/�" is not UTF-8"#);
    insta::assert_snapshot!(name(b"p\\x", 0), @r#"a.tgz: the entry "p\\x" is an absolute name or one of another system"#);
    insta::assert_snapshot!(name(b"/p", 0), @r#"a.tgz: the entry "/p" is an absolute name or one of another system"#);
}

#[test]
fn zip_entries_of_other_kinds_are_refused() {
    let mode = |name, mode: u32| {
        made(Zipped {
            attributes: mode << 16,
            ..Zipped::file(name)
        })
    };
    insta::assert_snapshot!(mode("p/x", 0o104_755), @r#"a.tgz: the entry "p/x" has a set-user, set-group or sticky bit"#);
    insta::assert_snapshot!(mode("p/x", 0o020_644), @r#"a.tgz: the entry "p/x" is a device or of two kinds at once"#);
    insta::assert_snapshot!(mode("p/x", 0o040_755), @r#"a.tgz: the entry "p/x" is a device or of two kinds at once"#);
    insta::assert_snapshot!(mode("p/x/", 0o100_644), @r#"a.tgz: the entry "p/x/" is a device or of two kinds at once"#);
    insta::assert_snapshot!(mode("p/x/", 0o040_755), @r#"a.tgz: the entry "p/x/" is a folder or a link with bytes"#);
    insta::assert_snapshot!(mode("p/x", 0o120_777), @r#"a.tgz: the entry "p/x" is a link to nothing that is taken with it"#);
    let attributes = |system, attributes| {
        made(Zipped {
            system,
            attributes,
            ..Zipped::file("p/x")
        })
    };
    assert_eq!(attributes(0, 0x20), "accepted");
    insta::assert_snapshot!(attributes(0, 0x10), @r#"a.tgz: the entry "p/x" is a device or of two kinds at once"#);
    insta::assert_snapshot!(attributes(0, 0o120_777 << 16), @r#"a.tgz: the entry "p/x" has a mode of one system and attributes of another"#);
}

#[test]
fn zip_entries_inflate_to_what_the_directory_states() {
    let deflate = |size: u32, end: &[u8]| {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"data").unwrap();
        let data = [encoder.finish().unwrap(), end.to_vec()].concat();
        made(Zipped {
            method: 8,
            data,
            size,
            ..Zipped::file("p/x")
        })
    };
    assert_eq!(deflate(4, b""), "accepted");
    insta::assert_snapshot!(deflate(3, b""), @r#"a.tgz: the entry "p/x" does not inflate to the size that it states"#);
    insta::assert_snapshot!(deflate(5, b""), @r#"a.tgz: the entry "p/x" does not inflate to the size that it states"#);
    insta::assert_snapshot!(deflate(4, b"x"), @r#"a.tgz: the entry "p/x" does not inflate to the size that it states"#);
    insta::assert_snapshot!(deflate(u32::MAX, b""), @"a.tgz: unpacks to more than the 1000 bytes that the lock states");
    let method = |method, size| {
        made(Zipped {
            method,
            size,
            ..Zipped::file("p/x")
        })
    };
    insta::assert_snapshot!(method(12, 4), @r#"a.tgz: the entry "p/x" is compressed in a way that is not read"#);
    insta::assert_snapshot!(method(0, 5), @r#"a.tgz: the entry "p/x" is stored with two sizes"#);
}

#[test]
fn a_zip_archive_has_no_gap_and_no_overlap() {
    let one = Zipped::file("p/x");
    let gap = Zipped {
        behind: b"gap".to_vec(),
        ..one.clone()
    };
    insta::assert_snapshot!(made(gap), @"a.tgz: holds bytes that belong to none of its entries");
    // Two entries of the directory at one place, and one that begins within the other.
    let pair = zip_made(&[
        Zipped {
            name: b"p/y",
            ..one.clone()
        },
        one,
    ]);
    let at = |start: u32| {
        let mut bytes = pair.clone();
        bytes[74 + 49 + 42..][..4].copy_from_slice(&start.to_le_bytes());
        zip_refusal(&bytes)
    };
    assert_eq!(at(37), "accepted");
    insta::assert_snapshot!(at(0), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(at(30), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(at(u32::MAX), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(at(1 << 30), @"a.tgz: is not a zip archive that can be read");
    let many = vec![Zipped::file("p/x"); 11];
    insta::assert_snapshot!(zip_refusal(&zip_made(&many)), @"a.tgz: has more than the 10 entries that the lock states");
}

#[test]
fn the_end_record_of_a_zip_archive_is_exact() {
    // More or fewer records than there are, another size, another start, a disk, a comment.
    insta::assert_snapshot!(changed(86 + 8, &[0; 4]), @"a.tgz: holds bytes that belong to none of its entries");
    insta::assert_snapshot!(changed(86 + 8, &[2, 0, 2, 0]), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(86 + 8, &[2]), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(86 + 12, &[48]), @"a.tgz: holds bytes that belong to none of its entries");
    insta::assert_snapshot!(changed(86 + 12, &[0xff; 8]), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(86 + 12, &[0xfe; 8]), @"a.tgz: holds bytes that belong to none of its entries");
    insta::assert_snapshot!(changed(86 + 4, &[1]), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(changed(86 + 20, &[1]), @"a.tgz: is not a zip archive that can be read");
    // Where a reader may look for the 64-bit end record.
    let extra = [b"UT\x14\0PK\x06\x07".as_slice(), &[0; 16]].concat();
    let hidden = Zipped {
        extra,
        ..Zipped::file("p/x")
    };
    insta::assert_snapshot!(made(hidden), @"a.tgz: is not a zip archive that can be read");
    insta::assert_snapshot!(zip_refusal(b"PK"), @"a.tgz: is not a zip archive that can be read");
}
