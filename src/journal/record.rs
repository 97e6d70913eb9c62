//! The lines of a record. Each line contains JSON, and begins with the length and the checksum of
//! this JSON. So a reader detects an incomplete or damaged line.
//!
//! ```text
//! <length, 8 hex digits> <crc32, 8 hex digits> <JSON of that length>\n
//! ```

use serde::Serialize;

/// The number of bytes before the JSON in a line.
const FRONT: usize = 8 + 1 + 8 + 1;

/// Appends `value` as one line to `out`.
///
/// # Errors
/// If the value cannot be written as JSON.
pub fn append(out: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    append_json(out, &serde_json::to_vec(value)?);
    Ok(())
}

/// Appends one line with this JSON to `out`.
pub fn append_json(out: &mut Vec<u8>, json: &[u8]) {
    let sum = crc32fast::hash(json);
    out.reserve(FRONT + json.len() + 1);
    out.extend_from_slice(format!("{:08x} {sum:08x} ", json.len()).as_bytes());
    out.extend_from_slice(json);
    out.push(b'\n');
}

/// Removes the first line from `bytes` and returns its JSON. If the line is incomplete or damaged,
/// returns `None` and leaves `bytes` unchanged.
pub fn next_line<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = hex(bytes.get(..8)?)? as usize;
    let sum = hex(bytes.get(9..17)?)?;
    let json = bytes.get(FRONT..FRONT.checked_add(length)?)?;
    let rest = bytes.get(FRONT + length..)?.strip_prefix(b"\n")?;
    (crc32fast::hash(json) == sum).then(|| {
        *bytes = rest;
        json
    })
}

/// Whether the file contains only the beginning of its first line.
pub fn is_cut_off(bytes: &[u8]) -> bool {
    let front = bytes.get(..FRONT.min(bytes.len())).unwrap_or_default();
    let is_front = front.iter().enumerate().all(|(place, byte)| match place {
        8 | 17 => *byte == b' ',
        _ => byte.is_ascii_hexdigit(),
    });
    let announced = || Some(FRONT + hex(bytes.get(..8)?)? as usize + 1);
    is_front && announced().is_none_or(|whole| bytes.len() < whole)
}

fn hex(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        records
            .iter()
            .for_each(|record| append_json(&mut out, record));
        out
    }

    /// Returns the lines before the first incomplete or damaged line, and whether these lines are
    /// the whole file.
    fn read(mut bytes: &[u8]) -> (Vec<Vec<u8>>, bool) {
        let lines = std::iter::from_fn(|| next_line(&mut bytes).map(<[u8]>::to_vec));
        (lines.collect(), bytes.is_empty())
    }

    proptest! {
        #[test]
        fn only_the_whole_lines_of_a_truncated_file_are_read(
            records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..5),
            cut in any::<proptest::sample::Index>(),
        ) {
            let whole = file(&records);
            let cut = cut.index(whole.len() + 1);
            let (seen, is_whole) = read(&whole[..cut]);
            prop_assert!(records.starts_with(&seen));
            let mut length = 0;
            let fitting = records.iter().take_while(|record| { length += FRONT + record.len() + 1; length <= cut });
            prop_assert_eq!(seen.len(), fitting.count());
            prop_assert_eq!(is_whole, file(&seen).len() == cut);
        }

        #[test]
        fn reading_stops_at_a_changed_byte(
            records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 1..4),
            at in any::<proptest::sample::Index>(),
        ) {
            let mut damaged = file(&records);
            let at = at.index(damaged.len());
            damaged[at] ^= 0x04;
            let (seen, _) = read(&damaged);
            prop_assert!(records.starts_with(&seen), "only undamaged lines are read");
        }

        #[test]
        fn an_incomplete_first_line_is_told_apart_from_a_damaged_one(
            json in proptest::collection::vec(any::<u8>(), 0..60),
            cut in any::<proptest::sample::Index>(),
        ) {
            let mut whole = file(&[json]);
            prop_assert!(!is_cut_off(&whole));
            prop_assert!(is_cut_off(&whole[..cut.index(whole.len())]));
            whole[0] = 0;
            prop_assert!(!is_cut_off(&whole));
            whole.truncate(5);
            prop_assert!(!is_cut_off(&whole));
        }

        #[test]
        fn no_file_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(&bytes);
            is_cut_off(&bytes);
        }
    }
}
