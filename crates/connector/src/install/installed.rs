//! What `bin/` holds: which build, which groups, since when, and whether it still is what was
//! unpacked.

use super::error::InstallError;
use super::locks::{self, Browser};
use sema_rules::digest::Sha256;
use sema_rules::lock::{Build, Group, Platform};
use sema_vault::tree::{Depth, Record, TreeError};
use sema_vault::{ConnectorDir, Dir, hash, staging};

/// A build that is in place and was compared with its record.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Which browser it holds.
    pub browser: Browser,
    /// What its lock says of it.
    pub build: Build,
    /// The groups that are in.
    pub groups: Vec<Group>,
    /// What its files take, in bytes.
    pub bytes: u64,
    /// When it was unpacked, in seconds since 1970.
    pub unpacked: u64,
}

/// What a build is, for its record: everything that decides which bytes lie where.
pub(super) fn identity(build: &Build, platform: &Platform, groups: &[Group]) -> Sha256 {
    let mut text = format!(
        "{}\n{}\n{}\n{}\n",
        build.version, build.node, build.script, build.browser
    );
    for archive in build.archives_for(platform, groups) {
        text.push_str(&format!("{} {}", archive.file, archive.sha256));
        archive
            .destinations()
            .for_each(|to| text.push_str(&format!(" {to}")));
        text.push('\n');
    }
    hash::sha256(text.as_bytes())
}

/// The build that is in place, whichever of the two it is, compared with its record. The error
/// says with the path what differs.
pub fn check(
    connector: &ConnectorDir,
    carried: &Build,
    platform: &Platform,
    depth: Depth,
) -> Result<Installed, InstallError> {
    let bin = bin(connector)?;
    let record = Record::read(&bin)?;
    let (browser, build) = whose(connector, carried, platform, &record)?
        .ok_or_else(|| TreeError::OtherBuild(bin.path().to_owned()))?;
    record.check(&bin, depth)?;
    let (groups, bytes, unpacked) = (record.groups.clone(), record.bytes(), record.unpacked);
    Ok(Installed {
        browser,
        build,
        groups,
        bytes,
        unpacked,
    })
}

/// What the record in place says is there, unchecked: nothing where there is none that we can use.
pub(super) fn recorded(
    connector: &ConnectorDir,
    carried: &Build,
    platform: &Platform,
) -> Option<(Browser, Record)> {
    let record = Record::read(&bin(connector).ok()?).ok()?;
    let (browser, _) = whose(connector, carried, platform, &record).ok()??;
    Some((browser, record))
}

fn bin(connector: &ConnectorDir) -> Result<Dir, InstallError> {
    let missing = || TreeError::Missing(connector.path().join("bin"));
    Ok(staging::bin_of(connector.dir())?.ok_or_else(missing)?)
}

fn whose(
    connector: &ConnectorDir,
    carried: &Build,
    platform: &Platform,
    record: &Record,
) -> Result<Option<(Browser, Build)>, InstallError> {
    let is = |build: &Build| identity(build, platform, &record.groups) == record.build;
    if is(carried) {
        return Ok(Some((Browser::Chromium, carried.clone())));
    }
    let own = locks::own(connector)?.filter(is);
    Ok(own.map(|build| (Browser::ChromeForTesting, build)))
}
