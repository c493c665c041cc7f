//! What a mounted program is never given: the whole disk, the home folder, the configuration
//! directory, or anything that holds one of them.
#![expect(
    clippy::disallowed_methods,
    reason = "the door to the paths that a person grants"
)]

use super::failure::Failure;
use super::mount;
use sema_rules::quote;
use std::path::{Path, PathBuf};

/// The places that no grant may open, with their links resolved.
#[derive(Debug)]
pub(super) struct Protected {
    home: Option<PathBuf>,
    config: PathBuf,
}

impl Protected {
    pub(super) fn new(home: Option<PathBuf>, config: &Path) -> Self {
        Self {
            home: home.map(|home| real(&home)),
            config: real(config),
        }
    }

    /// Why a path is refused; `None` where it may be granted, or grants nothing because it is no
    /// absolute path of something that exists.
    pub(super) fn refuses(&self, path: &Path) -> Option<&'static str> {
        if !path.is_absolute() {
            return None;
        }
        let path = path.canonicalize().ok()?;
        let holds = |inner: &Path| inner.starts_with(&path);
        if path == Path::new("/") {
            return Some("is the whole disk");
        }
        if path == self.config {
            return Some("is the configuration directory");
        }
        if path.starts_with(&self.config) {
            return Some("is inside the configuration directory");
        }
        match &self.home {
            Some(home) if *home == path => return Some("is your home folder"),
            Some(home) if holds(home) => return Some("holds your home folder"),
            _ => {}
        }
        if holds(&self.config) {
            return Some("holds the configuration directory");
        }
        path.starts_with("/proc").then_some("is in /proc")
    }

    /// Checks the paths of `--read` or `--write`: absolute, there, and not refused.
    pub(super) fn grants(&self, flag: &str, paths: &[PathBuf]) -> Result<Vec<String>, Failure> {
        let mut granted = Vec::new();
        for path in paths {
            let text = mount::text(path)?;
            let refused = |why: &str| {
                Failure::refused(format_args!("{flag} {}: {why}", quote::shell(&text)))
                    .hint("name one file or folder that the program needs, by its absolute path")
            };
            if !path.is_absolute() {
                return Err(refused("is not an absolute path"));
            }
            if !path.exists() {
                return Err(refused("does not exist"));
            }
            if let Some(why) = self.refuses(path) {
                return Err(refused(why));
            }
            if !granted.contains(&text) {
                granted.push(text);
            }
        }
        Ok(granted)
    }
}

/// Whether a person names something that is there.
pub(super) fn exists(path: &Path) -> bool {
    path.exists()
}

/// Whether a person names a file.
pub(super) fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// The path with its links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_secret_or_the_person_is_refused() {
        let disk = tempfile::tempdir().unwrap();
        let root = disk.path().canonicalize().unwrap();
        let make = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let home = make("home/me");
        let config = make("etc/config");
        make("etc/config/connectors");
        make("home/me/project");
        std::os::unix::fs::symlink(&home, root.join("link")).unwrap();
        let protected = Protected::new(Some(home), &config);
        let why = |path: &str| protected.refuses(&root.join(path));
        assert_eq!(protected.refuses(Path::new("/")), Some("is the whole disk"));
        assert_eq!(
            protected.refuses(Path::new("/..")),
            Some("is the whole disk")
        );
        assert_eq!(
            protected.refuses(Path::new("/proc/self")),
            Some("is in /proc")
        );
        assert_eq!(why("home/me"), Some("is your home folder"));
        assert_eq!(why("home/me/project/.."), Some("is your home folder"));
        assert_eq!(why("link"), Some("is your home folder"));
        assert_eq!(why("home"), Some("holds your home folder"));
        assert_eq!(why("etc"), Some("holds the configuration directory"));
        assert_eq!(why("etc/config"), Some("is the configuration directory"));
        assert_eq!(
            why("etc/config/connectors"),
            Some("is inside the configuration directory")
        );
        assert_eq!(why("home/me/project"), None);
        assert_eq!(why("missing"), None);
        assert_eq!(protected.refuses(Path::new("home/me")), None);
    }
}
