//! How far the measurement is, on stderr, for a person who waits.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Silent for so long, and then a line at most so often.
const FIRST: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(100);

/// One line that is written over and over; nothing on anything but a terminal.
#[derive(Debug)]
pub(super) struct Live {
    next: Instant,
    is_wanted: bool,
    has_painted: bool,
}

impl Live {
    pub(super) fn new(wanted: bool) -> Live {
        let is_wanted = wanted && std::io::stderr().is_terminal();
        Live { next: Instant::now() + FIRST, is_wanted, has_painted: false }
    }

    /// Says how things stand, if it is time.
    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        if !self.is_wanted || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + BETWEEN;
        self.has_painted = true;
        let line = line();
        let _ = write!(std::io::stderr(), "\r\x1b[Kwhither: {}", show::clean(&line));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.has_painted {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
