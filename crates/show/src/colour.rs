//! What a line means, and the colour that says so.

/// What a row or word means to the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// Where the time is.
    Hot,
    /// Some of the time.
    Warm,
    /// As it should be.
    Good,
    /// Something is missing or wrong.
    Bad,
    /// Unreliable, or of little weight.
    Faint,
}

/// Whether to colour at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    /// Escape sequences are written.
    On,
    /// Plain text.
    Off,
}

impl Colour {
    /// The text in the colour of its tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => "",
            Tone::Heading => "1",
            Tone::Hot => "1;31",
            Tone::Warm => "33",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Faint => "2",
        };
        if self == Colour::Off || code.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_off_writes_no_escape() {
        assert_eq!(Colour::Off.paint(Tone::Hot, "x"), "x");
        assert_eq!(Colour::On.paint(Tone::Hot, "x"), "\x1b[1;31mx\x1b[0m");
        assert_eq!(Colour::On.paint(Tone::Plain, "x"), "x");
    }
}
