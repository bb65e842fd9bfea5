//! The engine that was asked for, if this machine can run it.

use std::ffi::OsStr;

use clap::ValueEnum;
use tracer::launch::engine::CHOICE;
use tracer::launch::{EngineChoice, can_run_natively};

use crate::cli::arguments::{EngineArgument, EngineName};
use crate::failure::{Failure, RUN_FAILED};

/// The engine of a command line, or else of the environment. Whether there is a QEMU is seen when it is
/// started.
pub(super) fn engine_choice(asked: &EngineArgument) -> Result<EngineChoice, Failure> {
    let asked = match asked.engine {
        Some(engine) => Some(engine),
        None => named(&std::env::var_os(CHOICE).unwrap_or_default())?,
    };
    match asked {
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

/// What the environment names; none if that is empty.
fn named(text: &OsStr) -> Result<Option<EngineName>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let name = text.to_string_lossy();
    EngineName::from_str(&name, true).map(Some).map_err(|_| {
        Failure::new(RUN_FAILED, format!("{CHOICE} is '{name}', which is no engine"))
            .remedy("set it to native or qemu, or unset it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_an_engine_or_none_and_nothing_else() {
        let name = |text: &str| named(OsStr::new(text)).map_err(|why| why.sentence());
        assert_eq!(name(""), Ok(None));
        assert_eq!(name("qemu"), Ok(Some(EngineName::Qemu)));
        assert_eq!(name("Native"), Ok(Some(EngineName::Native)));
        let refused = name("quemu").expect_err("no such engine");
        assert!(refused.starts_with("WHITHER_ENGINE is 'quemu', which is no engine"), "{refused}");
    }
}
