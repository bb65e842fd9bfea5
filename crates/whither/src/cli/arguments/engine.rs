//! What runs a program for the modelled core; the same for every command that has one.

use clap::{Args, ValueEnum};

/// Which engine.
#[derive(Debug, Args)]
pub(crate) struct EngineArgument {
    /// What runs the program for the modelled core [default: $WHITHER_ENGINE, else native where this
    /// machine can, else qemu]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// This host's own processor: the fastest, and needs no package; x86-64 hosts only
    Native,
    /// qemu-user: any host that has one which takes plugins
    Qemu,
}
