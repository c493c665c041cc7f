//! What must hold of the small files for any bytes: a text that is taken is what an independent
//! reader takes it for, and what is written of it is read as the same.

use sema_rules::auth::AuthRequest;
use sema_rules::catalog::{Catalog, Entry};
use sema_rules::manifest::Manifest;
use sema_rules::name::ConnectorName;
use sema_rules::policy::{NOT_ENFORCED, ToolPolicy, check_form};
use sema_rules::state::check_storage_state;
use serde_json::{Map, Value};

/// The object, as serde_json reads it; none where it is JSON beyond what serde_json takes: deeper,
/// a number out of range, a lone surrogate.
fn object(text: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(text) {
        Ok(object) => Some(object),
        Err(error) => {
            let text = error.to_string();
            let beyond = [
                "recursion limit",
                "number out of range",
                "surrogate",
                "hex escape",
            ];
            assert!(
                beyond.iter().any(|why| text.contains(why)),
                "taken, but {text}"
            );
            None
        }
    }
}

/// A login state.
pub(crate) fn state(input: &[u8]) {
    if check_storage_state(input).is_ok()
        && let Some(state) = object(input)
    {
        assert_eq!(state.len(), 2);
        assert!(state["cookies"].is_array() && state["origins"].is_array());
    }
}

/// The line that `auth` reads.
pub(crate) fn auth(input: &[u8]) {
    let Ok(request) = AuthRequest::parse(input) else {
        return;
    };
    let line = input.strip_suffix(b"\n").unwrap_or(input);
    assert!(!line.contains(&b'\n'));
    // A lone surrogate is no text: serde_json refuses it, we read U+FFFD, a path that is not there.
    let Ok(read) = serde_json::from_slice::<Map<String, Value>>(line) else {
        let path = request.storage_state_file.unwrap_or_default();
        assert!(path.contains('\u{fffd}'));
        return;
    };
    let text = |key: &str| read.get(key).map(|value| value.as_str().expect("a string"));
    assert_eq!(
        request.storage_state_file.as_deref(),
        text("storageStateFile")
    );
    assert_eq!(request.export, text("export") == Some("on"));
    assert!(
        read.keys()
            .all(|key| key == "storageStateFile" || key == "export")
    );
}

/// `connector.json`.
pub(crate) fn manifest(input: &[u8]) {
    if let Ok(manifest) = Manifest::parse(input) {
        assert!(manifest.command[0].starts_with('/'));
        assert!(object(input).is_some());
        assert_eq!(Manifest::parse(manifest.to_text().as_bytes()), Ok(manifest));
    }
}

/// `catalog.json`.
pub(crate) fn catalog(input: &[u8]) {
    let Ok(mut catalog) = Catalog::parse(input) else {
        return;
    };
    let before = catalog.to_text();
    assert_eq!(
        Catalog::parse(before.as_bytes()).map(|read| read.to_text()),
        Ok(before.clone())
    );
    if let (Ok(read), Ok(written)) = (
        serde_json::from_slice::<Value>(input),
        serde_json::from_str::<Value>(&before),
    ) {
        let connectors = |value: &Value| value.get("connectors").cloned();
        let empty = || Some(Value::Object(Map::new()));
        assert_eq!(connectors(&read).or_else(empty), connectors(&written));
    }
    let name = ConnectorName::parse("zzz").expect("a name");
    if catalog.find(&name).is_none() {
        let others = catalog.entries().len();
        catalog.put(&name, &Entry::new("/b/sema-connector", &name));
        assert_eq!(catalog.entries().len(), others + 1);
        catalog.remove(&name);
        assert_eq!(catalog.to_text(), before);
    }
}

/// `tools.json` and the files that are only held to their form.
pub(crate) fn policy(input: &[u8]) {
    if let Ok(policy) = ToolPolicy::parse(input) {
        let read = object(input).expect("no depth");
        assert_eq!(read.len(), 1);
        let allow = read["allow"].as_array().expect("a list");
        assert!(
            allow
                .iter()
                .all(|tool| policy.allows(tool.as_str().expect("a name")))
        );
        assert!(!policy.allows_all() && !policy.allows("\0 no such tool"));
    }
    for file in NOT_ENFORCED {
        if check_form(file, input).is_ok() {
            assert!(object(input).is_some());
        }
    }
}
