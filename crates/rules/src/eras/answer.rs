//! An answer of the handshake era as the modern era writes it.

use super::calls::Call;
use super::request::served;
use crate::edit;
use crate::envelope::{self, Envelope, Why};
use crate::hop::Hop;
use crate::json::{self, Kind};
use serde_json::json;

/// The results whose age the modern era wants told. A connector does not say how long what it
/// answers holds, so it may be old at once, and it may differ from one user to the next.
const CACHED: [&str; 5] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];
const AGE: &[u8] = br#""ttlMs":0,"cacheScope":"private","#;
const COMPLETE: &[u8] = br#""resultType":"complete""#;
const ADDED: [&[u8]; 3] = [b"resultType", b"ttlMs", b"cacheScope"];

/// The errors that the modern era gave up, and what it says instead.
const RENUMBERED: [(&[u8], &[u8]); 2] = [(b"-32002", b"-32602"), (b"-32042", b"-32603")];

/// A slice of a line, and what takes its place.
type Part<'a> = (&'a [u8], Vec<u8>);

/// Why an answer cannot be handed on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// Its members cannot be read.
    #[error(transparent)]
    Members(#[from] Why),
    /// The result is no object.
    #[error("its result is no object")]
    Result,
}

/// The connector's answer to `call`, for the engine.
pub(super) fn modern(
    call: &Call,
    line: &[u8],
    message: &Envelope<'_>,
    hop: &Hop,
) -> Result<Vec<u8>, Unreadable> {
    let envelope::Shape::Answer { id } = message.shape else {
        return Err(Unreadable::Result);
    };
    let mut parts = vec![(id.as_bytes(), call.id.clone())];
    match (message.result, message.error) {
        (Some(result), _) if json::kind(result) == Kind::Object => {
            parts.push((result, complete(&call.method, result, hop)?));
        }
        (Some(_), _) => return Err(Unreadable::Result),
        (None, Some(error)) => parts.extend(renumbered(error)?),
        (None, None) => {}
    }
    Ok(edit::splice_all(line, parts))
}

fn complete(method: &str, result: &[u8], hop: &Hop) -> Result<Vec<u8>, Why> {
    let own = edit::retain_members(result, |name| !ADDED.contains(&name))?;
    let age = if CACHED.contains(&method) { AGE } else { b"" };
    let whole = identified(&own, hop)?;
    Ok(edit::prepend_members(&whole, &[age, COMPLETE].concat()))
}

/// A result that names who made it.
fn identified(result: &[u8], hop: &Hop) -> Result<Vec<u8>, Why> {
    let meta = envelope::member(result, "_meta")?.filter(|meta| json::kind(meta) == Kind::Object);
    if let Some(meta) = meta
        && envelope::member(meta, "io.modelcontextprotocol/serverInfo")?.is_some()
    {
        return Ok(result.to_vec());
    }
    let mut info = br#""io.modelcontextprotocol/serverInfo":"#.to_vec();
    info.extend(server_info(hop));
    edit::with_meta(result, &info)
}

fn server_info(hop: &Hop) -> Vec<u8> {
    match said(hop, "serverInfo") {
        Some(info) => info.to_vec(),
        None => json!({"name": "sema-connector", "version": hop.version()})
            .to_string()
            .into_bytes(),
    }
}

/// An object that the connector said of itself.
fn said<'a>(hop: &'a Hop, name: &'static str) -> Option<&'a [u8]> {
    let value = envelope::member(hop.said()?, name).ok()??;
    (json::kind(value) == Kind::Object).then_some(value)
}

/// The code of an error, where the modern era has another one.
fn renumbered(error: &[u8]) -> Result<Option<Part<'_>>, Why> {
    if json::kind(error) != Kind::Object {
        return Ok(None);
    }
    let code = envelope::member(error, "code")?;
    Ok(code.and_then(|code| {
        let (_, new) = RENUMBERED.iter().find(|(old, _)| *old == code)?;
        Some((code, new.to_vec()))
    }))
}

/// The answer to `server/discover`.
pub(super) fn discovered(id: &[u8], hop: &Hop) -> Result<Vec<u8>, Why> {
    let mut result = b"{".to_vec();
    result.extend_from_slice(AGE);
    result.extend_from_slice(COMPLETE);
    result.extend_from_slice(format!(r#","supportedVersions":{}"#, json!(served())).as_bytes());
    result.extend_from_slice(br#","capabilities":"#);
    result.extend_from_slice(&capabilities(hop)?);
    if let Some(text) = instructions(hop) {
        result.extend_from_slice(br#","instructions":"#);
        result.extend_from_slice(text);
    }
    result.push(b'}');
    let result = identified(&result, hop)?;
    let line: [&[u8]; 5] = [
        br#"{"jsonrpc":"2.0","id":"#,
        id,
        br#","result":"#,
        &result,
        b"}",
    ];
    Ok(line.concat())
}

fn instructions(hop: &Hop) -> Option<&[u8]> {
    let text = envelope::member(hop.said()?, "instructions").ok()??;
    (json::kind(text) == Kind::String).then_some(text)
}

/// What the connector can do, with the status resource, and without what only the handshake era
/// has.
fn capabilities(hop: &Hop) -> Result<Vec<u8>, Why> {
    let Some(said) = said(hop, "capabilities") else {
        return Ok(br#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#.to_vec());
    };
    let own = edit::retain_members(said, |name| name != b"tasks")?;
    Ok(match envelope::member(&own, "resources")? {
        Some(_) => own.into_owned(),
        None => edit::prepend_members(&own, br#""resources":{"subscribe":true}"#),
    })
}

/// Whether the connector can do what stands at `group.name` of its capabilities.
pub(super) fn is_able(hop: &Hop, group: &'static str, name: &'static str) -> bool {
    said(hop, "capabilities")
        .and_then(|all| envelope::member(all, group).ok().flatten())
        .filter(|group| json::kind(group) == Kind::Object)
        .and_then(|group| envelope::member(group, name).ok().flatten())
        == Some(b"true")
}

/// Whether the connector has a capability at all.
pub(super) fn has(hop: &Hop, group: &'static str) -> bool {
    said(hop, "capabilities").is_some_and(|all| envelope::member(all, group) != Ok(None))
}
