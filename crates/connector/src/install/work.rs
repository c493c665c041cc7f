//! One install, step by step.

use super::archives;
use super::error::InstallError;
use super::fetch::{Fetch, FetchError, Wanted};
use super::http::Client;
use super::installed::identity;
use super::part;
use super::progress::Progress;
use super::{Network, Order, Plan, space};
use sema_rules::lock::Archive;
use sema_vault::archive::{Checked, Written};
use sema_vault::tree::Record;
use sema_vault::{ConnectorDir, Staging, fault};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::SystemTime;

pub(super) struct Work<'a> {
    pub(super) order: &'a Order<'a>,
    pub(super) plan: &'a Plan,
    pub(super) connector: &'a ConnectorDir,
    pub(super) progress: &'a Progress,
}

impl Work<'_> {
    pub(super) fn run(&self) -> Result<(), InstallError> {
        let staging = Staging::begin(self.connector.dir())?;
        fault::point("install.begun");
        let archives = self.archives();
        for archive in &archives {
            staging.reuse(&archive.file)?;
        }
        self.refuse_early(&staging, &archives)?;
        let checked = self.bring(&staging, &archives)?;
        fault::point("install.checked");
        let written = self.unpack(&staging, checked)?;
        fault::point("install.unpacked");
        self.refuse_incomplete(&staging)?;
        self.record(&staging, &written)?;
        fault::point("install.recorded");
        self.progress.stage("flushing");
        let keep: Vec<_> = archives.iter().map(|archive| &archive.file).collect();
        let mut waiting = |notice: sema_vault::WaitNotice| self.progress.line(&notice.to_string());
        Ok(staging.finish(&keep, self.connector, &mut waiting)?)
    }

    fn archives(&self) -> Vec<&Archive> {
        self.plan
            .build
            .archives_for(&self.order.platform, &self.plan.groups)
            .collect()
    }

    /// What can be known before a byte is fetched: archives missing offline, room missing.
    fn refuse_early(&self, staging: &Staging, archives: &[&Archive]) -> Result<(), InstallError> {
        let here = |archive: &Archive| archives::size_of(staging.archives(), archive.file.as_str());
        let missing = archives.iter().filter(|archive| here(archive).is_none());
        let files: Vec<_> = missing.map(|archive| archive.file.to_string()).collect();
        if self.order.network == Network::Offline && !files.is_empty() {
            let folder = staging.archives().path().to_owned();
            return Err(InstallError::Offline { folder, files });
        }
        let needed = need(staging, archives);
        match space::free(staging.tree().fd()) {
            Some(free) if free < needed => {
                let path = self.connector.path().to_owned();
                Err(InstallError::Space { needed, free, path })
            }
            _ => Ok(()),
        }
    }

    /// Fetches and checks all archives, each in its own thread; the first failure stops the others.
    fn bring<'b>(
        &self,
        staging: &Staging,
        archives: &[&'b Archive],
    ) -> Result<Vec<Checked<'b>>, InstallError> {
        let client = Client::new(self.order.sources, self.order.patience);
        let stop = AtomicBool::new(false);
        let (client, stop) = (&client, &stop);
        std::thread::scope(|scope| {
            let one = |archive: &&'b Archive| {
                let archive: &'b Archive = archive;
                scope.spawn(move || {
                    let result = self.bring_one(staging, archive, client, stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                })
            };
            join(archives.iter().map(one).collect())
        })
    }

    fn bring_one<'b>(
        &self,
        staging: &Staging,
        archive: &'b Archive,
        client: &Client<'_>,
        stop: &AtomicBool,
    ) -> Result<Checked<'b>, InstallError> {
        let bytes = match self.kept(staging, archive)? {
            Some(bytes) => bytes,
            None => {
                let wanted = self.wanted(archive)?;
                let bar = self.progress.archive(archive.file.as_str(), archive.bytes);
                let fetch = Fetch {
                    wanted: &wanted,
                    folder: staging.archives(),
                    client,
                    stop,
                };
                fetch.run(bar)?;
                pinned_or_removed(staging, archive)?.unwrap_or_default()
            }
        };
        fault::point("install.fetched");
        Ok(Checked::read(archive, bytes)?)
    }

    /// An archive that is here and is the pinned one. Another file under its name goes; offline it
    /// is what the person must know of.
    fn kept(&self, staging: &Staging, archive: &Archive) -> Result<Option<Vec<u8>>, InstallError> {
        match (pinned_or_removed(staging, archive), self.order.network) {
            (Err(InstallError::Fetch(FetchError::Hash { .. })), Network::Allowed) => Ok(None),
            (result, _) => result,
        }
    }

    fn wanted(&self, archive: &Archive) -> Result<Wanted, InstallError> {
        let file = archive.file.to_string();
        let places = self
            .order
            .sources
            .places(&file, &self.plan.build.url(archive))?;
        Ok(Wanted {
            file,
            bytes: archive.bytes,
            sha256: Some(archive.sha256),
            places,
        })
    }

    fn unpack(
        &self,
        staging: &Staging,
        checked: Vec<Checked<'_>>,
    ) -> Result<Vec<Written>, InstallError> {
        self.progress.stage("unpacking");
        let written = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for one in checked {
                // Each lets go of its bytes when it is done.
                threads.push(scope.spawn(move || Ok(one.unpack(staging.tree(), |_| {})?)));
            }
            join(threads)
        })?;
        Ok(written.concat())
    }

    fn refuse_incomplete(&self, staging: &Staging) -> Result<(), InstallError> {
        let build = &self.plan.build;
        for path in [&build.node, &build.script, &build.browser] {
            if archives::size_of(staging.tree(), path.as_str()).is_none() {
                return Err(InstallError::Incomplete {
                    path: path.to_string(),
                });
            }
        }
        Ok(())
    }

    fn record(&self, staging: &Staging, written: &[Written]) -> Result<(), InstallError> {
        let identity = identity(&self.plan.build, &self.order.platform, &self.plan.groups);
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let record = Record::of(
            staging.tree(),
            written,
            identity,
            &self.plan.groups,
            now.as_secs(),
        )?;
        Ok(record.write(staging.tree())?)
    }

    /// Says of a full disk how much more is needed: what came out so far goes, archives stay.
    pub(super) fn explain(&self, error: InstallError) -> InstallError {
        if !error.is_full() {
            return error;
        }
        let Ok(staging) = Staging::begin(self.connector.dir()) else {
            return error;
        };
        let free = space::free(staging.tree().fd()).unwrap_or(0);
        let more = need(&staging, &self.archives()).saturating_sub(free);
        InstallError::Full {
            more,
            path: self.connector.path().to_owned(),
        }
    }
}

fn pinned_or_removed(
    staging: &Staging,
    archive: &Archive,
) -> Result<Option<Vec<u8>>, InstallError> {
    let result = archives::pinned(staging.archives(), archive);
    if let Err(InstallError::Fetch(FetchError::Hash { .. })) = &result {
        staging.archives().remove(archive.file.as_str())?;
    }
    result
}

/// What is still to be fetched and all that will be unpacked.
fn need(staging: &Staging, archives: &[&Archive]) -> u64 {
    let size = |name: &str| archives::size_of(staging.archives(), name);
    let one = |archive: &&Archive| {
        let file = archive.file.as_str();
        let here = size(file).or_else(|| size(&format!("{file}{}", part::SUFFIX)));
        archive.bytes.saturating_sub(here.unwrap_or(0)) + space::unpacked(archive)
    };
    archives.iter().map(one).sum()
}

/// Waits for all threads; of several failures the one that is not "stopped".
fn join<T>(
    threads: Vec<ScopedJoinHandle<'_, Result<T, InstallError>>>,
) -> Result<Vec<T>, InstallError> {
    let mut all = Vec::new();
    let mut failure = None;
    for thread in threads {
        match thread.join() {
            Ok(Ok(value)) => all.push(value),
            Ok(Err(error)) => {
                let stopped = matches!(error, InstallError::Fetch(FetchError::Stopped));
                if failure.is_none() || !stopped {
                    failure = Some(error);
                }
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    failure.map_or(Ok(all), Err)
}
