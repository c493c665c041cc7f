//! What a connector's directory holds, as far as a running session follows it: a look at it, and
//! what changed since the look before. The tool policy is not among it: `settle.rs` follows that.

use super::Settings;
use rustix::fs::{AtFlags, FileType, statat};
use sema_rules::{manifest, policy};
use sema_vault::Dir;

/// One look: what lay at each place that is followed, always in the same order.
#[derive(Debug)]
pub(super) struct Look(Vec<(Place, Option<Stamp>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Handle,
    Build,
    Policy,
    Manifest,
}

/// Whoever changes a file, or puts another in its place, changes its stamp.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    mode: u32,
    changed: (i64, u64),
}

/// What is not as it was.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// A handle.
    pub(super) handles: bool,
    /// What a start may have failed for is another now: a handle or the build is there, or a policy
    /// that is read for its form.
    pub(super) start: bool,
    /// `connector.json`.
    pub(super) manifest: bool,
}

impl Look {
    /// Looks now.
    pub(super) fn at(settings: &Settings) -> Self {
        let handles = settings.manifest.handles.iter();
        let names = handles.flat_map(|handle| [handle.to_string(), format!("{handle}.meta.json")]);
        let mut places: Vec<(Place, String)> = names.map(|name| (Place::Handle, name)).collect();
        places.push((Place::Build, "bin".to_owned()));
        let policies = policy::NOT_ENFORCED.into_iter();
        places.extend(policies.map(|file| (Place::Policy, file.to_owned())));
        places.push((Place::Manifest, manifest::FILE.to_owned()));
        let dir = settings.dir.dir();
        let look = |(place, name): (Place, String)| (place, stamp(dir, &name));
        Self(places.into_iter().map(look).collect())
    }

    /// What is not as it was at the look `before`.
    pub(super) fn since(&self, before: &Self) -> Changed {
        let mut changed = Changed::default();
        for ((place, now), (_, before)) in self.0.iter().zip(&before.0) {
            if now == before {
                continue;
            }
            changed.handles |= *place == Place::Handle;
            changed.start |= match place {
                Place::Handle | Place::Build => now.is_some(),
                Place::Policy => true,
                Place::Manifest => false,
            };
            changed.manifest |= *place == Place::Manifest;
        }
        changed
    }
}

fn stamp(dir: &Dir, name: &str) -> Option<Stamp> {
    let stat = statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let changed = match FileType::from_raw_mode(stat.st_mode) {
        // A start renews the record in the build, which changes the folder's times.
        FileType::Directory => (0, 0),
        _ => (stat.st_ctime, stat.st_ctime_nsec),
    };
    Some(Stamp {
        inode: stat.st_ino,
        mode: stat.st_mode,
        changed,
    })
}

impl Changed {
    /// Whether anything changed.
    pub(super) fn any(&self) -> bool {
        *self != Self::default()
    }

    /// Adds what changed later.
    pub(super) fn add(&mut self, later: &Self) {
        self.handles |= later.handles;
        self.start |= later.start;
        self.manifest |= later.manifest;
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test changes what is looked at"
)]
mod tests {
    use super::*;
    use crate::launcher::Purpose;
    use sema_rules::manifest::Manifest;
    use sema_rules::name::{ConnectorName, Handle};
    use sema_vault::ConnectorDir;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    fn settings(path: &Path) -> Settings {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        Settings {
            config: PathBuf::new(),
            name: ConnectorName::parse("c").unwrap(),
            dir: ConnectorDir::open(path).unwrap().unwrap(),
            manifest: Manifest {
                command: Vec::new(),
                handles: vec![Handle::parse("TOKEN").unwrap()],
                required: Vec::new(),
                confined: Default::default(),
                read: Vec::new(),
                write: Vec::new(),
                env: Vec::new(),
            },
            env: Vec::new(),
            keep: None,
            purpose: Purpose::Work,
        }
    }

    #[test]
    fn each_change_is_seen_for_what_it_is() {
        let disk = tempfile::tempdir().unwrap();
        let settings = settings(disk.path());
        let at = |name: &str| disk.path().join(name);
        let write = |name: &str, text: &str| fs::write(at(name), text).unwrap();
        let mut before = Look::at(&settings);
        let mut shown = String::new();
        let mut change = |what: &str, change: &dyn Fn()| {
            change();
            let now = Look::at(&settings);
            let changed = now.since(&before);
            let words = [
                (!changed.any(), "nothing"),
                (changed.handles, "handles"),
                (changed.start, "start"),
                (changed.manifest, "manifest"),
            ];
            let words = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word);
            let words: Vec<&str> = words.collect();
            shown.push_str(&format!("{what}: {}\n", words.join(", ")));
            before = now;
        };
        change("handle stored", &|| write("TOKEN", "a"));
        change("handle replaced", &|| {
            write("new", "b");
            fs::rename(at("new"), at("TOKEN")).unwrap();
        });
        change("handle called public", &|| write("TOKEN.meta.json", "{}"));
        change("handle called secret", &|| {
            fs::remove_file(at("TOKEN.meta.json")).unwrap();
        });
        change("handle removed", &|| fs::remove_file(at("TOKEN")).unwrap());
        change("another name", &|| write("OTHER", "a"));
        change("tool policy", &|| write("tools.json", "{}"));
        change("policy read for its form", &|| write("jail.json", "{}"));
        change("policy removed", &|| {
            fs::remove_file(at("jail.json")).unwrap();
        });
        change("build", &|| fs::create_dir(at("bin")).unwrap());
        change("record of the build", &|| write("bin/record.json", "{}"));
        change("build exchanged", &|| {
            fs::create_dir(at("bin.staging")).unwrap();
            fs::rename(at("bin"), at("bin.old")).unwrap();
            fs::rename(at("bin.staging"), at("bin")).unwrap();
        });
        change("build removed", &|| fs::remove_dir(at("bin")).unwrap());
        change("manifest", &|| write("connector.json", "{}"));
        insta::assert_snapshot!(shown, @"
        handle stored: handles, start
        handle replaced: handles, start
        handle called public: handles, start
        handle called secret: handles
        handle removed: handles
        another name: nothing
        tool policy: nothing
        policy read for its form: start
        policy removed: start
        build: start
        record of the build: nothing
        build exchanged: start
        build removed: nothing
        manifest: manifest
        ");
    }
}
