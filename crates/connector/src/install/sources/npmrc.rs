//! npm's configuration as npm reads it: `npm_config_*` variables, then the user's file, then the
//! global one. **Never the file of the working directory**: whoever wrote the folder that a person
//! happens to stand in must not choose where programs come from. Pure: files come as text,
//! variables as a list.

use super::url::Url;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::collections::BTreeMap;
use std::fmt;
use zeroize::Zeroizing;

/// The registry that npm uses when nothing names one.
pub const DEFAULT_REGISTRY: &str = "https://registry.npmjs.org/";

/// One source of settings: keys in lower case (nerf-darted keys as written) to their values.
#[derive(Default, Clone)]
pub struct Layer(BTreeMap<String, Vec<String>>);

/// All layers, the strongest first.
#[derive(Default, Clone)]
pub struct NpmConfig(Vec<Layer>);

/// The value of an `Authorization` header.
#[derive(Clone)]
pub struct Authorization(Zeroizing<String>);

impl Authorization {
    /// The header's text. It goes into a request and nowhere else.
    pub fn header(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization(withheld)")
    }
}

impl Layer {
    /// The `npm_config_*` variables, in either case.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Self {
        let mut layer = Self::default();
        for (name, value) in variables {
            let Some((head, key)) = name.split_at_checked("npm_config_".len()) else {
                continue;
            };
            if head.eq_ignore_ascii_case("npm_config_") && !value.is_empty() {
                layer.push(&variable_key(key), value.clone());
            }
        }
        layer
    }

    /// An `.npmrc` file. Sections, unknown keys and lines without `=` are ignored, as npm does.
    pub fn from_file(text: &str, variables: &BTreeMap<String, String>) -> Self {
        let mut layer = Self::default();
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                break;
            }
            if line.starts_with(['#', ';']) {
                continue;
            }
            if let Some((key, value)) = line.split_once('=') {
                let key = expand(key.trim(), variables);
                layer.push(
                    key.trim_end_matches("[]"),
                    expand(&unquote(value.trim()), variables),
                );
            }
        }
        layer
    }

    fn push(&mut self, key: &str, value: String) {
        self.0.entry(key.to_owned()).or_default().push(value);
    }

    /// The last value of a key: in a file, a later line wins.
    pub fn last(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.last().map(String::as_str)
    }
}

impl NpmConfig {
    /// Puts layers in order, the strongest first.
    pub fn new(layers: Vec<Layer>) -> Self {
        Self(layers)
    }

    /// The strongest value of `key`; npm's spellings of "none" are none.
    pub fn value(&self, key: &str) -> Option<&str> {
        let value = self.0.iter().find_map(|layer| layer.last(key))?;
        (!matches!(value, "" | "null" | "false" | "undefined")).then_some(value)
    }

    /// Every value of a key that may be given more than once, of the strongest layer that has it.
    pub fn values(&self, key: &str) -> &[String] {
        let found = self.0.iter().find_map(|layer| layer.0.get(key));
        found.map_or(&[], Vec::as_slice)
    }

    /// The registry of a package: its scope's, else the general one.
    pub fn registry(&self, scope: Option<&str>) -> &str {
        scope
            .and_then(|scope| self.value(&format!("{scope}:registry")))
            .or_else(|| self.value("registry"))
            .unwrap_or(DEFAULT_REGISTRY)
    }

    /// The credential for an address: that of the longest configured path that holds it.
    pub fn authorization(&self, url: &Url) -> Option<Authorization> {
        let path = url.path().split('?').next().unwrap_or_default();
        let mut key = format!("//{}{path}", url.authority());
        while key.len() > 2 {
            if let Some(found) = self.authorization_at(&key) {
                return Some(found);
            }
            match key.strip_suffix('/') {
                Some(without) => key.truncate(without.len()),
                None => key.truncate(key.rfind('/').map_or(0, |at| at + 1)),
            }
        }
        None
    }

    fn authorization_at(&self, key: &str) -> Option<Authorization> {
        let value = |name: &str| self.value(&format!("{key}:{name}"));
        let text = if let Some(token) = value("_authToken") {
            format!("Bearer {token}")
        } else if let Some(pair) = value("_auth") {
            format!("Basic {pair}")
        } else {
            let password = Zeroizing::new(STANDARD.decode(value("_password")?).ok()?);
            let mut pair = Zeroizing::new(format!("{}:", value("username")?).into_bytes());
            pair.extend_from_slice(&password);
            format!("Basic {}", STANDARD.encode(&*pair))
        };
        Some(Authorization(Zeroizing::new(text)))
    }
}

/// `npm_config_HTTPS_PROXY` is `https-proxy`; a nerf-darted or scope key stays as it is.
fn variable_key(key: &str) -> String {
    if key.starts_with("//") || key.starts_with('@') {
        return key.to_owned();
    }
    let mut characters = key.chars();
    let first: String = characters.next().into_iter().collect();
    let rest = characters.as_str().replace('_', "-");
    format!("{first}{rest}").to_ascii_lowercase()
}

/// `${NAME}` is the variable, and stays as written when there is none; `${NAME?}` is then empty.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let written = &rest[start..=start + length];
        let name = &written[2..written.len() - 1];
        out.push_str(&rest[..start]);
        match (
            variables.get(name.trim_end_matches('?')),
            name.ends_with('?'),
        ) {
            (Some(value), _) => out.push_str(value),
            (None, true) => {}
            (None, false) => out.push_str(written),
        }
        rest = &rest[start + length + 1..];
    }
    out + rest
}

/// A value as npm's INI reader sees it: quoted as JSON, or cut at an unescaped `;` or `#`.
fn unquote(value: &str) -> String {
    if let [b'"', .., b'"'] = value.as_bytes() {
        return serde_json::from_str(value).unwrap_or_else(|_| value.to_owned());
    }
    if let [b'\'', middle @ .., b'\''] = value.as_bytes() {
        return String::from_utf8_lossy(middle).into_owned();
    }
    let mut out = String::new();
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match c {
            ';' | '#' => break,
            '\\' => match characters.next() {
                Some(escaped @ (';' | '#' | '\\')) => out.push(escaped),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            _ => out.push(c),
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect()
    }

    fn file(text: &str) -> NpmConfig {
        NpmConfig::new(vec![Layer::from_file(
            text,
            &variables(&[("TOKEN", "t0k")]),
        )])
    }

    fn header(config: &NpmConfig, url: &str) -> Option<String> {
        let found = config.authorization(&Url::parse(url).unwrap());
        found.map(|authorization| authorization.header().to_owned())
    }

    #[test]
    fn variables_win_over_files_and_scopes_over_the_registry() {
        let vars = variables(&[
            ("NPM_CONFIG_REGISTRY", "https://v/"),
            ("npm_config_registry_x", "-"),
        ]);
        let config = NpmConfig::new(vec![
            Layer::from_variables(&vars),
            Layer::from_file(
                "registry=https://u/\n@playwright:registry = https://s/\n",
                &vars,
            ),
        ]);
        assert_eq!(config.registry(None), "https://v/");
        assert_eq!(config.registry(Some("@playwright")), "https://s/");
        assert_eq!(config.registry(Some("@other")), "https://v/");
        assert_eq!(NpmConfig::default().registry(None), DEFAULT_REGISTRY);
    }

    #[test]
    fn files_are_read_as_npm_reads_them() {
        let config = file(
            "; comment\n# comment\na=1 ; tail\nb=\"x;y\"\nc = 'z'\nd=x\\;y\ne=${TOKEN}-${NONE}-${NONE?}\n\
             ca[]=one\nca[]=two\nlater=1\nlater=2\nnone=null\n[section]\nf=1\n",
        );
        let values = ["a", "b", "c", "d", "e", "later", "none", "f"].map(|key| config.value(key));
        assert_eq!(
            values,
            [
                Some("1"),
                Some("x;y"),
                Some("z"),
                Some("x;y"),
                Some("t0k-${NONE}-"),
                Some("2"),
                None,
                None
            ]
        );
        assert_eq!(config.values("ca"), ["one", "two"]);
    }

    #[test]
    fn a_credential_belongs_to_its_host_port_and_path() {
        let config = file(
            "//r.example/npm/:_authToken=${TOKEN}\n//b.example:8443/:_auth=cGFpcg==\n\
             //c.example/:username=me\n//c.example/:_password=cHc=\n_authToken=unscoped\n",
        );
        let bearer = Some("Bearer t0k".to_owned());
        assert_eq!(
            header(&config, "https://r.example/npm/@s/x/-/x.tgz"),
            bearer
        );
        assert_eq!(header(&config, "https://r.example/npm"), None);
        assert_eq!(header(&config, "https://r.example/other/x.tgz"), None);
        assert_eq!(header(&config, "https://r.example:444/npm/x.tgz"), None);
        assert_eq!(header(&config, "https://r.example.evil/npm/x.tgz"), None);
        assert_eq!(
            header(&config, "https://b.example:8443/x"),
            Some("Basic cGFpcg==".into())
        );
        assert_eq!(header(&config, "https://b.example/x"), None);
        assert_eq!(
            header(&config, "https://c.example/x"),
            Some("Basic bWU6cHc=".into())
        );
    }

    #[test]
    fn a_credential_is_never_shown() {
        let config = file("//r.example/:_authToken=hunter2\n");
        let found = config.authorization(&Url::parse("https://r.example/x").unwrap());
        assert_eq!(format!("{found:?}"), "Some(Authorization(withheld))");
    }

    proptest::proptest! {
        #[test]
        fn any_file_and_any_variable_is_read(
            text in "(?s).{0,200}",
            name in "(?i:npm_config_).{0,20}",
            value in "[${}?\\\\\"';#a ]{0,20}",
        ) {
            let variables = BTreeMap::from([(name, value.clone())]);
            let file = Layer::from_file(&format!("{text}\nk={value}\n"), &variables);
            let config = NpmConfig::new(vec![Layer::from_variables(&variables), file]);
            config.registry(Some(&text));
            if let Ok(url) = Url::parse(&text) {
                config.authorization(&url);
            }
        }

        #[test]
        fn an_address_reads_back_as_it_prints(text in "(https?|ftp)://[a-z.:@/?#\\[\\]0-9é]{0,30}", to in ".{0,20}") {
            if let Ok(url) = Url::parse(&text) {
                proptest::prop_assert_eq!(Url::parse(&url.to_string()), Ok(url.clone()));
                let _ = url.join(&to);
            }
        }
    }
}
