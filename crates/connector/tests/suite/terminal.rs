//! A terminal for a test: a pseudo-terminal whose other end types and looks.

use crate::suite::stage::Done;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::LocalModes;
use std::io::Read;
use std::process::{Command, Stdio};

pub(crate) struct Terminal {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        rustix::io::ioctl_fionbio(&ours, true).unwrap();
        Self { ours, theirs }
    }

    /// Starts a program on the terminal, waits for it to say `prompt` on standard error, types.
    /// `stdout` of the answer is what the terminal showed.
    pub(crate) fn talk(&self, command: &mut Command, prompt: &str, typed: &str) -> Done {
        let theirs = self.theirs.try_clone().unwrap();
        let mut child = command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains(prompt) {
            let mut chunk = [0; 256];
            let count = stderr.read(&mut chunk).unwrap();
            assert!(count > 0, "no prompt: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&chunk[..count]);
        }
        self.type_in(typed.as_bytes());
        let status = child.wait().unwrap();
        stderr.read_to_end(&mut said).unwrap();
        let stderr = String::from_utf8(said).unwrap();
        Done {
            code: status.code(),
            stdout: self.shown(),
            stderr,
        }
    }

    /// Runs a program whose standard error is the terminal; what it showed.
    pub(crate) fn show(&self, command: &mut Command) -> String {
        let theirs = self.theirs.try_clone().unwrap();
        let status = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(theirs)
            .status();
        status.unwrap();
        self.shown()
    }

    /// A terminal holds 4096 bytes that nobody has read yet.
    fn type_in(&self, mut typed: &[u8]) {
        while !typed.is_empty() {
            match rustix::io::write(&self.ours, &typed[..typed.len().min(512)]) {
                Ok(count) => typed = &typed[count..],
                Err(rustix::io::Errno::AGAIN) => {}
                Err(e) => panic!("{e}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn shown(&self) -> String {
        let mut shown = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(&self.ours, &mut chunk) {
            shown.extend_from_slice(&chunk[..count]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Whether the terminal is as it was.
    pub(crate) fn echoes(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.theirs)
            .unwrap()
            .local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }
}
