//! A request of the modern era: what it declares in `params._meta`, whether it can be served, and
//! the same request as the handshake era writes it.

use crate::edit;
use crate::envelope::{self, Id, IdKey, Why};
use crate::hop::REVISIONS;
use crate::json::{self, Kind};
use crate::wire;
use memchr::memmem::Finder;
use serde_json::json;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// The modern revision that is served.
pub(super) const VERSION: &str = "2026-07-28";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
const LOG_KEY: &str = "io.modelcontextprotocol/logLevel";

/// What the modern era took out of the protocol.
const REMOVED: [&str; 4] = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// The members of `params` that the handshake era does not know, or means otherwise.
const MODERN_MEMBERS: [&[u8]; 3] = [b"inputResponses", b"requestState", b"task"];

const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

static PREFIX: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("io.modelcontextprotocol"));
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u00"));

/// How severe a log message is: the later in the list, the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(usize);

impl Level {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let text = envelope::text_of(value);
        LEVELS.iter().position(|level| *level == text).map(Self)
    }

    pub(super) fn name(self) -> &'static str {
        LEVELS[self.0]
    }
}

/// Why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Invalid(&'static str),
    Malformed(Why),
    Version(String),
    Removed,
}

impl Refusal {
    pub(super) fn line(&self, id: Id<'_>) -> Vec<u8> {
        let id = Some(id.as_bytes());
        match self {
            Self::Invalid(why) => wire::error(id, -32602, &format!("invalid params: {why}"), None),
            Self::Malformed(why) => wire::error(id, why.code(), &why.to_string(), None),
            Self::Version(requested) => {
                let data = json!({"supported": served(), "requested": requested});
                wire::error(id, -32022, "unsupported protocol version", Some(data))
            }
            Self::Removed => {
                let why = format!("method not found: revision {VERSION} does not have it");
                wire::error(id, -32601, &why, None)
            }
        }
    }
}

impl From<Why> for Refusal {
    fn from(why: Why) -> Self {
        Self::Malformed(why)
    }
}

/// Every revision that is served, the newest first.
pub(super) fn served() -> Vec<&'static str> {
    let mut served = vec![VERSION];
    served.extend(REVISIONS.iter().rev());
    served
}

/// Whether a request is one of the modern era: by its method, or by what it declares.
pub(super) fn is_modern(method: &str, params: Option<&[u8]>) -> bool {
    match method {
        "initialize" => return false,
        "server/discover" | "subscriptions/listen" => return true,
        _ => {}
    }
    let Some(params) = params.filter(|params| json::kind(params) == Kind::Object) else {
        return false;
    };
    if PREFIX.find(params).is_none() && ESCAPE.find(params).is_none() {
        return false;
    }
    let declares = |meta: &[u8]| {
        [VERSION_KEY, CAPABILITIES_KEY]
            .iter()
            .any(|key| envelope::member(meta, key) != Ok(None))
    };
    match envelope::member(params, "_meta") {
        Ok(Some(meta)) => json::kind(meta) == Kind::Object && declares(meta),
        Ok(None) => false,
        Err(_) => PREFIX.find(params).is_some(),
    }
}

/// What a request declares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta<'a> {
    pub(super) capabilities: &'a [u8],
    pub(super) client: Option<&'a [u8]>,
    pub(super) log: Option<Level>,
    pub(super) progress: Option<Id<'a>>,
    whole: &'a [u8],
}

impl<'a> Meta<'a> {
    /// Reads what a request declares, and refuses one that cannot be served.
    pub(super) fn read(method: &str, params: Option<&'a [u8]>) -> Result<Self, Refusal> {
        let meta = match params {
            Some(params) if json::kind(params) == Kind::Object => {
                envelope::member(params, "_meta")?
            }
            _ => None,
        };
        let meta = meta.filter(|meta| json::kind(meta) == Kind::Object);
        let meta = meta.ok_or(Refusal::Invalid("_meta is missing or no object"))?;
        let version = envelope::member(meta, VERSION_KEY)?
            .filter(|version| json::kind(version) == Kind::String)
            .ok_or(Refusal::Invalid(
                "_meta has no io.modelcontextprotocol/protocolVersion",
            ))?;
        let version = envelope::text_of(version);
        if version != VERSION {
            return Err(Refusal::Version(version.into_owned()));
        }
        let capabilities = object(meta, CAPABILITIES_KEY)?.ok_or(Refusal::Invalid(
            "_meta has no io.modelcontextprotocol/clientCapabilities",
        ))?;
        if REMOVED.contains(&method) || method.starts_with("tasks/") {
            return Err(Refusal::Removed);
        }
        Ok(Self {
            capabilities,
            client: client(meta)?,
            log: log(meta)?,
            progress: envelope::member(meta, "progressToken")?.and_then(Id::read),
            whole: meta,
        })
    }

    /// The token of progress notifications, as written.
    pub(super) fn token(&self) -> Option<Vec<u8>> {
        self.progress.map(|token| token.as_bytes().to_vec())
    }

    /// `line` as the handshake era writes it, under an id of ours.
    pub(super) fn handshake_line(
        &self,
        line: &'a [u8],
        id: Id<'a>,
        params: &'a [u8],
        number: u64,
    ) -> Result<Vec<u8>, Why> {
        let own = |name: &[u8]| {
            let reserved = [VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, LOG_KEY];
            !reserved.iter().any(|key| key.as_bytes() == name)
        };
        let meta = edit::retain_members(self.whole, own)?;
        let changed = edit::splice(params, self.whole, &meta);
        let changed = edit::retain_members(&changed, |name| !MODERN_MEMBERS.contains(&name))?;
        let parts = vec![
            (id.as_bytes(), own_id(number).into_bytes()),
            (params, changed.into_owned()),
        ];
        Ok(edit::splice_all(line, parts))
    }
}

/// The id, as written, under which the connector gets our request of this number.
pub(super) fn own_id(number: u64) -> String {
    format!("\"sema-connector:{number}\"")
}

/// Whether the engine names its request as we name ours: the answers could not be told apart.
pub(super) fn is_own(id: Id<'_>) -> bool {
    let spelled = id.as_bytes();
    (spelled.starts_with(b"\"sema-connector:") || memchr::memchr(b'\\', spelled).is_some())
        && matches!(id.key(), IdKey::Text(text) if text.starts_with(b"sema-connector:"))
}

/// The number of an id of ours.
pub(super) fn own_number(id: &[u8]) -> Option<u64> {
    let text = id.strip_prefix(b"\"sema-connector:")?.strip_suffix(b"\"")?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What makes two requests the same but for what a retry changes.
pub(super) fn digest(method: &str, params: &[u8]) -> Result<u64, Why> {
    let salient = edit::retain_members(params, |name| {
        name != b"_meta" && !MODERN_MEMBERS.contains(&name)
    })?;
    let mut hasher = DefaultHasher::new();
    (method, salient).hash(&mut hasher);
    Ok(hasher.finish())
}

fn object<'a>(meta: &'a [u8], key: &'static str) -> Result<Option<&'a [u8]>, Refusal> {
    match envelope::member(meta, key)? {
        Some(value) if json::kind(value) != Kind::Object => {
            Err(Refusal::Invalid("a field of _meta is no object"))
        }
        value => Ok(value),
    }
}

fn client(meta: &[u8]) -> Result<Option<&[u8]>, Refusal> {
    let Some(client) = object(meta, CLIENT_KEY)? else {
        return Ok(None);
    };
    for name in ["name", "version"] {
        let text = envelope::member(client, name)?;
        if text.is_none_or(|text| json::kind(text) != Kind::String) {
            let why = "io.modelcontextprotocol/clientInfo has no name or no version";
            return Err(Refusal::Invalid(why));
        }
    }
    Ok(Some(client))
}

fn log(meta: &[u8]) -> Result<Option<Level>, Refusal> {
    let Some(value) = envelope::member(meta, LOG_KEY)? else {
        return Ok(None);
    };
    let why = "io.modelcontextprotocol/logLevel is not a log level";
    Level::read(value).map(Some).ok_or(Refusal::Invalid(why))
}
