//! The upstream's environment: what it is given of ours, by name, and what is set for it.
//!
//! The list is of what passes, not of what is dropped: a variable that a later version of the
//! upstream reads (`PLAYWRIGHT_*`, `PW*`, `NODE_*`, `DEBUG`) is absent without our knowing it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// What passes as it is. `NODE_EXTRA_CA_CERTS` does not: of `NODE_*` the upstream gets nothing.
const PASSED: [&str; 12] = [
    "PATH",
    "TZ",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The language where the person names none. With `C`, `POSIX` or nothing a page would see
/// `en-US@posix` or `und` in `navigator.language`, on which `Intl` throws.
const LANGUAGE: &str = "en_US.UTF-8";

/// Where a launch's own folders are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'p> {
    /// Its home, gone with it.
    pub(crate) home: &'p Path,
    /// Its temporary folder: short, because socket paths below it hold 107 bytes.
    pub(crate) tmp: &'p Path,
    /// The libraries that lie beside the browser.
    pub(crate) libraries: &'p Path,
    /// The folder of `fonts.conf`.
    pub(crate) fonts: &'p Path,
    /// The folder in which the C library finds the languages.
    pub(crate) locales: Option<&'p Path>,
    /// What `/etc/localtime` links to.
    pub(crate) localtime: Option<&'p Path>,
}

/// The upstream's whole environment, made of ours.
pub(crate) fn upstream(
    own: &[(OsString, OsString)],
    places: Places<'_>,
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: &OsStr| env.push((name.into(), value.to_owned()));
    for name in PASSED {
        if let Some(value) = value(own, name) {
            set(name, value);
        }
    }
    for (name, value) in language(own) {
        set(name, value);
    }
    if value(own, "TZ").is_none()
        && let Some(zone) = places.localtime.and_then(zone)
    {
        set("TZ", zone.as_os_str());
    }
    if let Some(locales) = places.locales {
        set("LOCPATH", locales.as_os_str());
    }
    set("HOME", places.home.as_os_str());
    set("TMPDIR", places.tmp.as_os_str());
    set("PWTEST_SOCKETS_DIR", places.tmp.as_os_str());
    set("LD_LIBRARY_PATH", places.libraries.as_os_str());
    set("FONTCONFIG_PATH", places.fonts.as_os_str());
    set(
        "FONTCONFIG_FILE",
        places.fonts.join("fonts.conf").as_os_str(),
    );
    env
}

fn value<'e>(own: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let found = own.iter().find(|(own, _)| own == name)?;
    Some(found.1.as_os_str()).filter(|value| !value.is_empty())
}

/// `LC_ALL` and `LANG`, of which the first that names a language counts.
pub(crate) fn language(own: &[(OsString, OsString)]) -> Vec<(&'static str, &OsStr)> {
    let mut language: Vec<_> = ["LC_ALL", "LANG"]
        .into_iter()
        .filter_map(|name| Some((name, value(own, name)?)))
        .filter(|(_, value)| names_a_language(value))
        .collect();
    if language.is_empty() {
        language.push(("LANG", OsStr::new(LANGUAGE)));
    }
    language
}

fn names_a_language(value: &OsStr) -> bool {
    let name = value
        .as_bytes()
        .split(|byte| matches!(byte, b'.' | b'@'))
        .next();
    !matches!(name, None | Some(b"" | b"C" | b"POSIX"))
}

/// The name of a time zone: what follows `zoneinfo/` in the link.
fn zone(localtime: &Path) -> Option<&Path> {
    let mut parts = localtime.components();
    parts.find(|part| part.as_os_str() == "zoneinfo")?;
    Some(parts.as_path()).filter(|zone| !zone.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(own: &[(&str, &str)], localtime: Option<&str>) -> Vec<String> {
        let own: Vec<_> = own
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let places = Places {
            home: Path::new("/l/home"),
            tmp: Path::new("/.t"),
            libraries: Path::new("/b/chrome/lib"),
            fonts: Path::new("/l/home/.fonts"),
            locales: Some(Path::new("/l/home/locale")),
            localtime: localtime.map(Path::new),
        };
        let env = upstream(&own, places).into_iter();
        env.map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    #[test]
    fn only_what_is_listed_passes() {
        let own = [
            ("PATH", "/bin"),
            ("LANG", "de_DE.UTF-8"),
            ("LC_ALL", "fr_FR.UTF-8"),
            ("TZ", "Europe/Berlin"),
            ("https_proxy", "http://p:1"),
            ("SSL_CERT_FILE", "/ca.pem"),
            ("NODE_EXTRA_CA_CERTS", "/ca.pem"),
            ("NODE_OPTIONS", "--inspect"),
            ("PLAYWRIGHT_MCP_CAPS", "vision"),
            ("PWDEBUG", "1"),
            ("DEBUG", "*"),
            ("CONFIG_LOCAL_DIR", "/c"),
            ("CONNECTOR_DIR", "/c/connectors/browser"),
            ("CONNECTOR_LAUNCH_DIR", "/l"),
            ("BROWSER_STORAGE_STATE_FILE", "/l/s"),
            ("HOME", "/root"),
            ("LD_PRELOAD", "/x.so"),
        ];
        insta::assert_snapshot!(made(&own, Some("/usr/share/zoneinfo/Asia/Tokyo")).join("\n"), @r"
        PATH=/bin
        TZ=Europe/Berlin
        https_proxy=http://p:1
        SSL_CERT_FILE=/ca.pem
        LC_ALL=fr_FR.UTF-8
        LANG=de_DE.UTF-8
        LOCPATH=/l/home/locale
        HOME=/l/home
        TMPDIR=/.t
        PWTEST_SOCKETS_DIR=/.t
        LD_LIBRARY_PATH=/b/chrome/lib
        FONTCONFIG_PATH=/l/home/.fonts
        FONTCONFIG_FILE=/l/home/.fonts/fonts.conf
        ");
    }

    #[test]
    fn the_language_is_a_real_one() {
        for (own, expected) in [
            (vec![], "LANG=en_US.UTF-8"),
            (vec![("LANG", "")], "LANG=en_US.UTF-8"),
            (vec![("LANG", "C")], "LANG=en_US.UTF-8"),
            (
                vec![("LANG", "C.UTF-8"), ("LC_ALL", "POSIX")],
                "LANG=en_US.UTF-8",
            ),
            (
                vec![("LANG", "de_CH.UTF-8"), ("LC_ALL", "C")],
                "LANG=de_CH.UTF-8",
            ),
            (vec![("LANG", "C"), ("LC_ALL", "ja_JP")], "LC_ALL=ja_JP"),
        ] {
            let made = made(&own, None);
            let language: Vec<_> = made
                .iter()
                .filter(|pair| pair.starts_with("LANG") || pair.starts_with("LC_"))
                .collect();
            assert_eq!(language, [expected], "{own:?}");
        }
    }

    #[test]
    fn the_time_zone_is_that_of_the_machine() {
        let zone = |link| {
            made(&[], Some(link))
                .into_iter()
                .find(|pair| pair.starts_with("TZ="))
        };
        assert_eq!(
            zone("/usr/share/zoneinfo/Asia/Tokyo").as_deref(),
            Some("TZ=Asia/Tokyo")
        );
        assert_eq!(zone("../usr/share/zoneinfo/UTC").as_deref(), Some("TZ=UTC"));
        assert_eq!(zone("/etc/zone"), None);
        assert_eq!(zone("/usr/share/zoneinfo"), None);
    }
}
