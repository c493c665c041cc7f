//! How a path or a word is written in a command that a person pastes into a shell.

use std::borrow::Cow;

/// `text` as one word of a POSIX shell: unchanged where it needs no quotes, in single quotes where
/// it does, and as `$'...'` where it holds a control character.
pub fn shell(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    if text.chars().any(char::is_control) {
        return Cow::Owned(ansi_c(text));
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

fn ansi_c(text: &str) -> String {
    let mut quoted = String::from("$'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let mut utf8 = [0; 4];
                for byte in c.encode_utf8(&mut utf8).bytes() {
                    quoted.push_str(&format!("\\x{byte:02x}"));
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_from_a_shell_as_they_were() {
        for (text, expected) in [
            ("/a/b-c_1.json", "/a/b-c_1.json"),
            ("/home/zoé/x", "/home/zoé/x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("a\nb'", r"$'a\x0ab\''"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
        ] {
            assert_eq!(shell(text), expected);
        }
    }
}
