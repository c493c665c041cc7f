//! The system calls between the start of a process and its program, and the only unsafe code of
//! the workspace.
//!
//! Between `clone` and `execve` a process is a copy of one thread of ours: another thread may have
//! held any lock at that moment. So nothing here allocates, takes a lock or panics after `clone`;
//! everything that is needed is prepared before, in [`Prepared`].
#![expect(
    unsafe_code,
    reason = "system calls that no safe wrapper offers between clone and execve"
)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// The steps of a start, as they are named in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Step {
    Clone = 1,
    IdMap,
    DeathSignal,
    Propagation,
    Root,
    Bind,
    Proc,
    Tmp,
    ReadOnly,
    Pivot,
    Fork,
    Descriptors,
    WorkingDirectory,
    Privileges,
    Exec,
    /// The program runs.
    Started = 100,
    /// The program ended with a code.
    Exited,
    /// The program was ended by a signal.
    Signalled,
}

impl Step {
    pub(crate) fn of(number: i32) -> Option<Self> {
        const ALL: [Step; 18] = [
            Step::Clone,
            Step::IdMap,
            Step::DeathSignal,
            Step::Propagation,
            Step::Root,
            Step::Bind,
            Step::Proc,
            Step::Tmp,
            Step::ReadOnly,
            Step::Pivot,
            Step::Fork,
            Step::Descriptors,
            Step::WorkingDirectory,
            Step::Privileges,
            Step::Exec,
            Step::Started,
            Step::Exited,
            Step::Signalled,
        ];
        ALL.into_iter().find(|step| *step as i32 == number)
    }
}

/// A NULL-terminated list of strings, as `execve` takes it.
pub(crate) struct Strings {
    pointers: Vec<*const libc::c_char>,
    _owned: Vec<CString>,
}

// SAFETY: the pointers point into the heap blocks of `_owned`, which move with the value and are
// never changed; sharing or sending them is as safe as sharing or sending the strings.
unsafe impl Send for Strings {}
// SAFETY: as above: there is no way to change the strings.
unsafe impl Sync for Strings {}

impl Strings {
    pub(crate) fn new(strings: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = strings.iter().map(|string| string.as_ptr()).collect();
        pointers.push(ptr::null());
        Self {
            pointers,
            _owned: strings,
        }
    }
}

/// One entry of `/` that the new root gets.
pub(crate) enum Entry {
    /// A folder or a file of the host, with everything mounted below it: where it is found once the
    /// old root lies at `/old`, and where it is put below `/new`.
    Bind {
        old: CString,
        new: CString,
        folder: bool,
    },
    /// A symbolic link.
    Link { target: CString, new: CString },
}

/// The namespaces of a confined program.
pub(crate) struct Walls {
    pub(crate) uid_map: Vec<u8>,
    pub(crate) gid_map: Vec<u8>,
    pub(crate) entries: Vec<Entry>,
    /// Below `/new`.
    pub(crate) read_only: Vec<CString>,
    /// Below `/new`.
    pub(crate) private_tmp: Option<CString>,
    pub(crate) has_shm: bool,
}

/// Everything that a start needs.
pub(crate) struct Prepared {
    pub(crate) program: CString,
    pub(crate) args: Strings,
    pub(crate) env: Strings,
    pub(crate) cwd: CString,
    /// The standard descriptors, each above 2 and closed on exec.
    pub(crate) stdio: [OwnedFd; 3],
    pub(crate) walls: Option<Walls>,
    /// Set the walls up and end at once: whether a start would work.
    pub(crate) probe: bool,
    /// Readable once the starting process has ended.
    pub(crate) starter: OwnedFd,
}

/// A process that was started.
pub(crate) struct Started {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// Starts a process that runs `prepared` and tells how it fares on `report`.
pub(crate) fn start(prepared: &Prepared, report: &OwnedFd) -> io::Result<Started> {
    let namespaces = if prepared.walls.is_some() {
        NAMESPACES
    } else {
        0
    };
    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero clone_args is valid; the fields set are those of a fork in new
    // namespaces, and `pidfd` outlives the call.
    let pid = unsafe {
        let mut args: libc::clone_args = std::mem::zeroed();
        args.flags = u64::from((namespaces | libc::CLONE_PIDFD).cast_unsigned());
        args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
        args.pidfd = &raw mut pidfd as u64;
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        // A handler of ours must not run in the copy before its handlers are reset.
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let pid = libc::syscall(libc::SYS_clone3, &args, size_of::<libc::clone_args>());
        if pid == 0 {
            run(prepared, report.as_raw_fd());
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if pid < 0 {
            return Err(error);
        }
        pid
    };
    // SAFETY: the kernel made this descriptor for us and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Started {
        pid: i32::try_from(pid).unwrap_or(0),
        pidfd,
    })
}

/// A step that failed, with the error number of the call.
struct Fault(Step, i32);

fn check(step: Step, result: libc::c_int) -> Result<libc::c_int, Fault> {
    if result < 0 {
        Err(Fault(step, errno()))
    } else {
        Ok(result)
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Tells one thing: eight bytes, so that a pipe never tears them.
fn tell(report: RawFd, step: Step, value: i32) {
    let mut message = [0; 8];
    message[..4].copy_from_slice(&(step as i32).to_ne_bytes());
    message[4..].copy_from_slice(&value.to_ne_bytes());
    // SAFETY: `message` is eight bytes long. A report that nobody reads is no error.
    unsafe { libc::write(report, message.as_ptr().cast(), message.len()) };
}

fn end(code: i32) -> ! {
    // SAFETY: ends this process without running anything of the copied program.
    unsafe { libc::_exit(code) }
}

/// The new process, from its first instruction.
fn run(prepared: &Prepared, report: RawFd) -> ! {
    let result = match &prepared.walls {
        Some(walls) => first_process(prepared, walls, report),
        None => plain_process(prepared),
    };
    if let Err(Fault(step, errno)) = result {
        tell(report, step, errno);
    }
    end(127)
}

fn plain_process(prepared: &Prepared) -> Result<(), Fault> {
    die_with_starter(prepared)?;
    exec(prepared)
}

/// The first process of the namespaces: sets the walls up, starts the program, hands signals on,
/// reaps, and ends as the program ends.
fn first_process(prepared: &Prepared, walls: &Walls, report: RawFd) -> Result<(), Fault> {
    map_ids(walls)?;
    die_with_starter(prepared)?;
    build_root(walls)?;
    if prepared.probe {
        tell(report, Step::Started, 0);
        end(0);
    }
    let (read, write) = pipe()?;
    let program = fork()?;
    if program == 0 {
        if let Err(Fault(step, errno)) = exec(prepared) {
            tell(write, step, errno);
        }
        end(127);
    }
    keep_only(read, report);
    if let Some((step, errno)) = read_report(read) {
        return Err(Fault(step, errno));
    }
    tell(report, Step::Started, 0);
    let status = tend(program);
    if libc::WIFSIGNALED(status) {
        tell(report, Step::Signalled, libc::WTERMSIG(status));
    } else {
        tell(report, Step::Exited, libc::WEXITSTATUS(status));
    }
    end(0)
}

/// Maps the one user and group, writing the maps from inside as an unprivileged process may.
fn map_ids(walls: &Walls) -> Result<(), Fault> {
    write_file(c"/proc/self/setgroups", b"deny")?;
    write_file(c"/proc/self/uid_map", &walls.uid_map)?;
    write_file(c"/proc/self/gid_map", &walls.gid_map)
}

fn write_file(path: &CStr, content: &[u8]) -> Result<(), Fault> {
    // SAFETY: the path is NUL-terminated and `content` is as long as said.
    unsafe {
        let fd = check(
            Step::IdMap,
            libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC),
        )?;
        let written = libc::write(fd, content.as_ptr().cast(), content.len());
        let result = if written < 0 {
            Err(Fault(Step::IdMap, errno()))
        } else {
            Ok(())
        };
        libc::close(fd);
        result
    }
}

/// SIGKILL when the starter's thread ends. Set after the last change of credentials, which would
/// clear it; a starter that has ended already is seen by its descriptor.
fn die_with_starter(prepared: &Prepared) -> Result<(), Fault> {
    // SAFETY: plain integers; `poll` gets one entry and is told so.
    unsafe {
        check(
            Step::DeathSignal,
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        )?;
        let mut starter = libc::pollfd {
            fd: prepared.starter.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        if check(Step::DeathSignal, libc::poll(&mut starter, 1, 0))? > 0 {
            end(127);
        }
    }
    Ok(())
}

/// Makes a root of its own in which every entry of the host's root appears, with a fresh `/proc`,
/// a private `/dev/shm` and the private temporary folder.
fn build_root(walls: &Walls) -> Result<(), Fault> {
    use libc::{MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC, MS_SLAVE};
    let quiet = MS_NOSUID | MS_NODEV;
    mount(Step::Propagation, None, c"/", None, MS_REC | MS_SLAVE, None)?;
    // The base lies over a folder that is sure to exist, and holds the old root and the new one.
    mount(
        Step::Root,
        Some(c"sema"),
        c"/proc",
        Some(c"tmpfs"),
        quiet,
        Some(c"mode=0755"),
    )?;
    change_dir(Step::Root, c"/proc")?;
    make_dir(Step::Root, c"old", 0o755)?;
    make_dir(Step::Root, c"new", 0o755)?;
    pivot(c".", c"old")?;
    change_dir(Step::Root, c"/")?;
    // `/proc` of the host is visible again here: the kernel allows a fresh one only then.
    mount(
        Step::Root,
        Some(c"sema"),
        c"/new",
        Some(c"tmpfs"),
        quiet,
        Some(c"mode=0755"),
    )?;
    for entry in &walls.entries {
        place(entry)?;
    }
    make_dir(Step::Proc, c"/new/proc", 0o555)?;
    mount(
        Step::Proc,
        Some(c"proc"),
        c"/new/proc",
        Some(c"proc"),
        quiet | MS_NOEXEC,
        None,
    )?;
    if walls.has_shm {
        mount(
            Step::Tmp,
            Some(c"shm"),
            c"/new/dev/shm",
            Some(c"tmpfs"),
            quiet,
            Some(c"mode=1777"),
        )?;
    }
    if let Some(tmp) = &walls.private_tmp {
        make_dir(Step::Tmp, tmp, 0o700)?;
        let options = c"mode=0700,size=256m";
        mount(
            Step::Tmp,
            Some(c"tmp"),
            tmp,
            Some(c"tmpfs"),
            quiet,
            Some(options),
        )?;
    }
    walls
        .read_only
        .iter()
        .try_for_each(|path| make_read_only(path))?;
    change_dir(Step::Pivot, c"/new")?;
    pivot(c".", c".")?;
    // SAFETY: the path is NUL-terminated.
    check(Step::Pivot, unsafe {
        libc::umount2(c".".as_ptr(), libc::MNT_DETACH)
    })?;
    change_dir(Step::Pivot, c"/")?;
    let read_only = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | quiet;
    mount(Step::Pivot, None, c"/", None, read_only, None)
}

fn place(entry: &Entry) -> Result<(), Fault> {
    match entry {
        Entry::Link { target, new } => {
            // SAFETY: both paths are NUL-terminated.
            check(Step::Bind, unsafe {
                libc::symlink(target.as_ptr(), new.as_ptr())
            })
            .map(|_| ())
        }
        Entry::Bind {
            old,
            new,
            folder: true,
        } => {
            make_dir(Step::Bind, new, 0o755)?;
            mount(
                Step::Bind,
                Some(old),
                new,
                None,
                libc::MS_BIND | libc::MS_REC,
                None,
            )
        }
        Entry::Bind {
            old,
            new,
            folder: false,
        } => {
            let flags = libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            // SAFETY: the path is NUL-terminated; the descriptor is closed at once.
            unsafe {
                let fd = check(Step::Bind, libc::open(new.as_ptr(), flags, 0o644))?;
                libc::close(fd);
            }
            mount(Step::Bind, Some(old), new, None, libc::MS_BIND, None)
        }
    }
}

/// Mounts a path over itself and makes that, with all that is mounted below it, read-only. Only
/// this one attribute is set: a namespace that is not the first may not take others away.
fn make_read_only(path: &CStr) -> Result<(), Fault> {
    mount(
        Step::ReadOnly,
        Some(path),
        path,
        None,
        libc::MS_BIND | libc::MS_REC,
        None,
    )?;
    // SAFETY: an all-zero mount_attr is valid and changes nothing; it outlives the call, as the
    // NUL-terminated path does.
    let result = unsafe {
        let mut attributes: libc::mount_attr = std::mem::zeroed();
        attributes.attr_set = libc::MOUNT_ATTR_RDONLY;
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 {
        Err(Fault(Step::ReadOnly, errno()))
    } else {
        Ok(())
    }
}

fn mount(
    step: Step,
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    data: Option<&CStr>,
) -> Result<(), Fault> {
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: each pointer is NULL or a NUL-terminated string that outlives the call.
    check(step, unsafe {
        libc::mount(
            pointer(source),
            target.as_ptr(),
            pointer(kind),
            flags,
            pointer(data).cast(),
        )
    })
    .map(|_| ())
}

fn make_dir(step: Step, path: &CStr, mode: libc::mode_t) -> Result<(), Fault> {
    // SAFETY: the path is NUL-terminated.
    check(step, unsafe { libc::mkdir(path.as_ptr(), mode) }).map(|_| ())
}

fn change_dir(step: Step, path: &CStr) -> Result<(), Fault> {
    // SAFETY: the path is NUL-terminated.
    check(step, unsafe { libc::chdir(path.as_ptr()) }).map(|_| ())
}

fn pivot(new: &CStr, old: &CStr) -> Result<(), Fault> {
    // SAFETY: both paths are NUL-terminated.
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) };
    if result < 0 {
        Err(Fault(Step::Pivot, errno()))
    } else {
        Ok(())
    }
}

/// A fork without the C library's handlers, which take locks that another thread may have held when
/// this process was copied.
fn fork() -> Result<libc::pid_t, Fault> {
    // SAFETY: an all-zero clone_args with an exit signal is a fork; the copy only makes calls that
    // are safe after one.
    let pid = unsafe {
        let mut args: libc::clone_args = std::mem::zeroed();
        args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
        libc::syscall(libc::SYS_clone3, &args, size_of::<libc::clone_args>())
    };
    check(Step::Fork, i32::try_from(pid).unwrap_or(-1))
}

fn pipe() -> Result<(RawFd, RawFd), Fault> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    check(Step::Fork, unsafe {
        libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC)
    })?;
    Ok((ends[0], ends[1]))
}

/// Closes every descriptor but two, and hides this process's memory from the program: it is a copy
/// of ours.
fn keep_only(one: RawFd, other: RawFd) {
    let (low, high) = (one.min(other), one.max(other));
    // SAFETY: closing descriptors by range; this process uses none of the others.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        close_range(0, low - 1);
        close_range(low + 1, high - 1);
        close_range(high + 1, i32::MAX);
    }
}

/// # Safety
/// No descriptor of the range may be used by this process afterwards.
unsafe fn close_range(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: integers only; the caller uses none of these descriptors.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Reads one report; none at the end of the pipe.
fn read_report(fd: RawFd) -> Option<(Step, i32)> {
    let mut message = [0_u8; 8];
    // SAFETY: `message` has room for eight bytes.
    let count = unsafe { libc::read(fd, message.as_mut_ptr().cast(), message.len()) };
    decode(&message[..usize::try_from(count).ok()?])
}

/// The step and the value of one report.
pub(crate) fn decode(message: &[u8]) -> Option<(Step, i32)> {
    let number = |bytes: &[u8]| Some(i32::from_ne_bytes(bytes.try_into().ok()?));
    Some((
        Step::of(number(message.get(..4)?)?)?,
        number(message.get(4..8)?)?,
    ))
}

/// Hands signals on to the program and reaps every orphan, until the program has ended.
fn tend(program: libc::pid_t) -> libc::c_int {
    loop {
        // SAFETY: every signal is blocked since `start`; sigwaitinfo takes them one by one. All
        // pointers are to locals.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            let signal = libc::sigwaitinfo(&all, ptr::null_mut());
            if matches!(
                signal,
                libc::SIGTERM | libc::SIGINT | libc::SIGHUP | libc::SIGQUIT
            ) {
                libc::kill(program, signal);
            }
            loop {
                let mut status = 0;
                match libc::waitpid(-1, &mut status, libc::WNOHANG) {
                    pid if pid == program => return status,
                    pid if pid > 0 => {}
                    _ => break,
                }
            }
        }
    }
}

/// Becomes the program.
fn exec(prepared: &Prepared) -> Result<(), Fault> {
    // SAFETY: integers, NUL-terminated strings and NULL-terminated lists prepared before the fork;
    // `sigaction` and `sigset_t` are valid when zeroed (default handler, empty mask).
    unsafe {
        for (target, source) in (0..).zip(&prepared.stdio) {
            check(Step::Descriptors, libc::dup2(source.as_raw_fd(), target))?;
        }
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        let closed = libc::syscall(libc::SYS_close_range, 3, i32::MAX, flags);
        check(Step::Descriptors, i32::try_from(closed).unwrap_or(-1))?;
        check(Step::Privileges, libc::setsid())?;
        libc::umask(0o077);
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        check(Step::Privileges, libc::setrlimit(libc::RLIMIT_CORE, &none))?;
        check(Step::WorkingDirectory, libc::chdir(prepared.cwd.as_ptr()))?;
        if prepared.walls.is_some() {
            // Fails above the last capability that this kernel knows.
            (0..64).for_each(|cap| _ = libc::prctl(libc::PR_CAPBSET_DROP, cap, 0, 0, 0));
        }
        check(
            Step::Privileges,
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        )?;
        let default: libc::sigaction = std::mem::zeroed();
        // Fails for the two that cannot be caught and for those of the C library.
        (1..=64).for_each(|signal| _ = libc::sigaction(signal, &default, ptr::null_mut()));
        let mut empty: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut empty);
        libc::pthread_sigmask(libc::SIG_SETMASK, &empty, ptr::null_mut());
        libc::execve(
            prepared.program.as_ptr(),
            prepared.args.pointers.as_ptr(),
            prepared.env.pointers.as_ptr(),
        );
    }
    Err(Fault(Step::Exec, errno()))
}

/// Blocks these signals in the calling thread, and in those that it starts from now on, and opens a
/// descriptor on which they are read.
pub(crate) fn signal_fd(signals: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: `set` is a local that sigemptyset makes valid; a descriptor that the kernel returns is
    // new and nobody else's.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Ends this process by a signal, by its default action and without a core dump. Returns where the
/// signal's default is not to end a process.
pub(crate) fn die_by(signal: libc::c_int) {
    // SAFETY: a zeroed sigaction is the default handler with an empty mask; all pointers are to
    // locals.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, &default, ptr::null_mut());
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        libc::raise(signal);
    }
}

/// The user and the group of this process.
pub(crate) fn ids() -> (u32, u32) {
    // SAFETY: these calls have no arguments and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}
