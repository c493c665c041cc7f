mod brotli;
mod tar;
mod zip;
mod zipped;

use super::*;
use crate::hash;
use ::tar::{Builder, EntryType, Header};
use proptest::prelude::*;
use std::io::Write as _;
use std::path::Path;

/// An archive of the lock, with this `take`.
fn lock(bytes: &[u8], format: &str, take: &str) -> Archive {
    let text = format!(
        r#"{{"file": "a.tgz", "platform": "*", "url": "https://h.example/a", "bytes": {},
        "sha256": "{}", "format": "{format}", "unpacked": {{"bytes": 1000, "entries": 10}}, "take": {take}}}"#,
        bytes.len(),
        hash::sha256(bytes),
    );
    serde_json::from_str(&text).unwrap()
}

/// What a hostile packer can put into one entry.
struct Made<'a> {
    name: &'a [u8],
    kind: EntryType,
    mode: u32,
    link: &'a str,
    data: &'a [u8],
}

impl<'a> Made<'a> {
    fn file(name: &'a str) -> Self {
        Self {
            name: name.as_bytes(),
            kind: EntryType::Regular,
            mode: 0o644,
            link: "",
            data: b"data",
        }
    }

    fn link(name: &'a str, link: &'a str) -> Self {
        Self {
            kind: EntryType::Symlink,
            link,
            data: b"",
            ..Self::file(name)
        }
    }

    fn of(name: &'a str, kind: EntryType) -> Self {
        Self {
            kind,
            data: b"",
            ..Self::file(name)
        }
    }
}

fn tar_of(entries: &[Made<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for made in entries {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..made.name.len()].copy_from_slice(made.name);
        header.as_mut_bytes()[157..157 + made.link.len()].copy_from_slice(made.link.as_bytes());
        header.set_entry_type(made.kind);
        header.set_mode(made.mode);
        header.set_size(made.data.len() as u64);
        header.set_cksum();
        builder.append(&header, made.data).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn refusal_of(bytes: &[u8]) -> String {
    let archive = lock(bytes, "tgz", r#"{"p": "m"}"#);
    match Checked::read(&archive, bytes) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn refusal(entries: &[Made<'_>]) -> String {
    refusal_of(&gzip(&tar_of(entries)))
}

#[test]
fn hostile_names_are_refused() {
    let name = |name: &str| refusal(&[Made::file("p/ok"), Made::file(name)]);
    insta::assert_snapshot!(name("p/../x"), @r#"a.tgz: the entry "p/../x" is not a path of ordinary names below the archive's root"#);
    insta::assert_snapshot!(name("/p/x"), @r#"a.tgz: the entry "/p/x" is an absolute name or one of another system"#);
    insta::assert_snapshot!(name("c:/x"), @r#"a.tgz: the entry "c:/x" is an absolute name or one of another system"#);
    insta::assert_snapshot!(name("p\\..\\x"), @r#"a.tgz: the entry "p\\..\\x" is an absolute name or one of another system"#);
    insta::assert_snapshot!(name("p/./x"), @r#"a.tgz: the entry "p/./x" is not a path of ordinary names below the archive's root"#);
    insta::assert_snapshot!(name("p/a\nb"), @r#"a.tgz: the entry "p/a\nb" is not a path of ordinary names below the archive's root"#);
    insta::assert_snapshot!(name("p/OK"), @r#"a.tgz: the entry "p/OK" is there twice, or differs from another in case only"#);
    insta::assert_snapshot!(name("p/ok"), @r#"a.tgz: the entry "p/ok" is there twice, or differs from another in case only"#);
    insta::assert_snapshot!(name("P/x"), @r#"a.tgz: the entry "P/x" differs from another in case only"#);
    insta::assert_snapshot!(name("p/ok/x"), @r#"a.tgz: the entry "p/ok/x" lies below a file or a link"#);
    let latin = Made {
        name: b"p/\xe9",
        ..Made::file("")
    };
    insta::assert_snapshot!(refusal(&[Made::file("p/ok"), latin]), @r#"a.tgz: the entry "p/�" is not UTF-8"#);
}

#[test]
fn hostile_kinds_are_refused() {
    let made = |made| refusal(&[Made::file("p/ok"), made]);
    insta::assert_snapshot!(made(Made { link: "p/ok", ..Made::of("p/h", EntryType::Link) }), @r#"a.tgz: the entry "p/h" is a hard link"#);
    insta::assert_snapshot!(made(Made::of("p/d", EntryType::Char)), @r#"a.tgz: the entry "p/d" is a device or a pipe"#);
    insta::assert_snapshot!(made(Made::of("p/f", EntryType::Fifo)), @r#"a.tgz: the entry "p/f" is a device or a pipe"#);
    insta::assert_snapshot!(made(Made { mode: 0o4755, ..Made::file("p/s") }), @r#"a.tgz: the entry "p/s" has a set-user, set-group or sticky bit"#);
    insta::assert_snapshot!(made(Made::link("p/l", "/etc")), @r#"a.tgz: the entry "p/l" is a link to an absolute path"#);
    insta::assert_snapshot!(made(Made::link("p/l", "../../x")), @r#"a.tgz: the entry "p/l" is a link that leaves what is taken with it"#);
    insta::assert_snapshot!(made(Made::link("p/l", "../q")), @r#"a.tgz: the entry "p/l" is a link that leaves what is taken with it"#);
    insta::assert_snapshot!(made(Made::link("p/l", "q")), @r#"a.tgz: the entry "p/l" is a link to nothing that is taken with it"#);
    insta::assert_snapshot!(made(Made::link("p/l", "l")), @r#"a.tgz: the entry "p/l" is a link to nothing that is taken with it"#);
    insta::assert_snapshot!(made(Made::link("p/l", "q/../ok")), @r#"a.tgz: the entry "p/l" is a link that turns back on its way"#);
    insta::assert_snapshot!(refusal(&[Made::file("p/l/x"), Made::link("p/l", "ok")]), @r#"a.tgz: the entry "p/l" is a file or a link that others lie below"#);
    insta::assert_snapshot!(refusal(&[Made::link("p/l", "ok"), Made::file("p/l/x"), Made::file("p/ok")]), @r#"a.tgz: the entry "p/l/x" lies below a file or a link"#);
    assert_eq!(made(Made::link("p/l", "./ok")), "accepted");
}

#[test]
fn archives_that_lie_about_their_size_are_refused() {
    let big = Made {
        data: &[0; 1001],
        ..Made::file("p/x")
    };
    insta::assert_snapshot!(refusal(&[big]), @"a.tgz: unpacks to more than the 1000 bytes that the lock states");
    let names: Vec<String> = (0..11).map(|at| format!("p/{at}")).collect();
    let many: Vec<Made<'_>> = names.iter().map(|name| Made::file(name)).collect();
    insta::assert_snapshot!(refusal(&many), @"a.tgz: has more than the 10 entries that the lock states");
    insta::assert_snapshot!(refusal_of(&gzip(&vec![0; 100_000_000])), @"a.tgz: unpacks to more than the 1000 bytes that the lock states");
    let good = tar_of(&[Made::file("p/ok")]);
    insta::assert_snapshot!(refusal_of(&[gzip(&good), b"x".to_vec()].concat()), @"a.tgz: holds bytes after its end");
    insta::assert_snapshot!(refusal_of(&[gzip(&good), gzip(&good)].concat()), @"a.tgz: holds bytes after its end");
    insta::assert_snapshot!(refusal_of(&gzip(&[good.clone(), b"x".to_vec()].concat())), @"a.tgz: holds bytes after its end");
    insta::assert_snapshot!(refusal_of(&gzip(&good[..1024])), @"a.tgz: is not a tar archive that can be read");
    insta::assert_snapshot!(refusal_of(&gzip(&good)[..40]), @"a.tgz: is not a gzip file that can be read");
    let mut summed = gzip(&good);
    let sum = summed.len() - 8;
    summed[sum] ^= 1;
    insta::assert_snapshot!(refusal_of(&summed), @"a.tgz: is not a gzip file that can be read");
    insta::assert_snapshot!(refusal(&[Made::file("q/x")]), @r#"a.tgz: holds no "p""#);
}

#[test]
fn what_is_taken_is_written_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let root = Dir::create_private(&dir.path().join("tree")).unwrap();
    let bytes = gzip(&tar_of(&[
        Made::of("p/", EntryType::Directory),
        Made {
            mode: 0o755,
            ..Made::file("p/bin/x")
        },
        Made::file("p/y"),
        Made::link("p/l", "bin/x"),
        Made::file("other"),
    ]));
    let archive = lock(&bytes, "tgz", r#"{"p": "m/deep", "other": "o"}"#);
    let checked = Checked::read(&archive, &bytes).unwrap();
    assert!(root.names().unwrap().is_empty());
    let mut told = 0;
    let written = checked.unpack(&root, |bytes| told += bytes).unwrap();
    let paths: Vec<&str> = written.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["m/deep/bin/x", "m/deep/y", "o"]);
    assert_eq!((told, written[0].sha256), (12, hash::sha256(b"data")));
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::symlink_metadata(root.path().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(
        (mode("m/deep/bin/x"), mode("m/deep/y"), mode("m/deep")),
        (0o755, 0o644, 0o755)
    );
    assert_eq!(
        std::fs::read_link(root.path().join("m/deep/l")).unwrap(),
        Path::new("bin/x")
    );
    // A second archive cannot write over it.
    assert!(checked.unpack(&root, |_| ()).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        for format in ["tgz", "zip"] {
            let archive = lock(&bytes, format, r#"{"p": "m"}"#);
            let _ = Checked::read(&archive, &bytes);
            let wrapped = gzip(&bytes);
            let _ = Checked::read(&archive, &wrapped);
        }
    }

    #[test]
    fn a_changed_byte_never_writes_outside(at in 0usize..3000, value: u8) {
        let dir = tempfile::tempdir().unwrap();
        let root = Dir::create_private(&dir.path().join("tree")).unwrap();
        let mut tar = tar_of(&[Made::file("p/a"), Made::link("p/l", "a"), Made::file("p/b/c")]);
        let at = at % tar.len();
        tar[at] = value;
        let bytes = gzip(&tar);
        let archive = lock(&bytes, "tgz", r#"{"p": "m"}"#);
        if let Ok(checked) = Checked::read(&archive, &bytes) {
            let _ = checked.unpack(&root, |_| ());
        }
        let beside: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        prop_assert_eq!(beside.len(), 1);
    }
}
