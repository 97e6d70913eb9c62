//! Makes foreign text safe for people to read.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces the middle of a text that is too long.
const CUT: &str = "…";

/// Returns `text` as one line of at most `most` bytes. `most` must be 16 or more.
///
/// Some characters could act on a terminal, end a line, hide text or reorder text. Visible escapes
/// such as `\n`, `\u{1b}` and `\u{202e}` replace these characters:
/// - controls: C0, DEL and C1,
/// - format characters, such as bidirectional overrides and zero-width characters,
/// - line and paragraph separators,
/// - combining marks,
/// - characters without a glyph.
///
/// In a long text, `…` replaces the middle and not the end, because the end of an error message
/// says how to correct the error.
///
/// Printable text stays unchanged, including backslashes. So escaping a text twice has the same
/// result as escaping it once.
#[must_use]
pub fn printable(text: &str, most: usize) -> Cow<'_, str> {
    if text.bytes().all(is_plain_byte) || text.chars().all(is_plain) {
        return cut(Cow::Borrowed(text), most);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_plain(letter) {
            out.push(letter);
        } else {
            out.extend(letter.escape_debug());
        }
    }
    cut(Cow::Owned(out), most)
}

/// Escapes a JSON document. The escaped characters are those of [`printable`], except line feeds.
/// Line feeds stay, because in JSON they occur only outside strings. Uses JSON's own escapes, so
/// that a parser reads the same values.
#[must_use]
pub fn printable_json(document: &str) -> Cow<'_, str> {
    let is_fine = |letter| is_plain(letter) || letter == '\n';
    if document.bytes().all(is_plain_byte) || document.chars().all(is_fine) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len() + 16);
    for letter in document.chars() {
        if is_fine(letter) {
            out.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

fn is_plain_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Returns whether the character needs no escape. The no-break space stays unescaped, because
/// Jackfield's own messages contain it.
fn is_plain(letter: char) -> bool {
    match letter {
        ' '..='~' | '\u{a0}' => true,
        letter => letter.escape_debug().len() == 1,
    }
}

fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text;
    }
    let kept = most.saturating_sub(CUT.len());
    let head = text.floor_char_boundary(kept - kept / 3);
    let tail = text.ceil_char_boundary(text.len() - kept / 3);
    let (head, tail) = (text.get(..head), text.get(tail..));
    format!(
        "{}{CUT}{}",
        head.unwrap_or_default(),
        tail.unwrap_or_default()
    )
    .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LONG: usize = 1 << 20;

    #[test]
    fn characters_that_act_on_a_terminal_or_hide_text_are_escaped() {
        let table = [
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\u{1b}[31mred\u{7}", r"\u{1b}[31mred\u{7}"),
            ("\0\u{7f}", r"\0\u{7f}"),
            ("\u{80}\u{9b}31m\u{9f}", r"\u{80}\u{9b}31m\u{9f}"),
            (
                "\u{202a}\u{202e}\u{2066}\u{2069}",
                r"\u{202a}\u{202e}\u{2066}\u{2069}",
            ),
            (
                "\u{200b}\u{200e}\u{feff}\u{2060}",
                r"\u{200b}\u{200e}\u{feff}\u{2060}",
            ),
            ("\u{2028}\u{2029}\u{85}", r"\u{2028}\u{2029}\u{85}"),
            ("\u{e0041}\u{fe0f}", r"\u{e0041}\u{fe0f}"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text, LONG), expected);
        }
    }

    #[test]
    fn words_of_any_language_stay_unchanged() {
        for text in [
            r#"a\b "c" 'd'"#,
            "größer → 日本語 ◀ …",
            "not\u{a0}found",
            "",
        ] {
            assert_eq!(printable(text, LONG), text);
            assert_eq!(printable_json(text), text);
        }
    }

    #[test]
    fn long_text_is_cut_in_the_middle() {
        let text = format!("network a/b: {}; correct it", "é".repeat(100_000));
        let shown = printable(&text, 100);
        assert!(shown.len() <= 100, "{shown}");
        assert!(shown.starts_with("network a/b: é") && shown.ends_with("é; correct it"));
        assert_eq!(printable(&shown, 100), shown);
    }

    #[test]
    fn the_values_of_a_json_document_stay_the_same() {
        let value = "\u{9b}31m\u{202e}\u{7f}\u{e0041}\u{1b}\n";
        let document = format!("{{\n\"a\": {}\n}}\n", serde_json::json!(value));
        let shown = printable_json(&document);
        assert!(shown.chars().all(|c| c == '\n' || is_plain(c)), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read["a"], value);
        assert_eq!(shown.lines().count(), 3);
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_printable_line_and_is_escaped_once(
            text in any::<String>(),
            most in 16_usize..200,
        ) {
            let once = printable(&text, most);
            prop_assert!(once.chars().all(is_plain));
            prop_assert!(once.len() <= most);
            prop_assert_eq!(printable(&once, most), once.as_ref());
        }
    }
}
