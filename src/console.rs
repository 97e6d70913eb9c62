//! Output to terminals and logs. Only [`write`] writes text unchanged. All other functions escape
//! control characters, so that text from a pod or a delegate cannot move the cursor or hide other
//! output. [`lines`] and [`print_json`] keep line feeds.

use std::borrow::Cow;
use std::io::{self, Write};

use device_info::{printable, printable_json};

/// The length at which [`line`] cuts a line, in bytes.
const LONGEST: usize = 16 << 10;

/// Returns a text as one line of at most [`LONGEST`] bytes. Escapes line feeds and other control
/// characters.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    printable(text, LONGEST)
}

/// Escapes each line of the output of a delegate and keeps the line feeds. Also ends the last line
/// with a line feed, so that later output begins a new line.
pub(crate) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        out.push_str(&printable(line, usize::MAX));
        out.push('\n');
    }
    out
}

/// Writes one line to stderr and ignores write errors.
#[allow(
    clippy::disallowed_methods,
    reason = "one of the few places that may write to stderr"
)]
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", line(text));
}

/// Writes lines to stdout.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn print<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> io::Result<()> {
    let mut out = String::new();
    for text in lines {
        out.push_str(&line(text.as_ref()));
        out.push('\n');
    }
    write(&out)
}

/// Writes a JSON document and a line feed to stdout.
///
/// # Errors
/// If stdout cannot be written.
pub(crate) fn print_json(document: &str) -> io::Result<()> {
    write(&format!("{}\n", printable_json(document)))
}

/// Writes a document to stdout unchanged. The document must be Jackfield's own text or an answer to
/// the runtime.
///
/// # Errors
/// If stdout cannot be written.
#[allow(
    clippy::disallowed_methods,
    reason = "one of the few places that may write to stdout"
)]
pub(crate) fn write(document: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(document.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_feeds_in_the_output_of_a_delegate_are_kept() {
        assert_eq!(lines("a\r\n\u{1b}[2Jb\nc"), "a\n\\u{1b}[2Jb\nc\n");
        assert_eq!(lines("\n\n"), "\n\n");
        assert_eq!(lines(""), "");
    }
}
