//! One line of the trace: a span by the names of OpenTelemetry's semantic conventions for MCP
//! (`semantic-conventions-genai` 0.1.0, `docs/gen-ai/mcp.md`), with our own names below `sema.`.
//!
//! What the other side chose (a method, a tool, an id) is cut to [`LONGEST`] bytes.

use super::ids::Ids;
use sema_rules::envelope;
use sema_rules::hop::{Ended, Outcome};
use sema_rules::wire::Code;
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;

/// The longest name that is written, in bytes.
const LONGEST: usize = 256;
/// The most of the arguments, and of a result, that is written, in bytes.
pub(super) const CONTENT: usize = 16 * 1024;

/// A request that ended, kept until it is written.
pub(super) struct Record {
    pub(super) ended: Ended,
    /// When it ended, in nanoseconds since the trace began.
    pub(super) now: u64,
    /// The code of the answer, where it is an error.
    pub(super) code: Option<String>,
    pub(super) more: More,
}

/// What is known of some requests only.
#[derive(Debug, Default, Clone)]
pub(in crate::launcher) struct More {
    pub(in crate::launcher) arguments: Option<String>,
    pub(in crate::launcher) result: Option<String>,
}

/// What all spans of a launch share.
pub(super) struct Launch<'l> {
    pub(super) connector: &'l str,
    pub(super) id: &'l str,
    pub(super) trace_id: &'l str,
    pub(super) version: Option<&'l str>,
    pub(super) began: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span<'s> {
    trace_id: &'s str,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<&'s str>,
    name: Cow<'s, str>,
    kind: &'static str,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    attributes: Attributes<'s>,
}

#[derive(Serialize)]
struct Attributes<'s> {
    #[serde(rename = "mcp.method.name")]
    method: &'s str,
    #[serde(rename = "mcp.protocol.version")]
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'s str>,
    #[serde(rename = "mcp.resource.uri")]
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'s str>,
    #[serde(rename = "jsonrpc.request.id")]
    id: String,
    #[serde(rename = "network.transport")]
    transport: &'static str,
    #[serde(rename = "gen_ai.operation.name")]
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    #[serde(rename = "gen_ai.tool.name")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'s str>,
    #[serde(rename = "gen_ai.tool.call.arguments")]
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'s str>,
    #[serde(rename = "gen_ai.tool.call.result")]
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'s str>,
    #[serde(rename = "rpc.response.status_code")]
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'s str>,
    #[serde(rename = "error.type")]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'s str>,
    #[serde(rename = "sema.error")]
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
    #[serde(rename = "sema.connector")]
    connector: &'s str,
    #[serde(rename = "sema.launch")]
    launch: &'s str,
    #[serde(rename = "sema.request.bytes")]
    request_bytes: usize,
    #[serde(rename = "sema.answer.bytes")]
    answer_bytes: usize,
}

/// Appends the line of a request.
pub(super) fn write(record: &Record, launch: &Launch<'_>, ids: &mut Ids, out: &mut Vec<u8>) {
    let ended = &record.ended;
    let method = cut(&ended.method, LONGEST);
    let tool = ended.tool.as_deref().map(|tool| cut(tool, LONGEST));
    let parent = ended.traceparent.as_ref();
    let at = |offset| (launch.began + Duration::from_nanos(offset)).as_nanos();
    let own = match ended.outcome {
        Outcome::Refused(code) => Some(code),
        _ => None,
    };
    let code = own.map(|code| Cow::Owned(code.number().to_string()));
    let code = code.or_else(|| record.code.as_deref().map(Cow::Borrowed));
    let error = match ended.outcome {
        Outcome::Result => None,
        Outcome::ToolError => Some("tool_error"),
        Outcome::Error | Outcome::Refused(_) => Some(code.as_deref().unwrap_or("_OTHER")),
    };
    let span = Span {
        trace_id: parent.map_or(launch.trace_id, |parent| parent.trace_id()),
        span_id: ids.hex(8),
        parent_span_id: parent.map(|parent| parent.parent_id()),
        name: match tool {
            Some(tool) => Cow::Owned(format!("{method} {tool}")),
            None => Cow::Borrowed(method),
        },
        kind: "SERVER",
        start_time_unix_nano: at(ended.started).to_string(),
        end_time_unix_nano: at(record.now).to_string(),
        status: error.map(|_| "ERROR"),
        attributes: Attributes {
            method,
            version: launch.version,
            uri: ended.uri.as_deref(),
            id: id(&ended.id),
            transport: "pipe",
            operation: tool.map(|_| "execute_tool"),
            tool,
            arguments: record.more.arguments.as_deref(),
            result: record.more.result.as_deref(),
            code: code.as_deref(),
            error,
            refused: own.map(Code::name),
            connector: launch.connector,
            launch: launch.id,
            request_bytes: ended.request_bytes,
            answer_bytes: ended.answer_bytes,
        },
    };
    // A vector takes every byte.
    _ = serde_json::to_writer(&mut *out, &span);
    out.push(b'\n');
}

/// An id in words: a string's text, or the number as written.
fn id(written: &[u8]) -> String {
    let text = match written.first() {
        Some(b'"') => envelope::text_of(written),
        _ => String::from_utf8_lossy(written),
    };
    cut(&text, LONGEST).to_owned()
}

/// The beginning of a text, of at most `limit` bytes.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
