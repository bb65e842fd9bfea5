//! The modelled core inside the traced process, and its account outside.
//!
//! ```text
//! launcher: ModelAsk --settings, machine file--> plugin: Modelled<core> a thread
//!                                                  |  totals, every few thousand instructions
//!                                                  |  rows by instruction, now and again
//! launcher: ModelledThread <--results file---------+
//! ```
//!
//! Totals of a program that is killed are at most [`TOTALS_EVERY`] instructions old, its rows at
//! most [`ROWS_EVERY`], and of a short run two thirds; one that kills itself by a call leaves nearly
//! all, and a program that ends by itself leaves both whole.

mod ask;
pub mod counting;
mod due;
mod interrupts;
mod listened;
mod listener;
mod read;

pub use ask::{CoreAsk, ModelAsk};
pub use counting::CountAsk;
pub use interrupts::{InterruptAsk, SAMPLED_MOST};
pub use listener::{Modelled, ROWS_EVERY, TOTALS_EVERY, make};
pub use read::{EdgeRow, InstructionRow, ModelledThread};

use model::event::HAPPENINGS;

/// The words of an instruction's row: ticks, runs, runs that were timed, happenings in those.
pub(crate) const ROW_WORDS: usize = 3 + HAPPENINGS;
/// The words that say how the totals were estimated.
pub(crate) const SAMPLING_WORDS: usize = 6;
/// How many rows a chunk of the results file holds.
pub(crate) const CHUNK_ROWS: usize = 128;

/// The words of a way: from and to in one, how often in the other.
pub(crate) const WAY_WORDS: usize = 2;
/// How many ways a chunk holds.
pub(crate) const CHUNK_WAYS: usize = 512;

const _: () = assert!(SAMPLED_MOST + 2 + interrupts::EDGE_WORDS <= ROW_WORDS);
const _: () = assert!(CHUNK_WAYS * WAY_WORDS * 8 <= crate::results::CHUNK_PAYLOAD_BYTES);
const _: () = assert!(CHUNK_ROWS * ROW_WORDS * 8 <= crate::results::CHUNK_PAYLOAD_BYTES);
