//! What a machine file says. Every table carries the source of its facts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Class;

/// Which hosts the file describes.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The vendor as `cpuid` spells it.
    pub vendor: String,
    /// The family, extended part included.
    pub family: u32,
    /// Ranges of models, both ends included; empty when no host matches.
    pub models: Vec<[u32; 2]>,
    /// The clock that turns cycles into seconds.
    pub clock_mhz: u32,
    /// Where the facts come from.
    pub source: String,
}

/// From the instruction cache to the queue before dispatch.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// Micro-ops fetched a cycle at best.
    pub fetch_width: u32,
    /// Bytes of code fetched a cycle at best.
    pub fetch_bytes: u32,
    /// Taken branches after which fetch stops for the cycle.
    pub taken_per_cycle: u32,
    /// Micro-ops between fetch and dispatch.
    pub queue: u32,
    /// Cycles from fetch to dispatch.
    pub front_cycles: u32,
    /// Instructions decoded a cycle when they do not come from a micro-op cache.
    pub decode_width: u32,
    /// Micro-ops held decoded; 0 without such a cache.
    pub uop_cache_uops: u32,
    /// Its ways.
    pub uop_cache_ways: u32,
    /// Micro-ops a line of it.
    pub uop_cache_line_uops: u32,
    /// Where the facts come from.
    pub source: String,
}

/// In which order micro-ops issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As their operands become ready.
    OutOfOrder,
    /// As they stand in the program, several a cycle.
    InOrder,
}

/// From dispatch to retirement.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Issue order.
    pub order: Order,
    /// Micro-ops dispatched a cycle.
    pub dispatch_width: u32,
    /// Micro-ops retired a cycle.
    pub retire_width: u32,
    /// Micro-ops in flight.
    pub rob: u32,
    /// Loads in flight.
    pub load_queue: u32,
    /// Stores in flight, until they are written to the cache.
    pub store_queue: u32,
    /// Cycles from dispatch to the earliest issue.
    pub dispatch_to_issue_cycles: u32,
    /// Cycles from completion to the earliest retirement.
    pub complete_to_retire_cycles: u32,
    /// Cycles from the execution of a mispredicted branch to the dispatch of its target.
    pub mispredict_cycles: u32,
    /// Cycles from a result to the issue of what waits for it; 1 is back to back.
    pub wakeup_cycles: u32,
    /// Cycles from a store's data to a load that takes it from the store queue.
    pub store_forward_cycles: u32,
    /// The same where renaming joins the two: registers of integers, half a register or more, from
    /// where the store begins. As above on machines that do not.
    pub renamed_forward_cycles: u32,
    /// Further cycles of a load that a store has only part of, once that store is written.
    pub blocked_forward_cycles: u32,
    /// Counters, a power of two, that tell loads which may go ahead of older stores whose addresses
    /// are not known yet. Left out or 0, loads know without error whom they depend on; so they do
    /// where micro-ops travel in groups or issue in order.
    #[serde(default)]
    pub disambiguation_entries: u32,
    /// How often on end a load must have come to no harm before it goes ahead.
    #[serde(default)]
    pub disambiguation_trust: u32,
    /// Cycles from a store's address to the dispatch of a load that has overtaken it, which is done
    /// again with all that follows.
    #[serde(default)]
    pub disambiguation_restart_cycles: u32,
    /// Stores written to the cache a cycle.
    pub stores_per_cycle: u32,
    /// Whether those of one cycle must go to the same line.
    pub stores_share_line: bool,
    /// A store across a multiple of so many bytes is written in two, in cycles of its own where those
    /// of one cycle must share a line; 0 where none is.
    pub store_boundary_bytes: u32,
    /// Whether `xor r,r` and the like need no unit.
    pub zero_idioms: bool,
    /// Whether register copies need no unit.
    pub move_elimination: bool,
    /// Whether compare and branch become one micro-op.
    pub branch_fusion: bool,
    /// Whether a load and its operation share a slot until they issue.
    pub load_op_fusion: bool,
    /// Whether a no-op shares the slot of the instruction before it.
    pub nop_fusion: bool,
    /// Slots of a dispatch group; 0 when micro-ops travel alone.
    pub bundle_slots: u32,
    /// Branches in a group, each ending it; meaningless without groups.
    pub bundle_branches: u32,
    /// Where the facts come from.
    pub source: String,
}

/// A queue in which micro-ops wait for operands and a port.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// Its name.
    pub name: String,
    /// Micro-ops that may wait.
    pub entries: u32,
    /// The ports behind it, the preferred first.
    pub ports: Vec<String>,
    /// Where the facts come from.
    pub source: String,
}

/// How a class of micro-ops executes.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// Cycles from issue to result.
    pub latency: u32,
    /// The ports that can do it; none when it needs no unit.
    pub ports: Vec<String>,
    /// Cycles for which the port is taken.
    #[serde(default = "one")]
    pub busy: u32,
}

fn one() -> u32 {
    1
}

/// The execution of every class.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// Where the facts come from.
    pub source: String,
    /// By class.
    pub of: BTreeMap<Class, Execution>,
}

/// A cache.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheFacts {
    /// Its size.
    pub size_kib: u32,
    /// Its ways.
    pub ways: u32,
    /// Its line.
    pub line_bytes: u32,
    /// Cycles from a load's issue to its data, everything nearer included.
    pub latency_cycles: u32,
    /// Misses it can have outstanding.
    pub misses: u32,
    /// Bytes that it hands over in a cycle, heeded of the third level. Left out, any number.
    #[serde(default)]
    pub bytes_per_cycle: Option<u32>,
    /// Where the facts come from.
    pub source: String,
}

/// The caches, nearest first.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Instructions.
    pub l1i: CacheFacts,
    /// Data.
    pub l1d: CacheFacts,
    /// Both.
    pub l2: CacheFacts,
    /// Both, where there is one.
    pub l3: Option<CacheFacts>,
}

/// A translation buffer.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbFacts {
    /// Translations held.
    pub entries: u32,
    /// Its ways; as many as entries when fully associative.
    pub ways: u32,
    /// Cycles that a hit adds.
    pub latency_cycles: u32,
}

/// Address translation.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tlbs {
    /// The page.
    pub page_bytes: u32,
    /// First level, instructions.
    pub l1i: TlbFacts,
    /// First level, data.
    pub l1d: TlbFacts,
    /// Second level, instructions.
    pub l2i: Option<TlbFacts>,
    /// Second level, data.
    pub l2d: Option<TlbFacts>,
    /// Cycles of a walk of the page tables, besides the last table's entry: that is read through the
    /// second-level cache.
    pub walk_cycles: u32,
    /// Walks at a time.
    pub walkers: u32,
    /// Where the facts come from.
    pub source: String,
}

/// What lies behind the last cache.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Cycles from a load's issue to its data.
    pub latency_cycles: u32,
    /// Bandwidth of one core.
    pub bytes_per_cycle: u32,
    /// Whether pages lie anywhere, as an operating system places them: the second and third level know
    /// lines by where they lie. Left out, by the program's addresses.
    #[serde(default)]
    pub scattered_pages: bool,
    /// Where the facts come from.
    pub source: String,
}

/// Who fetches lines before they are asked for.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefetch {
    /// The line after one that missed in the first-level data cache.
    pub l1_next_line: bool,
    /// The line after one that missed in the instruction cache.
    pub code_next_line: bool,
    /// Constant strides of one instruction, within a page.
    pub l1_stride: bool,
    /// Rows of lines, into the second level.
    pub l2_stream: bool,
    /// How far ahead a stream runs that has just begun or whose lines are near. With 0, every stream
    /// is as one of lines from memory.
    pub l2_stream_lines: u32,
    /// How far ahead one of lines from memory runs at most: as far as it has come. Left out, no
    /// further than at first.
    #[serde(default)]
    pub l2_stream_lines_max: u32,
    /// Whether one of lines from memory goes on in the next page.
    #[serde(default)]
    pub l2_stream_crosses_pages: bool,
    /// Where the facts come from.
    pub source: String,
}

/// How directions are predicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Two bits a branch.
    Bimodal,
    /// Bimodal and gshare with a chooser.
    Tournament,
    /// Tagged tables of geometrically growing history over a bimodal base.
    Tage,
}

/// Branch prediction.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchFacts {
    /// The direction predictor.
    pub direction: Direction,
    /// Entries of the bimodal table.
    pub base_entries: u32,
    /// Entries of each history table.
    pub table_entries: u32,
    /// History tables.
    pub tables: u32,
    /// The longest history.
    pub history_bits: u32,
    /// Targets held.
    pub btb_entries: u32,
    /// Its ways.
    pub btb_ways: u32,
    /// Targets of indirect branches by history; 0 when they use the target buffer.
    pub indirect_entries: u32,
    /// Return addresses held.
    pub return_stack: u32,
    /// Cycles of fetch lost when the decoder finds a taken branch that the target buffer missed.
    pub resteer_cycles: u32,
    /// Cycles of fetch lost after every taken branch.
    pub taken_bubble_cycles: u32,
    /// Further cycles lost after a call or a return.
    pub call_bubble_cycles: u32,
    /// Further cycles lost after an indirect branch that goes elsewhere than the target buffer says,
    /// where the path told so in time.
    pub indirect_bubble_cycles: u32,
    /// Taken branches of one line of code that the target buffer follows at once; 0 for all.
    #[serde(default)]
    pub line_targets: u32,
    /// Further cycles lost after a taken branch of a line that has more of them.
    #[serde(default)]
    pub crowded_bubble_cycles: u32,
    /// Whether a taken branch goes along with another in its cycle only if it did when they were met
    /// first. Left out, whoever comes does.
    #[serde(default)]
    pub fixed_pairs: bool,
    /// Where the facts come from.
    pub source: String,
}

/// Events that only some counters can count.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// The events.
    pub events: Vec<String>,
    /// The counters.
    pub counters: Vec<u32>,
    /// Where the facts come from.
    pub source: String,
}

/// The performance counters.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PmuFacts {
    /// Counters that take any event, constraints apart.
    pub general: u32,
    /// Their width.
    pub width_bits: u32,
    /// Events that have a counter of their own.
    pub fixed: Vec<String>,
    /// Cycles from an overflow to its interrupt.
    pub skid_cycles: u32,
    /// Events that only some counters can count.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// Where the facts come from.
    pub source: String,
}
