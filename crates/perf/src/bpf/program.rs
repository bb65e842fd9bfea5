//! A program for perf events, verified and loaded.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::call::{PROG_LOAD, ProgLoad, call};
use crate::Refusal;

const BPF_PROG_TYPE_PERF_EVENT: u32 = 7;

/// A loaded program; it lives as long as this or an event that it is attached to.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

/// Why a program was not loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotLoaded {
    /// The kernel's answer.
    pub refusal: Refusal,
    /// The last lines of the verifier's log, where it had objections.
    pub objection: String,
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel did not load the collector's program: {}", self.refusal)?;
        match self.objection.as_str() {
            "" => Ok(()),
            objection => write!(f, " ({objection})"),
        }
    }
}

impl std::error::Error for NotLoaded {}

impl Program {
    /// Loads instructions; the verifier is asked for its log only if it objects.
    pub fn load(instructions: &[u64]) -> Result<Program, NotLoaded> {
        match load(instructions, None) {
            Ok(fd) => Ok(Program { fd }),
            Err(refusal) if refusal.is_permission() && refusal == Refusal::Privilege => {
                Err(NotLoaded { refusal, objection: String::new() })
            }
            Err(_) => {
                let mut log = vec![0_u8; 1 << 20];
                match load(instructions, Some(&mut log)) {
                    Ok(fd) => Ok(Program { fd }),
                    Err(refusal) => Err(NotLoaded { refusal, objection: last_words(&log) }),
                }
            }
        }
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn load(instructions: &[u64], log: Option<&mut Vec<u8>>) -> Result<OwnedFd, Refusal> {
    let licence = c"Dual MIT/GPL";
    let mut attr = ProgLoad {
        prog_type: BPF_PROG_TYPE_PERF_EVENT,
        insn_count: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: licence.as_ptr() as u64,
        prog_name: *b"whither_collect\0",
        ..ProgLoad::default()
    };
    if let Some(log) = log {
        attr.log_level = 1;
        attr.log_size = log.len() as u32;
        attr.log_buf = log.as_mut_ptr() as u64;
    }
    // SAFETY: the structure is the one of this command; the instructions, the licence and the log
    // outlive the call, with the lengths given.
    unsafe { call(PROG_LOAD, &attr) }
}

/// The end of the log, where the objection is.
fn last_words(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(log.get(..end).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed")).collect();
    lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join("; ")
}
