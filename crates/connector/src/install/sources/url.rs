//! Web addresses of archives: `http` or `https`, a host, a port and a path, nothing else. A user
//! name or password in an address is refused, because addresses are printed.

use std::fmt;

/// An address that is not one of ours. It never repeats the text, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Neither `http://` nor `https://`.
    #[error("an address must start with https:// or http://")]
    Scheme,
    /// No host, or a port that is no number.
    #[error("an address must name a host, and a port as a number if any")]
    Host,
    /// `user:password@host`.
    #[error("an address must not hold a user name or a password")]
    Credentials,
    /// White space or a control character.
    #[error("an address must not hold white space or control characters")]
    Characters,
}

/// Whether the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Plain.
    Http,
    /// With TLS.
    Https,
}

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// Parses an absolute address; a fragment is dropped.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(UrlError::Characters);
        }
        let (scheme, rest) = split_scheme(text).ok_or(UrlError::Scheme)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = split_authority(authority, scheme)?;
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Self {
            scheme,
            host,
            port,
            path,
        })
    }

    /// The address that a redirect from here names.
    pub fn join(&self, location: &str) -> Result<Self, UrlError> {
        if location.contains("://") {
            return Self::parse(location);
        }
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme.name()));
        }
        let path = if location.starts_with('/') {
            location.to_owned()
        } else {
            let bare = self.path.split('?').next().unwrap_or_default();
            let folder = bare.rfind('/').map_or("", |at| &bare[..at]);
            format!("{folder}/{location}")
        };
        Self::parse(&format!(
            "{}://{}{path}",
            self.scheme.name(),
            self.authority()
        ))
    }

    /// The address of `below` under this one, which is taken as a folder.
    pub fn below(&self, below: &str) -> Self {
        let folder = self.path.split('?').next().unwrap_or_default();
        let path = format!(
            "{}/{}",
            folder.trim_end_matches('/'),
            below.trim_start_matches('/')
        );
        Self {
            path,
            ..self.clone()
        }
    }

    /// Same scheme, host and port: what may see a credential of the other.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.scheme == other.scheme && self.host == other.host && self.port == other.port
    }

    /// `host`, or `host:port` where the port is not the scheme's own: how npm spells a registry.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Encrypted or plain.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host in lower case; an IPv6 address in its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path with its query, starting with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

fn split_scheme(text: &str) -> Option<(Scheme, &str)> {
    let (name, rest) = text.split_once("://")?;
    match name.to_ascii_lowercase().as_str() {
        "http" => Some((Scheme::Http, rest)),
        "https" => Some((Scheme::Https, rest)),
        _ => None,
    }
}

fn split_authority(authority: &str, scheme: Scheme) -> Result<(String, u16), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[after_brackets..].find(':') {
        Some(at) => {
            let colon = after_brackets + at;
            let port = authority[colon + 1..].parse().map_err(|_| UrlError::Host)?;
            (&authority[..colon], port)
        }
        None => (authority, scheme.port()),
    };
    if host.is_empty() || host.contains(['\\', '%']) {
        return Err(UrlError::Host);
    }
    Ok((host.to_ascii_lowercase(), port))
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}{}",
            self.scheme.name(),
            self.authority(),
            self.path
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn an_address_prints_as_npm_spells_it() {
        for (given, printed) in [
            (
                "https://Registry.npmjs.org:443",
                "https://registry.npmjs.org/",
            ),
            ("http://127.0.0.1:4873/x?y#z", "http://127.0.0.1:4873/x?y"),
            ("https://[::1]:8443/a", "https://[::1]:8443/a"),
            ("https://host?x", "https://host/?x"),
        ] {
            assert_eq!(url(given).to_string(), printed);
        }
    }

    #[test]
    fn a_redirect_is_resolved_against_where_it_came_from() {
        let from = url("https://a.example/x/y?z");
        for (location, to) in [
            ("b", "https://a.example/x/b"),
            ("/b", "https://a.example/b"),
            ("//c.example/b", "https://c.example/b"),
            ("http://d.example:8080/b", "http://d.example:8080/b"),
        ] {
            assert_eq!(from.join(location).unwrap().to_string(), to);
        }
    }

    #[test]
    fn the_origin_is_scheme_host_and_port() {
        let origin = url("https://a.example/x");
        assert!(origin.same_origin(&url("https://A.example:443/y")));
        for other in [
            "http://a.example/",
            "https://b.example/",
            "https://a.example:444/",
        ] {
            assert!(!origin.same_origin(&url(other)), "{other}");
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for (text, error) in [
            ("ftp://a/", UrlError::Scheme),
            ("a.example", UrlError::Scheme),
            ("https://", UrlError::Host),
            ("https://a:x/", UrlError::Host),
            ("https://me:pw@a/", UrlError::Credentials),
            ("https://a/ b", UrlError::Characters),
            ("https://a/\r\nX: y", UrlError::Characters),
        ] {
            assert_eq!(Url::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn below_keeps_the_folder() {
        assert_eq!(
            url("https://a/npm/").below("/@s/x").to_string(),
            "https://a/npm/@s/x"
        );
        assert_eq!(url("https://a").below("x").to_string(), "https://a/x");
    }
}
