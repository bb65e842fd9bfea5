//! A micro-op as a piece of the dependence graph.
//!
//! Five nodes stand for its life, and the edges of the paper's table 3 lead to them. Three more
//! stand beside them: when the front end has it at hand, because a queue lets fetch run ahead of
//! dispatch; when its translation is there, because only so many walks of the page tables are under
//! way at a time; and when a store is written, because a full store queue holds dispatch up.
//!
//! ```text
//! A at hand      AA   in order, behind a code miss      imiss
//!                FBW  so many fetched a cycle           bw
//!                DA   room in the queue                 win
//!                PA   a mispredicted branch before it   bmisp   (the paper's PD)
//! D dispatched   DD   in order                          –
//!                AD   at hand                           –
//!                DBW  so many a cycle                   bw
//!                CD   a place in the window             win
//!                SD   a place for a store               win
//! R ready        DR   from dispatch                     –
//!                PR   values                            –
//! E executing    RE   a port                            bw
//! W walked       EW   the page tables                   dmiss   (of those who have to)
//!                WW   a free page walker                dmiss
//! P completed    EP   the work                          dl1, dmiss, shalu, lgalu
//!                WP   its address                       –
//!                PP   a line that another fetches       dmiss
//!                PP   a miss that has to end first      dmiss
//!                PP   a store's data                    –
//! C committed    PC   from completion                   –
//!                CC   in order                          –
//!                CBW  so many a cycle                   bw
//! S written      CS   behind retirement                 –
//!                ES   its line                          dmiss
//!                SS   in order, so many a cycle         bw
//! ```

use crate::Kind;

/// Where an edge begins: so many micro-ops before.
pub(crate) type Distance = u32;

/// What else held dispatch up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A scheduler's entry that was freed when an older micro-op issued.
    Issue,
    /// A place in a queue that was freed when an older micro-op retired.
    Commit,
}

/// An edge to dispatch beyond those that every micro-op has: a full scheduler or queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DispatchWait {
    /// From which node.
    pub from: Wait,
    /// Of which micro-op.
    pub distance: Distance,
    /// How long after it, in cycles.
    pub label: u32,
}

/// A walk of the page tables. Only so many are under way at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Walk {
    /// EW: what it takes once a walker is free.
    pub cycles: u32,
    /// WW: whether it waits where all walkers are busy.
    pub waits: bool,
    /// WP: whether the result waits for it. That of a store's address does not.
    pub holds_up: bool,
}

/// A micro-op with the labels of its edges, in cycles. A distance of 0 is no edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// The static instruction, as a place in the program.
    pub instruction: u32,
    /// AA: what waiting for code adds.
    pub code: u32,
    /// AA: what waiting for its translation adds.
    pub code_translation: u32,
    /// AA: what a branch adds that was not where it was thought to be.
    pub resteer: u32,
    /// AA: what the front end adds otherwise.
    pub bubble: u32,
    /// FBW: the micro-op that was fetched a full width before.
    pub fetch_width: Distance,
    /// FBW: the taken branch behind which fetch ended, and the cycles after it.
    pub taken: (Distance, u32),
    /// DA: the micro-op whose dispatch made room in the queue; `Some(0)` where there was room. With
    /// none the queue is not known, and the front end does not run ahead of dispatch.
    pub queue: Option<Distance>,
    /// DA: the same in an ideal queue.
    pub ideal_queue: Distance,
    /// DD: what a full resource adds where nobody in sight freed it.
    pub stuck: u32,
    /// DBW: the micro-op that took its slots a full width before.
    pub width: Distance,
    /// CD: the micro-op whose retirement made room in the window.
    pub window: Distance,
    /// CD: the same in a window twenty times as large, which is what an ideal one is.
    pub ideal_window: Distance,
    /// CD: the load whose retirement made room in the load queue.
    pub load_room: Distance,
    /// SD: it takes a place in the store queue.
    pub takes_store: bool,
    /// CD: a full scheduler or queue.
    pub wait: Option<DispatchWait>,
    /// PA: the mispredicted branch right before it, and the cycles from its execution to dispatch.
    pub redirect: (Distance, u32),
    /// PR: makers of its operands.
    pub producers: [Distance; 4],
    /// PR: the store whose data a load had to wait for before it could issue.
    pub data: Distance,
    /// RE: the ports that can do it, as a mask, and for how many cycles it takes one.
    pub ports: (u32, u32),
    /// RE: how long it was ready before it issued.
    pub contention: u32,
    /// EP: a hit in the first level.
    pub hit: u32,
    /// EP: one-cycle integer work.
    pub short: u32,
    /// EP: other work.
    pub long: u32,
    /// EP: beyond a hit in the first level.
    pub miss: u32,
    /// Where the line was that it missed.
    pub level: Kind,
    /// EP: the translation, beside the miss, where no tables are walked.
    pub translation: u32,
    /// EW: the walk of the page tables.
    pub walk: Option<Walk>,
    /// EP: what nothing idealises.
    pub fixed: u32,
    /// PP: the micro-op that brings the line which this one reads too, and the cycles after it.
    pub line: (Distance, u32),
    /// PP: the miss that had to end before this one could begin, because only so many are under
    /// way at a time, and the cycles after it.
    pub miss_room: (Distance, u32),
    /// PP: the store whose data it takes (the micro-op with the data; its address is the one
    /// before), and the cycles after it.
    pub forward: (Distance, u32),
    /// CBW: the micro-op that retired a full width before.
    pub retire_width: Distance,
    /// CC: what nothing else explains.
    pub late: u32,
    /// ES: it is a store's data; the cycles from the issue of its address, the micro-op before it,
    /// until its line may be written.
    pub write: Option<u32>,
}
