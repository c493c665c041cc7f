//! Starts the connector: its handles, its launch directory, its environment, its threads.

use super::reason::LastWords;
use super::{Launcher, Purpose, Running, Settings, end_tree, unenforced};
use crate::cli::output;
use sema_jail::{Child, Exit, Plan, StartError, Stdio};
use sema_rules::hop::Absence;
use sema_rules::manifest::Confined;
use sema_rules::name::Handle;
use sema_rules::wire::Code;
use sema_vault::{LaunchDir, Secret, VaultError};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The variables of the engine's environment that pass.
const PASSED: [&str; 14] = [
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];
/// The search path where the engine gives none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Where a confined connector's own temporary folder appears.
const TMP: &str = "/.sema-tmp";
/// How long the last words of a connector that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Starts it; none where a handle that it requires is not stored.
pub(super) fn connector(launcher: &Arc<Launcher>) -> Result<Option<Running>, Absence> {
    unenforced::check(&launcher.settings)?;
    let Settings { dir, manifest, .. } = &launcher.settings;
    let prepare = || -> Result<_, VaultError> {
        let held = dir.lock_exclusive(&mut output::waiting)?;
        dir.sweep(&held)?;
        let group = dir.read_group(&held, &manifest.handles)?;
        let stored = |handle| group.iter().any(|(name, ..)| name == handle);
        if !manifest.required.iter().all(stored) {
            return Ok(None);
        }
        let copies: Vec<_> = group
            .iter()
            .map(|(handle, secret, _)| (handle, secret))
            .collect();
        let launch = dir.new_launch(&held, &copies)?;
        Ok(Some((group, launch)))
    };
    let Some((group, launch)) = prepare().map_err(vault_absence)? else {
        return Ok(None);
    };
    if !launcher.withhold(&group) {
        return Err(failed(
            "the secrets are too large to be withheld".to_owned(),
        ));
    }
    let plan = plan(&launcher.settings, &group, &launch);
    let started = match manifest.confined {
        Confined::ByItself => sema_jail::plain(plan),
        Confined::ByLauncher => sema_jail::confined(plan),
    };
    match started {
        Ok(child) => {
            if launcher.settings.purpose == Purpose::Work {
                let out = launch.path().join("out");
                output::say(&format!(
                    "sema-connector: the files of this launch are in {}",
                    out.display()
                ));
            }
            Ok(Some(follow(launcher, child, launch)))
        }
        Err(error) => {
            _ = launch.remove();
            Err(failed(start_words(&error)))
        }
    }
}

fn failed(reason: String) -> Absence {
    Absence {
        code: Code::UpstreamExit,
        reason,
    }
}

fn vault_absence(error: VaultError) -> Absence {
    let hint = error
        .hint()
        .map(|hint| format!("; hint: {hint}"))
        .unwrap_or_default();
    failed(format!("{error}{hint}"))
}

fn start_words(error: &StartError) -> String {
    let mut words = format!("cannot start the connector: {error}");
    if let Some(hint) = error.hint() {
        words.push_str(&format!("; hint: {hint}"));
    } else if let Some(cause) = std::error::Error::source(error) {
        words.push_str(&format!(": {cause}"));
    }
    words
}

fn plan(settings: &Settings, group: &[(Handle, Secret, bool)], launch: &LaunchDir) -> Plan {
    let confined = settings.manifest.confined == Confined::ByLauncher;
    let mut command = settings.manifest.command.iter();
    Plan {
        program: command.next().map(Into::into).unwrap_or_default(),
        args: command.map(OsString::from).collect(),
        env: environment(settings, group, launch),
        cwd: launch.path().join("out"),
        stdin: Stdio::Pipe,
        stdout: Stdio::Pipe,
        stderr: Stdio::Pipe,
        private_tmp: confined.then(|| TMP.into()),
        read_only: Vec::new(),
    }
}

/// The connector's whole environment.
fn environment(
    settings: &Settings,
    group: &[(Handle, Secret, bool)],
    launch: &LaunchDir,
) -> Vec<(OsString, OsString)> {
    let engine = |name: &str| {
        let found = settings.env.iter().find(|(own, _)| own == name);
        found.map(|(name, value)| (name.clone(), value.clone()))
    };
    let path = engine("PATH").unwrap_or_else(|| ("PATH".into(), PATH.into()));
    let mut env = vec![path];
    env.extend(PASSED.into_iter().filter_map(engine));
    let mut set = |name: &str, value: &Path| env.push((name.into(), value.into()));
    set("CONFIG_LOCAL_DIR", &settings.config);
    set("CONNECTOR_DIR", settings.dir.path());
    set("CONNECTOR_LAUNCH_DIR", launch.path());
    if settings.manifest.confined == Confined::ByLauncher {
        set("HOME", &launch.path().join("home"));
        set("TMPDIR", Path::new(TMP));
    }
    for (handle, secret, _) in group {
        set(&format!("{handle}_FILE"), &launch.copy_path(handle));
        if settings.manifest.env.contains(handle) {
            set(
                handle.as_str(),
                Path::new(OsStr::from_bytes(secret.bytes())),
            );
        }
    }
    env
}

/// Starts the threads that follow the connector, and puts it behind the hop.
fn follow(launcher: &Arc<Launcher>, mut child: Child, launch: LaunchDir) -> Running {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let child = Arc::new(child);
    if let Some(stdin) = stdin {
        launcher.session.connector.open(stdin);
    }
    launcher.session.change(|eras| eras.connector_started());
    let (heard, hear) = mpsc::channel::<()>();
    let own = Arc::clone(launcher);
    let reader = std::thread::spawn(move || {
        if let Some(stdout) = stdout {
            _ = own.session.carry_connector(stdout);
        }
        drop(heard);
    });
    let (told, words) = mpsc::channel();
    let own = Arc::clone(launcher);
    std::thread::spawn(move || {
        let mut words = LastWords::default();
        if let Some(stderr) = stderr {
            _ = words.listen(stderr, |line| own.pass_stderr(line));
        }
        _ = told.send(words);
    });
    let (ended, done) = mpsc::channel::<()>();
    let (own, followed) = (Arc::clone(launcher), Arc::clone(&child));
    std::thread::spawn(move || {
        let exit = await_end(&own, &followed, &hear);
        // What it wrote before it ended is in its pipes. A process that it left with its end of a
        // pipe is not waited for: the kernel ends it with the walls.
        _ = hear.recv_timeout(LAST_WORDS);
        let words = words.recv_timeout(LAST_WORDS).unwrap_or_default();
        own.ended(launch, words.absence(exit.into()));
        drop((ended, reader));
    });
    Running { child, done }
}

/// Waits for the end of a connector. One that closes its output and lives on can answer nothing
/// any more, and one that closes its input can be asked nothing: it is ended.
fn await_end(launcher: &Launcher, child: &Child, hear: &mpsc::Receiver<()>) -> Exit {
    loop {
        if let Some(exit) = child.wait_timeout(LAST_WORDS) {
            return exit;
        }
        // Disconnected at the end of its output.
        let mute = hear.try_recv() == Err(mpsc::TryRecvError::Disconnected);
        let stopping = launcher.stopping.load(Ordering::SeqCst);
        if mute || (!stopping && launcher.session.connector.is_closed()) {
            break;
        }
    }
    launcher.session.connector.try_close();
    end_tree(child);
    child.wait()
}

impl Launcher {
    /// Passes a line of the connector's standard error on, unless it carries a secret. Whether it
    /// was passed.
    fn pass_stderr(&self, line: &[u8]) -> bool {
        let withheld = self.session.withheld(line);
        let mut stderr = std::io::stderr().lock();
        _ = match &withheld {
            None => stderr.write_all(line),
            Some(handle) => writeln!(
                stderr,
                "sema-connector: withheld a line that carries {handle}"
            ),
        };
        withheld.is_none()
    }
}
