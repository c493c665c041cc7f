use super::*;

/// A brotli stream that stores these bytes as they are: a window of 16 bits, one block that is not
/// compressed, one that is last and empty.
fn brotli(bytes: &[u8]) -> Vec<u8> {
    let block = (((bytes.len() - 1) << 4) | 1 << 20).to_le_bytes();
    [&block[..3], bytes, b"\x03"].concat()
}

#[test]
fn a_tar_archive_in_brotli_is_held_to_the_same_rules() {
    let limit = lock(b"", "tgz", "{}").unpacked;
    let said = |bytes: &[u8]| match list(Form::TarBrotli, bytes, limit) {
        Ok(listed) => format!("{} entries", listed.len()),
        Err(problem) => problem.to_string(),
    };
    let good = brotli(&tar_of(&[Made::file("p/ok")]));
    insta::assert_snapshot!(said(&good), @"1 entries");
    insta::assert_snapshot!(said(&[good.clone(), b"x".to_vec()].concat()), @"holds bytes after its end");
    insta::assert_snapshot!(said(&[good.clone(), vec![0; 100_000]].concat()), @"holds bytes after its end");
    insta::assert_snapshot!(said(&good[..good.len() - 1]), @"is not a brotli file that can be read");
    insta::assert_snapshot!(said(b""), @"is not a brotli file that can be read");
    insta::assert_snapshot!(said(&brotli(&tar_of(&[Made::file("../x")]))), @r#"the entry "../x" is not a path of ordinary names below the archive's root"#);
    let large = Made {
        data: &[0; 1001],
        ..Made::file("p/x")
    };
    insta::assert_snapshot!(said(&brotli(&tar_of(&[large]))), @"unpacks to more than the 1000 bytes that the lock states");
}

/// What is said when the file `p/x.br` of an archive is unpacked to `m/x`, which is to have 4 bytes.
fn unpacked(stream: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = Dir::create_private(&dir.path().join("tree")).unwrap();
    let made = Made {
        data: stream,
        ..Made::file("p/x.br")
    };
    let bytes = gzip(&tar_of(&[made]));
    let mut archive = lock(&bytes, "tgz", "{}");
    archive.nested = serde_json::from_str(
        r#"[{"format": "brotli", "from": "p/x.br", "to": "m/x", "bytes": 4, "executable": false}]"#,
    )
    .unwrap();
    let checked = Checked::read(&archive, &bytes).unwrap();
    match checked.unpack(&root, |_| ()) {
        Ok(_) => std::fs::read_to_string(root.path().join("m/x")).unwrap(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_file_in_brotli_has_the_length_that_is_stated() {
    let good = brotli(b"data");
    insta::assert_snapshot!(unpacked(&good), @"data");
    insta::assert_snapshot!(unpacked(&brotli(b"dat")), @"a.tgz: m/x does not unpack to the 4 bytes that the lock states");
    insta::assert_snapshot!(unpacked(&brotli(b"data and more")), @"a.tgz: m/x does not unpack to the 4 bytes that the lock states");
    insta::assert_snapshot!(unpacked(&[good.clone(), b"x".to_vec()].concat()), @"a.tgz: holds bytes after its end");
    insta::assert_snapshot!(unpacked(&good[..5]), @"a.tgz: is not a brotli file that can be read");
}
