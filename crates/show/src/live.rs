//! A screen that is painted again and again in place.
//!
//! ```text
//! paint: ESC[H (home), each line + ESC[K (clear to its end), ESC[J (clear what is left below)
//! ```
//!
//! Lines are cut to the screen, so that nothing scrolls and the cursor's place stays known. The
//! caller writes; nothing here knows what a terminal is.

/// Turns text into what repaints it in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Live {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

impl Live {
    /// Written once before the first painting: a screen of our own, without a cursor.
    pub const BEGIN: &'static str = "\x1b[?1049h\x1b[?25l";
    /// Written once at the end: the reader's own screen back.
    pub const END: &'static str = "\x1b[?25h\x1b[?1049l";

    /// The text, at home. Escape sequences for colour take no place.
    pub fn paint(self, text: &str) -> String {
        let mut painted = String::from("\x1b[H");
        let lines: Vec<&str> = text.lines().collect();
        let room = self.height.max(1);
        for (place, line) in lines.iter().take(room).enumerate() {
            if place > 0 {
                painted.push_str("\r\n");
            }
            let is_cut = lines.len() > room && place + 1 == room;
            painted.push_str(&if is_cut { "…".to_owned() } else { cut(line, self.width) });
            painted.push_str("\x1b[K");
        }
        painted.push_str("\x1b[J");
        painted
    }
}

/// The line's first `width` characters, colours apart; a colour that was begun is ended.
fn cut(line: &str, width: usize) -> String {
    let mut kept = String::with_capacity(line.len());
    let (mut shown, mut is_escape, mut is_coloured) = (0, false, false);
    for c in line.chars() {
        if c == '\x1b' {
            is_escape = true;
            is_coloured = true;
        }
        if !is_escape {
            if shown == width {
                break;
            }
            shown += 1;
        }
        kept.push(c);
        if is_escape && c.is_ascii_alphabetic() {
            is_escape = false;
        }
    }
    if is_coloured {
        kept.push_str("\x1b[0m");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_painting_starts_at_home_and_clears_what_was_there() {
        let live = Live { width: 20, height: 10 };
        assert_eq!(live.paint("a\nb\n"), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
    }

    #[test]
    fn nothing_is_wider_or_taller_than_the_screen() {
        let live = Live { width: 3, height: 2 };
        assert_eq!(live.paint("abcdef\nx\ny\n"), "\x1b[Habc\x1b[K\r\n…\x1b[K\x1b[J");
        // Colour takes no place, and is ended where the line is cut.
        assert_eq!(cut("\x1b[1mabcd\x1b[0m", 3), "\x1b[1mabc\x1b[0m");
    }
}
