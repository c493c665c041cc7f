//! Which certificate authorities are believed: npm's `ca` or `cafile` where it names any, else
//! `SSL_CERT_FILE` and `SSL_CERT_DIR`, else the system's; `NODE_EXTRA_CA_CERTS` is added, as it is
//! for npm. Read only when an encrypted connection is opened.

use super::npmrc::NpmConfig;
use super::{SourceError, Variables};
use crate::install::files;
use std::path::{Path, PathBuf};
use ureq::tls::{Certificate, PemItem, parse_pem};

/// The files that certificates come from.
#[derive(Default)]
pub(super) struct RootFiles {
    inline: Vec<String>,
    npm_file: Option<PathBuf>,
    file: Option<PathBuf>,
    folders: Option<String>,
    extra: Option<PathBuf>,
}

impl RootFiles {
    pub(super) fn new(config: &NpmConfig, variables: &Variables) -> Self {
        let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty());
        Self {
            inline: config
                .values("ca")
                .iter()
                .map(|pem| pem.replace("\\n", "\n"))
                .collect(),
            npm_file: config.value("cafile").map(PathBuf::from),
            file: variable("SSL_CERT_FILE").map(PathBuf::from),
            folders: variable("SSL_CERT_DIR").cloned(),
            extra: variable("NODE_EXTRA_CA_CERTS").map(PathBuf::from),
        }
    }

    pub(super) fn load(&self) -> Result<Vec<Certificate<'static>>, SourceError> {
        let mut roots = self.base()?;
        if let Some(path) = &self.extra {
            roots.extend(from_file(path)?);
        }
        Ok(roots)
    }

    fn base(&self) -> Result<Vec<Certificate<'static>>, SourceError> {
        let inline: Vec<_> = self
            .inline
            .iter()
            .filter(|pem| pem.contains("BEGIN"))
            .collect();
        if !inline.is_empty() {
            let parsed = inline
                .iter()
                .map(|pem| from_pem(pem.as_bytes(), "npm's ca"));
            return Ok(parsed.collect::<Result<Vec<_>, _>>()?.concat());
        }
        if let Some(path) = &self.npm_file {
            return from_file(path);
        }
        let (found, place) = if self.file.is_some() || self.folders.is_some() {
            (self.named(), "SSL_CERT_FILE and SSL_CERT_DIR")
        } else {
            (
                rustls_native_certs::load_native_certs().certs,
                "the system's store",
            )
        };
        if found.is_empty() {
            return Err(SourceError::NoRoots(place.into()));
        }
        Ok(found
            .iter()
            .map(|der| Certificate::from_der(der).to_owned())
            .collect())
    }

    fn named(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        let load = rustls_native_certs::load_certs_from_paths;
        let mut found = load(self.file.as_deref(), None).certs;
        for folder in self.folders.iter().flat_map(|folders| folders.split(':')) {
            found.extend(load(None, Some(Path::new(folder))).certs);
        }
        found
    }
}

fn from_file(path: &Path) -> Result<Vec<Certificate<'static>>, SourceError> {
    let unreadable = |source| SourceError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let bytes = files::read_small(path).map_err(unreadable)?;
    let missing = || unreadable(std::io::ErrorKind::NotFound.into());
    from_pem(&bytes.ok_or_else(missing)?, &path.display().to_string())
}

fn from_pem(bytes: &[u8], place: &str) -> Result<Vec<Certificate<'static>>, SourceError> {
    let certificates: Vec<_> = parse_pem(bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(SourceError::NotPem(place.into()));
    }
    Ok(certificates)
}
