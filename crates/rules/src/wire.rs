//! The messages that we make up ourselves, and the one table of error codes.

use crate::name::ConnectorName;
use serde_json::{Value, json};

/// Why a request was answered by the launcher and not by the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// Parked: no login is stored yet.
    Unauthorized,
    /// The tool policy leaves the tool out.
    ForbiddenScope,
    /// A line over 4 MiB.
    TooLarge,
    /// The connector ended with the request open, or could not be started.
    UpstreamExit,
    /// Withheld, or a fault of ours.
    Internal,
    /// The pinned build is missing or differs.
    NotInstalled,
}

impl Code {
    /// The name in `data.code`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unauthorized => "connector.unauthorized",
            Self::ForbiddenScope => "connector.forbidden_scope",
            Self::TooLarge => "connector.too_large",
            Self::UpstreamExit => "connector.upstream_exit",
            Self::Internal => "connector.internal",
            Self::NotInstalled => "connector.not_installed",
        }
    }

    /// The number in `code`: from the range that the protocol leaves to implementations.
    pub fn number(self) -> i32 {
        match self {
            Self::Unauthorized => -32010,
            Self::ForbiddenScope => -32011,
            Self::TooLarge => -32012,
            Self::UpstreamExit => -32013,
            Self::Internal => -32014,
            Self::NotInstalled => -32015,
        }
    }
}

/// A line that carries one of our errors. `id` is the request's id as written, or none.
pub fn refusal(connector: &ConnectorName, id: Option<&[u8]>, code: Code, message: &str) -> Vec<u8> {
    let data = json!({"connector": connector.as_str(), "code": code.name()});
    error(id, code.number(), message, Some(data))
}

/// A line that carries a JSON-RPC error.
pub fn error(id: Option<&[u8]>, code: i32, message: &str, data: Option<Value>) -> Vec<u8> {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    answer(id.unwrap_or(b"null"), "error", &error)
}

/// A line that carries a result.
pub fn result(id: &[u8], result: &Value) -> Vec<u8> {
    answer(id, "result", result)
}

fn answer(id: &[u8], member: &str, value: &Value) -> Vec<u8> {
    let mut line = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    line.extend_from_slice(id);
    line.extend_from_slice(format!(",\"{member}\":{value}}}\n").as_bytes());
    line
}

/// A line that carries a notification without parameters.
pub fn notification(method: &str) -> Vec<u8> {
    format!("{}\n", json!({"jsonrpc": "2.0", "method": method})).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_handed_back_as_it_was_written() {
        let name = ConnectorName::parse("browser").unwrap();
        let line = refusal(
            &name,
            Some(b"\"a\\/b\""),
            Code::TooLarge,
            "a line is over 4 MiB",
        );
        insta::assert_snapshot!(String::from_utf8(line).unwrap(), @r#"{"jsonrpc":"2.0","id":"a\/b","error":{"code":-32012,"data":{"code":"connector.too_large","connector":"browser"},"message":"a line is over 4 MiB"}}"#);
    }
}
