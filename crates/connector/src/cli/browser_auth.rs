//! `sema-connector-browser auth`: stores the login state and the export switch, from one line, or
//! removes both.

use super::failure::Failure;
use super::output::{self, Label};
use super::{Outcome, auth, env, input};
use crate::cli::browser_mount::{EXPORT, NAME, STATE, handle};
use sema_rules::auth::{AuthError, AuthRequest, REQUEST_LIMIT};
use sema_rules::name::ConnectorName;
use sema_rules::state::{CLEAN_PROFILE, STATE_LIMIT, StateError, check_storage_state};
use sema_vault::error::Reason;
use sema_vault::{Change, ConnectorDir, Secret, input::read_plain_file};
use std::path::Path;
use std::process::ExitCode;

/// Store the login state that the browser starts from, and whether sessions may save theirs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "It reads one line from standard input, a JSON object; each key is optional:\n  \
    {\"storageStateFile\": \"/absolute/path\", \"export\": \"on\"}\n\n\
    Without storageStateFile a clean profile is stored; without export, or with \"off\", sessions \
    save nothing.\n\nExamples:\n  echo '{}' | sema-connector-browser auth\n  \
    echo '{\"storageStateFile\": \"/home/me/state.json\"}' | sema-connector-browser auth\n  \
    sema-connector-browser auth --remove"
)]
pub struct Args {
    /// Remove the stored login state, and turn the export off; nothing is read.
    #[arg(long)]
    remove: bool,
}

const PROMPT: &str = "waiting for one line, a JSON object ({} is a clean profile); Enter ends it:";

pub(super) fn run(args: &Args) -> Outcome {
    if args.remove {
        let name = ConnectorName::parse(NAME)?;
        return auth::remove(&name, &[handle(EXPORT)?, handle(STATE)?], "the login state");
    }
    let request = request()?;
    let state = match &request.storage_state_file {
        Some(path) => read_state(path)?,
        None => Secret::new(CLEAN_PROFILE.to_vec()),
    };
    let name = ConnectorName::parse(NAME)?;
    let connector = env::create_config()?.create_connector(&name)?;
    let held = connector.lock_exclusive(&mut output::waiting)?;
    connector.check_handles()?;
    connector.write_group(&held, &changes(request.export, state)?)?;
    let from = if request.storage_state_file.is_some() {
        "the login state"
    } else {
        "a clean profile"
    };
    let export = if request.export { "on" } else { "off" };
    output::say(&format!(
        "stored {from} in {}; export {export}",
        connector.path().display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Stores a clean profile where nothing is stored.
pub(super) fn store_clean_profile(connector: &ConnectorDir) -> Result<(), Failure> {
    let held = connector.lock_exclusive(&mut output::waiting)?;
    let state = Secret::new(CLEAN_PROFILE.to_vec());
    Ok(connector.write_group(&held, &changes(false, state)?)?)
}

/// The switch first: an `auth` that fails leaves the old login state.
fn changes(export: bool, state: Secret) -> Result<[Change; 2], Failure> {
    let switch = if export {
        Change::Put {
            handle: handle(EXPORT)?,
            bytes: Secret::new(b"on".to_vec()),
            secret: false,
        }
    } else {
        Change::Remove(handle(EXPORT)?)
    };
    Ok([
        switch,
        Change::Put {
            handle: handle(STATE)?,
            bytes: state,
            secret: true,
        },
    ])
}

fn request() -> Result<AuthRequest, Failure> {
    let refused = |e: AuthError| Failure::refused(e).hint(e.hint());
    let input = if input::is_terminal() {
        input::shown_line(PROMPT, REQUEST_LIMIT)?
    } else {
        input::to_end(REQUEST_LIMIT)?.ok_or_else(|| refused(AuthError::TooLarge))?
    };
    AuthRequest::parse(input.bytes()).map_err(refused)
}

/// Neither the path nor the content is repeated in a refusal: both were read.
fn read_state(path: &str) -> Result<Secret, Failure> {
    let (state, exposed) = match read_plain_file(Path::new(path), STATE_LIMIT) {
        Ok(read) => read,
        Err(Reason::TooLarge { .. }) => {
            return Err(Failure::refused(StateError::TooLarge));
        }
        Err(reason) => {
            return Err(
                Failure::refused(format_args!("the file of storageStateFile: {reason}"))
                    .hint("name the regular file itself, by its absolute path"),
            );
        }
    };
    check_storage_state(state.bytes()).map_err(|e| {
        Failure::refused(e)
            .hint("save one with Playwright: await context.storageState({ path: 'state.json' })")
    })?;
    if exposed {
        output::labelled(
            Label::Warning,
            "other users can read the file of storageStateFile: delete it, it holds the session's cookies",
        );
    }
    Ok(state)
}
