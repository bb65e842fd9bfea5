//! The event sets' C interface: thin calls over `counters::sets`.
//!
//! Constraints: every call returns a code of [`code`]; a set is a number that is looked up, never a
//! pointer; what is written goes to memory of a stated size; no panic crosses over. The header is
//! made from the declarations here (`WHITHER_BLESS=1 cargo test -p counters-c` writes it anew).
//!
//! Not for: anything that `counters` could decide.
//!
//! ```text
//! interface! { fn whither_start(set: c_int) } ─┬─► extern "C" fn whither_start
//!                                              └─► Declaration ─► whither_counters.h
//! ```

mod calls;
mod code;
mod header;
mod value;

pub use calls::*;
pub use code::{Code, of};
pub use header::header;
pub use value::WhitherValue;
