//! What is known of instructions, micro-ops and stores on their way.

use crate::cause::Cause;
use crate::core::{NOBODY, Piece};
use crate::machine::Class;
use crate::program::{Kind, Op};
use crate::units::Level;

/// An instruction that has run.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) place: u32,
    pub(super) loads: Vec<Piece>,
    pub(super) stores: Vec<Piece>,
    /// Where the program went on, if another block followed.
    pub(super) next: Option<u64>,
}

/// A micro-op between fetch and retirement.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) op: Op,
    pub(super) place: u32,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    pub(super) group: u64,
    pub(super) pieces: Vec<Piece>,
    pub(super) fetched: u64,
    pub(super) dispatched: u64,
    /// When the operands known so far are there.
    pub(super) ready: u64,
    /// Operands whose time is not known yet.
    pub(super) unknown: u32,
    /// Who waits for this one's result.
    pub(super) consumers: Vec<u64>,
    pub(super) is_issued: bool,
    pub(super) issued: u64,
    /// Not dispatched before this cycle: a load that is done again.
    pub(super) not_before: u64,
    /// It has issued once, and was then done again: the caches have heard of it.
    pub(super) is_again: bool,
    /// When the lines that it asked for the first time are there.
    pub(super) arrived: u64,
    /// Since when an older store's unknown address has held this load back; 0 if none has.
    pub(super) held_since: u64,
    /// It is held back no longer.
    pub(super) is_released: bool,
    /// A store that this load needed had no address yet, or would have had none.
    pub(super) is_harmed: bool,
    /// That it met a store is counted.
    pub(super) is_counted: bool,
    /// When its result is there; `u64::MAX` while a load waits for an older store.
    pub(super) completed: u64,
    /// Of such a load, the latest that is known so far.
    pub(super) known: u64,
    pub(super) producers: [u64; 4],
    pub(super) store: u64,
    pub(super) cause: Cause,
    pub(super) level: Level,
    /// Whence what it waited for came.
    pub(super) from: Level,
    pub(super) miss_cycles: u32,
    pub(super) translation_cycles: u32,
    pub(super) missed_tlb: bool,
    pub(super) mispredicted: bool,
    pub(super) resteered: bool,
    pub(super) taken: bool,
    pub(super) met: super::fetch::Met,
    /// What held fetch up last before this one, and whose fault it was.
    pub(super) front: (Cause, u32),
    /// The store queue was what held its dispatch up.
    pub(super) by_stores: bool,
}

impl Entry {
    /// Whether it is known when its result is there.
    pub(super) fn is_timed(&self) -> bool {
        self.is_issued && self.completed != u64::MAX
    }
}

impl Default for Entry {
    fn default() -> Entry {
        Entry {
            op: Op {
                sources: [63; 4],
                targets: [62; 4],
                ports: 0,
                latency: 0,
                busy: 1,
                class: Class::Nop,
                kind: Kind::Plain,
                scheduler: 8,
                slots: 0,
            },
            place: 0,
            is_first: false,
            is_last: false,
            group: 0,
            pieces: Vec::new(),
            fetched: 0,
            dispatched: 0,
            ready: 0,
            unknown: 0,
            consumers: Vec::new(),
            is_issued: false,
            issued: 0,
            not_before: 0,
            is_again: false,
            arrived: 0,
            held_since: 0,
            is_released: false,
            is_harmed: false,
            is_counted: false,
            completed: 0,
            known: 0,
            producers: [NOBODY; 4],
            store: NOBODY,
            cause: Cause::Integer,
            level: Level::L1,
            from: Level::L1,
            miss_cycles: 0,
            translation_cycles: 0,
            missed_tlb: false,
            mispredicted: false,
            resteered: false,
            taken: false,
            met: super::fetch::Met::default(),
            front: (Cause::Fetch, 0),
            by_stores: false,
        }
    }
}

/// A store between dispatch and the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedStore {
    /// The micro-op that computes its address; the next one brings its data.
    pub(super) sequence: u64,
    pub(super) piece: Piece,
    /// Whether a load may take its value by renaming.
    pub(super) is_plain: bool,
    /// Whether half of it is written: one across a boundary is written in two.
    pub(super) is_half: bool,
    /// When its line is there; unknown before its address is.
    pub(super) line: u64,
    /// When it retired.
    pub(super) retired: u64,
}
