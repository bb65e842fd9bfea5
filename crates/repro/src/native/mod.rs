//! Cycles of the machine itself, without a PMU: CPU time times the core's clock.
//!
//! ```text
//! pin ─ chain ─ the runs ─ chain          kept if both chains tell the same clock within 1 %
//!       clock              clock          and no time was stolen from the CPU meanwhile
//! ```
//!
//! A chain of dependent additions takes a cycle each on every core there is, so its CPU time tells
//! the clock. A guest that shares its core with others runs at no clock of its own; such runs are
//! dropped and counted.

mod clock;
mod pin;
mod steal;

pub use clock::clock_hz;
pub use pin::Pinned;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::run::Wrap;

/// How far two chains around a run may differ.
const CLOCKS_DIFFER_MAX: f64 = 0.01;

/// What a bracketed run told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracketed<T> {
    /// What the run itself brought.
    pub run: T,
    /// The clock around it, in hertz.
    pub clock_hz: f64,
}

/// Runs that were kept, and how many were not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// What each kept run told.
    pub values: Vec<f64>,
    /// How many were dropped.
    pub dropped: usize,
}

/// Runs `run` between two chains; none when the clock was not steady or time was stolen.
///
/// # Errors
///
/// The run's sentence.
pub fn bracketed<T>(
    pinned: &Pinned,
    run: impl FnOnce() -> Result<T, String>,
) -> Result<Option<Bracketed<T>>, String> {
    let stolen = steal::ticks(pinned.cpu());
    let before = clock_hz();
    let run = run()?;
    let after = clock_hz();
    let is_steady = (before / after - 1.0).abs() <= CLOCKS_DIFFER_MAX;
    let is_whole = steal::ticks(pinned.cpu()) == stolen;
    Ok((is_steady && is_whole).then_some(Bracketed { run, clock_hz: (before + after) / 2.0 }))
}

/// Repeats until `wanted` runs are kept, or until there is no hope of it.
///
/// # Errors
///
/// A run's sentence.
pub fn repeat<T>(
    pinned: &Pinned,
    wanted: usize,
    mut run: impl FnMut() -> Result<T, String>,
    cycles: impl Fn(&Bracketed<T>) -> f64,
) -> Result<Kept, String> {
    let mut kept = Kept::default();
    while kept.values.len() < wanted && kept.dropped < 4 * wanted {
        match bracketed(pinned, &mut run)? {
            Some(told) => kept.values.push(cycles(&told)),
            None => kept.dropped += 1,
        }
    }
    Ok(kept)
}

/// What goes before a program so that the C library chooses the code it would choose under QEMU,
/// which has no AVX-512.
pub fn as_under_qemu() -> Wrap {
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
