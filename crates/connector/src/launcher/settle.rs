//! When what was read of the tool policy's file counts. An editor may empty the file and write it
//! piece by piece, or remove it and write it anew: what is read in between is no policy.
//!
//! A policy counts once two reads that lie apart have found it. A file that is gone closes at once,
//! and means that every tool is allowed only after a while. Meanwhile a file that cannot be used
//! leaves the policy before in force, but no longer than that while: then it closes, too.

use sema_rules::policy::ToolPolicy;
use std::time::{Duration, Instant};

/// How far apart two equal reads must lie.
pub(super) const APART: Duration = Duration::from_millis(30);
/// How long a file may be missing, broken or changing before that counts.
const LIMIT: Duration = Duration::from_millis(500);

/// What one read found: a policy, no file, or why the file cannot be used.
pub(super) type Found = Result<Option<ToolPolicy>, String>;

/// The reads so far.
pub(super) struct Settling {
    found: Found,
    /// Of the first read that found it.
    since: Instant,
    /// Of the first read that found something else than what counts.
    unsettled: Option<Instant>,
}

impl Settling {
    /// The first read counts as it is.
    pub(super) fn new(found: Found, now: Instant) -> Self {
        Self {
            found,
            since: now,
            unsettled: None,
        }
    }

    /// Whether what was read last counts.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled.is_none()
    }

    /// Takes what was read now: the policy that is in force from here on, or none where that stays
    /// as it is.
    pub(super) fn read(
        &mut self,
        found: Found,
        now: Instant,
    ) -> Option<Result<ToolPolicy, String>> {
        if found != self.found {
            (self.found, self.since) = (found, now);
            self.unsettled.get_or_insert(now);
        }
        let late = now - self.unsettled? >= LIMIT;
        let same = now - self.since;
        let policy = match &self.found {
            Ok(Some(policy)) if same >= APART => Ok(policy.clone()),
            Ok(None) if same >= LIMIT => Ok(ToolPolicy::all()),
            Ok(None) => return Some(Err("tools.json was removed a moment ago".to_owned())),
            Err(reason) if same >= APART && late => Err(reason.clone()),
            _ if late => return Some(Err("tools.json does not stop changing".to_owned())),
            _ => return None,
        };
        self.unsettled = None;
        Some(policy)
    }
}

/// The policy that the first read of a session puts in force.
pub(super) fn first(found: &Found) -> Result<ToolPolicy, String> {
    let policy = found.clone()?;
    Ok(policy.unwrap_or_else(ToolPolicy::all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(tool: &str) -> ToolPolicy {
        ToolPolicy::parse(format!(r#"{{"allow":["{tool}"]}}"#).as_bytes()).unwrap()
    }

    /// Reads a letter each 10 ms and tells the policy in force after each: `-` is no file, `!` a
    /// broken one, and any other the policy that allows it. In force are `*`, all tools, and `.`,
    /// none.
    fn in_force(reads: &str) -> String {
        let found = |letter| match letter {
            '-' => Ok(None),
            '!' => Err("broken".to_owned()),
            tool => Ok(Some(policy(&tool.to_string()))),
        };
        let begin = Instant::now();
        let mut letters = reads.chars();
        let start = found(letters.next().unwrap());
        let mut force = first(&start);
        let mut settling = Settling::new(start, begin);
        let mut shown = String::new();
        for (index, letter) in (1..).zip(letters) {
            let now = begin + Duration::from_millis(10) * index;
            if let Some(policy) = settling.read(found(letter), now) {
                force = policy;
            }
            shown.push(match &force {
                Err(_) => '.',
                Ok(force) if force.allows_all() => '*',
                Ok(force) => ('a'..='z')
                    .find(|tool| force.allows(&tool.to_string()))
                    .unwrap(),
            });
        }
        shown
    }

    #[test]
    fn a_policy_counts_once_it_was_found_twice() {
        assert_eq!(in_force("abbbbbb"), "aaabbb");
        assert_eq!(in_force("abbcbbccccc"), "aaaaaaaacc");
        assert_eq!(in_force("abbaaaaa"), "aaaaaaa");
        assert_eq!(in_force("!bbbb"), "...b");
        assert_eq!(in_force("-bbbb"), "***b");
    }

    #[test]
    fn a_file_that_is_gone_closes_at_once_and_opens_after_a_while() {
        let gone = "-".repeat(60);
        let force = in_force(&format!("a{gone}"));
        assert_eq!(force, format!("{}{}", ".".repeat(50), "*".repeat(10)));
        assert_eq!(in_force(&gone), "*".repeat(59));
        // Each time that it is gone anew, the while begins anew.
        let force = in_force(&format!("a{}b", "-".repeat(49)).repeat(3));
        assert!(!force.contains('*'), "{force}");
    }

    #[test]
    fn a_file_written_anew_or_in_pieces_is_never_what_lies_between() {
        assert_eq!(in_force("a---bbbbb"), "......bb");
        assert_eq!(in_force("a-!!-!bbbb"), "........b");
        assert_eq!(in_force("a!!!!!bbbb"), "aaaaaaaab");
        assert_eq!(in_force("a!!!!!aaaa"), "aaaaaaaaa");
    }

    #[test]
    fn a_broken_file_closes_after_a_while() {
        let force = in_force(&format!("a{}bbbb", "!".repeat(60)));
        let shown = format!("{}{}b", "a".repeat(50), ".".repeat(13));
        assert_eq!(force, shown);
    }

    #[test]
    fn a_file_that_does_not_stop_changing_closes_after_a_while() {
        let force = in_force(&format!("a{}bbbb", "bc".repeat(30)));
        let shown = format!("{}{}b", "a".repeat(50), ".".repeat(13));
        assert_eq!(force, shown);
    }
}
