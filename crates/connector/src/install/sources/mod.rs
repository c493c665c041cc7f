//! Where archives come from: the registry that npm is configured for, another host that the lock
//! names, a mirror, or only what is here already. Decides addresses and credentials; opens no
//! connection. What comes from there is never believed: the lock's hashes decide.

pub mod npmrc;
pub mod proxy;
pub mod roots;
pub mod url;

use super::files;
use npmrc::{Authorization, DEFAULT_REGISTRY, Layer, NpmConfig};
use proxy::Proxies;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use url::{Url, UrlError};

/// The environment variables of this process, read once by the command line.
pub type Variables = BTreeMap<String, String>;

/// A configuration of sources that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file that exists and cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The address of a registry or mirror.
    #[error("the address of {what} cannot be used: {source}")]
    Address {
        /// Whose address.
        what: String,
        /// Why.
        source: UrlError,
    },
    /// No certificate authority at all.
    #[error("no certificate authority found in {0}")]
    NoRoots(String),
    /// Something that should be PEM.
    #[error("{0} holds no PEM certificate")]
    NotPem(String),
}

impl SourceError {
    /// The fix.
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => "make the file readable, or name another".into(),
            Self::Address { .. } => {
                "give https://host/path; credentials belong in ~/.npmrc as //host/path/:_authToken"
                    .into()
            }
            Self::NoRoots(_) | Self::NotPem(_) => {
                "name a PEM file with SSL_CERT_FILE, or install the system's ca-certificates".into()
            }
        }
    }
}

/// A place of archives that the person named instead of the lock's own.
#[derive(Debug, Clone)]
pub enum Mirror {
    /// A folder with the lock's file names.
    Folder(PathBuf),
    /// A web address: see [`Sources::places`].
    Web(Url),
}

impl Mirror {
    /// Reads `--mirror`: an address if it starts like one, else a folder.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        if !text.contains("://") {
            return Ok(Self::Folder(PathBuf::from(text)));
        }
        Url::parse(text)
            .map(Self::Web)
            .map_err(|source| SourceError::Address {
                what: "--mirror".into(),
                source,
            })
    }
}

/// One place where an archive may be.
#[derive(Debug, Clone)]
pub enum Place {
    /// A file of a mirror folder.
    File(PathBuf),
    /// An address, with the credential configured for it.
    Web(Url, Option<Authorization>),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Web(url, _) => write!(f, "{url}"),
        }
    }
}

/// Everything that decides where bytes come from.
pub struct Sources {
    config: NpmConfig,
    pub(super) proxies: Proxies,
    roots: roots::RootFiles,
    mirror: Option<Mirror>,
}

impl Sources {
    /// Reads npm's configuration, the proxies and the names of the certificate files.
    pub fn load(variables: &Variables, mirror: Option<Mirror>) -> Result<Self, SourceError> {
        let from_variables = Layer::from_variables(variables);
        let user_file = match from_variables.last("userconfig") {
            Some(path) => Some(PathBuf::from(path)),
            None => variables
                .get("HOME")
                .map(|home| Path::new(home).join(".npmrc")),
        };
        let user = read_layer(user_file, variables)?;
        let global = read_layer(global_file(&from_variables, &user, variables), variables)?;
        let config = NpmConfig::new(vec![from_variables, user, global]);
        Ok(Self {
            proxies: Proxies::new(&config, variables),
            roots: roots::RootFiles::new(&config, variables),
            config,
            mirror,
        })
    }

    /// The places of an archive, in the order in which they are tried. A mirror replaces the
    /// lock's address altogether: first `<mirror>/<file>`, then `<mirror>/<path of the lock's
    /// address>`, which is where an npm registry, or a copy of another host, has it.
    pub fn places(&self, file: &str, address: &str) -> Result<Vec<Place>, SourceError> {
        if let Some(path) = address.strip_prefix("file://") {
            return Ok(self.files(file, Path::new(path)));
        }
        let named = |what: &str, text: &str| {
            Url::parse(text).map_err(|source| SourceError::Address {
                what: what.into(),
                source,
            })
        };
        let url = named("an archive", address)?;
        let path = url.path().trim_start_matches('/');
        match &self.mirror {
            Some(Mirror::Folder(folder)) => Ok(vec![
                Place::File(folder.join(file)),
                Place::File(folder.join(path)),
            ]),
            Some(Mirror::Web(base)) => Ok(vec![
                self.web(base.below(file), base),
                self.web(base.below(path), base),
            ]),
            None if address.starts_with(DEFAULT_REGISTRY) => {
                let scope = path
                    .split('/')
                    .next()
                    .filter(|first| first.starts_with('@'));
                let registry = named("the npm registry", self.config.registry(scope))?;
                Ok(vec![self.web(registry.below(path), &registry)])
            }
            None => Ok(vec![Place::Web(url, None)]),
        }
    }

    /// The places of an archive that a lock has on this machine.
    fn files(&self, file: &str, path: &Path) -> Vec<Place> {
        match &self.mirror {
            None => vec![Place::File(path.to_owned())],
            Some(Mirror::Folder(folder)) => vec![Place::File(folder.join(file))],
            Some(Mirror::Web(base)) => vec![self.web(base.below(file), base)],
        }
    }

    /// The certificate authorities to believe.
    pub(super) fn roots(&self) -> Result<Vec<ureq::tls::Certificate<'static>>, SourceError> {
        self.roots.load()
    }

    fn web(&self, url: Url, base: &Url) -> Place {
        let authorization = self
            .config
            .authorization(&url)
            .or_else(|| self.config.authorization(&base.below("")));
        Place::Web(url, authorization)
    }
}

/// npm's global file: named, or below the prefix, which is where `node` lies when nothing says.
fn global_file(variables: &Layer, user: &Layer, environment: &Variables) -> Option<PathBuf> {
    if let Some(path) = variables.last("globalconfig") {
        return Some(PathBuf::from(path));
    }
    let named = variables.last("prefix").or_else(|| user.last("prefix"));
    let prefix = match named.or_else(|| environment.get("PREFIX").map(String::as_str)) {
        Some(prefix) => PathBuf::from(prefix),
        None => {
            let node = files::program_in_path(environment.get("PATH")?, "node")?;
            node.parent()?.parent()?.to_owned()
        }
    };
    prefix.is_absolute().then(|| prefix.join("etc/npmrc"))
}

fn read_layer(path: Option<PathBuf>, variables: &Variables) -> Result<Layer, SourceError> {
    let Some(path) = path.filter(|path| path.is_absolute()) else {
        return Ok(Layer::default());
    };
    match files::read_small(&path) {
        Ok(None) => Ok(Layer::default()),
        Ok(Some(bytes)) => Ok(Layer::from_file(
            &String::from_utf8_lossy(&bytes),
            variables,
        )),
        Err(source) => Err(SourceError::Unreadable { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MCP: &str = "https://registry.npmjs.org/@playwright/mcp/-/mcp-0.0.83.tgz";

    fn places(npmrc: &str, mirror: Option<&str>, address: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("npmrc");
        std::fs::write(&file, npmrc).unwrap();
        let variables = BTreeMap::from([(
            "npm_config_userconfig".into(),
            file.to_str().unwrap().into(),
        )]);
        let sources = Sources::load(&variables, mirror.map(|m| Mirror::parse(m).unwrap())).unwrap();
        let found = sources
            .places("playwright-mcp-0.0.83.tgz", address)
            .unwrap();
        let shown = |place: &Place| match place {
            Place::Web(url, Some(_)) => format!("{url} (with a credential)"),
            other => other.to_string(),
        };
        found.iter().map(shown).collect()
    }

    #[test]
    fn the_configured_registry_takes_the_place_of_the_public_one() {
        let npmrc = "registry=https://r.example/npm\n@playwright:registry=https://s.example:8443\n\
                     //s.example:8443/:_authToken=t\n";
        assert_eq!(
            places(npmrc, None, MCP),
            ["https://s.example:8443/@playwright/mcp/-/mcp-0.0.83.tgz (with a credential)"]
        );
        let plain = "https://registry.npmjs.org/playwright/-/playwright-1.tgz";
        assert_eq!(
            places(npmrc, None, plain),
            ["https://r.example/npm/playwright/-/playwright-1.tgz"]
        );
        assert_eq!(places("", None, plain), [plain]);
    }

    #[test]
    fn another_host_of_the_lock_is_asked_itself_and_without_a_credential() {
        let npmrc = "registry=https://r.example/\n//cdn.example/:_authToken=t\n";
        assert_eq!(
            places(npmrc, None, "https://cdn.example/x.zip"),
            ["https://cdn.example/x.zip"]
        );
        let close = "https://registry.npmjs.org.evil/x.zip";
        assert_eq!(places(npmrc, None, close), [close]);
    }

    #[test]
    fn a_lock_may_name_a_file_of_this_machine() {
        let local = "file:///srv/x.zip";
        assert_eq!(places("", None, local), ["/srv/x.zip"]);
        assert_eq!(
            places("", Some("/m"), local),
            ["/m/playwright-mcp-0.0.83.tgz"]
        );
    }

    #[test]
    fn a_mirror_takes_the_place_of_everything() {
        assert_eq!(
            places(
                "registry=https://r.example/\n",
                Some("https://m.example/x/"),
                MCP
            ),
            [
                "https://m.example/x/playwright-mcp-0.0.83.tgz",
                "https://m.example/x/@playwright/mcp/-/mcp-0.0.83.tgz"
            ]
        );
        assert_eq!(
            places("", Some("/m"), MCP),
            [
                "/m/playwright-mcp-0.0.83.tgz",
                "/m/@playwright/mcp/-/mcp-0.0.83.tgz"
            ]
        );
    }

    #[test]
    fn an_address_with_a_password_is_refused_and_not_repeated() {
        let error = Mirror::parse("https://me:hunter2@m.example/").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the address of --mirror cannot be used: an address must not hold a user name or a password"
        );
    }
}
