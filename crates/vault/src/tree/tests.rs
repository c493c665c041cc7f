use super::*;
use crate::hash::sha256;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

fn build(at: &Path) -> (Dir, Record) {
    let root = Dir::create_private(at).unwrap();
    std::fs::create_dir(at.join("a")).unwrap();
    std::fs::write(at.join("a/b"), "content").unwrap();
    std::fs::write(at.join("c"), "more").unwrap();
    std::os::unix::fs::symlink("a/b", at.join("l")).unwrap();
    std::fs::create_dir(at.join(ARCHIVES)).unwrap();
    let file = |path: &str, text: &str| Written {
        path: path.into(),
        sha256: sha256(text.as_bytes()),
    };
    let written = [file("a/b", "content"), file("c", "more")];
    let record = Record::of(&root, &written, sha256(b"lock"), &[], 0).unwrap();
    record.write(&root).unwrap();
    let record = Record::read(&root).unwrap();
    (root, record)
}

fn refused(harm: impl FnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("bin");
    let (root, record) = build(&at);
    record.check(&root, Depth::Changed).unwrap();
    harm(&at);
    let error = record.check(&root, Depth::Changed).unwrap_err();
    error.to_string().replace(dir.path().to_str().unwrap(), "")
}

#[test]
fn any_change_is_refused_by_its_path() {
    insta::assert_snapshot!(refused(|at| std::fs::write(at.join("a/b"), "Content").unwrap()), @"/bin/a/b: has other content");
    insta::assert_snapshot!(refused(|at| std::fs::write(at.join("a/b"), "content!").unwrap()), @"/bin/a/b: has another size");
    insta::assert_snapshot!(refused(|at| std::fs::write(at.join("a/x"), "").unwrap()), @"/bin/a/x: is not of the build");
    insta::assert_snapshot!(refused(|at| std::fs::remove_file(at.join("c")).unwrap()), @"/bin/c: is missing");
    insta::assert_snapshot!(refused(|at| std::fs::remove_dir_all(at.join("a")).unwrap()), @"/bin/a: is missing");
    insta::assert_snapshot!(refused(|at| {
        std::fs::set_permissions(at.join("c"), std::fs::Permissions::from_mode(0o600)).unwrap();
    }), @"/bin/c: has another mode");
    insta::assert_snapshot!(refused(|at| {
        std::fs::remove_file(at.join("l")).unwrap();
        std::os::unix::fs::symlink("a/../c", at.join("l")).unwrap();
    }), @"/bin/l: is a link to elsewhere");
    insta::assert_snapshot!(refused(|at| {
        std::fs::remove_file(at.join("c")).unwrap();
        std::os::unix::fs::symlink("a/b", at.join("c")).unwrap();
    }), @"/bin/c: is of another kind");
}

#[test]
fn a_flipped_bit_behind_kept_times_is_seen_by_a_whole_check() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("bin");
    let (root, record) = build(&at);
    std::fs::write(at.join("c"), "mare").unwrap();
    assert!(record.check(&root, Depth::Everything).is_err());
}

#[test]
fn a_copied_tree_is_hashed_once_and_recorded_anew() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("bin");
    build(&at);
    let copy = dir.path().join("copy");
    let status = std::process::Command::new("cp")
        .arg("-a")
        .arg(&at)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(status.success());
    let root = Dir::open_private(&copy).unwrap().unwrap();
    let before = Record::read(&root).unwrap();
    before.check(&root, Depth::Changed).unwrap();
    let after = Record::read(&root).unwrap();
    assert_ne!(before, after);
    after.check(&root, Depth::Changed).unwrap();
    assert_eq!(after, Record::read(&root).unwrap());
}

#[test]
fn another_text_is_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let root = Dir::create_private(&dir.path().join("bin")).unwrap();
    assert!(matches!(Record::read(&root), Err(TreeError::Missing(_))));
    root.write_atomic(RECORD, b"{}", 0o600).unwrap();
    assert!(matches!(Record::read(&root), Err(TreeError::BadRecord(_))));
}

#[test]
fn a_large_tree_is_checked_in_little_time() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("bin");
    let root = Dir::create_private(&at).unwrap();
    let mut written = Vec::new();
    for folder in 0..30 {
        std::fs::create_dir(at.join(format!("{folder}"))).unwrap();
        for file in 0..50 {
            let path = format!("{folder}/{file}");
            std::fs::write(at.join(&path), "x").unwrap();
            written.push(Written {
                path,
                sha256: sha256(b"x"),
            });
        }
    }
    Record::of(&root, &written, sha256(b""), &[], 0)
        .unwrap()
        .write(&root)
        .unwrap();
    let began = Instant::now();
    Record::read(&root)
        .unwrap()
        .check(&root, Depth::Changed)
        .unwrap();
    println!("1,530 entries in {:?}", began.elapsed());
}
