use super::*;

/// A header with its sum, then `data` with its padding.
fn entry(name: &str, kind: u8, data: &[u8], change: impl FnOnce(&mut [u8; 512])) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(EntryType::new(kind));
    header.set_mode(0o644);
    header.set_size(data.len() as u64);
    change(header.as_mut_bytes());
    header.set_cksum();
    let padding = vec![0; data.len().next_multiple_of(512) - data.len()];
    [header.as_bytes().as_slice(), data, &padding].concat()
}

fn plain(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
    entry(name, kind, data, |_| ())
}

/// A PAX header with these records.
fn pax(kind: u8, records: &[(&str, &str)]) -> Vec<u8> {
    let mut data = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let guess = rest.len() + rest.len().to_string().len();
        let length = rest.len() + guess.to_string().len();
        data.push_str(&format!("{length}{rest}"));
    }
    plain("PaxHeader", kind, data.as_bytes())
}

fn refusal_of_parts(parts: &[Vec<u8>]) -> String {
    refusal_of(&gzip(&[parts.concat(), vec![0; 1024]].concat()))
}

/// What is said of the file `p/x` in this tar archive; `accepted` where it is read.
fn after(ahead: &[Vec<u8>]) -> String {
    refusal_of_parts(&[ahead.concat(), plain("p/x", b'0', b"data")])
}

fn names(parts: &[Vec<u8>]) -> Vec<String> {
    let bytes = [parts.concat(), vec![0; 1024]].concat();
    let limit = lock(&bytes, "tgz", "{}").unpacked;
    let listed = list(Form::Tar, &bytes, limit).unwrap();
    listed.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn long_names_are_read_as_every_reader_does() {
    let long = format!("p/{}", "n".repeat(200));
    let linked = [("path", "p/l"), ("linkpath", "x"), ("mtime", "1.5")];
    let split = |header: &mut [u8; 512]| header[345..348].copy_from_slice(b"p/q");
    let gnu = |header: &mut [u8; 512]| header[257..265].copy_from_slice(b"ustar  \0");
    let read = names(&[
        pax(b'g', &[("comment", "of a commit")]),
        pax(b'x', &[("path", &long), ("size", "4")]),
        plain("p/short", b'0', b"data"),
        plain("././@LongLink", b'L', format!("{long}2\0").as_bytes()),
        entry("p/short", b'0', b"data", gnu),
        pax(b'x', &linked),
        plain("p/short", b'2', b""),
        entry("x", b'0', b"", split),
    ]);
    assert_eq!(
        read,
        [
            long.clone(),
            format!("{long}2"),
            "p/l".into(),
            "p/q/x".into()
        ]
    );
}

#[test]
fn extensions_that_change_what_an_entry_is_are_refused() {
    insta::assert_snapshot!(after(&[pax(b'x', &[("GNU.sparse.major", "1")])]), @r#"a.tgz: has an extended header "GNU.sparse.major", which is not read"#);
    insta::assert_snapshot!(after(&[pax(b'x', &[("hdrcharset", "BINARY")])]), @r#"a.tgz: has an extended header "hdrcharset", which is not read"#);
    insta::assert_snapshot!(after(&[pax(b'g', &[("path", "p/y")])]), @r#"a.tgz: has an extended header "path", which is not read"#);
    insta::assert_snapshot!(after(&[pax(b'g', &[("size", "4")])]), @r#"a.tgz: has an extended header "size", which is not read"#);
    insta::assert_snapshot!(after(&[pax(b'x', &[("size", "3")])]), @r#"a.tgz: the entry "p/x" has two sizes"#);
    insta::assert_snapshot!(after(&[pax(b'x', &[("path", "../x")])]), @r#"a.tgz: the entry "../x" is not a path of ordinary names below the archive's root"#);
    insta::assert_snapshot!(after(&[pax(b'x', &[("path", "p/x\0y")])]), @r#"a.tgz: the entry "p/x\0y" is an absolute name or one of another system"#);
    insta::assert_snapshot!(after(&[plain("L", b'L', b"/etc/x\0")]), @r#"a.tgz: the entry "/etc/x" is an absolute name or one of another system"#);
    insta::assert_snapshot!(refusal_of_parts(&[plain("p/x", b'S', b"data")]), @r#"a.tgz: the entry "p/x" is of a kind that is not unpacked"#);
}

#[test]
fn extensions_that_are_not_well_formed_are_refused() {
    const REFUSED: &str = "a.tgz: is not a tar archive with extended headers that can be read";
    let path = |value| pax(b'x', &[("path", value)]);
    let raw = |data: &[u8]| plain("PaxHeader", b'x', data);
    let long = |data: &[u8]| plain("L", b'L', data);
    let malformed = [
        vec![path("")],
        vec![pax(b'x', &[("path", "p/y"), ("path", "p/y")])],
        vec![pax(b'x', &[("size", "4"), ("size", "4")])],
        vec![pax(b'x', &[("size", "+4")])],
        vec![pax(b'x', &[("size", "99999999999999999999")])],
        vec![path("p/y"), path("p/y")],
        vec![path("p/y"), long(b"p/y\0")],
        vec![long(b"p/y\0"), path("p/y")],
        vec![long(b"p/y\0"), long(b"p/y\0")],
        vec![path("p/y"), pax(b'g', &[])],
        vec![long(b"p/y")],
        vec![long(b"p\0/y\0")],
        vec![long(b"\0")],
        vec![long(b"")],
        vec![raw(b"999 path=p/y\n")],
        vec![raw(b"11 path=p/y\n")],
        vec![raw(b"+12 path=p/y\n")],
        vec![raw(b"0 path=p/y\n")],
        vec![raw(b"9 pathp/y\n")],
        vec![raw(b"18446744073709551616 path=p/y\n")],
        vec![raw(b"path")],
    ];
    for ahead in malformed {
        assert_eq!(
            after(&ahead),
            REFUSED,
            "{:?}",
            String::from_utf8_lossy(&ahead.concat())
        );
    }
    let last = [plain("p/x", b'0', b"data"), path("p/y")];
    insta::assert_snapshot!(refusal_of_parts(&last), @"a.tgz: is not a tar archive that can be read");
}

#[test]
fn headers_that_readers_understand_differently_are_refused() {
    const REFUSED: &str = "a.tgz: is not a tar archive that can be read";
    let changed = |at: usize, bytes: &[u8]| {
        refusal_of_parts(&[entry("p/x", b'0', b"data", |header| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
        })])
    };
    assert_eq!(changed(124, b"       4 \0\0\0"), "accepted");
    // A size in binary, one that is negative, one that overflows, one with something behind it.
    assert_eq!(changed(124, b"\x80\0\0\0\0\0\0\0\0\0\0\x04"), REFUSED);
    assert_eq!(
        changed(124, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        REFUSED
    );
    assert_eq!(changed(124, b"777777777777"), REFUSED);
    assert_eq!(changed(124, b"00000000004x"), REFUSED);
    assert_eq!(changed(124, &[0; 12]), REFUSED);
    assert_eq!(changed(124, b"-0000000004\0"), REFUSED);
    assert_eq!(changed(100, &[0; 8]), REFUSED);
    // Of no system that says of which it is.
    assert_eq!(changed(257, &[0; 8]), REFUSED);
    assert_eq!(changed(257, b"ustar\0\0\0"), REFUSED);
    let mut summed = plain("p/x", b'0', b"data");
    summed[150] ^= 1;
    assert_eq!(refusal_of_parts(&[summed]), REFUSED);
    let bytes = |kind, name| refusal_of_parts(&[plain(name, kind, b"data")]);
    insta::assert_snapshot!(bytes(b'5', "p/x/"), @r#"a.tgz: the entry "p/x/" is a folder or a link with bytes"#);
    insta::assert_snapshot!(bytes(b'2', "p/x"), @r#"a.tgz: the entry "p/x" is a folder or a link with bytes"#);
    insta::assert_snapshot!(bytes(b'0', "p/x/"), @r#"a.tgz: the entry "p/x/" is not a path of ordinary names below the archive's root"#);
    insta::assert_snapshot!(bytes(b'7', "p/x"), @r#"a.tgz: the entry "p/x" is of a kind that is not unpacked"#);
    let link = |header: &mut [u8; 512]| header[157] = 0xe9;
    insta::assert_snapshot!(refusal_of_parts(&[entry("p/l", b'2', b"", link)]), @r#"a.tgz: the entry "p/l" is a link to a name that is not UTF-8"#);
}

#[test]
fn the_end_and_the_padding_of_a_tar_archive_are_empty() {
    let good = plain("p/x", b'0', b"data");
    let ended = |end: &[u8]| refusal_of(&gzip(&[good.clone(), end.to_vec()].concat()));
    let with = |at: usize, length: usize| {
        let mut end = vec![0; length];
        end[at] = 1;
        ended(&end)
    };
    assert_eq!(ended(&[0; 1024]), "accepted");
    assert_eq!(ended(&[0; 10240]), "accepted");
    insta::assert_snapshot!(ended(&[]), @"a.tgz: is not a tar archive that can be read");
    insta::assert_snapshot!(ended(&[0; 512]), @"a.tgz: is not a tar archive that can be read");
    insta::assert_snapshot!(ended(&[0; 1023]), @"a.tgz: is not a tar archive that can be read");
    insta::assert_snapshot!(with(600, 1024), @"a.tgz: is not a tar archive that can be read");
    insta::assert_snapshot!(ended(&[0; 1025]), @"a.tgz: holds bytes after its end");
    insta::assert_snapshot!(with(1024, 1536), @"a.tgz: holds bytes after its end");
    let mut padded = good.clone();
    padded[512 + 100] = 1;
    insta::assert_snapshot!(refusal_of_parts(&[padded]), @r#"a.tgz: the entry "p/x" has bytes in its padding"#);
    let cut = [good[..1000].to_vec()];
    insta::assert_snapshot!(refusal_of(&gzip(&cut.concat())), @"a.tgz: is not a tar archive that can be read");
}
