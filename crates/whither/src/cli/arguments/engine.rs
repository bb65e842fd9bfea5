//! What runs a program and tells its instructions; the same for every command that asks for them.

use clap::{Args, ValueEnum};

/// Which engine.
#[derive(Debug, Args)]
pub(crate) struct EngineArgument {
    /// What runs the program and tells its instructions [default: $WHITHER_ENGINE, else native where
    /// that can run, else qemu]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// On this host's own processor: the fastest, and needs no package; for x86-64 hosts
    Native,
    /// Under a qemu-user that takes plugins: for any host that has one
    Qemu,
}
