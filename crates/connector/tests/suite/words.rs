//! The documents at the repository's root say what is so.

use crate::suite::stage::{BROWSER, LAUNCHER};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

fn documents() -> Vec<String> {
    let entries = std::fs::read_dir(root()).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

#[test]
fn every_command_of_the_documents_is_there() {
    let mut seen = 0;
    for name in documents() {
        let text = document(&name).replace('\n', " ");
        for (program, path) in [
            ("sema-connector ", LAUNCHER),
            ("sema-connector-browser ", BROWSER),
        ] {
            for (at, _) in text.match_indices(program) {
                // A command stands in code, at its beginning or behind a shell's pipe.
                let before = text[..at].trim_end_matches(' ');
                if !before.ends_with(['`', '|', 'h', '#']) && !text[..at].ends_with("  ") {
                    continue;
                }
                let verb: String = text[at + program.len()..]
                    .chars()
                    .take_while(char::is_ascii_lowercase)
                    .collect();
                if verb.is_empty() {
                    continue;
                }
                let help = Command::new(path).args([&verb, "--help"]).output().unwrap();
                assert!(help.status.success(), "{name}: {program}{verb}");
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn every_test_that_security_names_exists() {
    let mut code = String::new();
    gather(&root().join("crates"), &mut code);
    let text = document("SECURITY.md");
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(2);
    let mut seen = 0;
    for row in rows {
        let tests = row.rsplit('|').nth(1).unwrap();
        for test in tests.split('`').skip(1).step_by(2) {
            assert!(code.contains(&format!("fn {test}(")), "{test}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

fn gather(folder: &Path, code: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, code);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            code.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    for name in documents() {
        let text = document(&name);
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let near = !target.contains("://") && !target.starts_with('#');
            assert!(!near || root().join(target).exists(), "{name}: {target}");
        }
    }
}
