//! Tables as columns in memory and as Parquet files, whatever they hold.
//!
//! ```text
//! Spec (names, kinds, which columns are the key)
//!   │                      rows sorted by key, no key twice
//!   ├─ Batch ── write ──►  file.parquet ── Rows ──►  Batch, Batch, …
//!   └─ merge: the same key in several files becomes one row, its sums added
//! ```

mod batch;
mod merge;
mod read;
mod spec;
mod texts;
mod write;

pub(crate) use batch::{Batch, Column, Lists};
pub(crate) use merge::{Merge, Progress, Source};
pub(crate) use read::{Rows, Wanted};
pub(crate) use spec::{Kind, Packing, Spec, key, sum};
pub(crate) use texts::{Symbol, Texts};
pub(crate) use write::{ROWS_PER_GROUP, TableFile};
