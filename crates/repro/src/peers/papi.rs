//! PAPI: counts multiplexed by its own rotation, here over software events.
//!
//! PAPI is a library, not a command: a small one of ours is compiled against it and loaded into
//! the program, where it counts from start to end. It says why when PAPI cannot count here.

use std::path::Path;
use std::process::Command;

use super::{Peer, file};
use crate::context::Context;
use crate::run::Wrap;

/// PAPI's multiplexing inside a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Papi;

const SOURCE: &str = "peers/papi_inside.c";
const HEADERS: &str = "libpapi-dev";

fn build(context: &Context, library: &str) -> Result<(), String> {
    if context.packages.version(HEADERS).is_none() {
        return Err(format!("PAPI is not installed; install the package {HEADERS}"));
    }
    let output = Command::new("gcc")
        .args(["-O2", "-shared", "-fPIC", "-o", library])
        .args([SOURCE, "-lpapi"])
        // A relative name, so that no path of the machine reaches a sentence.
        .current_dir(&context.suite.data)
        .output()
        .map_err(|e| format!("gcc cannot be started: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("error")).unwrap_or("gcc gave no reason");
    Err(format!("the PAPI library does not compile: {line}"))
}

fn inside(context: &Context, scratch: &Path) -> Result<Vec<String>, String> {
    let (library, out) = (file(scratch, "papi_inside.so"), file(scratch, "papi"));
    build(context, &library)?;
    let words =
        ["/usr/bin/env", &format!("PAPI_INSIDE_OUT={out}"), &format!("LD_PRELOAD={library}")];
    Ok(words.map(str::to_owned).to_vec())
}

impl Peer for Papi {
    fn name(&self) -> &'static str {
        "PAPI multiplex"
    }

    fn version(&self, context: &Context) -> Result<String, String> {
        let scratch = context.work.streams()?;
        let words = inside(context, &scratch)?;
        let (program, arguments) = words.split_first().ok_or("PAPI has no command")?;
        let status = Command::new(program).args(arguments).arg("/bin/true").status();
        status.map_err(|e| format!("{program} cannot be started: {e}"))?;
        let said = std::fs::read_to_string(scratch.join("papi"))
            .map_err(|_| "PAPI counted nothing in a trial".to_owned())?;
        match said.lines().next() {
            Some(line) if line.starts_with("PAPI cannot") => Err(line.to_owned()),
            Some(_) => {
                let version = context.packages.version(HEADERS).unwrap_or("unknown");
                Ok(format!("PAPI {version}"))
            }
            None => Err("PAPI counted nothing in a trial".to_owned()),
        }
    }

    fn wrap(&self, context: &Context, scratch: &Path) -> Result<Wrap, String> {
        Ok(Wrap { words: inside(context, scratch)?, joined: false })
    }
}
