//! The engine that was asked for, if this machine can run it.

use tracer::launch::{EngineChoice, can_run_natively};

use crate::cli::arguments::{EngineArgument, EngineName};
use crate::failure::{Failure, RUN_FAILED};

/// The engine of a command line. Whether there is a QEMU is seen when it is started.
pub(super) fn engine_choice(asked: &EngineArgument) -> Result<EngineChoice, Failure> {
    match asked.engine {
        None => Ok(EngineChoice::Best),
        Some(EngineName::Qemu) => Ok(EngineChoice::Qemu(None)),
        Some(EngineName::Native) if can_run_natively() => Ok(EngineChoice::Native),
        Some(EngineName::Native) => Err(Failure::new(
            RUN_FAILED,
            "the native engine cannot run here: it needs x86-64 with AVX and BMI2, and Linux 5.9",
        )
        .remedy("take --engine qemu")),
    }
}
