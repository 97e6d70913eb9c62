//! Writes SVG element by element. Styles are attributes, because presentation programs ignore style
//! sheets.

use crate::console;

/// The estimated width of a letter, in percent of the font size. Determines how much text fits.
const LETTER: usize = 57;

/// A position (x, y) or a size (width, height), in pixels.
pub(super) type Pair = (usize, usize);

/// The style of a line of text: size, weight and colour.
type Look = (usize, usize, &'static str);

pub(super) const TITLE: Look = (28, 600, INK);
pub(super) const HEADING: Look = (15, 600, INK);
pub(super) const BOLD: Look = (12, 600, INK);
pub(super) const PLAIN: Look = (12, 400, INK);
pub(super) const FAINT: Look = (12, 400, "#64748b");
const INK: &str = "#1f2937";

/// An unfinished picture.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

impl Svg {
    /// Begins the group of a device, with `title` as its tooltip.
    pub(super) fn open(&mut self, device: &str, title: &str) {
        let (device, title) = (escaped(device), escaped(title));
        self.body += &format!("<g data-device=\"{device}\"><title>{title}</title>\n");
    }

    pub(super) fn close(&mut self) {
        self.body += "</g>\n";
    }

    pub(super) fn rect(&mut self, (x, y): Pair, (width, height): Pair, fill: &str, line: &str) {
        self.body += &format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\" \
             fill=\"{fill}\" stroke=\"{line}\"/>\n"
        );
    }

    /// Shortens a text to at most `width`, and writes it on the base line at `y`.
    pub(super) fn text(&mut self, (x, y): Pair, width: usize, look: Look, text: &str) {
        let (size, weight, color) = look;
        let text = escaped(&fitting(text, width, size));
        self.body += &format!(
            "<text x=\"{x}\" y=\"{y}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{color}\">{text}</text>\n"
        );
    }

    /// Returns the finished document, with a white background. `width` and `height` are in pixels.
    pub(super) fn finish(self, width: usize, height: usize, title: &str) -> String {
        let (title, body) = (escaped(title), self.body);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

/// If a text is too long, replaces letters in its middle with `…`. Keeps more of the end than of
/// the start, because names of pods and interfaces differ at their ends.
fn fitting(text: &str, width: usize, size: usize) -> String {
    let most = (width * 100 / (size * LETTER)).max(1);
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most / 3, most - most / 3 - 1);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// Escapes markup and unprintable characters for XML (XML 1.0 §2.2, §2.4).
fn escaped(text: &str) -> String {
    console::line(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(
            escaped("a<b>&\"'\u{1}\n"),
            r"a&lt;b&gt;&amp;&quot;&apos;\u{1}\n"
        );
    }

    #[test]
    fn an_ellipsis_replaces_a_part_of_a_long_text() {
        assert_eq!(fitting("enp1s0f0", 100, 10), "enp1s0f0");
        assert_eq!(fitting("enp1s0f0np0", 52, 10), "enp…f0np0");
        assert_eq!(fitting("enp1s0f0np0", 1, 10), "…");
    }
}
