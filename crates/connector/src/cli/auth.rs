//! `sema-connector auth NAME HANDLE [FILE]`: stores one secret, or removes it.

use super::failure::Failure;
use super::output::{self, Label};
use super::{Outcome, env, input};
use sema_rules::manifest::{self, Manifest};
use sema_rules::name::{ConnectorName, Handle};
use sema_rules::state::check_storage_state;
use sema_vault::connector_dir::HANDLE_LIMIT;
use sema_vault::{Change, ConnectorDir, Secret, input::read_any_file};
use std::path::PathBuf;
use std::process::ExitCode;

/// A shorter secret would be found by chance in what a connector answers.
const SHORTEST_SEARCHED: usize = 8;

/// Store a secret for a connector, from standard input or a file
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The bytes never stand in an argument or a variable. A terminal asks for them without \
    showing them.\n\nExamples:\n  sema-connector auth github GITHUB_TOKEN\n  \
    pass show github | sema-connector auth github GITHUB_TOKEN\n  \
    sema-connector auth github SSH_KEY ~/.ssh/id_ed25519 --raw\n  \
    sema-connector auth github GITHUB_TOKEN --remove"
)]
pub struct Args {
    /// The connector.
    name: ConnectorName,
    /// The handle's name, such as GITHUB_TOKEN.
    handle: Handle,
    /// The file that holds the secret; without it, standard input.
    file: Option<PathBuf>,
    /// Keep the line end that the input ends with.
    #[arg(long)]
    raw: bool,
    /// Remove what is stored.
    #[arg(long, conflicts_with_all = ["file", "raw"])]
    remove: bool,
}

pub(super) fn run(args: &Args) -> Outcome {
    if args.remove {
        return remove(
            &args.name,
            std::slice::from_ref(&args.handle),
            args.handle.as_str(),
        );
    }
    refuse_the_switch(args)?;
    let secret = read(args)?;
    let secret = if args.raw {
        secret
    } else {
        without_line_end(secret)
    };
    if secret.bytes().is_empty() {
        return Err(Failure::refused("the input is empty: nothing was stored")
            .hint("check the command that should have written the secret"));
    }
    if args.is("browser", "BROWSER_STORAGE_STATE") {
        check_storage_state(secret.bytes()).map_err(Failure::refused)?;
    }
    let short = secret.bytes().trim_ascii().len() < SHORTEST_SEARCHED;
    let connector = env::create_config()?.create_connector(&args.name)?;
    let held = connector.lock_exclusive(&mut output::waiting)?;
    connector.check_handles()?;
    let put = Change::Put {
        handle: args.handle.clone(),
        bytes: secret,
        secret: true,
    };
    connector.write_group(&held, &[put])?;
    output::say(&format!(
        "stored {} in {}",
        args.handle,
        connector.path().display()
    ));
    if !taken(&connector, &args.handle)? {
        let (name, handle) = (&args.name, &args.handle);
        output::labelled(
            Label::Warning,
            &format!(
                "{name} does not take {handle}: mount it again with --require {handle} or --env {handle}"
            ),
        );
    }
    if short {
        output::labelled(
            Label::Warning,
            "it is under 8 bytes, too short to be searched for: an answer that holds it is not withheld",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes what is stored of these handles, in this order, and what dead writers and launches left
/// of them. `what` is what a person calls them.
pub(super) fn remove(name: &ConnectorName, handles: &[Handle], what: &str) -> Outcome {
    let nothing = || {
        Failure::refused(format_args!(
            "{what} of {name} is not stored: nothing was removed"
        ))
        .hint(format_args!("see what is: sema-connector status {name}"))
    };
    let config = env::open_config()?.ok_or_else(nothing)?;
    let connector = config.connector(name)?.ok_or_else(nothing)?;
    let held = connector.lock_exclusive(&mut output::waiting)?;
    let stored = connector.handle_names()?;
    if !handles.iter().any(|handle| stored.contains(handle)) {
        return Err(nothing());
    }
    let changes: Vec<Change> = handles.iter().cloned().map(Change::Remove).collect();
    connector.write_group(&held, &changes)?;
    connector.sweep(&held)?;
    output::say(&format!(
        "removed {what} from {}",
        connector.path().display()
    ));
    if !connector.live_launches()?.is_empty() {
        output::labelled(
            Label::Warning,
            "a launch that runs keeps its copy, and what it withholds, until it ends",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the connector, if it is mounted, is given this handle.
fn taken(connector: &ConnectorDir, handle: &Handle) -> Result<bool, Failure> {
    let Some(text) = connector
        .dir()
        .read_policy(manifest::FILE, manifest::LIMIT)?
    else {
        return Ok(true);
    };
    Ok(Manifest::parse(&text).map_or(true, |manifest| manifest.handles.contains(handle)))
}

impl Args {
    fn is(&self, name: &str, handle: &str) -> bool {
        self.name.as_str() == name && self.handle.as_str() == handle
    }
}

/// The browser's switch is no secret and has a rule of its own.
fn refuse_the_switch(args: &Args) -> Result<(), Failure> {
    if !args.is("browser", "BROWSER_EXPORT") {
        return Ok(());
    }
    Err(
        Failure::refused("BROWSER_EXPORT of browser is a switch, not a secret")
            .hint("echo '{\"export\": \"on\"}' | sema-connector-browser auth"),
    )
}

fn read(args: &Args) -> Result<Secret, Failure> {
    if let Some(path) = &args.file {
        // The path is not repeated: a secret may have been typed in its place.
        return read_any_file(path, HANDLE_LIMIT).map_err(|reason| {
            Failure::refused(format_args!("FILE: {reason}")).hint(
                "FILE is a path; a secret itself is given on standard input, never as an argument",
            )
        });
    }
    if input::is_terminal() {
        let prompt = format!(
            "{} for {} (not shown; end with Enter):",
            args.handle, args.name
        );
        return input::hidden_line(&prompt, HANDLE_LIMIT);
    }
    input::to_end(HANDLE_LIMIT)?.ok_or_else(|| {
        Failure::refused(format_args!(
            "the input is over {HANDLE_LIMIT} bytes: nothing was stored"
        ))
    })
}

fn without_line_end(secret: Secret) -> Secret {
    let bytes = secret.bytes();
    let Some(line) = bytes.strip_suffix(b"\n") else {
        return secret;
    };
    Secret::new(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trailing_line_end_is_dropped() {
        for (input, stored) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            ("\n", ""),
        ] {
            let secret = without_line_end(Secret::new(input.as_bytes().to_vec()));
            assert_eq!(secret.bytes(), stored.as_bytes(), "{input:?}");
        }
    }
}
