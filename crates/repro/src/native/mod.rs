//! Cycles of the machine itself, without a PMU: CPU time times the core's clock, as `host` tells it.

mod counted;
mod sampled;

use std::path::Path;

pub use counted::{Counted, counted};
pub use sampled::{Sampled, sampled};

pub use host::{Bracketed, Kept, Pinned, bracketed, clock_hz, repeat};

use crate::run::Wrap;

/// What goes before a program so that the C library chooses the code it would choose under the tracer,
/// whose engines show no AVX-512.
pub fn as_traced() -> Wrap {
    const HIDDEN: &str = "-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD,-AVX512ER,-AVX512PF";
    let tunables = format!("GLIBC_TUNABLES=glibc.cpu.hwcaps={HIDDEN}");
    Wrap { words: vec!["/usr/bin/env".to_owned(), tunables], joined: false }
}

/// The machine whose file describes this processor.
///
/// # Errors
///
/// None does.
pub fn described() -> Result<model::machine::Machine, String> {
    let text = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let number = |name: &str| field(name).and_then(|value| value.parse().ok());
    let vendor = field("vendor_id").unwrap_or_default();
    let found = number("cpu family")
        .zip(number("model"))
        .and_then(|(family, model)| model::machine::Machine::matching(&vendor, family, model));
    found.ok_or_else(|| {
        let name = field("model name").unwrap_or_else(|| "this processor".to_owned());
        format!("no file under machines/ describes {name}, so there is nothing to compare with")
    })
}
