//! Reads the snapshot of a page: `- button "Go" [ref=e3]`, a line an element, with its role, its
//! name and the reference by which it is clicked.

use crate::cli::failure::Failure;
use serde_json::Deserializer;

/// The roles that are meant to be clicked.
const CLICKED: [&str; 9] = [
    "button", "checkbox", "link", "menuitem", "option", "radio", "switch", "tab", "textbox",
];
/// How many names are told where the one asked for is not there.
const TOLD: usize = 8;

/// One element that has a name and a reference.
struct Element {
    role: String,
    name: String,
    target: String,
}

impl Element {
    fn read(line: &str) -> Option<Self> {
        let line = line.trim_start().strip_prefix("- ")?;
        // YAML quotes a line that would mean something else to it.
        let line = match line.strip_prefix('\'') {
            Some(quoted) => quoted.replace("''", "'"),
            None => line.to_owned(),
        };
        let (role, rest) = line.split_once(' ')?;
        let mut names = Deserializer::from_str(rest).into_iter::<String>();
        let name = names.next()?.ok()?;
        let rest = rest.get(names.byte_offset()..)?;
        let target = rest.split("[ref=").nth(1)?.split(']').next()?;
        Some(Self {
            role: role.to_owned(),
            name,
            target: target.to_owned(),
        })
    }

    fn is_clicked(&self) -> bool {
        CLICKED.contains(&self.role.as_str())
    }
}

fn elements(snapshot: &str) -> impl Iterator<Item = Element> {
    snapshot.lines().filter_map(Element::read)
}

/// The first heading.
pub(super) fn heading(snapshot: &str) -> Option<String> {
    let first = elements(snapshot).find(|element| element.role == "heading")?;
    Some(format!("heading {:?}", first.name))
}

/// The role and the reference of the one element of this name: of several, the one that is meant to
/// be clicked. It is never guessed.
pub(super) fn named(snapshot: &str, name: &str) -> Result<(String, String), Failure> {
    let mut found: Vec<Element> = elements(snapshot)
        .filter(|element| element.name == name)
        .collect();
    if found.iter().any(Element::is_clicked) {
        found.retain(Element::is_clicked);
    }
    match found.len() {
        1 => Ok((found[0].role.clone(), found[0].target.clone())),
        0 => {
            Err(Failure::refused("nothing on the page has that name").hint(what_there_is(snapshot)))
        }
        count => Err(Failure::refused(format_args!(
            "{count} elements of the page have that name: none was clicked"
        ))),
    }
}

fn what_there_is(snapshot: &str) -> String {
    let clicked = elements(snapshot).filter(Element::is_clicked);
    let names: Vec<String> = clicked
        .take(TOLD)
        .map(|element| format!("{} {:?}", element.role, element.name))
        .collect();
    if names.is_empty() {
        return "the page shows nothing to click".to_owned();
    }
    format!("the page has: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"
- heading "Hello" [level=1] [ref=e2]
- button "Buy" [ref=e3] [cursor=pointer]
- heading "More" [level=2] [ref=e4]:
  - link "More" [ref=e5] [cursor=pointer]:
    - /url: /more
- 'button "say: \"it''s\"" [ref=e6]'
- button "Delete" [ref=e7]
- button "Delete" [ref=e8]
- paragraph [ref=e9]: button "Buy"
- img "Map" [ref=e10]"#;

    #[test]
    fn an_element_is_found_by_its_name_alone() {
        let found = |name| named(PAGE, name).map(|(role, target)| format!("{role} {target}"));
        assert_eq!(found("Buy"), Ok("button e3".to_owned()));
        assert_eq!(found("More"), Ok("link e5".to_owned()));
        assert_eq!(found("say: \"it's\""), Ok("button e6".to_owned()));
        assert_eq!(found("Map"), Ok("img e10".to_owned()));
        assert_eq!(heading(PAGE).as_deref(), Some("heading \"Hello\""));
    }

    #[test]
    fn what_is_not_one_element_is_refused() {
        let why = |page, name| {
            let failure = named(page, name).unwrap_err();
            format!("{}; {}", failure.message, failure.hint.unwrap_or_default())
        };
        let all = [why(PAGE, "Delete"), why(PAGE, "buy"), why("", "buy")];
        insta::assert_snapshot!(all.join("\n"), @r#"
        2 elements of the page have that name: none was clicked; 
        nothing on the page has that name; the page has: button "Buy", link "More", button "say: \"it's\"", button "Delete", button "Delete"
        nothing on the page has that name; the page shows nothing to click
        "#);
    }
}
