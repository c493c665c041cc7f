//! Changes to a message that leave every other byte as it was.

use crate::envelope::{self, Envelope, Why};
use crate::json;
use std::borrow::Cow;

/// `line` with the bytes of `part`, which must be a slice of it, replaced.
pub fn splice(line: &[u8], part: &[u8], replacement: &[u8]) -> Vec<u8> {
    let start = (part.as_ptr() as usize)
        .saturating_sub(line.as_ptr() as usize)
        .min(line.len());
    let end = (start + part.len()).min(line.len());
    [&line[..start], replacement, &line[end..]].concat()
}

/// `line` with each part, a slice of it that overlaps no other, replaced.
pub fn splice_all(line: &[u8], mut parts: Vec<(&[u8], Vec<u8>)>) -> Vec<u8> {
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.as_ptr()));
    let mut spliced = line.to_vec();
    for (part, replacement) in parts {
        let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
        let start = start.min(line.len());
        let end = (start + part.len()).min(line.len());
        spliced.splice(start..end, replacement);
    }
    spliced
}

/// `object` with only the members whose unescaped name `keep` picks, each as written. Nothing is
/// copied out where all are kept.
pub fn retain_members<'a>(
    object: &'a [u8],
    keep: impl Fn(&[u8]) -> bool,
) -> Result<Cow<'a, [u8]>, Why> {
    let (mut kept, mut all) = (Vec::new(), true);
    json::object(object, |key, value| {
        if keep(&json::unescape(key)) {
            kept.push([b"\"", key, b"\":", value].concat());
        } else {
            all = false;
        }
    })?;
    Ok(match all {
        true => Cow::Borrowed(object),
        false => Cow::Owned([b"{", kept.join(&b","[..]).as_slice(), b"}"].concat()),
    })
}

/// `object` with `member` (text such as `"a":1`) in its `_meta`, which is made where there is none.
pub fn with_meta(object: &[u8], member: &[u8]) -> Result<Vec<u8>, Why> {
    match envelope::member(object, "_meta")? {
        Some(meta) if json::kind(meta) == json::Kind::Object => {
            Ok(splice(object, meta, &prepend(meta, member)))
        }
        Some(other) => Ok(splice(object, other, &[b"{", member, b"}"].concat())),
        None => Ok(prepend(object, &[br#""_meta":{"#, member, b"}"].concat())),
    }
}

/// The answer to `tools/list` without the tools that `keep` leaves out: none when nothing is left
/// out. An entry whose name cannot be read, or is there twice, is left out.
pub fn cut_tools(
    line: &[u8],
    answer: &Envelope<'_>,
    keep: impl Fn(&str) -> bool,
) -> Result<Option<Vec<u8>>, Why> {
    let Some(list) = tool_list(answer)? else {
        return Ok(None);
    };
    let (mut kept, mut cut) = (b"[".to_vec(), false);
    json::each_element(list, |tool| {
        if !tool_name(tool).is_some_and(|name| keep(&name)) {
            cut = true;
            return;
        }
        if kept.len() > 1 {
            kept.push(b',');
        }
        kept.extend_from_slice(tool);
    })?;
    kept.push(b']');
    Ok(cut.then(|| splice(line, list, &kept)))
}

/// The names in an answer to `tools/list`, and the cursor of the next page as written.
pub fn tool_names<'a>(answer: &Envelope<'a>) -> Result<(Vec<String>, Option<&'a [u8]>), Why> {
    let Some(list) = tool_list(answer)? else {
        return Ok((Vec::new(), None));
    };
    let mut names = Vec::new();
    json::each_element(list, |tool| names.extend(tool_name(tool)))?;
    let cursor = envelope::member(answer.result.unwrap_or(b"{}"), "nextCursor")?;
    Ok((
        names,
        cursor.filter(|cursor| json::kind(cursor) == json::Kind::String),
    ))
}

fn tool_list<'a>(answer: &Envelope<'a>) -> Result<Option<&'a [u8]>, Why> {
    match answer.result {
        Some(result) if json::kind(result) == json::Kind::Object => {
            envelope::member(result, "tools")
                .map(|list| list.filter(|list| json::kind(list) == json::Kind::Array))
        }
        _ => Ok(None),
    }
}

fn tool_name(tool: &[u8]) -> Option<String> {
    match envelope::member(tool, "name") {
        Ok(Some(name)) if json::kind(name) == json::Kind::String => {
            Some(envelope::text_of(name).into_owned())
        }
        _ => None,
    }
}

/// `object` with `members` (text such as `"a":1`) put before its own.
pub fn prepend_members(object: &[u8], members: &[u8]) -> Vec<u8> {
    prepend(object, members)
}

/// `array` with `element` put before its own.
pub fn prepend_element(array: &[u8], element: &[u8]) -> Vec<u8> {
    prepend(array, element)
}

/// Puts `first` after the opening bracket, with a comma where something follows.
fn prepend(container: &[u8], first: &[u8]) -> Vec<u8> {
    let Some((bracket, rest)) = container.split_first() else {
        return first.to_vec();
    };
    let empty = matches!(rest.trim_ascii_start().first(), Some(b'}' | b']'));
    let comma: &[u8] = if empty { b"" } else { b"," };
    [&[*bracket], first, comma, rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str, keep: &[&str]) -> Option<String> {
        let answer = envelope::read(line.as_bytes()).unwrap();
        let cut = cut_tools(line.as_bytes(), &answer, |name| keep.contains(&name)).unwrap();
        cut.map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn only_the_cut_tools_change() {
        let line = r#"{"result":{"x":1.0,"tools":[ {"name":"a"}, {"n":1,"\u006eame":"b"} ] },"jsonrpc":"2.0","id":1}"#;
        assert_eq!(cut(line, &["a", "b"]), None);
        assert_eq!(
            cut(line, &["b"]).unwrap(),
            r#"{"result":{"x":1.0,"tools":[{"n":1,"\u006eame":"b"}] },"jsonrpc":"2.0","id":1}"#
        );
        assert_eq!(
            cut(line, &[]).unwrap(),
            r#"{"result":{"x":1.0,"tools":[] },"jsonrpc":"2.0","id":1}"#
        );
    }

    #[test]
    fn a_tool_with_two_names_is_left_out() {
        let line = r#"{"result":{"tools":[{"name":"a","name":"b"}]},"jsonrpc":"2.0","id":1}"#;
        assert_eq!(
            cut(line, &["a", "b"]).unwrap(),
            r#"{"result":{"tools":[]},"jsonrpc":"2.0","id":1}"#
        );
    }

    #[test]
    fn members_are_taken_out_and_the_others_stay() {
        let object = br#"{ "a": 1.0 ,"\u0062":2,"c":"x"}"#;
        let kept = retain_members(object, |name| name != b"b").unwrap();
        assert_eq!(kept.as_ref(), br#"{"a":1.0,"c":"x"}"#);
        assert!(matches!(
            retain_members(object, |_| true).unwrap(),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_member_of_meta_is_put_where_it_belongs() {
        let put = |object: &str| with_meta(object.as_bytes(), b"\"k\":1").unwrap();
        assert_eq!(put("{}"), br#"{"_meta":{"k":1}}"#);
        assert_eq!(put(r#"{"_meta":{"a":2}}"#), br#"{"_meta":{"k":1,"a":2}}"#);
        assert_eq!(
            put(r#"{"_meta":null,"b":2}"#),
            br#"{"_meta":{"k":1},"b":2}"#
        );
    }

    #[test]
    fn parts_are_replaced_in_any_order() {
        let line = b"one two three";
        let parts = vec![(&line[8..], b"3".to_vec()), (&line[..3], b"1".to_vec())];
        assert_eq!(splice_all(line, parts), b"1 two 3");
    }

    #[test]
    fn members_are_put_first() {
        assert_eq!(prepend_members(b"{ }", b"\"a\":1"), b"{\"a\":1 }");
        assert_eq!(
            prepend_members(b"{\"b\":2}", b"\"a\":1"),
            b"{\"a\":1,\"b\":2}"
        );
    }
}
