//! What people read on a terminal and in logs. Every line passes [`line()`], so that nobody whose
//! text is in it can move the cursor, begin another line or hide what stands there.

use std::borrow::Cow;
use std::io::{self, Write};

use device_info::{printable, printable_json};

/// The longest line, in bytes.
const LONGEST: usize = 16 << 10;

/// A text of whatever origin as one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    printable(text, LONGEST)
}

/// The lines of a delegate's output, whole: its line feeds are its own. The last ends too, so that
/// what follows begins a line.
pub(crate) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        out.push_str(&printable(line, usize::MAX));
        out.push('\n');
    }
    out
}

/// Writes one line to stderr; that it cannot be written is no error.
#[allow(clippy::disallowed_methods, reason = "one of the few places that may")]
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", line(text));
}

/// Writes lines to stdout.
///
/// # Errors
/// Those of stdout.
pub(crate) fn print<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> io::Result<()> {
    let mut out = String::new();
    for text in lines {
        out.push_str(&line(text.as_ref()));
        out.push('\n');
    }
    write(&out)
}

/// Writes a JSON document to stdout, with a line feed behind it.
///
/// # Errors
/// Those of stdout.
pub(crate) fn print_json(document: &str) -> io::Result<()> {
    write(&format!("{}\n", printable_json(document)))
}

/// Writes to stdout what is as it must be: an answer to the runtime, or a document of our own.
/// One write, so that a reader never sees half of it.
///
/// # Errors
/// Those of stdout.
#[allow(clippy::disallowed_methods, reason = "one of the few places that may")]
pub(crate) fn write(document: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(document.as_bytes())?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_others_stay_lines() {
        assert_eq!(lines("a\r\n\u{1b}[2Jb\nc"), "a\n\\u{1b}[2Jb\nc\n");
        assert_eq!(lines("\n\n"), "\n\n");
        assert_eq!(lines(""), "");
    }
}
