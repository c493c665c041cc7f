//! One archive, from its first byte to its checked hash. A broken connection, a stall, a time-out
//! and a server's passing trouble are tried again, from the byte where the last try ended; a hash
//! or a size that differs never is. No more bytes are written than the lock states.

use super::files;
use super::http::{self, Answer, Client, HttpError};
use super::part::{Part, SUFFIX};
use super::progress::Bar;
use super::sources::Place;
use sema_rules::digest::Sha256;
use sema_vault::{Dir, VaultError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BUFFER: usize = 256 << 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What the lock says of an archive, and where it may be.
pub(super) struct Wanted {
    pub(super) file: String,
    pub(super) bytes: u64,
    /// None where nobody has pinned it yet.
    pub(super) sha256: Option<Sha256>,
    pub(super) places: Vec<Place>,
}

/// Why an archive did not come.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection could not be made, for a reason that another try does not mend.
    #[error("cannot fetch: {source}")]
    Http {
        /// Why.
        source: HttpError,
    },
    /// The server said no.
    #[error("{file} was not fetched: {place} answers {status}")]
    Status {
        /// The archive.
        file: String,
        /// The address asked.
        place: String,
        /// The answer.
        status: u16,
    },
    /// Nowhere.
    #[error("{file} is not there: looked in {places}")]
    Missing {
        /// The archive.
        file: String,
        /// Every place that was tried.
        places: String,
    },
    /// Another size than the lock's.
    #[error(
        "{file} has the wrong size: binaries.lock.json states {stated} bytes, {place} has {seen}"
    )]
    Size {
        /// The archive.
        file: String,
        /// Where it came from.
        place: String,
        /// The lock's bytes.
        stated: u64,
        /// What was seen.
        seen: String,
    },
    /// Another hash than the lock's.
    #[error(
        "{file} is not the pinned archive and was removed: {kind} is {seen}, \
         binaries.lock.json pins {expected}; it came from {place}"
    )]
    Hash {
        /// The archive.
        file: String,
        /// Which hash.
        kind: &'static str,
        /// The lock's.
        expected: String,
        /// What was seen.
        seen: String,
        /// Where it came from.
        place: String,
    },
    /// Too many tries that brought nothing new.
    #[error(
        "{file} was not fetched: {reason}; gave up after {tries} tries with {got} of {bytes} bytes"
    )]
    GaveUp {
        /// The archive.
        file: String,
        /// The last failure.
        reason: String,
        /// How many tries brought nothing new.
        tries: u32,
        /// What is here.
        got: u64,
        /// What the lock states.
        bytes: u64,
    },
    /// A file of a mirror folder cannot be read.
    #[error("cannot read {place}: {source}")]
    Folder {
        /// The file.
        place: String,
        /// Why.
        source: io::Error,
    },
    /// Our own disk.
    #[error(transparent)]
    Disk(#[from] VaultError),
    /// Another archive failed first.
    #[error("stopped")]
    Stopped,
}

impl FetchError {
    /// The fix.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Http { source, .. } => source.hint(),
            Self::Status { status: 401 | 403 | 407, .. } => {
                "the registry wants a credential: put //host/path/:_authToken=... into ~/.npmrc".into()
            }
            Self::Status { .. } | Self::GaveUp { .. } => {
                "run install again, it goes on where this one ended; or name another source with \
                 --mirror URL|FOLDER"
                    .into()
            }
            Self::Missing { .. } => {
                "put the file there under that name, or name another source with --mirror URL|FOLDER".into()
            }
            Self::Size { .. } | Self::Hash { .. } => {
                "the source serves something else: do not use it; name another with --mirror URL|FOLDER".into()
            }
            Self::Folder { .. } => "make the mirror folder's files readable".into(),
            Self::Disk(error) => return error.hint(),
            Self::Stopped => return None,
        };
        Some(text)
    }
}

/// How a try ended that was no failure.
enum Try {
    Whole,
    Missing,
}

/// How a try failed.
enum Trouble {
    Again {
        reason: String,
        after: Option<Duration>,
    },
    Final(FetchError),
}

impl From<VaultError> for Trouble {
    fn from(error: VaultError) -> Self {
        Self::Final(error.into())
    }
}

pub(super) struct Fetch<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) folder: &'a Dir,
    pub(super) client: &'a Client<'a>,
    pub(super) stop: &'a AtomicBool,
}

impl Fetch<'_> {
    /// Brings the archive into the folder under its own name, hash checked.
    pub(super) fn run(&self, mut bar: Bar<'_>) -> Result<(), FetchError> {
        let mut part = Part::open(self.folder, &self.wanted.file, self.wanted.bytes)?;
        for place in &self.wanted.places {
            match self.from(place, &mut part, &mut bar)? {
                Try::Whole => {
                    part.finish();
                    self.folder
                        .rename(format!("{}{SUFFIX}", self.wanted.file), &self.wanted.file)?;
                    bar.done("fetched");
                    return Ok(());
                }
                Try::Missing => {}
            }
        }
        let places: Vec<_> = self.wanted.places.iter().map(ToString::to_string).collect();
        Err(FetchError::Missing {
            file: self.wanted.file.clone(),
            places: places.join(" and "),
        })
    }

    /// Everything from one place, its hash checked. Bytes that an earlier run left are believed
    /// once: where the hash then differs, they may be what a crash tore, and all is fetched anew.
    fn from(&self, place: &Place, part: &mut Part, bar: &mut Bar<'_>) -> Result<Try, FetchError> {
        loop {
            let got = match place {
                Place::File(path) => self.copy(path, part, bar)?,
                Place::Web(..) => self.download(place, part, bar)?,
            };
            if let Try::Missing = got {
                return Ok(Try::Missing);
            }
            match self.check(place, part) {
                Ok(()) => return Ok(Try::Whole),
                Err(_) if part.inherited() => part.restart()?,
                Err(error) => {
                    self.folder
                        .remove(format!("{}{SUFFIX}", self.wanted.file))?;
                    return Err(error);
                }
            }
        }
    }

    fn check(&self, place: &Place, part: &Part) -> Result<(), FetchError> {
        let seen = part.sha256();
        let Some(pinned) = self.wanted.sha256.filter(|pinned| *pinned != seen) else {
            return Ok(());
        };
        Err(FetchError::Hash {
            file: self.wanted.file.clone(),
            kind: "sha256",
            expected: pinned.to_string(),
            seen: seen.to_string(),
            place: place.to_string(),
        })
    }

    fn copy(
        &self,
        path: &std::path::Path,
        part: &mut Part,
        bar: &mut Bar<'_>,
    ) -> Result<Try, FetchError> {
        let failed = |source| FetchError::Folder {
            place: path.display().to_string(),
            source,
        };
        let Some(mut file) = files::open_regular(path).map_err(failed)? else {
            return Ok(Try::Missing);
        };
        let size = file.metadata().map_err(failed)?.len();
        if size != self.wanted.bytes {
            return Err(self.size(path.display().to_string(), bytes_seen(size)));
        }
        part.restart()?;
        let mut buffer = vec![0; BUFFER];
        while part.written() < self.wanted.bytes {
            self.go_on()?;
            let room = self.room(part).min(BUFFER);
            let read = file.read(&mut buffer[..room]).map_err(failed)?;
            if read == 0 {
                return Err(self.size(path.display().to_string(), bytes_seen(part.written())));
            }
            part.append(&buffer[..read])?;
            bar.at(part.written());
        }
        Ok(Try::Whole)
    }

    fn download(
        &self,
        place: &Place,
        part: &mut Part,
        bar: &mut Bar<'_>,
    ) -> Result<Try, FetchError> {
        let patience = self.client.patience;
        let mut validator = None;
        let mut best = part.written();
        let mut idle = 0;
        loop {
            bar.at(part.written());
            let (reason, after) = match self.attempt(place, part, &mut validator, bar) {
                Ok(end) => return Ok(end),
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Again { reason, after }) => (reason, after),
            };
            if part.written() > best + self.wanted.bytes / 100 {
                best = part.written();
                idle = 0;
            }
            idle += 1;
            if idle >= patience.tries {
                return Err(FetchError::GaveUp {
                    file: self.wanted.file.clone(),
                    reason,
                    tries: idle,
                    got: part.written(),
                    bytes: self.wanted.bytes,
                });
            }
            let pause = after.unwrap_or_else(|| pause(patience.pause, idle));
            bar.again(&reason, pause, idle + 1, patience.tries);
            self.sleep(pause)?;
        }
    }

    /// One request, and as much of its body as comes.
    fn attempt(
        &self,
        place: &Place,
        part: &mut Part,
        validator: &mut Option<String>,
        bar: &mut Bar<'_>,
    ) -> Result<Try, Trouble> {
        let Place::Web(url, authorization) = place else {
            return Ok(Try::Missing);
        };
        if part.written() == self.wanted.bytes {
            return Ok(Try::Whole);
        }
        self.go_on().map_err(Trouble::Final)?;
        let ask = http::Part {
            from: part.written(),
            validator: validator.clone(),
        };
        let answer = self.client.get(url, authorization.as_ref(), &ask);
        let answer = answer.map_err(Self::sort)?;
        if let Some(end) = self.begin(&answer, part)? {
            return Ok(end);
        }
        *validator = answer.validator();
        self.body(answer, part, bar)
    }

    /// Looks at the head of an answer and makes the file ready for its body.
    fn begin(&self, answer: &Answer, part: &mut Part) -> Result<Option<Try>, Trouble> {
        let place = answer.url.to_string();
        match answer.status {
            200 => {
                self.same_size(&place, answer.length())?;
                if part.written() > 0 {
                    part.restart()?;
                }
                Ok(None)
            }
            206 => {
                let (from, total) = answer.range();
                self.same_size(&place, total)?;
                if from != Some(part.written()) {
                    part.restart()?;
                    return Err(again(format!("{place} sends another part than asked for")));
                }
                Ok(None)
            }
            416 => {
                self.same_size(&place, answer.range().1)?;
                part.restart()?;
                Err(again(format!("{place} has no such part")))
            }
            404 | 410 => Ok(Some(Try::Missing)),
            408 | 425 | 429 | 500..=599 => Err(Trouble::Again {
                reason: format!("{} answers {}", answer.url.authority(), answer.status),
                after: answer.retry_after(),
            }),
            status => Err(Trouble::Final(FetchError::Status {
                file: self.wanted.file.clone(),
                place,
                status,
            })),
        }
    }

    fn body(&self, answer: Answer, part: &mut Part, bar: &mut Bar<'_>) -> Result<Try, Trouble> {
        let (place, host) = (answer.url.to_string(), answer.url.authority());
        let mut reader = answer.into_reader();
        let mut buffer = vec![0; BUFFER];
        loop {
            self.go_on().map_err(Trouble::Final)?;
            // One byte more than there is room for shows a body that does not end where it should.
            let room = self.room(part);
            let ask = (room + 1).min(BUFFER);
            let read = match reader.read(&mut buffer[..ask]) {
                Ok(0) if room == 0 => return Ok(Try::Whole),
                Ok(0) => return Err(again(format!("{host} ended the file early"))),
                Ok(read) => read,
                // All is here; how the connection ends does not matter.
                Err(_) if room == 0 => return Ok(Try::Whole),
                Err(error) => return Err(again(http::broken(&error, &host))),
            };
            if read > room {
                self.folder
                    .remove(format!("{}{SUFFIX}", self.wanted.file))?;
                return Err(Trouble::Final(self.size(place, "more".into())));
            }
            part.append(&buffer[..read])?;
            bar.at(part.written());
        }
    }

    fn sort(error: HttpError) -> Trouble {
        if error.is_transient() {
            return again(error.to_string());
        }
        Trouble::Final(FetchError::Http { source: error })
    }

    fn same_size(&self, place: &str, total: Option<u64>) -> Result<(), Trouble> {
        match total {
            Some(total) if total != self.wanted.bytes => Err(Trouble::Final(
                self.size(place.to_owned(), bytes_seen(total)),
            )),
            _ => Ok(()),
        }
    }

    fn size(&self, place: String, seen: String) -> FetchError {
        FetchError::Size {
            file: self.wanted.file.clone(),
            place,
            stated: self.wanted.bytes,
            seen,
        }
    }

    fn room(&self, part: &Part) -> usize {
        usize::try_from(self.wanted.bytes - part.written()).unwrap_or(usize::MAX - 1)
    }

    fn go_on(&self) -> Result<(), FetchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(FetchError::Stopped);
        }
        Ok(())
    }

    fn sleep(&self, pause: Duration) -> Result<(), FetchError> {
        let end = Instant::now() + pause;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.go_on()?;
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(())
    }
}

fn again(reason: String) -> Trouble {
    Trouble::Again {
        reason,
        after: None,
    }
}

fn bytes_seen(count: u64) -> String {
    count.to_string()
}

/// The pause before the try after `failures` failures: doubled each time, then 50 to 100% of it,
/// so that many machines do not come back at the same moment.
fn pause(first: Duration, failures: u32) -> Duration {
    let whole = first
        .saturating_mul(1 << failures.saturating_sub(1).min(10))
        .min(LONGEST_PAUSE);
    let random = RandomState::new().build_hasher().finish();
    let percent = 50 + u32::try_from(random % 51).unwrap_or(0);
    whole * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_differ() {
        let first = Duration::from_millis(500);
        for (failures, longest) in [(1, 500), (2, 1_000), (3, 2_000), (20, 30_000)] {
            let found = pause(first, failures).as_millis();
            assert!(
                (longest / 2..=longest).contains(&found),
                "{failures}: {found}"
            );
        }
    }
}
