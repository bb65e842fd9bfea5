//! Groups: micro-ops that are dispatched together and retire together.

use crate::core::{Shape, Why};

/// A store that waits for its retirement.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingStore {
    pub(super) address: u64,
    pub(super) size: u64,
    /// When its line may be written.
    pub(super) line: u64,
    /// When its data is there.
    pub(super) data: u64,
    /// When its address was known.
    pub(super) addressed: u64,
    pub(super) sequence: u64,
    /// Whether a load may take its value by renaming.
    pub(super) is_plain: bool,
}

/// The group that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) is_open: bool,
    slots: u64,
    branches: u64,
    /// When the last of it is done.
    pub(super) done: u64,
    pub(super) why: Option<Why>,
    /// Instructions that end in it.
    pub(super) members: Vec<u32>,
    /// Loads in it.
    pub(super) loads: u64,
    /// Lives that wait for its retirement.
    pub(super) lives_from: usize,
}

impl Group {
    /// Whether the next micro-op needs a new group.
    #[inline]
    pub(super) fn is_over(&self, shape: &Shape, slots: u64, starts_instruction: bool) -> bool {
        !self.is_open
            || self.slots + slots > shape.group_slots
            || self.branches >= shape.group_branches
            || shape.is_single && starts_instruction
    }

    pub(super) fn open(&mut self) {
        *self =
            Group { is_open: true, members: std::mem::take(&mut self.members), ..Group::default() };
        self.members.clear();
    }

    pub(super) fn add(&mut self, slots: u64, is_branch: bool, done: u64, why: &Why) {
        self.slots += slots;
        self.branches += u64::from(is_branch);
        if done >= self.done || self.why.is_none() {
            self.done = done;
            self.why = Some(*why);
        }
    }
}
