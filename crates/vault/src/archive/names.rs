//! The names of an archive's entries, as the least careful file system would tell them apart: two that differ in case only are one, and nothing lies below a file.

use std::collections::HashMap;

/// The longest path and the longest name in it that Linux takes, in bytes.
const LONGEST_PATH: usize = 4095;
const LONGEST_NAME: usize = 255;

/// What is at a place. A folder is implied by what lies in it until it is there itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Implied,
    Folder,
    File,
    Link,
}

/// A tree of names. Its root is the node 0.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By the node of the folder and the name in it, folded.
    nodes: HashMap<(usize, String), Node>,
}

#[derive(Debug)]
struct Node {
    id: usize,
    spelling: String,
    place: Place,
}

impl Names {
    /// Gives a path to a file, a folder or a link, or says why it cannot have it.
    pub(super) fn claim(&mut self, path: &str, place: Place) -> Result<(), &'static str> {
        if path.len() > LONGEST_PATH || path.split('/').any(|name| name.len() > LONGEST_NAME) {
            return Err("is longer than a path may be");
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = 0;
        for name in above.split('/').filter(|name| !name.is_empty()) {
            let node = self.node(folder, name);
            if node.spelling != name {
                return Err("differs from another in case only");
            }
            if matches!(node.place, Place::File | Place::Link) {
                return Err("lies below a file or a link");
            }
            folder = node.id;
        }
        let known = self.nodes.len();
        let node = self.node(folder, name);
        let is_new = node.id > known;
        let comes_late = node.place == Place::Implied && node.spelling == name;
        match place {
            _ if is_new => {}
            Place::Folder if comes_late => {}
            _ if comes_late => return Err("is a file or a link that others lie below"),
            _ => return Err("is there twice, or differs from another in case only"),
        }
        node.place = place;
        Ok(())
    }

    /// What is at a path that is spelled just so.
    pub(super) fn at(&self, path: &str) -> Option<Place> {
        let mut found = (0, None);
        for name in path.split('/') {
            let node = self.nodes.get(&(found.0, fold(name)))?;
            if node.spelling != name {
                return None;
            }
            found = (node.id, Some(node.place));
        }
        found.1
    }

    fn node(&mut self, folder: usize, name: &str) -> &mut Node {
        let id = self.nodes.len() + 1;
        self.nodes
            .entry((folder, fold(name)))
            .or_insert_with(|| Node {
                id,
                spelling: name.to_owned(),
                place: Place::Implied,
            })
    }
}

/// Folds case so that all that Unicode's full case folding makes one becomes one here, and a little
/// more. Upper case alone would leave `ẞ` and `ß` two, lower case alone `ſ` and `s`.
fn fold(name: &str) -> String {
    name.chars()
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unicode_folds_is_one() {
        let pairs = [
            ("A", "a"),
            ("É", "é"),
            ("ß", "ẞ"),
            ("ß", "SS"),
            ("ſ", "S"),
            ("K", "k"),
            ("ς", "Σ"),
            ("ς", "σ"),
            ("ﬁ", "FI"),
            ("Ω", "ω"),
            ("ϴ", "θ"),
            ("Ꭰ", "ꭰ"),
            ("ΐ", "ΐ"),
            ("ǅ", "ǆ"),
        ];
        for (one, other) in pairs {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("e"), fold("é"));
    }

    #[test]
    fn a_folder_may_come_after_what_lies_in_it_and_only_once() {
        const TWICE: Result<(), &str> = Err("is there twice, or differs from another in case only");
        let mut names = Names::default();
        assert_eq!(names.claim("a/b", Place::File), Ok(()));
        assert_eq!(names.at("a"), Some(Place::Implied));
        assert_eq!(names.claim("a", Place::Folder), Ok(()));
        assert_eq!(names.at("a"), Some(Place::Folder));
        assert_eq!(names.claim("a", Place::Folder), TWICE);
        assert_eq!(names.claim("a", Place::File), TWICE);
        assert_eq!(names.claim("d/e/f", Place::File), Ok(()));
        assert_eq!(names.claim("d/E", Place::Folder), TWICE);
        assert_eq!(names.at("a/B"), None);
    }

    #[test]
    fn a_place_is_said_to_be_taken() {
        let mut names = Names::default();
        let mut claim = |path: &str, place| names.claim(path, place).err();
        assert_eq!(claim("a/b/c", Place::File), None);
        let cases = Some("differs from another in case only");
        assert_eq!(claim("A/c", Place::File), cases);
        let below = Some("lies below a file or a link");
        assert_eq!(claim("a/b/c/d", Place::File), below);
        let above = Some("is a file or a link that others lie below");
        assert_eq!(claim("a/b", Place::Link), above);
        assert_eq!(claim("a", Place::File), above);
        let longer = Some("is longer than a path may be");
        assert_eq!(claim(&"x".repeat(255), Place::File), None);
        assert_eq!(claim(&"x".repeat(256), Place::File), longer);
        assert_eq!(claim(&"y/".repeat(2048), Place::File), longer);
    }
}
