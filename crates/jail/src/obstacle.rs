//! What on this machine forbids the namespaces, and how to allow them.

use crate::spawn::{StartError, probe};
use crate::sys::Step;
use std::io;

/// A setting of this machine, or of the container around us, that forbids the walls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// `user.max_user_namespaces` is 0.
    #[error("user namespaces are forbidden: the sysctl user.max_user_namespaces is 0")]
    NoNamespaces,
    /// `kernel.unprivileged_userns_clone` is 0.
    #[error("user namespaces are forbidden: the sysctl kernel.unprivileged_userns_clone is 0")]
    Unprivileged,
    /// AppArmor takes an unprivileged user namespace its capabilities.
    #[error(
        "user namespaces are restricted: the sysctl kernel.apparmor_restrict_unprivileged_userns is 1"
    )]
    AppArmor,
    /// AppArmor confines this process by a profile that denies mounts.
    #[error("mounts are forbidden: this process runs under the AppArmor profile {0}")]
    Profile(String),
    /// A seccomp filter of the container refuses the call.
    #[error(
        "user namespaces are forbidden: a seccomp filter is on (Seccomp: 2 in /proc/self/status)"
    )]
    Seccomp,
    /// Part of `/proc` is covered, so that the kernel refuses a fresh one.
    #[error("a fresh /proc is forbidden: {0} is masked")]
    MaskedProc(String),
    /// None of the known settings explains it.
    #[error("namespaces cannot be made on this machine: {0}")]
    Other(String),
}

impl Obstacle {
    /// How to allow it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoNamespaces => "as root: sysctl -w user.max_user_namespaces=15000",
            Self::Unprivileged => "as root: sysctl -w kernel.unprivileged_userns_clone=1",
            Self::AppArmor => {
                "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or load an \
                 AppArmor profile for this program with the rule \"userns,\""
            }
            Self::Profile(_) => {
                "start the container with --security-opt apparmor=unconfined (Docker), or with \
                 appArmorProfile type Unconfined (Kubernetes)"
            }
            Self::Seccomp => {
                "start the container with --security-opt seccomp=unconfined, or with a profile that \
                 allows clone3, unshare, mount, umount2 and pivot_root"
            }
            Self::MaskedProc(_) => {
                "start the container with --security-opt systempaths=unconfined (Docker), or with \
                 procMount: Unmasked (Kubernetes)"
            }
            Self::Other(_) => "run it on a host, or in a container, that allows user namespaces",
        }
        .to_owned()
    }
}

/// Tries the walls for real: what forbids them, if anything does.
pub fn obstacles() -> Result<(), Obstacle> {
    match probe() {
        Ok(()) => Ok(()),
        Err(StartError::Forbidden(obstacle)) => Err(obstacle),
        Err(error) => Err(Obstacle::Other(error.to_string())),
    }
}

/// The setting behind a step that failed, or none where the step's own error says it all.
pub(crate) fn explain(step: Step, source: &io::Error) -> Option<Obstacle> {
    let obstacle = match step {
        Step::Clone | Step::IdMap => namespaces(source),
        Step::Proc => masked_proc().map(Obstacle::MaskedProc).or_else(profile),
        Step::Propagation | Step::Root | Step::Bind | Step::Tmp | Step::Pivot => {
            if is_one("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") {
                Some(Obstacle::AppArmor)
            } else {
                profile().or_else(|| has_seccomp().then_some(Obstacle::Seccomp))
            }
        }
        _ => return None,
    };
    Some(obstacle.unwrap_or_else(|| Obstacle::Other(source.to_string())))
}

fn namespaces(_source: &io::Error) -> Option<Obstacle> {
    if read("/proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
        return Some(Obstacle::NoNamespaces);
    }
    if read("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return Some(Obstacle::Unprivileged);
    }
    if is_one("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") {
        return Some(Obstacle::AppArmor);
    }
    has_seccomp().then_some(Obstacle::Seccomp)
}

fn has_seccomp() -> bool {
    read("/proc/self/status").is_some_and(|status| status.contains("\nSeccomp:\t2"))
}

fn profile() -> Option<Obstacle> {
    let profile = read("/proc/self/attr/current")?;
    let free = profile.is_empty() || profile.starts_with("unconfined");
    if free {
        None
    } else {
        Some(Obstacle::Profile(profile))
    }
}

/// The first mount below `/proc`: a covered part.
fn masked_proc() -> Option<String> {
    let mounts = read("/proc/self/mountinfo")?;
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    // binfmt_misc is mounted on an empty folder, which the kernel allows.
    points
        .filter(|point| point.starts_with("/proc/") && *point != "/proc/sys/fs/binfmt_misc")
        .map(str::to_owned)
        .next()
}

fn is_one(path: &str) -> bool {
    read(path).as_deref() == Some("1")
}

fn read(path: &str) -> Option<String> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match rustix::io::read(&fd, &mut chunk) {
            Ok(0) => return Some(String::from_utf8_lossy(&text).trim_end().to_owned()),
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}
