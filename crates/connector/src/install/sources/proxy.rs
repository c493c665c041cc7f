//! Which proxy an address goes through: npm's own keys first, then the usual variables. Pure.

use super::npmrc::NpmConfig;
use super::url::{Scheme, Url};
use std::collections::BTreeMap;

/// The proxies of this machine, as configured.
#[derive(Default, Clone)]
pub struct Proxies {
    https: Option<String>,
    http: Option<String>,
    none: Vec<String>,
}

impl Proxies {
    /// Reads npm's `https-proxy`, `proxy` and `noproxy`, else the variables in both cases.
    pub fn new(config: &NpmConfig, variables: &BTreeMap<String, String>) -> Self {
        let key = |name: &str| config.value(name).map(str::to_owned);
        let variable = |name: &str| {
            let found = [name.to_owned(), name.to_ascii_lowercase()]
                .iter()
                .find_map(|name| variables.get(name).filter(|value| !value.is_empty()));
            found.cloned()
        };
        let none = key("noproxy")
            .or_else(|| variable("NO_PROXY"))
            .unwrap_or_default();
        Self {
            https: key("https-proxy")
                .or_else(|| key("proxy"))
                .or_else(|| variable("HTTPS_PROXY"))
                .or_else(|| variable("ALL_PROXY"))
                .or_else(|| variable("HTTP_PROXY")),
            http: key("proxy")
                .or_else(|| variable("HTTP_PROXY"))
                .or_else(|| variable("ALL_PROXY")),
            none: none
                .split([',', ' '])
                .filter(|entry| !entry.is_empty())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// The proxy for an address, as configured; it may hold a password, so it is never printed.
    pub fn of(&self, url: &Url) -> Option<&str> {
        let proxy = match url.scheme() {
            Scheme::Https => self.https.as_deref(),
            Scheme::Http => self.http.as_deref(),
        };
        proxy.filter(|_| !self.none.iter().any(|entry| covers(entry, url)))
    }
}

/// Whether a `NO_PROXY` entry names the host: `*`, a domain with what is below it, `host:port`.
fn covers(entry: &str, url: &Url) -> bool {
    let entry = entry.to_ascii_lowercase();
    if entry == "*" || entry == url.authority() || entry == url.host() {
        return true;
    }
    let bare = url.host().trim_matches(['[', ']']);
    let domain = entry.trim_start_matches('*').trim_start_matches('.');
    domain == bare || (!domain.is_empty() && bare.ends_with(&format!(".{domain}")))
}

#[cfg(test)]
mod tests {
    use super::super::npmrc::Layer;
    use super::*;

    fn proxies(npmrc: &str, variables: &[(&str, &str)]) -> Proxies {
        let variables = variables
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        let config = NpmConfig::new(vec![Layer::from_file(npmrc, &variables)]);
        Proxies::new(&config, &variables)
    }

    fn of(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.of(&Url::parse(url).unwrap()).map(str::to_owned)
    }

    #[test]
    fn npm_keys_come_before_variables() {
        let found = proxies(
            "https-proxy=http://n:1\n",
            &[("HTTPS_PROXY", "http://v:1"), ("http_proxy", "http://w:1")],
        );
        assert_eq!(of(&found, "https://a/"), Some("http://n:1".into()));
        assert_eq!(of(&found, "http://a/"), Some("http://w:1".into()));
        assert_eq!(of(&proxies("", &[]), "https://a/"), None);
    }

    #[test]
    fn no_proxy_names_hosts_and_what_is_below_them() {
        let set = [
            ("HTTPS_PROXY", "p:1"),
            ("NO_PROXY", "a.example, .b.example,*.c.example,d:8443,::1"),
        ];
        let found = proxies("", &set);
        for direct in [
            "a.example",
            "x.a.example",
            "b.example",
            "x.b.example",
            "x.c.example",
            "d:8443",
            "[::1]",
        ] {
            assert_eq!(of(&found, &format!("https://{direct}/")), None, "{direct}");
        }
        for proxied in ["xa.example", "a.example.evil", "d", "d:8444"] {
            assert!(
                of(&found, &format!("https://{proxied}/")).is_some(),
                "{proxied}"
            );
        }
        assert_eq!(of(&proxies("noproxy=*\n", &set), "https://z/"), None);
    }
}
