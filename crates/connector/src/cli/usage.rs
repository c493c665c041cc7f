//! What is said about a wrong command line: exit code 64, and never the words that were typed
//! where a secret could stand.

use super::failure::Failure;
use super::{Outcome, env, output};
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::error::Error as _;
use std::process::ExitCode;

pub(super) fn explain(error: &Error, program: &Command) -> Outcome {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let coloured = output::coloured(&std::io::stdout());
            let text = if coloured {
                text.ansi().to_string()
            } else {
                text.to_string()
            };
            output::data(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::say(error.render().to_string().trim_end());
            Ok(ExitCode::from(super::failure::Exit::Usage as u8))
        }
        kind => Err(Failure::usage(message(error, kind)).hint(hint(error, program))),
    }
}

/// What of ours is written nearly so, and where to look. Nothing that was typed is repeated.
fn hint(error: &Error, program: &Command) -> String {
    let near = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    let near: Vec<String> = near
        .iter()
        .filter_map(|kind| context(error, *kind))
        .collect();
    if near.is_empty() {
        return help(program);
    }
    format!("did you mean {}? see {}", near.join(", "), help(program))
}

/// The command that shows what is expected: that of the verb, where one was named.
fn help(program: &Command) -> String {
    let typed = env::first_argument();
    let verb = typed.and_then(|word| program.find_subcommand(word).map(Command::get_name));
    match verb {
        Some(verb) => format!("{} {verb} --help", program.get_name()),
        None => format!("{} --help", program.get_name()),
    }
}

fn message(error: &Error, kind: ErrorKind) -> String {
    let argument = context(error, ContextKind::InvalidArg);
    match kind {
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{}: {why}", argument.unwrap_or_default())
        }
        ErrorKind::InvalidValue => {
            let valid = context(error, ContextKind::ValidValue).unwrap_or_default();
            let argument = argument.unwrap_or_default();
            if valid.is_empty() {
                format!("{argument}: a value is missing")
            } else {
                format!("{argument}: must be one of {valid}")
            }
        }
        ErrorKind::UnknownArgument => match argument {
            Some(flag) if is_flag(&flag) => format!("unexpected argument {flag}"),
            _ => "an argument too many".to_owned(),
        },
        ErrorKind::InvalidSubcommand => "there is no such command".to_owned(),
        ErrorKind::MissingRequiredArgument => {
            format!("missing: {}", argument.unwrap_or_default())
        }
        _ => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        }
    }
}

/// A flag's name and nothing else: no `--name=value`.
fn is_flag(argument: &str) -> bool {
    argument.strip_prefix("--").is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    })
}

fn context(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        _ => None,
    }
}
