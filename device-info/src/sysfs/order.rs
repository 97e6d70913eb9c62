//! Natural order of names.

use std::cmp::Ordering;

/// Orders names, and compares the numbers in them as numbers: `virtfn2` before `virtfn10`.
///
/// `str::cmp` would put `virtfn10` before `virtfn2`, because the kernel writes no leading zeros.
#[must_use]
pub fn natural_order(left: &str, right: &str) -> Ordering {
    let (mut left_rest, mut right_rest) = (left, right);
    loop {
        let (left_run, right_run) = (run(left_rest), run(right_rest));
        if left_run.is_empty() || right_run.is_empty() {
            return left_run
                .len()
                .cmp(&right_run.len())
                .then_with(|| left.cmp(right));
        }
        match compare(left_run, right_run) {
            Ordering::Equal => {}
            different => return different,
        }
        left_rest = left_rest.get(left_run.len()..).unwrap_or_default();
        right_rest = right_rest.get(right_run.len()..).unwrap_or_default();
    }
}

/// Returns the longest leading part that consists only of digits, or only of other characters.
fn run(text: &str) -> &str {
    let numeric = text.starts_with(|character: char| character.is_ascii_digit());
    let end = text
        .find(|character: char| character.is_ascii_digit() != numeric)
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

fn compare(left: &str, right: &str) -> Ordering {
    let digits = |text: &str| text.starts_with(|character: char| character.is_ascii_digit());
    if digits(left) && digits(right) {
        let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    } else {
        left.cmp(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn virtfn10_comes_after_virtfn2() {
        let mut names = ["virtfn10", "virtfn2", "virtfn0", "net", "virtfn1", "virtfn"];
        names.sort_by(|left, right| natural_order(left, right));
        assert_eq!(
            names,
            ["net", "virtfn", "virtfn0", "virtfn1", "virtfn2", "virtfn10"]
        );
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "[a-b0-9]{0,6}", b in "[a-b0-9]{0,6}", c in "[a-b0-9]{0,6}") {
            prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
            prop_assert_eq!(natural_order(&a, &b) == Ordering::Equal, a == b);
            if natural_order(&a, &b).is_le() && natural_order(&b, &c).is_le() {
                prop_assert!(natural_order(&a, &c).is_le());
            }
        }
    }
}
