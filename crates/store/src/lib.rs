//! The epoch database: counts by image, offset and event, kept as plain Parquet.
//!
//! Constraints: a change is visible as a whole or not at all, whenever the power fails; one writer
//! a host, any number of readers, none of whom waits; files are 0600 and folders 0700; a damaged
//! file costs itself and one sentence. Versions that were ever written stay readable. docs/STORE.md
//! describes every file.
//!
//! Not for: deciding what to sample or when to flush (the daemon's), naming procedures (`image`),
//! or knowing what a terminal is.
//!
//! ```text
//! Profile ── Writer::append ──► segment 7 ─┐  Writer::compact  ┌─► segment 3-7
//!                               segment 6 ─┼───────────────────┘       │
//!                               …         ─┘                  EpochEntry::load ──► Profile
//! DB/HOST/EPOCH/epoch.json lists what counts; its replacement is the moment of every change.
//! ```
#![forbid(unsafe_code)]

mod counts;
mod database;
mod durable;
mod error;
mod layout;
mod lock;
mod manifest;
mod table;
mod tables;
mod writer;

pub use counts::{CountRow, Counts, Want};
pub use database::{Database, EpochEntry, Loaded};
pub use error::StoreError;
pub use manifest::{Facts, Gap, ModelledBy};
pub use tables::Places;
pub use writer::{Appended, Compaction, Removed, Retention, Span, Writer};
