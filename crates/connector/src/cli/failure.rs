//! What a person sees when a command does not do its work: `error:` what, where and why, then
//! `hint:` with the fix, and the exit code. With `--json` a program sees the same as one object on
//! standard output.

use super::{env, output};
use sema_rules::name::NameError;
use sema_vault::VaultError;
use sema_vault::config::LocateError;
use std::fmt::Display;
use std::process::ExitCode;

/// The exit codes other than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// We found something that we do not accept.
    Refused = 1,
    /// The system, the network or another program failed us.
    Failed = 2,
    /// The command line is wrong.
    Usage = 64,
}

/// Why a command ends without having done its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What, where and why, in lower case.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
}

impl Failure {
    /// Exit code 1.
    pub fn refused(message: impl Display) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// Exit code 2.
    pub fn failed(message: impl Display) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Exit code 64.
    pub fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Adds the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Prints it: on standard error, or on standard output with `--json`; the exit code.
    pub fn report(&self) -> ExitCode {
        if !env::wants_json() || output::json(&self.object()).is_err() {
            self.say();
        }
        ExitCode::from(self.exit as u8)
    }

    fn say(&self) {
        output::labelled(output::Label::Error, &self.message);
        if let Some(hint) = &self.hint {
            output::labelled(output::Label::Hint, hint);
        }
    }

    fn object(&self) -> serde_json::Value {
        let code = match self.exit {
            Exit::Refused => "refused",
            Exit::Failed => "failed",
            Exit::Usage => "usage",
        };
        serde_json::json!({"error": {"message": self.message, "hint": self.hint, "code": code}})
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let exit = if error.is_refusal() {
            Exit::Refused
        } else {
            Exit::Failed
        };
        Self {
            exit,
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<LocateError> for Failure {
    fn from(error: LocateError) -> Self {
        Self::refused(&error).hint(error.hint())
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::usage(error)
    }
}
