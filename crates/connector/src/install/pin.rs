//! `pin`: writes down a browser that nobody has published a hash of. Its archive is fetched once,
//! over an encrypted connection where its own host serves it, and what came is what is pinned: the
//! hash says from then on that it is the same one, not that it is the right one. So the answer
//! names all that was taken on trust.

use super::archives;
use super::derive::{FOLDER, Taken, derive};
use super::error::InstallError;
use super::fetch::{Fetch, Wanted};
use super::files;
use super::http::{Client, Part, Patience};
use super::locks::{self, FILE};
use super::part::SUFFIX;
use super::progress::{Progress, Talk};
use super::sources::{Place, Sources};
use super::usage;
use sema_rules::digest::Sha256;
use sema_rules::lock::{Archive, Build, Platform};
use sema_vault::archive::{ArchiveError, Checked};
use sema_vault::{ConnectorDir, Staging, hash};
use serde_json::Value;
use std::sync::atomic::AtomicBool;

const HOST: &str = "https://cdn.playwright.dev/builds/cft";
/// The most that a browser's archive may hold: Chrome for Testing is 180 MB and unpacks to 400 MB.
const MOST_BYTES: u64 = 1 << 30;
const MOST_UNPACKED: u64 = 4 << 30;
const MOST_ENTRIES: u32 = 10_000;

/// What a person asks for.
pub struct PinOrder<'a> {
    /// The text of the lock that this program carries.
    pub carried: &'a [u8],
    /// The build in it.
    pub build: &'a Build,
    /// The machine it is for.
    pub platform: Platform,
    /// The version; none is the one that the pinned playwright-core names.
    pub version: Option<String>,
    /// Where archives come from.
    pub sources: &'a Sources,
    /// How long to wait for the network.
    pub patience: Patience,
    /// What is shown meanwhile.
    pub talk: Talk,
}

/// What was pinned.
#[derive(Debug, serde::Serialize)]
pub struct Pinned {
    /// The browser's version.
    pub version: String,
    /// For which machines.
    pub platform: String,
    /// The archive.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Its hash, computed from what came.
    pub sha256: Sha256,
    /// Where it came from.
    pub source: String,
    /// What vouches for it.
    pub trust: &'static str,
    /// The lock that was written.
    pub lock: std::path::PathBuf,
}

/// Chrome for Testing's own names of a platform.
struct Names {
    folder: &'static str,
    file: &'static str,
    inside: &'static str,
    program: &'static str,
}

/// Fetches, checks and pins.
pub fn pin(order: &PinOrder<'_>, connector: &ConnectorDir) -> Result<Pinned, InstallError> {
    let names = names(&order.platform)?;
    let progress = Progress::new(order.talk);
    let _turn = connector.lock_install(&mut |notice| progress.line(&notice.to_string()))?;
    let staging = Staging::begin(connector.dir())?;
    let client = Client::new(order.sources, order.patience);
    let pin = Pin {
        order,
        names,
        client,
        progress,
        staging,
    };
    let result = pin.run(connector);
    pin.progress.finish();
    result
}

struct Pin<'a> {
    order: &'a PinOrder<'a>,
    names: Names,
    client: Client<'a>,
    progress: Progress,
    staging: Staging,
}

impl Pin<'_> {
    fn run(&self, connector: &ConnectorDir) -> Result<Pinned, InstallError> {
        let version = match &self.order.version {
            Some(version) => well_formed(version)?,
            None => self.named_by_playwright()?,
        };
        let url = format!("{HOST}/{version}/{}/{}", self.names.folder, self.names.file);
        self.refuse_without_node()?;
        let (source, bytes, sha256) = self.fetch(&url)?;
        let mut taken = Taken {
            file: self.names.file,
            inside: self.names.inside,
            program: self.names.program,
            platform: &self.order.platform,
            url: &url,
            bytes,
            sha256,
            unpacked: MOST_UNPACKED,
            entries: MOST_ENTRIES,
        };
        (taken.unpacked, taken.entries) = self.judge(&taken)?;
        let lock = self.lock(&taken)?;
        let mut text = serde_json::to_vec_pretty(&lock).unwrap_or_default();
        text.push(b'\n');
        connector.dir().write_atomic(FILE, &text, 0o600)?;
        Ok(Pinned {
            version,
            platform: self.order.platform.to_string(),
            file: self.names.file.to_owned(),
            bytes,
            sha256,
            trust: trust(&source),
            source: source.to_string(),
            lock: connector.path().join(FILE),
        })
    }

    /// The version that the pinned playwright-core was made for: its archive is compared with the
    /// carried lock like any other.
    fn named_by_playwright(&self) -> Result<String, InstallError> {
        let folder = "node_modules/playwright-core";
        let is_core = |archive: &&Archive| archive.destinations().any(|to| to.as_str() == folder);
        let core = self.order.build.archives.iter().find(is_core);
        let core =
            core.ok_or_else(|| refused("binaries.lock.json pins no playwright-core", GIVE))?;
        let bytes = self.core(core)?;
        Checked::read(core, &bytes)?.unpack(self.staging.tree(), |_| {})?;
        let text = archives::read_below(self.staging.tree(), &format!("{folder}/browsers.json"))?;
        named_version(&text).ok_or_else(|| {
            refused(
                "the pinned playwright-core names no Chrome for Testing",
                GIVE,
            )
        })
    }

    fn core(&self, core: &Archive) -> Result<Vec<u8>, InstallError> {
        self.staging.reuse(&core.file)?;
        if let Ok(Some(bytes)) = archives::pinned(self.staging.archives(), core) {
            return Ok(bytes);
        }
        let file = core.file.to_string();
        let places = self
            .order
            .sources
            .places(&file, &self.order.build.url(core))?;
        self.bring(&Wanted {
            file,
            bytes: core.bytes,
            sha256: Some(core.sha256),
            places,
        })?;
        Ok(archives::pinned(self.staging.archives(), core)?.unwrap_or_default())
    }

    fn bring(&self, wanted: &Wanted) -> Result<(), InstallError> {
        let bar = self.progress.archive(&wanted.file, wanted.bytes);
        let (folder, stop) = (self.staging.archives(), AtomicBool::new(false));
        Ok(Fetch {
            wanted,
            folder,
            client: &self.client,
            stop: &stop,
        }
        .run(bar)?)
    }

    /// Fetches the browser; its place, length and hash.
    fn fetch(&self, url: &str) -> Result<(Place, u64, Sha256), InstallError> {
        let file = self.names.file.to_owned();
        // Another version has the same name: nothing that is here is taken for it.
        for name in [file.clone(), format!("{file}{SUFFIX}")] {
            self.staging.archives().remove(name)?;
        }
        let (place, bytes) = self.stated(&self.order.sources.places(&file, url)?)?;
        self.bring(&Wanted {
            file: file.clone(),
            bytes,
            sha256: None,
            places: vec![place.clone()],
        })?;
        let bytes_read = archives::read(self.staging.archives(), &file, bytes)?.unwrap_or_default();
        Ok((place, bytes, hash::sha256(&bytes_read)))
    }

    /// The first place that has the file, and how long it says that it is.
    fn stated(&self, places: &[Place]) -> Result<(Place, u64), InstallError> {
        let mut looked = Vec::new();
        for place in places {
            match self.length(place)? {
                Some(bytes @ 1..=MOST_BYTES) => return Ok((place.clone(), bytes)),
                Some(bytes) => {
                    let text =
                        format!("{place} says that it has {bytes} bytes: no browser's archive");
                    return Err(refused(text, GIVE));
                }
                None => looked.push(place.to_string()),
            }
        }
        Err(refused(
            format!(
                "{} is not there: looked in {}",
                self.names.file,
                looked.join(" and ")
            ),
            ELSEWHERE,
        ))
    }

    fn length(&self, place: &Place) -> Result<Option<u64>, InstallError> {
        let Place::Web(url, authorization) = place else {
            return Ok(folder_length(place));
        };
        let failed = |reason: String| {
            InstallError::Pin(
                format!("{} was not fetched: {reason}", self.names.file),
                ELSEWHERE,
            )
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let reason = match self
                .client
                .get(url, authorization.as_ref(), &Part::default())
            {
                Ok(answer) if answer.status == 200 => {
                    let none = || failed(format!("{place} does not say how long it is"));
                    return answer.length().ok_or_else(none).map(Some);
                }
                Ok(answer) if matches!(answer.status, 404 | 410) => return Ok(None),
                Ok(answer) if answer.status < 500 => {
                    return Err(failed(format!("{place} answers {}", answer.status)));
                }
                Ok(answer) => format!("{place} answers {}", answer.status),
                Err(error) if error.is_transient() => error.to_string(),
                Err(error) => return Err(failed(error.to_string())),
            };
            if tries == self.client.patience.tries {
                return Err(failed(reason));
            }
            std::thread::sleep(self.client.patience.pause * tries);
        }
    }

    fn lock(&self, taken: &Taken<'_>) -> Result<Value, InstallError> {
        derive(self.order.carried, taken)
            .ok_or_else(|| refused("the carried lock is not one", GIVE))
    }

    /// A browser alone is no build.
    fn refuse_without_node(&self) -> Result<(), InstallError> {
        let (build, platform) = (self.order.build, &self.order.platform);
        let is_node = |archive: &Archive| archive.destinations().any(|to| build.node.is_in(to));
        if build.archives_for(platform, &[]).any(is_node) {
            return Ok(());
        }
        let others: Vec<_> = build.platforms().iter().map(ToString::to_string).collect();
        let others = others.join(", ");
        let text = format!("binaries.lock.json pins no Node.js for {platform}, only for {others}");
        Err(refused(
            text,
            "pin and install on a machine of such a platform",
        ))
    }

    /// Checks that the archive holds a browser; what comes out of it, in bytes and entries.
    fn judge(&self, taken: &Taken<'_>) -> Result<(u64, u32), InstallError> {
        let bytes = taken.bytes;
        let text = serde_json::to_vec(&self.lock(taken)?);
        let build = locks::read(FILE.into(), &text.unwrap_or_default())?;
        let is_browser = |archive: &&Archive| archive.file.as_str() == self.names.file;
        let archive = build.archives.iter().find(is_browser);
        let archive = archive.ok_or_else(|| refused("the new lock names no browser", GIVE))?;
        let content =
            archives::read(self.staging.archives(), self.names.file, bytes)?.unwrap_or_default();
        let checked = Checked::read(archive, &content).map_err(unusable)?;
        checked
            .unpack(self.staging.tree(), |_| {})
            .map_err(unusable)?;
        let program = format!("{FOLDER}/{}", self.names.program);
        if !archives::is_program(self.staging.tree(), &program)? {
            let text = format!(
                "{} holds no program {}/{}",
                self.names.file, self.names.inside, self.names.program
            );
            return Err(refused(text, ELSEWHERE));
        }
        Ok(usage::content(self.staging.tree(), FOLDER))
    }
}

fn names(platform: &Platform) -> Result<Names, InstallError> {
    let name = |folder, file, inside, program| {
        Ok(Names {
            folder,
            file,
            inside,
            program,
        })
    };
    match platform.as_str() {
        "linux-x64" => name("linux64", "chrome-linux64.zip", "chrome-linux64", "chrome"),
        "darwin-arm64" => name(
            "mac-arm64",
            "chrome-mac-arm64.zip",
            "chrome-mac-arm64",
            "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
        ),
        other => Err(refused(
            format!("there is no Chrome for Testing for {other}"),
            "it is built for linux-x64 and darwin-arm64",
        )),
    }
}

/// Four numbers, as Chrome counts.
fn well_formed(version: &str) -> Result<String, InstallError> {
    let numbers: Vec<_> = version.split('.').collect();
    let number =
        |text: &&str| (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if numbers.len() == 4 && numbers.iter().all(number) {
        return Ok(version.to_owned());
    }
    Err(refused(
        "--version is not a version of Chrome for Testing",
        "it has four numbers, such as 155.0.8059.12",
    ))
}

/// The version of `chromium` in playwright-core's `browsers.json`.
fn named_version(text: &[u8]) -> Option<String> {
    let list: Value = serde_json::from_slice(text).ok()?;
    let browsers = list["browsers"].as_array()?;
    let chromium = browsers
        .iter()
        .find(|browser| browser["name"] == "chromium")?;
    well_formed(chromium["browserVersion"].as_str()?).ok()
}

fn folder_length(place: &Place) -> Option<u64> {
    let Place::File(path) = place else {
        return None;
    };
    files::open_regular(path)
        .ok()??
        .metadata()
        .ok()
        .map(|meta| meta.len())
}

/// What stands behind the bytes that came.
fn trust(place: &Place) -> &'static str {
    use super::sources::url::Scheme;
    match place {
        Place::File(_) => "whoever filled the mirror folder",
        Place::Web(url, _) if url.scheme() == Scheme::Https => {
            "the host, its certificate, and who signed that"
        }
        Place::Web(..) => "the host and everyone on the way to it, for it was not encrypted",
    }
}

const GIVE: &str =
    "give the version: sema-connector-browser pin --browser chrome-for-testing --version V";
const ELSEWHERE: &str =
    "name another version with --version, or another source with --mirror URL|FOLDER";

/// An archive that may not be unpacked is another source's fault here, not the lock's.
fn unusable(error: ArchiveError) -> InstallError {
    match InstallError::from(error) {
        contents @ InstallError::Contents { .. } => refused(contents.to_string(), ELSEWHERE),
        other => other,
    }
}

fn refused(text: impl Into<String>, hint: &'static str) -> InstallError {
    InstallError::Pin(text.into(), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_what_playwright_names() {
        let text = br#"{"browsers": [{"name": "firefox", "browserVersion": "1.2"},
            {"name": "chromium", "revision": "1247", "browserVersion": "155.0.8059.12"}]}"#;
        assert_eq!(named_version(text).as_deref(), Some("155.0.8059.12"));
        assert_eq!(named_version(b"{}"), None);
        assert_eq!(
            named_version(br#"{"browsers": [{"name": "chromium", "browserVersion": "../1"}]}"#),
            None
        );
    }

    #[test]
    fn a_version_cannot_lead_elsewhere() {
        for wrong in [
            "",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.x",
            "1.2.3./",
            "../../a.b",
            "1.2.3.",
            "1.2.3.1234567",
        ] {
            assert!(well_formed(wrong).is_err(), "{wrong}");
        }
    }
}
