//! SVG, written element by element. Styles are attributes, since programs for slides ignore style
//! sheets.

use std::fmt::Write as _;

use crate::console;

/// The greatest width of a letter, as a share of its size. Text is cut off by it.
const LETTER: f64 = 0.57;

/// A rectangle, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The style of a line of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) mono: bool,
    pub(super) color: &'static str,
    pub(super) right: bool,
}

/// The style of a box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) fill: &'static str,
    pub(super) line: &'static str,
    pub(super) dashed: bool,
}

/// An unfinished picture.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    body: String,
}

impl Canvas {
    /// Begins a group; `device` says which device the group shows, the mouse shows `title`.
    pub(super) fn open(&mut self, device: Option<&str>, title: &str) {
        let device = device.map_or_else(String::new, |id| {
            format!(" data-device=\"{}\"", escaped(id))
        });
        self.line(&format!("<g{device}><title>{}</title>", escaped(title)));
    }

    pub(super) fn close(&mut self) {
        self.line("</g>");
    }

    pub(super) fn rect(&mut self, area: Area, round: f64, look: Look) {
        let Area {
            x,
            y,
            width,
            height,
        } = area;
        let Look { fill, line, dashed } = look;
        let dashes = if dashed {
            " stroke-dasharray=\"4 3\""
        } else {
            ""
        };
        self.line(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             rx=\"{round}\" fill=\"{fill}\" stroke=\"{line}\"{dashes}/>"
        ));
    }

    /// Text on the base line at `y`, cut off so that it is at most `width` wide.
    pub(super) fn text(&mut self, (x, y): (f64, f64), width: f64, text: &str, look: Type) {
        let Type {
            size,
            bold,
            mono,
            color,
            right,
        } = look;
        let family = if mono {
            "'DejaVu Sans Mono', Menlo, Consolas, monospace"
        } else {
            "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"
        };
        let weight = if bold { " font-weight=\"600\"" } else { "" };
        let anchor = if right { " text-anchor=\"end\"" } else { "" };
        let text = fitting(text, width, size);
        self.line(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"{family}\" font-size=\"{size}\"\
             {weight}{anchor} fill=\"{color}\">{}</text>",
            escaped(&text)
        ));
    }

    fn line(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }

    /// The document, of this size, on a light ground.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        let mut out = String::with_capacity(self.body.len() + 512);
        // Writing to a String does not fail.
        let _ = write!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        );
        out
    }
}

/// As much of the text as fits. The cut, with a mark, is near the start, since names of pods and
/// interfaces differ at their ends.
fn fitting(text: &str, width: f64, size: f64) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of letters, and of at most a few thousand pixels"
    )]
    let most = (width / (size * LETTER)).max(1.0) as usize;
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most / 3, most - most / 3 - 1);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// Text in XML: only printable characters, with escaped markup (XML 1.0 §2.2, §2.4).
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in console::line(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_with_what_xml_cannot_hold() {
        assert_eq!(
            escaped("a<b>&\"'\u{1}\n"),
            r"a&lt;b&gt;&amp;&quot;&apos;\u{1}\n"
        );
    }

    #[test]
    fn text_that_is_too_long_is_cut_with_a_mark() {
        assert_eq!(fitting("enp1s0f0", 100.0, 10.0), "enp1s0f0");
        assert_eq!(fitting("enp1s0f0np0", 52.0, 10.0), "enp…f0np0");
        assert_eq!(fitting("enp1s0f0np0", 1.0, 10.0), "…");
    }
}
