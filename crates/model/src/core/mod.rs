//! What both cores share: the numbers they are built from, how accesses meet micro-ops, what is
//! counted, and the stream of lives for those who listen.

mod access;
mod account;
mod accounting;
mod life;
mod shape;
mod stall;
mod tally;

pub(crate) use access::{Accesses, Piece};
pub use account::{Account, TICKS};
pub use accounting::{Accounting, Sampling};
pub use life::{Life, NOBODY, Silent, Stalled, Watcher};
pub use shape::{Ideal, Mode, Settings};
pub(crate) use shape::{Shape, Writing, ideal_latency};
pub(crate) use stall::{Why, refill};
pub(crate) use tally::{
    add_memory, count_code, count_load, count_mispredict, count_static, count_store,
};
