//! The papers' tables and figures, regenerated: ours beside theirs.
//!
//! Constraints: every program, input, value of a paper and goal is data under suite/; the code
//! here only makes, runs, measures and compares. Inputs come from seeds. What fails is named and
//! left out, and the rest goes on. Every measured figure carries its ± at 95 %.
//!
//! Not for: estimators or models (the rooms they live in are called, never copied), and not for
//! choosing what to measure: nothing is tuned to a program of the suite.
//!
//! ```text
//! suite/*.toml ── Suite ─┐
//! target/suite ── Work ──┼─ Context ── rows/NAME.rs: run ── RowResult ─┬─ text, JSON
//! --cmd, --seed ─────────┘                                             └─ docs/RESULTS.md, SVG
//! ```
#![deny(unsafe_op_in_unsafe_fn)]

pub mod agreement;
mod cli;
pub mod context;
pub mod hear;
pub mod idealise;
pub mod kept;
pub mod loops;
pub mod machine;
pub mod make;
pub mod mux;
pub mod native;
pub mod packages;
pub mod peers;
pub mod plot;
pub mod prepare;
pub mod progress;
pub mod report;
pub mod result;
pub mod results;
pub mod rows;
pub mod run;
pub mod smoke;
pub mod suite;
pub mod witness;
pub mod work;

pub use cli::main;
