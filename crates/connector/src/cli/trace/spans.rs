//! The spans of a connector's `trace/`, as they are read from its files. A line that is no span is
//! passed over.

use crate::cli::failure::Failure;
use sema_vault::{Dir, journal};
use serde_json::Value;
use std::collections::HashMap;
use std::ffi::OsString;

/// A folder of trace files, and how far each was read.
pub(super) struct Folder {
    dir: Dir,
    read: HashMap<OsString, u64>,
}

/// One line of a trace.
pub(super) struct Span {
    /// The line, as it was read.
    pub(super) line: String,
    /// When it began and ended, in nanoseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    value: Value,
}

impl Folder {
    pub(super) fn new(dir: Dir) -> Self {
        let read = HashMap::new();
        Self { dir, read }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.dir.path() == other.dir.path()
    }

    /// The last lines of each file.
    pub(super) fn read_last(&mut self, lines: usize, to: &mut Vec<Span>) -> Result<(), Failure> {
        for name in journal::names(&self.dir)? {
            let (text, end) = journal::read_last(&self.dir, &name, lines)?;
            to.extend(spans(&text));
            self.read.insert(name, end);
        }
        Ok(())
    }

    /// What was added since the last time.
    pub(super) fn read_new(&mut self, to: &mut Vec<Span>) -> Result<(), Failure> {
        for name in journal::names(&self.dir)? {
            let read = self.read.entry(name.clone()).or_default();
            let (text, end) = journal::read_from(&self.dir, &name, *read)?;
            to.extend(spans(&text));
            *read = end;
        }
        Ok(())
    }
}

fn spans(text: &[u8]) -> impl Iterator<Item = Span> {
    text.split(|byte| *byte == b'\n').filter_map(Span::parse)
}

impl Span {
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let time = |name: &str| -> Option<u64> { value[name].as_str()?.parse().ok() };
        let (start, end) = (time("startTimeUnixNano")?, time("endTimeUnixNano")?);
        Some(Self {
            line: String::from_utf8(line.to_vec()).ok()?,
            start,
            // The clock of the machine may have been set back.
            end: end.max(start),
            value,
        })
    }

    pub(super) fn nanoseconds(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn is_error(&self) -> bool {
        !self.attribute("error.type").is_empty()
    }

    pub(super) fn launch(&self) -> &str {
        self.attribute("sema.launch")
    }

    pub(super) fn connector(&self) -> &str {
        self.attribute("sema.connector")
    }

    /// The tool, or else the method.
    pub(super) fn called(&self) -> &str {
        match self.attribute("gen_ai.tool.name") {
            "" => self.attribute("mcp.method.name"),
            tool => tool,
        }
    }

    /// The bytes of the request and of the answer.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |name| self.value["attributes"][name].as_u64().unwrap_or(0);
        bytes("sema.request.bytes") + bytes("sema.answer.bytes")
    }

    /// How it ended, in a word or two.
    pub(super) fn outcome(&self) -> String {
        match (self.attribute("sema.error"), self.attribute("error.type")) {
            ("", "") => "ok".to_owned(),
            ("", "tool_error") => "tool error".to_owned(),
            ("", code) => format!("error {code}"),
            (own, _) => own.to_owned(),
        }
    }

    fn attribute(&self, name: &str) -> &str {
        self.value["attributes"][name].as_str().unwrap_or_default()
    }
}
