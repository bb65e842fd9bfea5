//! Where a number came from.

/// Every number says which of the two kinds of core it came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// The machine itself.
    Measured,
    /// A modelled core fed by the real program.
    Modelled,
}

impl Source {
    /// The word that is printed beside the number.
    pub fn word(self) -> &'static str {
        match self {
            Source::Measured => "measured",
            Source::Modelled => "modelled",
        }
    }
}
