//! Times the programs against the bare upstream.

use crate::run::Outcome;

pub(crate) fn all(_args: &[String]) -> Outcome {
    Err("not written".to_owned())
}
