//! What went wrong, in one sentence.

use std::process::ExitCode;

use serde_json::json;

/// A failure of whither itself: what happened, what was kept, what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// What happened.
    pub(crate) what: String,
    /// What was kept or left undone; empty where there was nothing to lose.
    pub(crate) kept: String,
    /// What to do about it; empty where nothing helps.
    pub(crate) remedy: String,
    /// The exit status.
    pub(crate) status: u8,
}

/// An error of a command that reads or repeats.
pub(crate) const ERROR: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// A command that runs a program failed itself, as `env` has it.
pub(crate) const RUN_FAILED: u8 = 125;
/// The program is there and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program is not there.
pub(crate) const NOT_FOUND: u8 = 127;

/// The status that a program's end is passed on as: its own, or 128 + n as a shell says it where
/// signal n killed it.
pub(crate) fn passed_on(code: Option<i32>, signal: Option<i32>) -> u8 {
    match (code, signal) {
        (Some(code), _) => code as u8,
        (None, signal) => 128_u8.saturating_add(signal.unwrap_or(0) as u8),
    }
}

impl Failure {
    pub(crate) fn new(status: u8, what: impl Into<String>) -> Failure {
        Failure { what: what.into(), kept: String::new(), remedy: String::new(), status }
    }

    pub(crate) fn kept(mut self, kept: impl Into<String>) -> Failure {
        self.kept = kept.into();
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Failure {
        self.remedy = remedy.into();
        self
    }

    /// The sentence: `what; kept; remedy`.
    pub(crate) fn sentence(&self) -> String {
        let parts = [&self.what, &self.kept, &self.remedy];
        let said: Vec<&str> =
            parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
        show::clean(&said.join("; ")).into_owned()
    }

    /// Says it on stderr and gives the status.
    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        if as_json {
            let error = json!({
                "schema": "whither.error", "version": 1,
                "what": self.what, "kept": self.kept, "remedy": self.remedy,
                "status": self.status,
            });
            eprintln!("{error}");
        } else {
            eprintln!("whither: {}", self.sentence());
        }
        ExitCode::from(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_leaves_out_what_is_not_said_and_cleans_the_rest() {
        let bare = Failure::new(ERROR, "it broke");
        assert_eq!(bare.sentence(), "it broke");
        let whole = bare.kept("nothing was lost").remedy("try\x1b again");
        assert_eq!(whole.sentence(), "it broke; nothing was lost; try\\u{1b} again");
    }
}
