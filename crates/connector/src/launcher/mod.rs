//! The launcher: what an engine starts with `sema-connector run NAME`. It starts the connector,
//! carries lines between the two, follows the operator's files while it runs, and ends what it
//! started.

mod look;
mod note;
mod pipes;
mod reason;
mod session;
mod settle;
mod sink;
mod start;
mod status;
mod trace;
pub mod unenforced;
mod watch;

pub use status::read as read_status;

use crate::cli::failure::Failure;
use crate::cli::output;
use reason::End;
use sema_jail::{Child, Exit, StopSignals};
use sema_rules::eras::Eras;
use sema_rules::hop::{Absence, Hop, Step};
use sema_rules::manifest::{self, Manifest};
use sema_rules::name::{ConnectorName, Handle};
use sema_rules::policy::ToolPolicy;
use sema_rules::wire::Code;
use sema_rules::withhold::Withhold;
use sema_vault::{ConnectorDir, LaunchDir, Secret};
use session::Session;
use settle::{Found, Settling};
use sink::Sink;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use trace::{Content, Trace};

/// How long each step of an ending waits for the next one.
const PATIENCE: Duration = Duration::from_secs(2);
/// The operator's tool policy.
const POLICY: &str = "tools.json";
/// The longest policy file that is read, in bytes.
const POLICY_LIMIT: usize = 1024 * 1024;

/// What is run, and for whom.
pub struct Settings {
    /// The configuration directory's path.
    pub config: PathBuf,
    /// The connector's name.
    pub name: ConnectorName,
    /// Its directory.
    pub dir: ConnectorDir,
    /// What to start.
    pub manifest: Manifest,
    /// The environment of the engine, of which little passes.
    pub env: Vec<(OsString, OsString)>,
    /// Where to copy the launch's files to before they go.
    pub keep: Option<PathBuf>,
    /// What the session is for.
    pub purpose: Purpose,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// An engine works with it: it is traced, and the person is told where its files are.
    Work,
    /// Only the status is read.
    Status,
}

/// A launcher at work.
struct Launcher {
    settings: Settings,
    session: Session,
    running: Mutex<Option<Running>>,
    /// Every secret that this launch has known: what was replaced is still withheld.
    secrets: Mutex<Vec<(Handle, Secret)>>,
    stopping: AtomicBool,
}

/// A connector that was started.
struct Running {
    child: Arc<Child>,
    /// Disconnected once the connector has ended and all it said was handed on.
    done: mpsc::Receiver<()>,
}

/// Runs a connector for the engine at the other end of `input` and `output`, until the engine
/// closes its end or a stop signal comes.
pub fn run(
    settings: Settings,
    input: OwnedFd,
    output: OwnedFd,
    stops: Option<StopSignals>,
) -> Result<ExitCode, Failure> {
    let found = read_policy(&settings.dir);
    let hop = Hop::new(
        settings.name.clone(),
        env!("CARGO_PKG_VERSION"),
        settle::first(&found),
        parked(&settings),
    );
    let eras = Eras::new(hop, || crate::random::name().ok());
    let trace = match settings.purpose {
        Purpose::Work => trace::open(&settings.dir, &settings.name),
        Purpose::Status => Trace::new(settings.name.clone(), None, Content::Off),
    };
    let launcher = Arc::new(Launcher {
        session: Session::new(eras, Withhold::default(), Sink::engine(output), trace),
        settings,
        running: Mutex::default(),
        secrets: Mutex::default(),
        stopping: AtomicBool::new(false),
    });
    if let Some(stops) = stops {
        let launcher = Arc::clone(&launcher);
        std::thread::spawn(move || {
            if let Ok(signal) = stops.wait() {
                launcher.end();
                std::process::exit(128 + signal.as_raw());
            }
        });
    }
    let pumps: [fn(&Session); 2] = [|all| all.engine.pump(), |all| all.connector.pump()];
    for pump in pumps {
        let launcher = Arc::clone(&launcher);
        std::thread::spawn(move || pump(&launcher.session));
    }
    let input = Arc::new(input);
    let (over, end) = mpsc::channel();
    let policy = Settling::new(found, Instant::now());
    // Before the start: what changes after it was read is seen.
    let watch = watch::begin(&launcher, policy, &input, over.clone())
        .map_err(|error| Failure::failed(format_args!("cannot watch the connector: {error}")))?;
    launcher.start();
    // In a thread of its own: one that waits for a side that does not read is left behind.
    let carrier = Arc::clone(&launcher);
    std::thread::spawn(move || _ = over.send(carrier.session.carry_engine(input.as_fd())));
    let result = end.recv().unwrap_or(Ok(()));
    drop(watch);
    launcher.end();
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(errno) => Err(Failure::failed(format_args!(
            "cannot read from the engine: {errno}"
        ))),
    }
}

/// Why the session begins without a connector.
fn parked(settings: &Settings) -> Absence {
    let name = &settings.name;
    let missing: Vec<&str> = settings
        .manifest
        .required
        .iter()
        .map(Handle::as_str)
        .collect();
    let fix = match name.as_str() {
        crate::browser::NAME => "sema-connector-browser auth".to_owned(),
        _ => format!(
            "sema-connector auth {name} {}",
            missing.first().unwrap_or(&"HANDLE")
        ),
    };
    let reason = format!(
        "{name} is not authorized: {} is not stored; run: {fix}",
        missing.join(", ")
    );
    Absence {
        code: Code::Unauthorized,
        reason,
    }
}

/// What the operator's tool policy is now.
fn read_policy(dir: &ConnectorDir) -> Found {
    let text = dir.dir().read_policy(POLICY, POLICY_LIMIT);
    let text = text.map_err(|error| error.to_string())?;
    let parse = |text: Vec<u8>| ToolPolicy::parse(&text).map_err(|error| error.to_string());
    text.map(parse).transpose()
}

impl Launcher {
    /// Starts the connector if what it requires is there and it does not run. Otherwise the session
    /// says why.
    fn start(self: &Arc<Self>) {
        let mut running = self.running();
        if self.stopping.load(Ordering::SeqCst) || running.as_ref().is_some_and(Running::is_alive) {
            return;
        }
        match start::connector(self) {
            Ok(Some(started)) => *running = Some(started),
            Ok(None) => self.session.eras().absent_because(parked(&self.settings)),
            Err(absence) => {
                output::say(&format!("sema-connector: {}", absence.reason));
                self.session.eras().absent_because(absence);
            }
        }
    }

    /// The connector has ended, all it said was handed on, and its words are known.
    fn ended(&self, launch: LaunchDir, absence: Absence) {
        self.session.connector.try_close();
        // Nothing here may wait for an engine that does not read before the files are gone.
        let mut words = Vec::new();
        if let Some(keep) = &self.settings.keep {
            words.extend(keep_files(&launch, keep));
        }
        words.extend(launch.remove().err().map(|error| error.to_string()));
        if !self.stopping.load(Ordering::SeqCst) {
            self.session.change(|eras| eras.connector_ended(absence));
        }
        for word in words {
            output::say(&format!("sema-connector: {word}"));
        }
    }

    /// Ends the connector and all that it started, and takes the launch's directory away.
    fn end(self: &Arc<Self>) {
        self.stopping.store(true, Ordering::SeqCst);
        self.session.connector.try_close();
        // Not there in time where a start waits for the directory's lock: what that may still start
        // ends with us.
        let running = self.patiently(|own| own.running().take());
        if let Some(Running { child, done }) = running.flatten() {
            end_tree(&child);
            _ = done.recv_timeout(PATIENCE);
        }
        // An engine that does not read is not waited for any longer.
        self.patiently(Self::say_end);
        self.session.connector.finish();
        self.session.engine.finish();
    }

    /// What comes of this; none where it does not come in time: then it is left behind.
    fn patiently<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        let own = Arc::clone(self);
        std::thread::spawn(move || _ = tell.send(work(&own)));
        told.recv_timeout(PATIENCE).ok()
    }

    /// Answers what is still open, and tells what was dropped.
    fn say_end(&self) {
        self.session.change(|eras| eras.ended(stopped()));
        self.session.trace.flush();
        self.session.engine.flush();
        let (noise, lost) = self.session.trace.counts();
        if noise > 0 {
            output::say(&format!(
                "sema-connector: dropped {noise} lines of the connector that were no messages"
            ));
        }
        if lost > 0 && self.settings.purpose == Purpose::Work {
            output::say(&format!(
                "sema-connector: {lost} lines of the trace could not be written"
            ));
        }
    }

    /// Takes over the tool policy once what is read of it counts.
    fn follow_policy(&self, settling: &mut Settling) {
        let found = read_policy(&self.settings.dir);
        if let Some(policy) = settling.read(found, Instant::now()) {
            self.session
                .change(|eras: &mut Eras| -> Step { eras.policy_changed(policy) });
        }
    }

    /// Takes over the handles as they are now: a new secret is withheld.
    fn follow_handles(&self) {
        let read = || {
            let held = self.settings.dir.lock_shared(&mut output::waiting)?;
            self.settings
                .dir
                .read_group(&held, &self.settings.manifest.handles)
        };
        if let Ok(group) = read() {
            self.withhold(&group);
        }
    }

    /// Whether `connector.json` says something else than what is run.
    fn is_mounted_anew(&self) -> bool {
        let Settings { dir, manifest, .. } = &self.settings;
        let text = dir.dir().read_policy(manifest::FILE, manifest::LIMIT);
        let now = text.ok().flatten().map(|text| Manifest::parse(&text));
        now.is_none_or(|now| now.as_ref() != Ok(manifest))
    }

    /// Withholds these secrets too, from now on. False where that cannot be done.
    fn withhold(&self, group: &[(Handle, Secret, bool)]) -> bool {
        let mut known = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.len();
        for (handle, secret, is_secret) in group {
            let new = !known.iter().any(|(_, old)| old.bytes() == secret.bytes());
            if *is_secret && new {
                known.push((handle.clone(), Secret::new(secret.bytes().to_vec())));
            }
        }
        if known.len() == before {
            return true;
        }
        match Withhold::new(
            known
                .iter()
                .map(|(handle, secret)| (handle, secret.bytes())),
        ) {
            Ok(withhold) => {
                self.session.withhold(withhold);
                true
            }
            Err(_) => false,
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// Whether it runs, or what it said is still being handed on.
    fn is_alive(&self) -> bool {
        self.done.try_recv() == Err(mpsc::TryRecvError::Empty)
    }
}

/// What open requests are answered with when the launcher ends.
fn stopped() -> Absence {
    Absence {
        code: Code::UpstreamExit,
        reason: "the launcher was stopped".to_owned(),
    }
}

/// Ends a connector whose input is closed, and all that it started: after a while with a signal
/// that it can follow, after another with one that it cannot refuse.
fn end_tree(child: &Child) {
    use rustix::process::Signal;
    for signal in [Signal::TERM, Signal::KILL] {
        if child.wait_timeout(PATIENCE).is_none() {
            child.signal(signal);
        }
    }
}

/// Copies what the launch wrote; tells what was done.
fn keep_files(launch: &LaunchDir, keep: &std::path::Path) -> Option<String> {
    let kept = match launch.dir().sub("out") {
        Ok(out) => sema_vault::foreign::copy(&out?, keep, |_| false),
        Err(error) => return Some(error.to_string()),
    };
    Some(match kept {
        Ok(kept) => format!("kept {} files in {}", kept.written.len(), keep.display()),
        Err(error) => error.to_string(),
    })
}

impl From<Exit> for End {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
        }
    }
}
