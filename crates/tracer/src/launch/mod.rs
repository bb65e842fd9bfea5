//! Starting a program under QEMU and reading what it left.

mod interrupt;
mod packer;
mod probe;
pub mod qemu;
mod run;
mod scratch;
pub mod target;

pub use probe::{Qemu, QemuError, probe, probe_at};
pub(crate) use run::Running;
pub use run::{Finished, Launch, LaunchError};
pub(crate) use scratch::Scratch;
