//! One launch's directory: the copies of its handles, `out/` and `home/`.
//!
//! A launch is live while somebody holds the lock on its directory; the kernel lets it go when
//! the launcher ends, however it ends. A dead launch's directory goes with the next sweep.

use crate::bytes::random_name;
use crate::dir::{Dir, Flush, TEMPORARY};
use crate::error::VaultError;
use crate::lock;
use crate::secret::Secret;
use crate::sweep;
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::io::Errno;
use sema_rules::name::{Handle, LaunchId};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LAUNCHES: &str = "launches";
/// Short: the paths of sockets below it hold 107 bytes.
const ID_LENGTH: usize = 8;

/// The directory of a running launch. Dropping it ends the launch and leaves the directory to the
/// next sweep; `remove` takes it away.
#[derive(Debug)]
pub struct LaunchDir {
    id: LaunchId,
    // Its descriptor holds the lock that says "live".
    dir: Dir,
    launches: Dir,
}

impl LaunchDir {
    pub(crate) fn create(
        connector: &Dir,
        handles: &[(&Handle, &Secret)],
    ) -> Result<Self, VaultError> {
        let launches = connector.create_sub(LAUNCHES)?;
        let (id, dir) = fresh(&launches)?;
        let launch = Self { id, dir, launches };
        launch.fill(handles).inspect_err(|_| {
            let _ = launch.launches.remove_tree(launch.id.as_str());
        })?;
        Ok(launch)
    }

    fn fill(&self, handles: &[(&Handle, &Secret)]) -> Result<(), VaultError> {
        for (handle, secret) in handles {
            self.dir
                .write_new(handle.as_str(), secret.bytes(), 0o600, Flush::No)?;
        }
        self.dir.create_sub("out")?;
        self.dir.create_sub("home")?;
        Ok(())
    }

    /// Its id.
    pub fn id(&self) -> &LaunchId {
        &self.id
    }

    /// Its path, as in `CONNECTOR_LAUNCH_DIR`.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory itself.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Where the copy of a handle is, as in `<HANDLE>_FILE`.
    pub fn copy_path(&self, handle: &Handle) -> PathBuf {
        self.path().join(handle.as_str())
    }

    /// Puts the copy of a handle that was stored after the launch began, in place of an older one.
    pub fn put_copy(&self, handle: &Handle, secret: &Secret) -> Result<(), VaultError> {
        self.dir
            .write_atomic(handle.as_str(), secret.bytes(), 0o600)
    }

    /// Ends the launch: removes the directory and all that is in it.
    pub fn remove(self) -> Result<(), VaultError> {
        self.launches.remove_tree(self.id.as_str()).map(|_| ())
    }
}

/// Makes a directory under a name that nobody has and marks it as live.
fn fresh(launches: &Dir) -> Result<(LaunchId, Dir), VaultError> {
    loop {
        let name = random_name(ID_LENGTH);
        let path = launches.path().join(&name);
        let failed = |doing| move |e| VaultError::io(path, doing, e);
        match rustix::fs::mkdirat(launches.fd(), &name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => continue,
            Err(e) => return Err(failed("create it")(e)),
        }
        let Ok(id) = LaunchId::parse(&name) else {
            return Err(failed("name it")(Errno::INVAL));
        };
        let Some(dir) = launches.sub(&name)? else {
            return Err(failed("open it")(Errno::NOENT));
        };
        // A look by `live` may hold it for a moment, hence no NonBlocking.
        rustix::io::retry_on_intr(|| {
            rustix::fs::flock(dir.fd(), rustix::fs::FlockOperation::LockExclusive)
        })
        .map_err(failed("lock it"))?;
        return Ok((id, dir));
    }
}

/// What the lock on a launch's directory says.
enum State {
    Live,
    /// Nobody held it; the descriptor does now.
    Dead(Option<OwnedFd>),
    Gone,
}

fn state(launches: &Dir, name: &OsStr) -> Result<State, VaultError> {
    let failed = |e| VaultError::io(launches.path().join(name), "lock it", e);
    let fd = match sweep::open(launches.fd(), name) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(State::Gone),
        // A file or a link: no launch.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(State::Dead(None)),
        Err(e) => return Err(failed(e)),
    };
    let dead = lock::try_exclusive(&fd).map_err(failed)?;
    Ok(if dead {
        State::Dead(Some(fd))
    } else {
        State::Live
    })
}

/// The launches whose lock is held.
pub(crate) fn live(connector: &Dir) -> Result<Vec<(LaunchId, PathBuf)>, VaultError> {
    let Some(launches) = connector.sub(LAUNCHES)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for name in launches.names()? {
        if let Some(id) = name.to_str().and_then(|name| LaunchId::parse(name).ok())
            && let State::Live = state(&launches, &name)?
        {
            found.push((id, launches.path().join(&name)));
        }
    }
    Ok(found)
}

/// Removes temporary files and dead launches. One that cannot be removed does not keep the
/// others; the first such error is returned in the end.
pub(crate) fn sweep(connector: &Dir) -> Result<usize, VaultError> {
    let mut swept = Ok(0);
    let mut add = |removed: Result<bool, VaultError>| match (&mut swept, removed) {
        (Ok(count), Ok(removed)) => *count += usize::from(removed),
        (Ok(_), Err(e)) => swept = Err(e),
        (Err(_), _) => {}
    };
    for name in connector.names()? {
        if name.as_bytes().starts_with(TEMPORARY.as_bytes()) {
            add(connector.remove_tree(&name));
        }
    }
    let Some(launches) = connector.sub(LAUNCHES)? else {
        return swept;
    };
    for name in launches.names()? {
        match state(&launches, &name) {
            Ok(State::Dead(_held)) => add(launches.remove_tree(&name)),
            Ok(State::Live | State::Gone) => {}
            Err(e) => add(Err(e)),
        }
    }
    swept
}

#[cfg(test)]
mod tests {
    use crate::connector_dir::{Change, ConnectorDir};
    use crate::dir::Dir;
    use crate::secret::Secret;
    use sema_rules::name::Handle;
    use std::fs;

    fn connector() -> (tempfile::TempDir, ConnectorDir) {
        let disk = tempfile::tempdir().unwrap();
        let dir = Dir::create_private(&disk.path().join("c")).unwrap();
        (disk, ConnectorDir::new(dir))
    }

    fn token() -> (Handle, Secret) {
        (
            Handle::parse("TOKEN").unwrap(),
            Secret::new(b"secret".to_vec()),
        )
    }

    #[test]
    fn a_launch_lives_while_it_is_held() {
        let (_disk, connector) = connector();
        let held = connector.lock_exclusive(&mut |_| {}).unwrap();
        let (handle, secret) = token();
        let launch = connector.new_launch(&held, &[(&handle, &secret)]).unwrap();
        assert!(launch.id().as_str().len() <= 12);
        assert_eq!(fs::read(launch.copy_path(&handle)).unwrap(), b"secret");
        assert!(launch.path().join("out").is_dir() && launch.path().join("home").is_dir());
        let live = vec![(launch.id().clone(), launch.path().to_owned())];
        assert_eq!(connector.live_launches().unwrap(), live);
        assert_eq!(connector.sweep(&held).unwrap(), 0);

        let other = connector.new_launch(&held, &[]).unwrap();
        let path = other.path().to_owned();
        drop(other);
        assert_eq!(connector.live_launches().unwrap(), live);
        assert_eq!(connector.sweep(&held).unwrap(), 1);
        assert!(!path.exists());

        let path = launch.path().to_owned();
        launch.remove().unwrap();
        assert!(!path.exists());
        assert_eq!(connector.live_launches().unwrap(), []);
    }

    #[test]
    fn leftovers_of_any_kind_are_swept() {
        let (_disk, connector) = connector();
        let held = connector.lock_exclusive(&mut |_| {}).unwrap();
        connector.new_launch(&held, &[]).unwrap().remove().unwrap();
        let at = |name: &str| connector.path().join(name);
        fs::write(at(".tmp-abc"), "secret").unwrap();
        fs::write(at("launches/file"), "").unwrap();
        std::os::unix::fs::symlink("/", at("launches/link")).unwrap();
        fs::create_dir(at("launches/dead")).unwrap();
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(at("launches/dead"), closed).unwrap();
        fs::write(at("TOKEN"), "kept").unwrap();
        assert_eq!(connector.sweep(&held).unwrap(), 4);
        assert_eq!(
            connector.dir().names().unwrap(),
            [".lock", "TOKEN", "launches"]
        );
    }

    #[test]
    fn a_group_is_read_as_it_was_written() {
        let (_disk, connector) = connector();
        let held = connector.lock_exclusive(&mut |_| {}).unwrap();
        let (handle, secret) = token();
        let switch = Handle::parse("SWITCH").unwrap();
        let put = |handle: &Handle, secret| Change::Put {
            handle: handle.clone(),
            bytes: Secret::new(b"value".to_vec()),
            secret,
        };
        connector
            .write_group(&held, &[put(&switch, false), put(&handle, true)])
            .unwrap();
        let group = connector
            .read_group(&held, &[handle.clone(), switch.clone()])
            .unwrap();
        let kinds: Vec<_> = group
            .iter()
            .map(|(handle, _, secret)| (handle, *secret))
            .collect();
        assert_eq!(kinds, [(&handle, true), (&switch, false)]);
        assert_eq!(
            connector.handle_names().unwrap(),
            [switch.clone(), handle.clone()]
        );

        connector
            .write_group(&held, &[put(&switch, true), Change::Remove(handle.clone())])
            .unwrap();
        let group = connector
            .read_group(&held, &[handle.clone(), switch.clone()])
            .unwrap();
        assert_eq!(group.len(), 1);
        assert!(
            group[0].2,
            "a switch that was stored again as a secret is one"
        );
        assert_ne!(secret.bytes(), group[0].1.bytes());
    }
}
