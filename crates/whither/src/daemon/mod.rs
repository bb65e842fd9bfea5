//! `whither daemon`: every process and the kernel, all the time.
//!
//! ```text
//! start ─► room: lock, socket ─► choose events ─► open ─► give up privileges ─► serve
//!
//! serve:  poll ─┬─ spill half full, or time ─► drain ─► place ─► pending counts
//!               ├─ time ─────────────────────► keep: append to the database
//!               ├─ socket ───────────────────► status, flush, epoch, stop
//!               └─ SIGTERM ──────────────────► drain, keep, end
//! ```

mod account;
mod aside;
mod choose;
mod clock;
mod control;
mod gather;
mod head;
mod keep;
mod open;
mod pending;
mod proc;
mod room;
mod serve;
mod spots;
mod start;
mod view;

use crate::cli::DaemonJob;
use crate::failure::Failure;
use crate::output::Output;

/// Starts one, or asks the one that runs.
pub(crate) fn daemon(job: &DaemonJob, output: &Output) -> Result<u8, Failure> {
    match job {
        DaemonJob::Start(job) if job.foreground => start::in_foreground(job).map(|()| 0),
        DaemonJob::Start(job) => start::apart(job, output).map(|()| 0),
        DaemonJob::Ask(ask, database) => control::ask(*ask, database, output).map(|()| 0),
    }
}
