//! The lock of a pinned browser: the carried one with that browser in the place of its own. Fonts
//! that come in the archive of the carried browser still come from there. Pure but for the date.

use super::http::date;
use super::locks::KEY;
use sema_rules::digest::Sha256;
use sema_rules::lock::Platform;
use serde_json::{Value, json};
use std::time::SystemTime;

/// Where a browser is unpacked to, below `bin/`.
pub(super) const FOLDER: &str = "chrome";

/// The archive that takes the place.
pub(super) struct Taken<'a> {
    pub(super) file: &'static str,
    pub(super) inside: &'static str,
    pub(super) program: &'static str,
    pub(super) platform: &'a Platform,
    pub(super) url: &'a str,
    pub(super) bytes: u64,
    pub(super) sha256: Sha256,
    pub(super) unpacked: u64,
    pub(super) entries: u32,
}

/// The new lock; none where the carried text is no lock.
pub(super) fn derive(carried: &[u8], taken: &Taken<'_>) -> Option<Value> {
    let mut lock: Value = serde_json::from_slice(carried).ok()?;
    let build = lock.get_mut(KEY)?;
    let archives = build.get_mut("archives")?.as_array_mut()?;
    archives.iter_mut().for_each(without_browser);
    archives.retain(takes_something);
    archives.push(json!({
        "file": taken.file,
        "platform": taken.platform.to_string(),
        "url": taken.url,
        "bytes": taken.bytes,
        "sha256": taken.sha256,
        "format": "zip",
        "unpacked": {"bytes": taken.unpacked, "entries": taken.entries},
        "take": {taken.inside: FOLDER},
    }));
    build["browser"] = json!(format!("{FOLDER}/{}", taken.program));
    build["pinned"] = json!(date(SystemTime::now()).get(..10));
    Some(json!({KEY: build}))
}

/// Drops from an archive of the carried lock what belongs to its browser.
fn without_browser(archive: &mut Value) {
    let ours = |to: &str| to == FOLDER || to.starts_with("chrome/");
    let keep = |take: &mut Value| {
        if let Some(take) = take.as_object_mut() {
            take.retain(|_, to| !to.as_str().is_some_and(ours));
        }
    };
    keep(&mut archive["take"]);
    if let Some(nested) = archive["nested"].as_array_mut() {
        for inner in nested.iter_mut().filter(|inner| inner["take"].is_object()) {
            keep(&mut inner["take"]);
        }
        nested.retain(|inner| match &inner["take"] {
            Value::Object(take) => !take.is_empty(),
            _ => !inner["to"].as_str().is_some_and(ours),
        });
    }
    if let Some(archive) = archive.as_object_mut() {
        archive.retain(|_, value| !value.is_null());
    }
}

fn takes_something(archive: &Value) -> bool {
    let outer = archive["take"]
        .as_object()
        .is_some_and(|take| !take.is_empty());
    outer
        || archive["nested"]
            .as_array()
            .is_some_and(|nested| !nested.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::locks;
    use super::*;

    #[test]
    fn the_carried_browser_goes_and_its_fonts_stay() {
        let mut lock: Value = serde_json::from_slice(locks::CARRIED).unwrap();
        let archives = lock[KEY]["archives"].as_array_mut().unwrap();
        archives.iter_mut().for_each(without_browser);
        archives.retain(takes_something);
        let chromium = archives
            .iter()
            .find(|archive| archive["file"] == "chromium-153.0.0.tgz")
            .unwrap();
        assert_eq!(chromium["take"], json!({}));
        assert_eq!(chromium["nested"].as_array().unwrap().len(), 1);
        assert_eq!(chromium["nested"][0]["from"], "package/bin/fonts.tar.br");
    }
}
