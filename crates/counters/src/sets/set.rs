//! One set, as its thread's master list knows it.

use super::Value;

/// What a set is doing.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum State {
    /// Not running; what the last run gave.
    Stopped(Vec<Value>),
    /// Running; where in the thread's history it began.
    Running(usize),
}

/// A set: places in the master list, in the order in which they were added.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Set {
    pub(super) events: Vec<usize>,
    pub(super) state: State,
}

impl Set {
    pub(super) fn new() -> Set {
        Set { events: Vec::new(), state: State::Stopped(Vec::new()) }
    }

    pub(super) fn began(&self) -> Option<usize> {
        match self.state {
            State::Running(began) => Some(began),
            State::Stopped(_) => None,
        }
    }
}
