//! Brings the pinned build onto this machine.
//!
//! The order is the guarantee: every archive is fetched, its size and hashes are compared with the
//! lock, and what it holds is checked, all of them, before the first byte is unpacked. What comes
//! out is written beside the present build, flushed, recorded, and put in its place by one rename.
//! Killed anywhere, the next run goes on; run twice, the second does nothing; run twice at once,
//! one waits and then sees the other's work.

mod archives;
mod derive;
mod error;
mod fetch;
mod files;
pub mod http;
pub mod installed;
pub mod locks;
mod part;
pub mod pin;
pub mod progress;
pub mod removal;
pub mod sources;
mod space;
mod usage;
mod work;

pub use error::InstallError;
pub use fetch::FetchError;
pub use installed::{Installed, check};
pub use locks::Browser;

use http::Patience;
use progress::{Progress, Talk};
use sema_rules::lock::{Build, Group, Platform};
use sema_vault::tree::{Depth, TreeError};
use sema_vault::{ConnectorDir, fault};
use sources::Sources;
use work::Work;

/// What a person asks for.
pub struct Order<'a> {
    /// The build that this program carries.
    pub carried: &'a Build,
    /// The browser asked for; none keeps the one that is in, at first the carried one.
    pub browser: Option<Browser>,
    /// The machine it is for.
    pub platform: Platform,
    /// The groups asked for; those that are in already stay in.
    pub groups: Vec<Group>,
    /// Where archives come from.
    pub sources: &'a Sources,
    /// Whether archives may be fetched.
    pub network: Network,
    /// How long to wait for the network.
    pub patience: Patience,
    /// What is shown meanwhile.
    pub talk: Talk,
}

/// Whether archives may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// They may.
    Allowed,
    /// Only what is here is used.
    Offline,
}

/// How an install ended.
#[derive(Debug)]
pub enum Done {
    /// The build was there; nothing was touched.
    Already(Installed),
    /// It is there now.
    Now(Installed),
}

impl Done {
    /// What is in place.
    pub fn installed(&self) -> &Installed {
        match self {
            Self::Already(installed) | Self::Now(installed) => installed,
        }
    }
}

/// The platform of this program.
pub fn this_platform() -> Platform {
    Platform::of(std::env::consts::OS, std::env::consts::ARCH)
}

/// What a connector's directory takes on the disk, in bytes: the build, its archives, leftovers.
pub fn disk_used(connector: &ConnectorDir) -> u64 {
    usage::of(connector.dir())
}

/// Installs a build, unless it is there and whole.
pub fn install(order: &Order<'_>, connector: &ConnectorDir) -> Result<Done, InstallError> {
    let plan = plan(order, connector)?;
    if !plan.build.pins(&order.platform) {
        let pinned = plan
            .build
            .platforms()
            .iter()
            .map(ToString::to_string)
            .collect();
        return Err(InstallError::NotPinned {
            platform: order.platform.to_string(),
            pinned,
        });
    }
    if let Some(installed) = present(order, &plan, connector)? {
        return Ok(Done::Already(installed));
    }
    let progress = Progress::new(order.talk);
    let _turn = connector.lock_install(&mut |notice| progress.line(&notice.to_string()))?;
    fault::point("install.turn");
    // The one that was waited for may have done it.
    if let Some(installed) = present(order, &plan, connector)? {
        return Ok(Done::Already(installed));
    }
    let work = Work {
        order,
        plan: &plan,
        connector,
        progress: &progress,
    };
    let result = work.run();
    progress.finish();
    result.map_err(|error| work.explain(error))?;
    check(connector, order.carried, &order.platform, Depth::Changed).map(Done::Now)
}

/// What is to be in place afterwards.
struct Plan {
    browser: Browser,
    build: Build,
    groups: Vec<Group>,
}

fn plan(order: &Order<'_>, connector: &ConnectorDir) -> Result<Plan, InstallError> {
    let recorded = installed::recorded(connector, order.carried, &order.platform);
    let there = recorded.as_ref().map(|(browser, _)| *browser);
    let browser = order.browser.or(there).unwrap_or(Browser::Chromium);
    let mut groups = order.groups.clone();
    let kept = recorded.into_iter().flat_map(|(_, record)| record.groups);
    for group in kept {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let build = locks::of(browser, connector, order.carried)?;
    Ok(Plan {
        browser,
        build,
        groups,
    })
}

/// The build in place, if it is the one that is wanted and nothing about it differs.
fn present(
    order: &Order<'_>,
    plan: &Plan,
    connector: &ConnectorDir,
) -> Result<Option<Installed>, InstallError> {
    match check(connector, order.carried, &order.platform, Depth::Changed) {
        Ok(found) => {
            let wanted = found.browser == plan.browser
                && plan.groups.iter().all(|group| found.groups.contains(group));
            Ok(Some(found).filter(|_| wanted))
        }
        // What differs is mended; what the system refuses us is not.
        Err(InstallError::Tree(TreeError::Vault(error))) => Err(error.into()),
        Err(InstallError::Tree(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
