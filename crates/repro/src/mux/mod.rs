//! Multiplexing, judged: one log of everything, replayed under any plan and seed.
//!
//! ```text
//! program ──► FastCore ──► every event per 5,000 cycles ──► kept file      (truth, columns)
//! kept file ──► Scheduler: which group counts when ──► readings ──► totals  (replay)
//!            └► sums: the truth ────────────────────────────────────► compared
//! ```

pub mod chart;
pub mod columns;
pub mod judge;
pub mod kl;
pub mod replay;
pub mod truth;
