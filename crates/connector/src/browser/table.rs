//! What the upstream is started with: one table of its arguments, none of which comes from the
//! environment, standard input or a file, and the list of its tools that are never offered.

use sema_rules::relay::Tools;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What a launch fills into the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'l> {
    /// The pinned browser's executable.
    pub(crate) executable: &'l Path,
    /// The launch's output directory.
    pub(crate) out: &'l Path,
    /// The launch's copy of the login state.
    pub(crate) state: &'l Path,
    /// Whether the login state can be saved.
    pub(crate) export: Export,
}

/// Whether a session can save its login state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Export {
    /// The person turned it on with `auth`.
    On,
    /// They did not.
    Off,
}

/// One argument.
struct Row {
    flag: &'static str,
    value: Value,
    /// Left out while the export is off.
    only_with_export: bool,
    /// Why it is given; for the reader.
    #[cfg_attr(not(test), expect(dead_code, reason = "each row says why it is there"))]
    why: &'static str,
}

enum Value {
    None,
    Text(&'static str),
    Executable,
    Out,
    State,
}

const fn row(flag: &'static str, value: Value, why: &'static str) -> Row {
    Row {
        flag,
        value,
        only_with_export: false,
        why,
    }
}

/// Every argument, in order.
const TABLE: [Row; 12] = [
    row(
        "--headless",
        Value::None,
        "no window; the browser is driven only through the tools",
    ),
    row(
        "--isolated",
        Value::None,
        "the profile lives in memory; only the stored login state persists",
    ),
    row(
        "--browser",
        Value::Text("chromium"),
        "the pinned build, not a browser of the machine",
    ),
    row(
        "--sandbox",
        Value::None,
        "the upstream leaves Chromium's sandbox off on Linux unless asked",
    ),
    row(
        "--block-service-workers",
        Value::None,
        "no page installs a worker that outlives it or takes its requests",
    ),
    row(
        "--no-webmcp",
        Value::None,
        "a page cannot add tools to those that the engine is offered",
    ),
    row(
        "--timeout-navigation",
        Value::Text("60000"),
        "stated rather than left to a default that may change",
    ),
    row(
        "--output-max-size",
        Value::Text("67108864"),
        "the output directory holds at most 64 MiB; older files go",
    ),
    row(
        "--executable-path",
        Value::Executable,
        "the upstream never looks for a browser, nor fetches one",
    ),
    row(
        "--output-dir",
        Value::Out,
        "what it writes lands in the launch's directory and goes with it",
    ),
    row(
        "--storage-state",
        Value::State,
        "the login state, read when a browser context is made",
    ),
    Row {
        flag: "--caps",
        value: Value::Text("storage"),
        only_with_export: true,
        why: "gives browser_storage_state; the relay withholds the other sixteen tools of it",
    },
];

/// The upstream's arguments for one launch.
pub(crate) fn arguments(launch: Launch<'_>) -> Vec<OsString> {
    let mut arguments = Vec::new();
    for row in &TABLE {
        if row.only_with_export && launch.export == Export::Off {
            continue;
        }
        arguments.push(OsString::from(row.flag));
        let value: &OsStr = match row.value {
            Value::None => continue,
            Value::Text(text) => text.as_ref(),
            Value::Executable => launch.executable.as_ref(),
            Value::Out => launch.out.as_ref(),
            Value::State => launch.state.as_ref(),
        };
        arguments.push(value.to_owned());
    }
    arguments
}

/// The tools of the storage capability: the sixteen that answer with login values, set or load
/// them, and the one that writes them to a file. The one place that names them.
pub(crate) const TOOLS: Tools<'static> = Tools {
    withheld: &[
        "browser_cookie_clear",
        "browser_cookie_delete",
        "browser_cookie_get",
        "browser_cookie_list",
        "browser_cookie_set",
        "browser_localstorage_clear",
        "browser_localstorage_delete",
        "browser_localstorage_get",
        "browser_localstorage_list",
        "browser_localstorage_set",
        "browser_sessionstorage_clear",
        "browser_sessionstorage_delete",
        "browser_sessionstorage_get",
        "browser_sessionstorage_list",
        "browser_sessionstorage_set",
        "browser_set_storage_state",
    ],
    save: "browser_storage_state",
};

#[cfg(test)]
mod tests {
    use super::*;

    /// What would open a wall, each a documented option of the upstream. `--proxy-server` joins
    /// the table with the egress policy and not before.
    const NEVER: [&str; 17] = [
        "--no-sandbox",
        "--user-data-dir",
        "--save-session",
        "--secrets",
        "--allow-unrestricted-file-access",
        "--proxy-server",
        "--proxy-bypass",
        "--port",
        "--host",
        "--init-script",
        "--init-page",
        "--config",
        "--extension",
        "--cdp-endpoint",
        "--allowed-origins",
        "--blocked-origins",
        "--ignore-https-errors",
    ];

    fn given(export: Export) -> Vec<String> {
        let launch = Launch {
            executable: Path::new("/b/chrome/headless_shell"),
            out: Path::new("/l/out"),
            state: Path::new("/l/BROWSER_STORAGE_STATE"),
            export,
        };
        arguments(launch)
            .into_iter()
            .map(|argument| argument.into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_arguments_are_these() {
        insta::assert_snapshot!(given(Export::Off).join("\n"), @r"
        --headless
        --isolated
        --browser
        chromium
        --sandbox
        --block-service-workers
        --no-webmcp
        --timeout-navigation
        60000
        --output-max-size
        67108864
        --executable-path
        /b/chrome/headless_shell
        --output-dir
        /l/out
        --storage-state
        /l/BROWSER_STORAGE_STATE
        ");
    }

    #[test]
    fn the_export_adds_one_capability_last() {
        let (off, on) = (given(Export::Off), given(Export::On));
        assert_eq!(on[..off.len()], off);
        assert_eq!(on[off.len()..], ["--caps", "storage"]);
    }

    #[test]
    fn what_opens_a_wall_is_never_given() {
        let on = given(Export::On);
        for never in NEVER {
            assert!(
                !on.iter().any(|argument| argument.starts_with(never)),
                "{never}"
            );
        }
        assert_eq!(
            on.iter()
                .filter(|argument| argument.starts_with("--caps"))
                .count(),
            1
        );
    }

    #[test]
    fn every_row_says_why() {
        assert!(TABLE.iter().all(|row| row.why.len() > 20));
        assert_eq!(
            (TOOLS.withheld.len(), TOOLS.withheld.is_sorted()),
            (16, true)
        );
    }
}
