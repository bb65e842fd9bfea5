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
//! most [`ROWS_EVERY`]; a program that ends by itself leaves both whole.

mod ask;
pub mod counting;
mod listener;
mod read;

pub use ask::{CoreAsk, ModelAsk};
pub use counting::CountAsk;
pub use listener::{Modelled, ROWS_EVERY, TOTALS_EVERY, make};
pub use read::{InstructionRow, ModelledThread};

use model::event::HAPPENINGS;

/// The words of an instruction's row: ticks, runs, runs that were timed, happenings in those.
pub(crate) const ROW_WORDS: usize = 3 + HAPPENINGS;
/// How many rows a chunk of the results file holds.
pub(crate) const CHUNK_ROWS: usize = 128;

const _: () = assert!(CHUNK_ROWS * ROW_WORDS * 8 <= crate::results::CHUNK_PAYLOAD_BYTES);
