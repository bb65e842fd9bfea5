//! Tables as columns in memory and as Parquet files, whatever they hold.
//!
//! ```text
//! Spec (names, kinds, which columns are the key)
//!   │                      rows sorted by key, no key twice
//!   ├─ Batch ── write ──►  file.parquet ── Rows ──►  Batch, Batch, …
//!   └─ merge: the same key in several files becomes one row, its sums added
//! ```

mod batch;
mod check;
mod maybes;
mod merge;
mod read;
mod runs;
mod spec;
mod texts;
mod write;

pub(crate) use batch::{Batch, Column, Lists};
pub(crate) use check::{checks_of, hash_range};
pub(crate) use maybes::Maybes;
pub(crate) use merge::{Merge, Progress, Source};
pub(crate) use read::{Rows, Wanted};
pub(crate) use spec::{Kind, Packing, Spec, key, sum};
pub(crate) use texts::{Symbol, Texts};
pub(crate) use write::{Effort, ROWS_PER_GROUP, TableFile};
