//! Starts programs, and sees to it that nothing they started outlives their starter.
//!
//! [`plain`] starts a program of ours: exactly the environment and the descriptors of its plan,
//! default signals, and SIGKILL from the kernel when the starting process ends. [`confined`] starts
//! a program that is not trusted in user, process, mount, IPC and host-name namespaces of its own:
//! when its first process ends, the kernel ends everything in it.
//!
//! This room knows nothing of what the programs say to each other. It either applies a whole plan
//! or fails; there is no weaker form that it falls back to.

#[cfg(target_os = "linux")]
mod obstacle;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod spawn;
#[cfg(target_os = "linux")]
mod stop;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(target_os = "linux")]
pub use obstacle::{Obstacle, obstacles};
#[cfg(target_os = "linux")]
pub use plan::{Plan, Stdio};
#[cfg(target_os = "linux")]
pub use spawn::{Child, Exit, StartError, confined, plain};
#[cfg(target_os = "linux")]
pub use stop::{StopSignals, end_as};

#[cfg(not(target_os = "linux"))]
compile_error!(
    "sema-connectors runs programs behind Linux namespaces; other systems are not supported"
);
