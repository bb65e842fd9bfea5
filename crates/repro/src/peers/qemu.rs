//! Plain qemu-user: emulation without any model, the floor of what a modelled run costs.

use std::path::Path;

use super::{Peer, words};
use crate::context::Context;
use crate::machine::version_of;
use crate::run::Wrap;

/// qemu-x86_64 as it comes.
#[derive(Debug, Clone, Copy)]
pub struct Qemu;

impl Peer for Qemu {
    fn name(&self) -> &'static str {
        "qemu"
    }

    fn version(&self, _: &Context) -> Result<String, String> {
        version_of("qemu-x86_64", &["--version"])
            .map_err(|why| format!("{why}; install the package qemu-user"))
    }

    fn wrap(&self, _: &Context, _: &Path) -> Result<Wrap, String> {
        Ok(words(&["/usr/bin/qemu-x86_64"]))
    }
}
