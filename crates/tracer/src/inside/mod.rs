//! What an engine does inside the traced process, whichever engine it is.
//!
//! Constraints: it lives in the traced program's process. It keeps no descriptor open, writes to
//! none of the program's, starts no thread, and never panics: when something of its own fails the
//! program runs on untraced. An engine may call it from every thread of the program.
//!
//! Not for: running the program's code and finding out what it does; that is the engine's.
//!
//! ```text
//! engine --Inside::start(dir)--> settings, results file; fork::prepare(hooks)
//! code seen for the first time --> Process::intern --> records
//! a thread's first block ------> Process::begin_thread, listeners::make --> its Assembler
//! system call -----------------> calls: maps, exec followed, fork expected, thread's end
//! ```

pub mod calls;
pub mod exec;
pub mod fork;
pub mod images;
pub mod listeners;
pub mod memory;
mod process;

pub use process::{Inside, Process};
