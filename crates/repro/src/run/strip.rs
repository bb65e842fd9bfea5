//! Strippers: what a program prints that changes from run to run, taken out before comparing.
//!
//! A stripper is written `name:argument` in the suite's data.

/// One stripper: argument and text in, text out.
pub(super) type Stripper = fn(&str, &[u8]) -> Vec<u8>;

/// Every stripper by name.
pub(super) const STRIPPERS: &[(&str, Stripper)] =
    &[("lines-with", lines_with), ("lines-from", lines_from), ("number-after", number_after)];

/// Whether `text` names a stripper and gives it an argument.
pub fn known(text: &str) -> bool {
    find(text).is_some()
}

/// The stripper and argument that `text` names.
pub(super) fn find(text: &str) -> Option<(Stripper, &str)> {
    let (name, argument) = text.split_once(':')?;
    let (_, stripper) = STRIPPERS.iter().find(|(known, _)| *known == name)?;
    (!argument.is_empty()).then_some((*stripper, argument))
}

/// Drops every line that contains the argument.
fn lines_with(argument: &str, text: &[u8]) -> Vec<u8> {
    keep_lines(text, |line| !contains(line, argument.as_bytes()))
}

/// Drops every line that starts with the argument.
fn lines_from(argument: &str, text: &[u8]) -> Vec<u8> {
    keep_lines(text, |line| !line.starts_with(argument.as_bytes()))
}

/// Drops the word that follows the word `argument`, in every line where it occurs.
fn number_after(argument: &str, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&b| b == b'\n') {
        let mut skip = false;
        for word in line.split_inclusive(|&b| b == b' ') {
            if !skip {
                out.extend_from_slice(word);
            }
            skip = word.trim_ascii() == argument.as_bytes();
        }
    }
    out
}

fn keep_lines(text: &[u8], keep: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    text.split_inclusive(|&b| b == b'\n').filter(|line| keep(line)).flatten().copied().collect()
}

fn contains(line: &[u8], what: &[u8]) -> bool {
    !what.is_empty() && line.windows(what.len()).any(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(with: &str, text: &str) -> String {
        let (stripper, argument) = find(with).unwrap();
        String::from_utf8(stripper(argument, text.as_bytes())).unwrap()
    }

    #[test]
    fn strippers_take_out_what_they_name_and_nothing_else() {
        assert_eq!(strip("lines-with:time", "a\nTotal time: 3\nb"), "a\nb");
        assert_eq!(strip("lines-from:#", "P6\n# date\n1 # 2\n"), "P6\n1 # 2\n");
        assert_eq!(strip("number-after:nps", "x nps 123 y nps 4\nnps\n"), "x nps y nps nps\n");
    }

    #[test]
    fn a_stripper_without_argument_or_of_no_name_is_unknown() {
        assert!(!known("lines-with") && !known("lines-with:") && !known("dates:x"));
    }
}
