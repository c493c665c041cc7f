//! Turns a plan into a running child.

use crate::obstacle::{self, Obstacle};
use crate::plan::{Plan, Stdio};
use crate::sys::{self, Entry, Prepared, Started, Step, Strings, Walls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, WaitId, WaitIdOptions};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A name holds a NUL byte, so that the kernel cannot be told it.
    #[error("{0} holds a NUL byte")]
    Nul(&'static str),
    /// The machine forbids what a confined program needs.
    #[error("{0}")]
    Forbidden(#[source] Obstacle),
    /// A step of the start failed.
    #[error("failed to {what}")]
    Step {
        /// The step, in words.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// How to mend it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Forbidden(obstacle) => Some(obstacle.hint()),
            _ => None,
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A program that was started. Dropping it does not end the program.
#[derive(Debug)]
pub struct Child {
    /// The writing end of its standard input, where the plan asked for a pipe.
    pub stdin: Option<OwnedFd>,
    /// The reading end of its standard output, where the plan asked for a pipe.
    pub stdout: Option<OwnedFd>,
    /// The reading end of its standard error, where the plan asked for a pipe.
    pub stderr: Option<OwnedFd>,
    pid: i32,
    pidfd: OwnedFd,
    report: OwnedFd,
    exit: Mutex<Option<Exit>>,
}

/// Starts a program of ours, without walls.
pub fn plain(plan: Plan) -> Result<Child, StartError> {
    begin(plan, None)
}

/// Starts a program in namespaces of its own.
pub fn confined(plan: Plan) -> Result<Child, StartError> {
    let walls = walls(plan.private_tmp.as_deref(), &plan.read_only)?;
    begin(plan, Some(walls))
}

/// Sets the walls up around nothing: whether `confined` can work on this machine.
pub(crate) fn probe() -> Result<(), StartError> {
    let plan = Plan {
        program: "/".into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: "/".into(),
        stdin: Stdio::Null,
        stdout: Stdio::Null,
        stderr: Stdio::Null,
        private_tmp: None,
        read_only: Vec::new(),
    };
    let walls = walls(Some(Path::new("/.sema-probe")), &[])?;
    let (mut prepared, ends) = prepare(plan, Some(walls))?;
    prepared.probe = true;
    launch(prepared, ends)?.wait();
    Ok(())
}

fn begin(plan: Plan, walls: Option<Walls>) -> Result<Child, StartError> {
    let (prepared, ends) = prepare(plan, walls)?;
    launch(prepared, ends)
}

/// Our ends of the pipes.
type Ends = [Option<OwnedFd>; 3];

fn prepare(plan: Plan, walls: Option<Walls>) -> Result<(Prepared, Ends), StartError> {
    let program = text(
        plan.program.into_os_string().into_vec(),
        "the program's path",
    )?;
    let mut args = vec![program.clone()];
    for arg in plan.args {
        args.push(text(arg.into_vec(), "an argument")?);
    }
    let mut env = Vec::new();
    for (name, value) in plan.env {
        let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
        env.push(text(pair, "an environment variable")?);
    }
    let cwd = text(
        plan.cwd.into_os_string().into_vec(),
        "the working directory",
    )?;
    let (stdin, our_stdin) = standard(plan.stdin, 0)?;
    let (stdout, our_stdout) = standard(plan.stdout, 1)?;
    let (stderr, our_stderr) = standard(plan.stderr, 2)?;
    let starter = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .map_err(step("watch the starting process"))?;
    let prepared = Prepared {
        program,
        args: Strings::new(args),
        env: Strings::new(env),
        cwd,
        stdio: [stdin, stdout, stderr],
        walls,
        probe: false,
        starter,
    };
    Ok((prepared, [our_stdin, our_stdout, our_stderr]))
}

fn text(bytes: Vec<u8>, what: &'static str) -> Result<CString, StartError> {
    CString::new(bytes).map_err(|_| StartError::Nul(what))
}

fn step(what: &'static str) -> impl Fn(Errno) -> StartError {
    move |errno| StartError::Step {
        what,
        source: errno.into(),
    }
}

/// The program's end of one standard descriptor, above 2, and ours.
fn standard(stdio: Stdio, number: usize) -> Result<(OwnedFd, Option<OwnedFd>), StartError> {
    let failed = step("make a standard descriptor");
    let (theirs, ours) = match stdio {
        Stdio::Fd(fd) => (fd, None),
        Stdio::Null => {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            (
                rustix::fs::open("/dev/null", flags, Mode::empty()).map_err(&failed)?,
                None,
            )
        }
        Stdio::Inherit => {
            let own = [
                rustix::stdio::stdin(),
                rustix::stdio::stdout(),
                rustix::stdio::stderr(),
            ];
            (
                rustix::io::fcntl_dupfd_cloexec(own[number], 3).map_err(&failed)?,
                None,
            )
        }
        Stdio::Pipe => {
            let (read, write) =
                rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(&failed)?;
            if number == 0 {
                (read, Some(write))
            } else {
                (write, Some(read))
            }
        }
    };
    // A descriptor of 0 to 2 would be overwritten before it is used.
    Ok((
        rustix::io::fcntl_dupfd_cloexec(&theirs, 3).map_err(&failed)?,
        ours,
    ))
}

/// What the new root is made of.
fn walls(private_tmp: Option<&Path>, read_only: &[PathBuf]) -> Result<Walls, StartError> {
    let (uid, gid) = sys::ids();
    // Chromium refuses to run as user 0: root appears inside as an ordinary user.
    let inside = |id: u32| if id == 0 { 1000 } else { id };
    let private_tmp = match private_tmp {
        Some(path) => Some(text(
            below(b"/new", path.as_os_str().as_bytes()),
            "the private folder",
        )?),
        None => None,
    };
    let inside_new = |path: &PathBuf| {
        text(
            below(b"/new", path.as_os_str().as_bytes()),
            "a read-only path",
        )
    };
    let read_only = read_only.iter().map(inside_new).collect::<Result<_, _>>()?;
    let has_shm = rustix::fs::stat("/dev/shm").is_ok();
    Ok(Walls {
        uid_map: format!("{} {uid} 1", inside(uid)).into_bytes(),
        gid_map: format!("{} {gid} 1", inside(gid)).into_bytes(),
        entries: host_entries()?,
        read_only,
        private_tmp,
        has_shm,
    })
}

fn below(root: &[u8], path: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
    [root, slash, path].concat()
}

/// Every entry of the host's root but `/proc`.
fn host_entries() -> Result<Vec<Entry>, StartError> {
    let failed = step("read the folder /");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty()).map_err(&failed)?;
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(&root).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b".." | b"proc") {
            continue;
        }
        let new = text(below(b"/new", name), "an entry of /")?;
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let Ok(stat) = rustix::fs::statat(&root, entry.file_name(), flags) else {
            continue;
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&root, entry.file_name(), Vec::new());
                entries.push(Entry::Link {
                    target: target.map_err(&failed)?,
                    new,
                });
            }
            kind => entries.push(Entry::Bind {
                old: text(below(b"/old", name), "an entry of /")?,
                new,
                folder: kind == FileType::Directory,
            }),
        }
    }
    Ok(entries)
}

/// A start for the spawning thread.
struct Order {
    prepared: Prepared,
    report: OwnedFd,
    answer: mpsc::Sender<io::Result<Started>>,
}

/// The thread that starts every process: the kernel ends a child when the *thread* that started it
/// ends, so that thread must live as long as we do.
static SPAWNER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
    let (sender, orders) = mpsc::channel::<Order>();
    std::thread::spawn(move || {
        for order in orders {
            _ = order
                .answer
                .send(sys::start(&order.prepared, &order.report));
        }
    });
    sender
});

fn launch(prepared: Prepared, [stdin, stdout, stderr]: Ends) -> Result<Child, StartError> {
    let is_confined = prepared.walls.is_some();
    let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
    let (report, write) = pipe.map_err(step("make a pipe"))?;
    let (answer, started) = mpsc::channel();
    let order = Order {
        prepared,
        report: write,
        answer,
    };
    let gone = || StartError::Step {
        what: "start a process",
        source: io::Error::other("the thread that starts processes has ended"),
    };
    SPAWNER.send(order).map_err(|_| gone())?;
    let started = started.recv().map_err(|_| gone())?;
    let fault = |step, source| failure(is_confined, step, source);
    let Started { pid, pidfd } = started.map_err(|source| fault(Step::Clone, source))?;
    let child = Child {
        stdin,
        stdout,
        stderr,
        pid,
        pidfd,
        report,
        exit: Mutex::new(None),
    };
    match child.read_report() {
        // A plain program's report closes when it is executed.
        Some((Step::Started, _)) => Ok(child),
        None if !is_confined => Ok(child),
        Some((step, errno)) => {
            child.wait();
            Err(fault(step, io::Error::from_raw_os_error(errno)))
        }
        None => {
            child.wait();
            Err(fault(
                Step::Clone,
                io::Error::other("its first process was ended"),
            ))
        }
    }
}

fn failure(is_confined: bool, step: Step, source: io::Error) -> StartError {
    if is_confined && let Some(obstacle) = obstacle::explain(step, &source) {
        return StartError::Forbidden(obstacle);
    }
    StartError::Step {
        what: words(step),
        source,
    }
}

fn words(step: Step) -> &'static str {
    match step {
        Step::Clone => "start a process",
        Step::IdMap => "map the user into its namespace",
        Step::DeathSignal => "tie the process to its starter",
        Step::Propagation | Step::Root => "make a root for the process",
        Step::Bind => "show the host's folders in the new root",
        Step::Proc => "mount /proc for the process namespace",
        Step::ReadOnly => "make a path read-only",
        Step::Tmp => "make a temporary folder for the process",
        Step::Pivot => "enter the new root",
        Step::Fork => "start the program's process",
        Step::Descriptors => "set up standard input and output",
        Step::WorkingDirectory => "enter the working directory",
        Step::Privileges => "drop privileges",
        Step::Exec => "execute the program",
        Step::Started | Step::Exited | Step::Signalled => "follow the program",
    }
}

impl Child {
    /// The process id: of a confined program, that of the first process of its namespace.
    pub fn id(&self) -> i32 {
        self.pid
    }

    /// Waits until the program, and all that a confined one started, has ended.
    pub fn wait(&self) -> Exit {
        loop {
            if let Some(exit) = self.wait_until(None) {
                return exit;
            }
        }
    }

    /// Waits at most this long; none when it still runs.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.wait_until(Some(Instant::now() + timeout))
    }

    /// How it ended, if it has.
    pub fn try_wait(&self) -> Option<Exit> {
        self.wait_timeout(Duration::ZERO)
    }

    /// Sends a signal: to a confined program, its first process hands SIGTERM, SIGINT, SIGHUP and
    /// SIGQUIT on to it, and SIGKILL ends all. A program that has ended gets nothing.
    pub fn signal(&self, signal: Signal) {
        _ = rustix::process::pidfd_send_signal(&self.pidfd, signal);
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Option<Exit> {
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut ready = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut ready, timeout.as_ref()) {
                Ok(0) => return None,
                Ok(_) => return Some(self.reap()),
                Err(_) if left == Some(Duration::ZERO) => return None,
                Err(_) => {}
            }
        }
    }

    /// Takes the exit status of a process that has ended, once.
    fn reap(&self) -> Exit {
        let mut exit = self.exit.lock().unwrap_or_else(PoisonError::into_inner);
        *exit.get_or_insert_with(|| {
            let status =
                rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
            match self.read_report() {
                Some((Step::Exited, code)) => return Exit::Code(code),
                Some((Step::Signalled, signal)) => return Exit::Signal(signal),
                _ => {}
            }
            match status.ok().flatten() {
                Some(status) => match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (_, Some(signal)) => Exit::Signal(signal),
                    _ => Exit::Code(127),
                },
                None => Exit::Code(127),
            }
        })
    }

    fn read_report(&self) -> Option<(Step, i32)> {
        let mut message = [0; 8];
        loop {
            match rustix::io::read(&self.report, &mut message) {
                Ok(count) => return sys::decode(&message[..count]),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}
