//! What it would save to fix this, that, or both.
//!
//! Constraints: a pure function of the lives of micro-ops; memory does not grow with the length of
//! the program; every idealisation is evaluated on the same micro-ops, so that differences are
//! tight.
//!
//! Not for: running programs (see `tracer`), timing them (see `model`), or printing (see `show`).
//!
//! ```text
//! Life of every micro-op ─► label: what each waited for ─► Step
//!                                                           │
//!            sample: windows of a program, kept ◄───────────┤
//!                      │                                    │
//!         time of every set of players ◄─ lanes ◄───────────┘   all at once
//!                      │
//!                      └─► lattice, costs ─► cost, icost, Shapley shares, each with its ±
//! ```
//!
//! A *player* is what is idealised as a whole: a category of events, a resource, or some static
//! instructions.
//!
//! `cost(S)` is what idealising the set S saves. The interaction cost of two categories is what
//! idealising both saves beyond the sum: positive if they overlap (*parallel*: only fixing both
//! helps), negative if they stand in a row beside something else (*serial*: fixing either is
//! enough).
#![deny(unsafe_code)]

mod category;
mod chunk;
mod costs;
mod fixed;
mod history;
mod label;
mod lanes;
mod lattice;
mod node;
mod player;
mod ports;
mod rank;
pub mod sample;
pub mod shotgun;
mod step;
mod strata;
mod walkers;

pub use category::{Categories, Category, Kind, Kinds, subsets_of, subsets_up_to};
pub use costs::Costs;
pub use fixed::Fixed;
pub use label::Labeller;
pub use lanes::{Arbitration, Lanes};
pub use lattice::Lattice;
pub use player::Player;
pub use rank::Weights;
pub use step::{DispatchWait, Step, Wait, Walk};
