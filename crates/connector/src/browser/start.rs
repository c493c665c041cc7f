//! Checks what the launcher gave, starts the upstream in the jail, and ends as it ends.
//!
//! Each check refuses with what is wrong and how to mend it; nothing is started before all hold.

use super::build::Build;
use super::environment::{self, Places};
use super::relay::{self, Upstream};
use super::saved::Store;
use super::table::{self, Export, Launch};
use super::{EXPORT, NAME, STATE, fonts};
use crate::cli::failure::Failure;
use rustix::io::Errno;
use sema_jail::{Child, Exit, Plan, StartError, Stdio, StopSignals};
use sema_rules::state::check_storage_state;
use sema_vault::{ConfigDir, ConnectorDir, Dir, Secret, VaultError};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Where the upstream's own temporary folder appears: short, because Chromium and the upstream put
/// sockets below it, whose paths hold 107 bytes.
const TMP: &str = "/.sema-tmp";
/// Where the C library's own UTF-8 locale lies.
const CHARACTERS: [&str; 2] = ["/usr/lib/locale/C.utf8", "/usr/lib64/locale/C.utf8"];
const AUTH: &str = "echo '{}' | sema-connector-browser auth";
const LAUNCHER: &str = "start it through the launcher: sema-connector run browser";

/// The connector process, given its environment. It ends as the upstream ends.
pub fn run(env: &[(OsString, OsString)]) -> Result<Exit, Failure> {
    // Before any thread is started: the signals are blocked in all of them.
    let stops = StopSignals::catch()
        .map_err(|error| Failure::failed(format_args!("cannot catch signals: {error}")))?;
    let given = Given::check(env)?;
    let build = Build::find(&given.connector)?;
    given.check_content()?;
    build.check_browser()?;
    let plan = plan(env, &given, &build)?;
    let mut child = sema_jail::confined(plan).map_err(|error| jail_failure(&error))?;
    let ends = child.stdin.take().zip(child.stdout.take());
    let child = Arc::new(child);
    hand_on(stops, &child);
    match ends {
        Some((stdin, stdout)) => {
            let store = Store::new(given.connector, given.out);
            relay::run(&child, Upstream { stdin, stdout }, store)
        }
        None => Ok(child.wait()),
    }
}

/// What the launcher gave, checked.
struct Given {
    connector: ConnectorDir,
    launch: Dir,
    /// The launch's output directory.
    out: Dir,
    state: Secret,
    state_path: PathBuf,
    export: Export,
    switch: Option<Secret>,
    config: Option<PathBuf>,
}

impl Given {
    fn check(env: &[(OsString, OsString)]) -> Result<Self, Failure> {
        let path = var(env, "CONNECTOR_DIR")
            .map(PathBuf::from)
            .ok_or_else(|| Failure::refused("CONNECTOR_DIR is not set").hint(LAUNCHER))?;
        let connector = ConnectorDir::open(&path)?.ok_or_else(|| {
            Failure::refused(format_args!(
                "CONNECTOR_DIR {} is not there",
                path.display()
            ))
            .hint(AUTH)
        })?;
        let state_path = var(env, "BROWSER_STORAGE_STATE_FILE").map(PathBuf::from);
        let state_path = state_path.ok_or_else(|| {
            Failure::refused(format_args!(
                "no login state: the handle {STATE} is not stored"
            ))
            .hint(AUTH)
        })?;
        let (launch, state) = copy(&connector, STATE, &state_path)?;
        let switch = match var(env, "BROWSER_EXPORT_FILE") {
            Some(path) => Some(copy(&connector, EXPORT, Path::new(path))?.1),
            None => None,
        };
        same_launch(&launch, var(env, "CONNECTOR_LAUNCH_DIR"))?;
        if launch.path().to_str().is_none() {
            let text = format!(
                "the path {} is not UTF-8, which the upstream needs",
                launch.path().display()
            );
            return Err(Failure::refused(text).hint("export CONFIG_LOCAL_DIR=/another/path"));
        }
        Ok(Self {
            out: launch.create_sub("out")?,
            export: if switch.is_some() {
                Export::On
            } else {
                Export::Off
            },
            config: ConfigDir::locate(
                var(env, "CONFIG_LOCAL_DIR").map(OsString::from),
                var(env, "XDG_CONFIG_HOME").map(OsString::from),
                var(env, "HOME").map(OsString::from),
            )
            .ok(),
            connector,
            launch,
            state,
            state_path,
            switch,
        })
    }

    /// What the copies hold, once it is known that something could be started with them.
    fn check_content(&self) -> Result<(), Failure> {
        check_storage_state(self.state.bytes()).map_err(|error| {
            Failure::refused(format_args!(
                "the stored login state {STATE} is not usable: {error}"
            ))
            .hint(AUTH)
        })?;
        let Some(switch) = &self.switch else {
            return Ok(());
        };
        if switch.bytes() != b"on" {
            return Err(Failure::refused(format_args!(
                "the stored switch {EXPORT} does not hold \"on\""
            ))
            .hint("store it again: echo '{\"export\": \"on\"}' | sema-connector-browser auth"));
        }
        let stands = self
            .config
            .as_ref()
            .map(|config| config.join("connectors").join(NAME));
        if stands.as_deref() != Some(self.connector.path()) {
            return Err(Failure::refused(
                "the export of the login state is on, and CONNECTOR_DIR is not <configuration directory>/connectors/browser",
            )
            .hint(LAUNCHER));
        }
        Ok(())
    }
}

/// Opens the launch's copy of a handle: a regular file of ours in a launch's directory below
/// `CONNECTOR_DIR`, reached without a link.
fn copy(connector: &ConnectorDir, handle: &str, path: &Path) -> Result<(Dir, Secret), Failure> {
    let refuse = || {
        Failure::refused(format_args!(
            "{handle}_FILE is not a regular file in a launch's directory of CONNECTOR_DIR: {}",
            path.display()
        ))
        .hint(LAUNCHER)
    };
    let below = path.strip_prefix(connector.path()).map_err(|_| refuse())?;
    let mut names = Vec::new();
    for part in below.components() {
        match part {
            Component::Normal(name) => names.push(name),
            _ => return Err(refuse()),
        }
    }
    let Some((file, folders)) = names.split_last() else {
        return Err(refuse());
    };
    let Some((first, rest)) = folders.split_first() else {
        return Err(refuse());
    };
    let mut dir = connector.dir().sub(first)?.ok_or_else(refuse)?;
    for name in rest {
        dir = dir.sub(name)?.ok_or_else(refuse)?;
    }
    let bytes = dir.read_private(file, sema_vault::connector_dir::HANDLE_LIMIT)?;
    Ok((dir, Secret::new(bytes.ok_or_else(refuse)?)))
}

fn same_launch(launch: &Dir, named: Option<&OsStr>) -> Result<(), Failure> {
    match named {
        Some(named) if Path::new(named) != launch.path() => Err(Failure::refused(format_args!(
            "CONNECTOR_LAUNCH_DIR is not the directory of {STATE}_FILE, {}",
            launch.path().display()
        ))
        .hint(LAUNCHER)),
        _ => Ok(()),
    }
}

fn plan(env: &[(OsString, OsString)], given: &Given, build: &Build) -> Result<Plan, Failure> {
    let home = given.launch.create_sub("home")?;
    let cache = home.path().join(".cache/fontconfig");
    let folders = [build.fonts.as_path()]
        .into_iter()
        .chain(fonts::SYSTEM.iter().map(Path::new));
    let there: Vec<_> = folders
        .filter(|folder| rustix::fs::stat(*folder).is_ok())
        .collect();
    home.write_atomic(
        "fonts.conf",
        fonts::configuration(&there, &cache).as_bytes(),
        0o600,
    )?;
    let localtime = rustix::fs::readlink("/etc/localtime", Vec::new()).ok();
    let localtime = localtime.and_then(|link| link.into_string().ok());
    let locales = locales(env, &home)?;
    let places = Places {
        home: home.path(),
        locales: locales.as_ref().map(Dir::path),
        tmp: Path::new(TMP),
        libraries: &build.libraries(),
        fonts: home.path(),
        localtime: localtime.as_deref().map(Path::new),
    };
    let launch = Launch {
        executable: &build.browser,
        out: given.out.path(),
        state: &given.state_path,
        export: given.export,
    };
    let mut args = vec![build.script.clone().into_os_string()];
    args.extend(table::arguments(launch));
    let stdio = || match given.export {
        Export::Off => Stdio::Inherit,
        Export::On => Stdio::Pipe,
    };
    Ok(Plan {
        program: build.node.clone(),
        args,
        env: environment::upstream(env, places),
        cwd: given.out.path().to_owned(),
        stdin: stdio(),
        stdout: stdio(),
        stderr: Stdio::Inherit,
        private_tmp: Some(TMP.into()),
        read_only: vec![build.root.clone()],
    })
}

/// Makes a folder of locales in which each language that the upstream is told is the machine's
/// `C.UTF-8` by another name. A language that the machine does not have would leave the browser in
/// the locale `C`, in which every download with a name beyond ASCII is called `download`.
fn locales(env: &[(OsString, OsString)], home: &Dir) -> Result<Option<Dir>, Failure> {
    let is_there = |path: &&&str| rustix::fs::stat(**path).is_ok();
    let Some(characters) = CHARACTERS.iter().find(is_there) else {
        return Ok(None);
    };
    let locales = home.create_sub("locale")?;
    for (_, name) in environment::language(env) {
        let is_name = Path::new(name).file_name() == Some(name);
        if !is_name {
            continue;
        }
        match rustix::fs::symlinkat(*characters, locales.fd(), name) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => {
                let path = locales.path().join(name);
                return Err(VaultError::io(path, "make a link", error).into());
            }
        }
    }
    Ok(Some(locales))
}

/// Hands stop signals on to the upstream, which closes its browser and ends. Where it has ended
/// already and only an unread answer keeps us, we end too.
fn hand_on(stops: StopSignals, child: &Arc<Child>) {
    let child = Arc::clone(child);
    std::thread::spawn(move || {
        while let Ok(signal) = stops.wait() {
            match child.try_wait() {
                Some(exit) => sema_jail::end_as(exit),
                None => child.signal(signal),
            }
        }
    });
}

fn jail_failure(error: &StartError) -> Failure {
    let mut text = format!("cannot start the browser's jail: {error}");
    let mut source = std::error::Error::source(error);
    // The setting that forbids it is the error's own text already.
    while let (Some(cause), None) = (source, error.hint()) {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    match error.hint() {
        Some(hint) => Failure::refused(text).hint(hint),
        None => Failure::failed(text),
    }
}

fn var<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = env.iter().find(|(own, _)| own == name)?;
    Some(found.1.as_os_str()).filter(|value| !value.is_empty())
}
