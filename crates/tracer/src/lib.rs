//! Runs a real program under an engine and streams its instructions into the modelled core.
//!
//! Constraints: the traced program must notice nothing: its descriptors, streams and files are its
//! own. What is counted survives the program's death. Everything read back from a results file or a
//! trace is untrusted.
//!
//! Not for: what a core does with the stream (see `model`), naming procedures (see `image`).
//!
//! ```text
//! launch --starts--> native engine (crates/tracer/native), or
//!                    qemu-x86_64 + plugin (crates/tracer/plugin) --blocks, accesses--> CoreListener
//!                          |                    one of: tally, trace encoder, hash, a modelled core
//!                          +--MAP_SHARED--> results file, one per process: records, tallies, tails
//!                          +--chunks------> trace file, or a socket (live)
//! launch <--reads-- results, trace --replays--> CoreListener
//! ```
//!
//! The native engine and the plugin are built on their own (see crates/tracer/embed for why); this
//! crate is what all sides share and what can be tested without an engine. What both do inside the
//! traced process is in [`inside`].

pub mod assemble;
pub mod block;
pub mod counts;
pub mod ending;
pub mod hash;
pub mod idle;
pub mod inside;
pub mod launch;
pub mod limits;
pub mod modelled;
pub mod pages;
pub mod record;
pub mod results;
pub mod settings;
pub mod stream;
pub mod tally;
pub mod trace;
pub mod varint;
