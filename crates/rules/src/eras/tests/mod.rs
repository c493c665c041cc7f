//! Both eras, told as a conversation: what the engine and the connector say, and what each hears.
//! Every message that is made up here is held against the schema of its era.

mod questions;
mod requests;
mod streams;

use super::*;
use crate::hop::Ended;
use crate::name::ConnectorName;
use crate::wire::Code;
use serde_json::Value;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static MODERN: LazyLock<Value> =
    LazyLock::new(|| schema(include_str!("../../../tests/schema/2026-07-28.json")));
static HANDSHAKE: LazyLock<Value> =
    LazyLock::new(|| schema(include_str!("../../../tests/schema/2025-11-25.json")));

const SERVER: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{},"tasks":{}},"serverInfo":{"name":"S","version":"1"},"instructions":"Be kind."}"#;

fn schema(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Holds a message against one definition of a schema.
#[track_caller]
fn hold(schema: &Value, definition: &str, message: &Value) {
    let mut schema = schema.clone();
    schema["$ref"] = format!("#/$defs/{definition}").into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(message)
        .map(|fault| format!("{} at {}", fault, fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{definition}: {faults:?}\n{message}");
}

/// A session with what each side has heard and not yet been asked for.
struct Talk {
    eras: Eras,
    engine: Vec<String>,
    connector: Vec<String>,
    ended: Vec<Ended>,
}

fn parked() -> Absence {
    Absence {
        code: Code::Unauthorized,
        reason: "no login is stored".to_owned(),
    }
}

fn tokens() -> Option<String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    Some(format!("state-{}", COUNT.fetch_add(1, Ordering::Relaxed)))
}

impl Talk {
    fn parked() -> Self {
        Self::with(Ok(ToolPolicy::all()))
    }

    fn with(policy: Result<ToolPolicy, String>) -> Self {
        let name = ConnectorName::parse("browser").unwrap();
        let hop = Hop::new(name, "0.1.0", policy, parked());
        Self {
            eras: Eras::new(hop, tokens),
            engine: Vec::new(),
            connector: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn live() -> Self {
        let mut talk = Self::parked();
        talk.start();
        talk
    }

    /// A session whose handshake is over, made by a discovery with these capabilities.
    fn greeted(capabilities: &str, server: &str) -> Self {
        let mut talk = Self::live();
        talk.ask_with(r#""discover""#, "server/discover", "", capabilities);
        let hello = talk.heard_by_connector();
        assert!(hello.contains(r#""method":"initialize""#), "{hello}");
        talk.answer("sema-connector:1", server);
        talk.heard_by_engine();
        talk
    }

    fn start(&mut self) {
        let step = self.eras.connector_started();
        self.take(step, "", Side::Connector);
    }

    fn change(&mut self, change: impl FnOnce(&mut Eras) -> Step) {
        let step = change(&mut self.eras);
        self.take(step, "", Side::Engine);
    }

    /// The engine says a line.
    fn say(&mut self, line: &str) {
        let message = envelope::read(line.as_bytes());
        let step = self.eras.from_engine(line.as_bytes(), &message, 7);
        self.take(step, line, Side::Connector);
    }

    /// The engine asks in the words of the modern era.
    fn ask(&mut self, id: &str, method: &str, params: &str) {
        self.ask_with(id, method, params, "{}");
    }

    fn ask_with(&mut self, id: &str, method: &str, params: &str, capabilities: &str) {
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"C","version":"2"}},"io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
        );
        let params = if params.is_empty() {
            meta
        } else {
            format!("{params},{meta}")
        };
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#
        ));
    }

    /// The connector says a line.
    fn tell(&mut self, line: &str) {
        let message = envelope::read(line.as_bytes());
        let step = self.eras.from_connector(line.as_bytes(), &message, None);
        self.take(step, line, Side::Engine);
    }

    /// The connector answers a request.
    fn answer(&mut self, id: &str, result: &str) {
        self.tell(&format!(
            r#"{{"result":{result},"jsonrpc":"2.0","id":"{id}"}}"#
        ));
    }

    fn take(&mut self, step: Step, line: &str, onward: Side) {
        let forwarded = match step.forward {
            Forward::AsIs => Some(line.to_owned()),
            Forward::Replaced(line) => Some(text(line)),
            Forward::Nothing => None,
        };
        match onward {
            Side::Engine => self.engine.extend(forwarded),
            Side::Connector => self.connector.extend(forwarded),
        }
        self.engine.extend(step.to_engine.into_iter().map(text));
        self.connector
            .extend(step.to_connector.into_iter().map(text));
        self.ended.extend(step.ended);
        self.ended.extend(step.answered);
    }

    /// What the engine heard since it was last asked for.
    #[track_caller]
    fn heard_by_engine(&mut self) -> String {
        let heard = std::mem::take(&mut self.engine);
        heard.iter().for_each(|line| self.hold_modern(line));
        heard.join("\n")
    }

    #[track_caller]
    fn heard_by_connector(&mut self) -> String {
        let heard = std::mem::take(&mut self.connector);
        heard.iter().for_each(|line| hold_handshake(line));
        heard.join("\n")
    }

    /// A line for a modern engine is what its era allows.
    #[track_caller]
    fn hold_modern(&self, line: &str) {
        let message: Value = serde_json::from_str(line).expect("not JSON");
        let definition = match (&message["method"], &message["error"]["code"]) {
            (Value::String(method), _) => match method.as_str() {
                "notifications/subscriptions/acknowledged" => {
                    "SubscriptionsAcknowledgedNotification"
                }
                "notifications/tools/list_changed" => "ToolListChangedNotification",
                "notifications/resources/updated" => "ResourceUpdatedNotification",
                "notifications/progress" => "ProgressNotification",
                "notifications/message" => "LoggingMessageNotification",
                other => panic!("{other} is not for the engine"),
            },
            (_, Value::Number(code)) => match code.as_i64() {
                Some(-32022) => "UnsupportedProtocolVersionError",
                Some(-32021) => "MissingRequiredClientCapabilityError",
                _ => "JSONRPCErrorResponse",
            },
            _ => "JSONRPCResultResponse",
        };
        hold(&MODERN, definition, &message);
        let result = &message["result"];
        let definition = match result {
            Value::Null => return,
            result if result["resultType"] == "input_required" => "InputRequiredResult",
            result if !result["supportedVersions"].is_null() => "DiscoverResult",
            result if !result["tools"].is_null() => "ListToolsResult",
            result if !result["contents"].is_null() => "ReadResourceResult",
            result if !result["resources"].is_null() => "ListResourcesResult",
            result if !result["content"].is_null() => "CallToolResult",
            _ => "Result",
        };
        hold(&MODERN, definition, result);
    }
}

enum Side {
    Engine,
    Connector,
}

/// A line for the connector is what the handshake era allows.
#[track_caller]
fn hold_handshake(line: &str) {
    let message: Value = serde_json::from_str(line).expect("not JSON");
    let definition = match message["method"].as_str() {
        Some("initialize") => "InitializeRequest",
        Some("notifications/initialized") => "InitializedNotification",
        Some("notifications/cancelled") => "CancelledNotification",
        Some("tools/call") => "CallToolRequest",
        Some("tools/list") => "ListToolsRequest",
        Some("logging/setLevel") => "SetLevelRequest",
        Some("resources/subscribe") => "SubscribeRequest",
        Some("resources/unsubscribe") => "UnsubscribeRequest",
        Some("resources/read") => "ReadResourceRequest",
        Some(_) => "JSONRPCRequest",
        None if message["error"].is_null() => "JSONRPCResultResponse",
        None => "JSONRPCErrorResponse",
    };
    hold(&HANDSHAKE, definition, &message);
}

fn text(line: Vec<u8>) -> String {
    String::from_utf8(line).unwrap().trim_end().to_owned()
}
