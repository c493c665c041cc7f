//! The policy files that nothing enforces yet. One that does not say what it should, or that others
//! can write, refuses the start of the connector: the operator meant something by it. One that is
//! well formed is accepted, and that it is not enforced is said.

use super::{POLICY_LIMIT, Purpose, Settings};
use crate::cli::failure::Failure;
use crate::cli::output;
use sema_rules::hop::Absence;
use sema_rules::policy;
use sema_rules::wire::Code;
use sema_vault::ConnectorDir;

/// What a connector's directory has of such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// No file.
    Absent,
    /// A file that says what it may.
    WellFormed,
}

/// Reads one of [`policy::NOT_ENFORCED`] for its form.
pub fn read(dir: &ConnectorDir, file: &'static str) -> Result<Form, Failure> {
    let Some(text) = dir.dir().read_policy(file, POLICY_LIMIT)? else {
        return Ok(Form::Absent);
    };
    let path = dir.path().join(file);
    policy::check_form(file, &text)
        .map(|()| Form::WellFormed)
        .map_err(|error| {
            let what = format!("{}: is not a policy: {}", path.display(), error.source);
            Failure::refused(what).hint("mend the file, or remove it")
        })
}

/// Whether the connector may be started.
pub(super) fn check(settings: &Settings) -> Result<(), Absence> {
    for file in policy::NOT_ENFORCED {
        match read(&settings.dir, file) {
            Ok(Form::WellFormed) if settings.purpose == Purpose::Work => output::say(&format!(
                "sema-connector: {file} is not enforced by this version"
            )),
            Ok(_) => {}
            Err(failure) => return Err(absence(failure)),
        }
    }
    Ok(())
}

fn absence(failure: Failure) -> Absence {
    let hint = failure.hint.map(|hint| format!("; hint: {hint}"));
    Absence {
        code: Code::Internal,
        reason: failure.message + &hint.unwrap_or_default(),
    }
}
