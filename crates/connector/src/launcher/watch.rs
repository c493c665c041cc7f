//! Follows what changes in the connector's directory while a session runs: the tool policy, the
//! handles, the build, the manifest. It looks a few times a second, and at once where the kernel
//! tells of a change: what a link leads to, or another machine does, is not told of.

use super::look::{Changed, Look};
use super::settle::{APART, Settling};
use super::{Launcher, PATIENCE};
use crate::cli::output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often it looks without being told. With the time that a policy takes to settle it is in
/// force within a second.
const TICK: Duration = Duration::from_millis(300);
/// How long a group of writes is given to be complete.
const SETTLE: Duration = Duration::from_millis(30);

/// Tells that the session is over.
pub(super) type Over = mpsc::Sender<Result<(), Errno>>;

/// Watching ends when this is dropped.
pub(super) struct Watch {
    _stop: std::io::PipeWriter,
}

/// Begins to watch, in threads of its own.
pub(super) fn begin(
    launcher: &Arc<Launcher>,
    policy: Settling,
    engine: &Arc<OwnedFd>,
    over: Over,
) -> std::io::Result<Watch> {
    let (stopped, stop) = std::io::pipe()?;
    let hangup = Hangup {
        engine: Arc::clone(engine),
        over,
        reads: 0,
        since: None,
    };
    let look = Look::at(&launcher.settings);
    let own = Arc::clone(launcher);
    std::thread::spawn(move || follow(&own, policy, look, &stopped.into(), hangup));
    Ok(Watch { _stop: stop })
}

/// What the kernel tells of changes through; none where it does not.
fn told(launcher: &Launcher) -> Option<OwnedFd> {
    let path = launcher.settings.dir.path();
    let watch = || {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO;
        inotify::add_watch(&fd, path, flags)?;
        Ok(fd)
    };
    let say = |errno: &Errno| {
        output::say(&format!(
            "sema-connector: the kernel does not tell of changes in {} ({errno}); they are looked \
             for three times a second",
            path.display()
        ));
    };
    watch().inspect_err(say).ok()
}

fn follow(
    launcher: &Arc<Launcher>,
    mut policy: Settling,
    mut look: Look,
    stopped: &OwnedFd,
    mut hangup: Hangup,
) {
    let told = told(launcher);
    let (tell, changes) = mpsc::channel();
    // In a thread of its own: the directory's lock may be held, and the policy is followed all the
    // same.
    let own = Arc::clone(launcher);
    std::thread::spawn(move || take_over(&own, &changes));
    loop {
        let mut fds = vec![PollFd::new(stopped, PollFlags::IN)];
        fds.extend(told.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let pause = if policy.is_settled() { TICK } else { APART };
        _ = poll(&mut fds, Timespec::try_from(pause).ok().as_ref());
        if !fds[0].revents().is_empty() {
            return;
        }
        if let Some(told) = &told {
            // What is told does not matter, and what is told from here on wakes us again.
            _ = rustix::io::read(told, &mut [0; 4096]);
        }
        launcher.follow_policy(&mut policy);
        let now = Look::at(&launcher.settings);
        let changed = now.since(&look);
        if changed.any() {
            _ = tell.send(changed);
        }
        look = now;
        launcher.session.trace.flush();
        hangup.notice(launcher.session.reads());
    }
}

/// Takes over what changed.
fn take_over(launcher: &Arc<Launcher>, changes: &mpsc::Receiver<Changed>) {
    let mut said = false;
    while let Ok(mut changed) = changes.recv() {
        std::thread::sleep(SETTLE);
        changes.try_iter().for_each(|later| changed.add(&later));
        if changed.handles {
            launcher.follow_handles();
        }
        if changed.start {
            launcher.start();
        }
        if changed.manifest && !said && launcher.is_mounted_anew() {
            said = true;
            output::say(
                "sema-connector: connector.json has changed: this session goes on as it began, \
                 the next one reads it",
            );
        }
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
        // Nothing was read before the first start is over, which may take its time.
        if !gone || self.reads != reads || reads == 0 {
            (self.reads, self.since) = (reads, None);
        } else if self.since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
            // The session may have ended by itself.
            _ = self.over.send(Ok(()));
        }
    }
}
