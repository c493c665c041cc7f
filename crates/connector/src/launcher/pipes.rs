//! How much the two pipes of one direction hold: more while long lines pass, so that both sides of
//! the hop can work at once, and what they held before once none has passed for a second. A user
//! has few large pipes; that they cannot be had is no error, nor is a socket in a pipe's place.

use super::sink::Sink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A line of which so much came without its end is long, in bytes: what a pipe holds.
const LONG: usize = 64 * 1024;
/// What a pipe holds while long lines pass, in bytes: the most that a user may ask for.
const WIDE: usize = 1024 * 1024;
/// How long the pipes stay wide after a long line.
const PAUSE: Duration = Duration::from_secs(1);

/// The pipes of one direction.
pub(super) struct Pipes<'a> {
    input: BorrowedFd<'a>,
    output: &'a Sink,
    wide: Option<Wide>,
}

/// What was changed, and when a long line passed last.
struct Wide {
    last: Instant,
    input: Option<usize>,
    output: Option<usize>,
}

impl<'a> Pipes<'a> {
    pub(super) fn new(input: BorrowedFd<'a>, output: &'a Sink) -> Self {
        Self {
            input,
            output,
            wide: None,
        }
    }

    /// Tells how much of a line waits for its end.
    pub(super) fn waiting(&mut self, bytes: usize) {
        if bytes < LONG {
            return;
        }
        let last = Instant::now();
        match &mut self.wide {
            Some(wide) => wide.last = last,
            None => {
                self.wide = Some(Wide {
                    last,
                    input: widen(self.input),
                    output: self.output.with_fd(widen),
                });
            }
        }
    }

    /// Called before each read: gives back what no long line needs any more, and does not let a
    /// side that says nothing keep it.
    pub(super) fn rest(&mut self) -> Result<(), Errno> {
        while let Some(wide) = &self.wide {
            let left = PAUSE.saturating_sub(wide.last.elapsed());
            if left.is_zero() {
                self.give_back();
                continue;
            }
            let timeout = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
            let mut input = [PollFd::from_borrowed_fd(self.input, PollFlags::IN)];
            match poll(&mut input, Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives back what can be: a pipe that holds more than it is to hold is asked again later.
    fn give_back(&mut self) {
        let Some(mut wide) = self.wide.take() else {
            return;
        };
        wide.input = wide.input.filter(|size| hold(self.input, *size).is_none());
        wide.output = wide
            .output
            .filter(|size| self.output.with_fd(|fd| hold(fd, *size)).is_none());
        if wide.input.is_some() || wide.output.is_some() {
            wide.last = Instant::now();
            self.wide = Some(wide);
        }
    }
}

impl Drop for Pipes<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Makes a pipe hold more, and tells what it held. None where it is no pipe or cannot be.
fn widen(fd: BorrowedFd<'_>) -> Option<usize> {
    let before = fcntl_getpipe_size(fd).ok().filter(|size| *size < WIDE)?;
    hold(fd, WIDE)?;
    Some(before)
}

fn hold(fd: BorrowedFd<'_>, bytes: usize) -> Option<usize> {
    fcntl_setpipe_size(fd, bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::{AsFd as _, OwnedFd};

    #[test]
    fn pipes_are_wide_while_long_lines_pass() {
        let (input, mut from) = std::io::pipe().unwrap();
        let (mut to, output) = std::io::pipe().unwrap();
        let sink = Sink::engine(OwnedFd::from(output));
        let size = |fd: BorrowedFd<'_>| fcntl_getpipe_size(fd).unwrap();
        let before = size(input.as_fd());
        let mut pipes = Pipes::new(input.as_fd(), &sink);
        pipes.waiting(LONG - 1);
        assert_eq!(size(input.as_fd()), before);
        pipes.waiting(LONG);
        assert_eq!((size(input.as_fd()), size(to.as_fd())), (WIDE, WIDE));
        from.write_all(b"x").unwrap();
        pipes.rest().unwrap();
        assert_eq!(size(input.as_fd()), WIDE);
        let mut byte = [0];
        (&input).read_exact(&mut byte).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(PAUSE * 2);
                from.write_all(b"y").unwrap();
            });
            pipes.rest().unwrap();
        });
        assert_eq!((size(input.as_fd()), size(to.as_fd())), (before, before));
        drop(pipes);
        drop(sink);
        assert_eq!(to.read(&mut byte).unwrap(), 0);
    }

    #[test]
    fn a_socket_is_left_as_it_is() {
        let (input, _from) = std::os::unix::net::UnixStream::pair().unwrap();
        let (_to, output) = std::os::unix::net::UnixStream::pair().unwrap();
        let sink = Sink::engine(OwnedFd::from(output));
        let mut pipes = Pipes::new(input.as_fd(), &sink);
        pipes.waiting(WIDE);
        let wide = pipes.wide.as_ref().unwrap();
        assert_eq!((wide.input, wide.output), (None, None));
    }
}
