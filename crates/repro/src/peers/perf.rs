//! perf, counting and sampling.

use std::path::Path;

use super::{Peer, file, words};
use crate::context::Context;
use crate::machine::version_of;
use crate::run::Wrap;

pub(crate) fn version() -> Result<String, String> {
    version_of("perf", &["--version"])
        .map_err(|why| format!("{why}; install the package linux-perf"))
}

/// `perf stat` with its default events.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stat;

impl Peer for Stat {
    fn name(&self) -> &'static str {
        "perf stat"
    }

    fn version(&self, _: &Context) -> Result<String, String> {
        version()
    }

    fn wrap(&self, _: &Context, scratch: &Path) -> Result<Wrap, String> {
        Ok(words(&["/usr/bin/perf", "stat", "-o", &file(scratch, "stat"), "--"]))
    }
}

/// `perf record` by the clock, which every machine has, at 999 Hz.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record;

impl Peer for Record {
    fn name(&self) -> &'static str {
        "perf record"
    }

    fn version(&self, _: &Context) -> Result<String, String> {
        version()
    }

    fn wrap(&self, _: &Context, scratch: &Path) -> Result<Wrap, String> {
        let data = file(scratch, "perf.data");
        Ok(words(&[
            "/usr/bin/perf",
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            "999",
            "-o",
            &data,
            "--",
        ]))
    }
}
