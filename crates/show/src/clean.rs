//! Names from outside, made harmless.

use std::borrow::Cow;

/// Replaces what could move the cursor, recolour the terminal or reorder the line.
///
/// A symbol name may hold any byte but zero, so control characters (escape sequences, newlines)
/// and the marks that turn the direction of writing are written as `\u{…}`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) {
            cleaned.extend(c.escape_unicode());
        } else {
            cleaned.push(c);
        }
    }
    Cow::Owned(cleaned)
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_are_written_out() {
        assert_eq!(clean("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(clean("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(clean("line\nbreak"), "line\\u{a}break");
    }

    #[test]
    fn ordinary_names_are_left_alone() {
        let name = "std::vec<größe, 32>::push_back()";
        assert!(matches!(clean(name), Cow::Borrowed(same) if same == name));
    }
}
