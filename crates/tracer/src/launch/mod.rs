//! Starting a program under an engine and reading what it left.

pub mod engine;
mod interrupt;
pub mod native;
mod packer;
mod probe;
pub mod qemu;
mod run;
mod scratch;
pub mod target;

pub use engine::{CHOICE, EngineChoice, Engines, can_run_natively};
pub use probe::{Qemu, QemuError, probe, probe_at};
pub(crate) use run::Running;
pub use run::{Finished, Launch, LaunchError};
pub(crate) use scratch::Scratch;
