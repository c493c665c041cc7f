//! Follows what changes in the connector's directory while a session runs: the tool policy, the
//! handles, the build. The kernel tells of changes; a few times a second the policy is read all the
//! same, because what a link leads to is not told of.

use super::settle::{APART, Settling};
use super::{Launcher, PATIENCE, POLICY};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use sema_rules::name::Handle;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often the policy is read without being told. With the time that it takes to settle it takes
/// effect within a second.
const TICK: Duration = Duration::from_millis(300);
/// How long a group of writes is given to be complete.
const SETTLE: Duration = Duration::from_millis(30);

/// Tells that the session is over.
pub(super) type Over = mpsc::Sender<Result<(), Errno>>;

/// Watching ends when this is dropped.
pub(super) struct Watch {
    _stop: std::io::PipeWriter,
}

/// Begins to watch, in a thread of its own; none where the kernel refuses.
pub(super) fn begin(
    launcher: &Arc<Launcher>,
    policy: Settling,
    engine: &Arc<OwnedFd>,
    over: Over,
) -> Option<Watch> {
    let (stopped, stop) = std::io::pipe().ok()?;
    let inotify = watch(launcher).ok();
    let (launcher, engine) = (Arc::clone(launcher), Arc::clone(engine));
    std::thread::spawn(move || {
        let hangup = Hangup {
            engine,
            over,
            reads: 0,
            since: None,
        };
        follow(&launcher, policy, inotify.as_ref(), &stopped.into(), hangup);
    });
    Some(Watch { _stop: stop })
}

fn watch(launcher: &Launcher) -> rustix::io::Result<OwnedFd> {
    let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let flags = WatchFlags::ATTRIB
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO;
    inotify::add_watch(&fd, launcher.settings.dir.path(), flags)?;
    Ok(fd)
}

fn follow(
    launcher: &Arc<Launcher>,
    mut policy: Settling,
    inotify: Option<&OwnedFd>,
    stopped: &OwnedFd,
    mut hangup: Hangup,
) {
    loop {
        let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
        fds.extend(inotify.map(|fd| PollFd::new(fd, PollFlags::IN)));
        let pause = if policy.is_settled() { TICK } else { APART };
        _ = poll(&mut fds, Timespec::try_from(pause).ok().as_ref());
        if !fds[0].revents().is_empty() {
            return;
        }
        let told = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        launcher.follow_policy(&mut policy);
        let mut changed = Changed::default();
        if told {
            std::thread::sleep(SETTLE);
            changed.read(inotify);
        }
        if changed.handles {
            launcher.follow_handles();
        } else if changed.build {
            launcher.start();
        }
        launcher.session.trace.flush();
        hangup.notice(launcher.session.reads());
    }
}

/// An engine that has gone while a side that does not read keeps us from reading so.
struct Hangup {
    engine: Arc<OwnedFd>,
    over: Over,
    reads: u64,
    since: Option<Instant>,
}

impl Hangup {
    /// Ends the session when the engine has gone and nothing was read from it for as long as an
    /// ending waits.
    fn notice(&mut self, reads: u64) {
        let mut fds = [PollFd::new(&*self.engine, PollFlags::RDHUP)];
        let gone = poll(&mut fds, Some(&Timespec::default())).is_ok()
            && fds[0]
                .revents()
                .intersects(PollFlags::HUP | PollFlags::RDHUP);
        if !gone || self.reads != reads {
            (self.reads, self.since) = (reads, None);
        } else if self.since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
            // The session may have ended by itself.
            _ = self.over.send(Ok(()));
        }
    }
}

/// What the kernel told of.
#[derive(Default)]
struct Changed {
    handles: bool,
    build: bool,
}

impl Changed {
    fn read(&mut self, inotify: Option<&OwnedFd>) {
        let Some(fd) = inotify else { return };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(fd, &mut buffer);
        while let Ok(event) = events.next() {
            let name = event
                .file_name()
                .map(|name| name.to_string_lossy())
                .unwrap_or_default();
            let stem = name.strip_suffix(".meta.json").unwrap_or(&name);
            self.handles |= Handle::parse(stem).is_ok();
            self.build |= name == "bin" || name == POLICY;
        }
    }
}
