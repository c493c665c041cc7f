//! The export relay's decisions: what becomes of each line between the launcher and the upstream
//! while the login state can be saved.
//!
//! Guarantees: no call of a withheld tool, in whatever spelling, reaches the upstream; a call of
//! the save tool reaches it only with a file of our choosing; every line that concerns neither is
//! left as it is, byte for byte. A line that two readers could read differently is not forwarded.

use crate::call::CallScan;
use crate::edit;
use crate::envelope::{self, Envelope, Id, IdKey, Shape, Why};
use crate::json::{self, Kind};
use crate::wire;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Which of the upstream's tools the relay acts on.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'t> {
    /// Never offered, and answered as if the upstream did not have them.
    pub withheld: &'t [&'t str],
    /// Writes the login state to the file that its `filename` argument names.
    pub save: &'t str,
}

/// What becomes of a line from the engine.
#[derive(Debug, PartialEq, Eq)]
pub enum Down {
    /// Forwarded as it is.
    Pass,
    /// Forwarded in this form.
    Send(Vec<u8>),
    /// Not forwarded; the engine gets this line.
    Answer(Vec<u8>),
    /// Not forwarded, and nobody is told: it asks for no answer.
    Drop,
}

/// What becomes of a line from the upstream.
#[derive(Debug, PartialEq, Eq)]
pub enum Up {
    /// Forwarded as it is.
    Pass,
    /// Forwarded in this form.
    Send(Vec<u8>),
    /// It says that the login state lies in this file: to be stored, then forwarded as it is or,
    /// where that failed, as `not_stored` says.
    Saved(String),
    /// It says that the save failed: forwarded as it is, and the file, if there is one, removed.
    NotSaved(String),
}

/// The state of one session: which saves are under way.
#[derive(Debug)]
pub struct Relay<'t> {
    tools: Tools<'t>,
    /// The folder in which a save's file lies, with its last slash.
    folder: String,
    /// The name of each open save's file.
    saves: HashMap<IdKey, String>,
}

impl<'t> Relay<'t> {
    /// A relay whose saves are written into `folder`.
    pub fn new(tools: Tools<'t>, folder: &str) -> Self {
        let folder = format!("{}/", folder.trim_end_matches('/'));
        Self {
            tools,
            folder,
            saves: HashMap::new(),
        }
    }

    /// Decides a line from the engine. `fresh` makes the name of a new file, or says why not.
    pub fn from_engine(
        &mut self,
        line: &[u8],
        fresh: impl FnOnce() -> Result<String, String>,
    ) -> Down {
        let message = match envelope::read(line) {
            Ok(message) => message,
            Err(malformed) => return self.malformed(line, &malformed),
        };
        let (id, method) = match &message.shape {
            Shape::Request { id, method } => (Some(*id), method.as_ref()),
            Shape::Notification { method } => (None, method.as_ref()),
            Shape::Answer { .. } => return Down::Pass,
        };
        if method != "tools/call" {
            return Down::Pass;
        }
        match tool_of(&message) {
            Err(why) => refuse(id, why),
            Ok(Some(name)) if name == self.tools.save => self.save(line, &message, id, fresh),
            Ok(Some(name)) if self.withholds(&name) => not_found(id, &name),
            Ok(_) => Down::Pass,
        }
    }

    /// What becomes of a line from the engine that was forwarded unread, part by part, once all of
    /// it was seen: where this is not `Pass`, the line's end must be spoilt.
    pub fn from_engine_unread(&self, scan: &CallScan) -> Down {
        if scan.ambiguous() {
            return refuse(scan.id(), Why::Twice("name"));
        }
        match scan.tool() {
            Some(name) if name == self.tools.save => answer(scan.id(), |id| {
                failure(
                    id,
                    "The login state was not stored: the call cannot be read",
                )
            }),
            Some(name) if self.withholds(&name) => not_found(scan.id(), &name),
            _ => Down::Pass,
        }
    }

    /// Decides a line from the upstream.
    pub fn from_upstream(&mut self, line: &[u8]) -> Up {
        let Ok(message) = envelope::read(line) else {
            return Up::Pass;
        };
        let Shape::Answer { id } = message.shape else {
            return Up::Pass;
        };
        if let Some(file) = self.saves.remove(&id.key()) {
            return if succeeded(&message) {
                Up::Saved(file)
            } else {
                Up::NotSaved(file)
            };
        }
        match edit::cut_tools(line, &message, |name| !self.withholds(name)) {
            Ok(None) => Up::Pass,
            Ok(Some(line)) => Up::Send(line),
            // A list in which a withheld tool could stand unseen.
            Err(why) => Up::Send(wire::error(
                Some(id.as_bytes()),
                -32603,
                &why.to_string(),
                None,
            )),
        }
    }

    /// The files of the saves that are still open.
    pub fn open_files(&self) -> impl Iterator<Item = &str> {
        self.saves.values().map(String::as_str)
    }

    fn withholds(&self, name: &str) -> bool {
        self.tools.withheld.contains(&name)
    }

    /// A line that is no message. What cannot be JSON to any reader is no call and passes; JSON
    /// that is no message is refused as the launcher refuses it, for the upstream might read one.
    fn malformed(&self, line: &[u8], malformed: &envelope::Malformed) -> Down {
        if !matches!(malformed.why, Why::NotJson(_)) {
            let message = malformed.why.to_string();
            let id = malformed.id.as_deref();
            return Down::Answer(wire::error(id, malformed.why.code(), &message, None));
        }
        if std::str::from_utf8(line).is_ok() {
            return Down::Pass;
        }
        let mut scan = CallScan::default();
        scan.feed(line);
        self.from_engine_unread(&scan)
    }

    fn save(
        &mut self,
        line: &[u8],
        message: &Envelope<'_>,
        id: Option<Id<'_>>,
        fresh: impl FnOnce() -> Result<String, String>,
    ) -> Down {
        let Some(id) = id else { return Down::Drop };
        if self.saves.contains_key(&id.key()) {
            let why = "invalid request: \"id\" is that of an open request";
            return Down::Answer(wire::error(Some(id.as_bytes()), -32600, why, None));
        }
        let params = message.params.unwrap_or(b"{}");
        let old = match envelope::member(params, "arguments") {
            Ok(old) => old,
            Err(why) => return refuse(Some(id), why),
        };
        let file = match fresh() {
            Ok(file) => file,
            Err(reason) => return Down::Answer(failure(id.as_bytes(), &not_stored_text(&reason))),
        };
        let arguments = json!({"filename": format!("{}{file}", self.folder)}).to_string();
        self.saves.insert(id.key(), file);
        Down::Send(match old {
            Some(old) => edit::splice(line, old, arguments.as_bytes()),
            None => {
                let member = format!("\"arguments\":{arguments}");
                edit::splice(
                    line,
                    params,
                    &edit::prepend_members(params, member.as_bytes()),
                )
            }
        })
    }
}

/// The answer `line` of a save, in the upstream's own shape of a failed tool, with the reason why
/// the login state was not stored.
pub fn not_stored(line: &[u8], reason: &str) -> Vec<u8> {
    let id = match envelope::read(line) {
        Ok(Envelope {
            shape: Shape::Answer { id },
            ..
        }) => id.as_bytes(),
        _ => b"null",
    };
    failure(id, &not_stored_text(reason))
}

/// What a person reads when a save was not stored.
pub fn not_stored_text(reason: &str) -> String {
    format!("The login state was not stored: {reason}")
}

/// The tool that a `tools/call` names. An error where two readers could see two.
fn tool_of(message: &Envelope<'_>) -> Result<Option<String>, Why> {
    match message.params {
        Some(params) if json::kind(params) == Kind::Object => {
            let name = envelope::member(params, "name")?;
            let name = name.filter(|name| json::kind(name) == Kind::String);
            Ok(name.map(|name| envelope::text_of(name).into_owned()))
        }
        _ => Ok(None),
    }
}

/// Whether an answer to a call says that the tool did what it was asked.
fn succeeded(message: &Envelope<'_>) -> bool {
    let (Some(result), None) = (message.result, message.error) else {
        return false;
    };
    json::kind(result) == Kind::Object
        && matches!(
            envelope::member(result, "isError"),
            Ok(None | Some(b"false"))
        )
}

fn refuse(id: Option<Id<'_>>, why: Why) -> Down {
    answer(id, |id| {
        wire::error(Some(id), why.code(), &why.to_string(), None)
    })
}

/// The upstream's own answer for a tool that it does not have.
fn not_found(id: Option<Id<'_>>, name: &str) -> Down {
    answer(id, |id| failure(id, &format!("Tool \"{name}\" not found")))
}

/// An answer where one is asked for.
fn answer(id: Option<Id<'_>>, line: impl FnOnce(&[u8]) -> Vec<u8>) -> Down {
    match id {
        Some(id) => Down::Answer(line(id.as_bytes())),
        None => Down::Drop,
    }
}

/// A failed tool, in the upstream's shape and order of members.
fn failure(id: &[u8], text: &str) -> Vec<u8> {
    let text = Value::from(format!("### Error\n{text}"));
    let mut line = format!(
        r####"{{"result":{{"content":[{{"type":"text","text":{text}}}],"isError":true}},"jsonrpc":"2.0","id":"####
    )
    .into_bytes();
    line.extend_from_slice(id);
    line.extend_from_slice(b"}\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOOLS: Tools<'static> = Tools {
        withheld: &["browser_cookie_list", "browser_cookie_set"],
        save: "browser_storage_state",
    };

    fn relay() -> Relay<'static> {
        Relay::new(TOOLS, "/l/out")
    }

    fn down(line: &str) -> String {
        match relay().from_engine(line.as_bytes(), || Ok("f1".into())) {
            Down::Pass => "pass".into(),
            Down::Drop => "drop".into(),
            Down::Send(line) => format!("send {}", String::from_utf8(line).unwrap()),
            Down::Answer(line) => format!("answer {}", String::from_utf8(line).unwrap()),
        }
    }

    #[test]
    fn a_withheld_call_is_answered_in_the_upstreams_words() {
        let answer = "answer {\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"### Error\\nTool \\\"browser_cookie_list\\\" not found\"}],\"isError\":true},\"jsonrpc\":\"2.0\",\"id\":1.0}\n";
        for name in [
            "browser_cookie_list",
            r"browser\u005fcookie_list",
            r"\u0062rowser_cookie_list",
        ] {
            for method in ["tools/call", r"tools\/call", r"t\u006fols/call"] {
                let line = format!(
                    r#"{{"jsonrpc":"2.0","id":1.0,"method":"{method}","params":{{"n\u0061me":"{name}"}}}}"#
                );
                assert_eq!(down(&line), answer, "{line}");
                assert_eq!(down(&line.replace(r#""id":1.0,"#, "")), "drop");
            }
        }
    }

    #[test]
    fn a_call_with_two_names_never_passes() {
        for params in [
            r#"{"name":"browser_click","name":"browser_cookie_list"}"#,
            r#"{"name":"browser_cookie_list","name":"browser_click"}"#,
            r#"{"name":"browser_click","Name":"browser_cookie_list"}"#,
        ] {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            insta::allow_duplicates! {
                insta::assert_snapshot!(down(&line), @r#"answer {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request: \"name\" occurs twice"}}"#);
            }
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"tools/call","params":{"name":"browser_cookie_list"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"params":{"name":"browser_cookie_list"}}"#,
            r#"{"jsonrpc":"\u0032.0","id":1,"method":"tools/call","params":{"name":"browser_cookie_list"}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_cookie_list"}}]"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"browser_cookie_list"}}"#,
        ] {
            assert!(down(line).starts_with("answer {"), "{line}");
            assert!(down(line).contains("-32600"), "{line}");
        }
    }

    #[test]
    fn broken_utf8_hides_no_call() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"browser_cookie_list\",\"x\":\"\xff\"}}\n";
        assert!(matches!(
            relay().from_engine(line, || Ok("f".into())),
            Down::Answer(_)
        ));
        let save = String::from_utf8_lossy(line)
            .replace("cookie_list", "storage_state")
            .replace('\u{fffd}', "y");
        let save = [&save.as_bytes()[..save.len() - 4], b"\xff\"}}\n"].concat();
        assert!(matches!(
            relay().from_engine(&save, || Ok("f".into())),
            Down::Answer(_)
        ));
        assert_eq!(
            relay().from_engine(b"\xff\xfe\n", || Ok("f".into())),
            Down::Pass
        );
    }

    #[test]
    fn a_save_names_our_file_and_keeps_every_other_byte() {
        insta::assert_snapshot!(
            down(r#" {"id":"a\/b","params":{"_meta":{"p":1e2},"arguments": {"filename":"/etc/x"} ,"name":"browser_storage_state"},"method":"tools/call","jsonrpc":"2.0"}"#),
            @r#"send  {"id":"a\/b","params":{"_meta":{"p":1e2},"arguments": {"filename":"/l/out/f1"} ,"name":"browser_storage_state"},"method":"tools/call","jsonrpc":"2.0"}"#
        );
        insta::assert_snapshot!(
            down(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_storage_state"}}"#),
            @r#"send {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"filename":"/l/out/f1"},"name":"browser_storage_state"}}"#
        );
        let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_storage_state","arguments":{},"arguments":{}}}"#;
        assert!(down(twice).starts_with("answer"), "{}", down(twice));
        assert_eq!(
            down(
                r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"browser_storage_state"}}"#
            ),
            "drop"
        );
    }

    const SAVE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"browser_storage_state"}}"#;

    #[test]
    fn the_answer_of_a_save_is_known_by_its_id() {
        for (answer, expected) in [
            (
                r#"{"result":{"content":[]},"jsonrpc":"2.0","id":1}"#,
                Up::Saved("f1".into()),
            ),
            (
                r#"{"result":{"isError":false},"jsonrpc":"2.0","id":1}"#,
                Up::Saved("f1".into()),
            ),
            (
                r#"{"result":{"isError":true},"jsonrpc":"2.0","id":1}"#,
                Up::NotSaved("f1".into()),
            ),
            (
                r#"{"result":{"isError":false,"isError":true},"jsonrpc":"2.0","id":1}"#,
                Up::NotSaved("f1".into()),
            ),
            (
                r#"{"result":{},"error":{},"jsonrpc":"2.0","id":1}"#,
                Up::NotSaved("f1".into()),
            ),
            (
                r#"{"error":{"code":1,"message":""},"jsonrpc":"2.0","id":1}"#,
                Up::NotSaved("f1".into()),
            ),
            (
                r#"{"result":{"content":[]},"jsonrpc":"2.0","id":"1"}"#,
                Up::Pass,
            ),
            (r#"{"method":"ping","jsonrpc":"2.0","id":1}"#, Up::Pass),
        ] {
            let mut relay = relay();
            relay.from_engine(SAVE, || Ok("f1".into()));
            assert_eq!(relay.from_upstream(answer.as_bytes()), expected, "{answer}");
        }
    }

    #[test]
    fn two_saves_have_two_files_and_one_id_is_open_once() {
        let mut relay = relay();
        let second = SAVE
            .iter()
            .map(|&byte| if byte == b'1' { b'2' } else { byte })
            .collect::<Vec<_>>();
        relay.from_engine(SAVE, || Ok("f1".into()));
        assert!(matches!(
            relay.from_engine(&second, || Ok("f2".into())),
            Down::Send(_)
        ));
        assert!(matches!(
            relay.from_engine(SAVE, || Ok("f3".into())),
            Down::Answer(_)
        ));
        assert_eq!(relay.open_files().count(), 2);
        assert_eq!(
            relay.from_upstream(br#"{"result":{},"jsonrpc":"2.0","id":2}"#),
            Up::Saved("f2".into())
        );
        assert_eq!(
            relay.from_upstream(br#"{"result":{},"jsonrpc":"2.0","id":1.0}"#),
            Up::Saved("f1".into())
        );
        assert_eq!(
            relay.from_upstream(br#"{"result":{},"jsonrpc":"2.0","id":1}"#),
            Up::Pass
        );
    }

    #[test]
    fn the_list_loses_what_is_withheld() {
        let list = br#"{"result":{"tools":[{"name":"browser_click"},{"name":"browser\u005fcookie_set"},{"name":"browser_storage_state"}]},"jsonrpc":"2.0","id":2}"#;
        let Up::Send(cut) = relay().from_upstream(list) else {
            panic!("not cut")
        };
        insta::assert_snapshot!(String::from_utf8(cut).unwrap(), @r#"{"result":{"tools":[{"name":"browser_click"},{"name":"browser_storage_state"}]},"jsonrpc":"2.0","id":2}"#);
        let twice = br#"{"result":{"tools":[],"tools":[{"name":"browser_cookie_set"}]},"jsonrpc":"2.0","id":2}"#;
        let Up::Send(refused) = relay().from_upstream(twice) else {
            panic!("passed")
        };
        assert!(!String::from_utf8(refused).unwrap().contains("cookie"));
    }

    #[test]
    fn a_save_that_was_not_stored_says_why() {
        let line = not_stored(
            br#"{"result":{"content":[]},"jsonrpc":"2.0","id":"a"}"#,
            "the file is over 4 MiB",
        );
        insta::assert_snapshot!(String::from_utf8(line).unwrap(), @r####"{"result":{"content":[{"type":"text","text":"### Error\nThe login state was not stored: the file is over 4 MiB"}],"isError":true},"jsonrpc":"2.0","id":"a"}"####);
    }

    #[test]
    fn a_line_that_was_forwarded_unread_is_told_at_its_end() {
        let scan = |line: &str| {
            let mut scan = CallScan::default();
            scan.feed(line.as_bytes());
            relay().from_engine_unread(&scan)
        };
        let line = String::from_utf8(SAVE.to_vec()).unwrap();
        assert!(matches!(scan(&line), Down::Answer(_)));
        assert!(matches!(
            scan(&line.replace("storage_state", "cookie_set")),
            Down::Answer(_)
        ));
        assert_eq!(
            scan(
                &line
                    .replace("storage_state", "cookie_set")
                    .replace(r#""id":1,"#, "")
            ),
            Down::Drop
        );
        assert_eq!(scan(&line.replace("storage_state", "click")), Down::Pass);
    }

    proptest! {
        #[test]
        fn what_is_not_about_storage_passes(
            id in prop_oneof!["[0-9]{1,9}", "\"[a-z]{0,9}\""],
            method in "[a-z/]{0,20}",
            name in "[a-z_]{0,24}",
            text in "\\PC{0,40}",
        ) {
            prop_assume!(!TOOLS.withheld.contains(&name.as_str()) && name != TOOLS.save);
            let text = Value::from(text);
            for line in [
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"name":"{name}","arguments":{{"t":{text}}}}}}}"#),
                format!(r#"{{"method":"tools/call","params":{{"name":"{name}"}},"jsonrpc":"2.0","id":{id}}}"#),
                format!(r#"{{"result":{text},"jsonrpc":"2.0","id":{id}}}"#),
            ] {
                prop_assert_eq!(relay().from_engine(line.as_bytes(), || Ok("f".into())), Down::Pass);
                prop_assert_eq!(relay().from_upstream(line.as_bytes()), Up::Pass);
            }
        }

        #[test]
        fn no_spelling_of_a_withheld_call_passes(escapes in proptest::collection::vec(any::<bool>(), 64), utf8 in any::<bool>()) {
            let mut flips = escapes.iter().cycle();
            let mut spell = |text: &str| -> String {
                text.chars().map(|c| if *flips.next().unwrap_or(&false) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
            };
            let (method, name) = (spell("tools/call"), spell("browser_cookie_set"));
            let (kmethod, kparams, kname) = (spell("method"), spell("params"), spell("name"));
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"{kmethod}":"{method}","{kparams}":{{"{kname}":"{name}","x":"~"}}}}"#);
            let line: Vec<u8> = line.bytes().map(|byte| if byte == b'~' && !utf8 { 0xff } else { byte }).collect();
            prop_assert!(matches!(relay().from_engine(&line, || Ok("f".into())), Down::Answer(_)));
        }
    }
}
