//! The browser's `fonts.conf`. The one that comes with the browser names folders of another host:
//! with it every page renders without any text, and the screenshot is white.

use std::fmt::Write as _;
use std::path::Path;

/// Where the system's fonts lie.
pub(crate) const SYSTEM: [&str; 2] = ["/usr/share/fonts", "/usr/local/share/fonts"];

/// What a page's generic families mean, the first that is there. The system's fonts come first
/// where they have the shape that is asked for; Open Sans is always there.
const GENERIC: [(&str, &[&str]); 5] = [
    ("sans-serif", &["Open Sans", "Noto Sans"]),
    (
        "serif",
        &[
            "Liberation Serif",
            "DejaVu Serif",
            "Noto Serif",
            "Open Sans",
        ],
    ),
    (
        "monospace",
        &[
            "Liberation Mono",
            "DejaVu Sans Mono",
            "Noto Sans Mono",
            "Open Sans",
        ],
    ),
    ("system-ui", &["Open Sans", "Noto Sans"]),
    ("emoji", &["Noto Color Emoji"]),
];

/// A configuration that names the folders given, in order, and a cache of its own.
pub(crate) fn configuration(folders: &[&Path], cache: &Path) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM \"fonts.dtd\">\n<fontconfig>\n",
    );
    for folder in folders {
        _ = writeln!(text, "  <dir>{}</dir>", escaped(folder));
    }
    _ = writeln!(text, "  <cachedir>{}</cachedir>", escaped(cache));
    for (generic, families) in GENERIC {
        _ = write!(text, "  <alias><family>{generic}</family><prefer>");
        for family in families {
            _ = write!(text, "<family>{family}</family>");
        }
        text.push_str("</prefer></alias>\n");
    }
    text.push_str("</fontconfig>\n");
    text
}

fn escaped(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_are_named_in_order() {
        let folders = [
            Path::new("/c/a <&> ü/bin/fonts"),
            Path::new("/usr/share/fonts"),
        ];
        insta::assert_snapshot!(configuration(&folders, Path::new("/l/home/.cache/fonts")), @r#"
        <?xml version="1.0"?>
        <!DOCTYPE fontconfig SYSTEM "fonts.dtd">
        <fontconfig>
          <dir>/c/a &lt;&amp;&gt; ü/bin/fonts</dir>
          <dir>/usr/share/fonts</dir>
          <cachedir>/l/home/.cache/fonts</cachedir>
          <alias><family>sans-serif</family><prefer><family>Open Sans</family><family>Noto Sans</family></prefer></alias>
          <alias><family>serif</family><prefer><family>Liberation Serif</family><family>DejaVu Serif</family><family>Noto Serif</family><family>Open Sans</family></prefer></alias>
          <alias><family>monospace</family><prefer><family>Liberation Mono</family><family>DejaVu Sans Mono</family><family>Noto Sans Mono</family><family>Open Sans</family></prefer></alias>
          <alias><family>system-ui</family><prefer><family>Open Sans</family><family>Noto Sans</family></prefer></alias>
          <alias><family>emoji</family><prefer><family>Noto Color Emoji</family></prefer></alias>
        </fontconfig>
        "#);
    }
}
