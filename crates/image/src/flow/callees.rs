//! What a procedure's flow depends on elsewhere in its image: jump tables, callees that never
//! return, and the part that was moved away.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use vocab::Offset;

use super::{CodePart, Exit, FlowGraph, Surroundings};
use crate::disassemble::Flow;
use crate::{Binary, Procedure};

/// Procedures of the C and C++ libraries that never come back, by their usual names. In the image
/// itself nothing needs a name: whoever has no way out does not return.
const NEVER_RETURN: &[&str] = &[
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "__assert_fail",
    "__assert_perror_fail",
    "__assert",
    "__stack_chk_fail",
    "__chk_fail",
    "__fortify_fail",
    "__libc_fatal",
    "__libc_start_call_main",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "pthread_exit",
    "thrd_exit",
    "err",
    "errx",
    "verr",
    "verrx",
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_pure_virtual",
    "__cxa_throw_bad_array_new_length",
    "_Unwind_Resume",
    "__cxa_call_unexpected",
    "_ZSt9terminatev",
    "_ZSt10unexpectedv",
    "_ZSt17__throw_bad_allocv",
];
/// Names with these beginnings: libstdc++'s throwing helpers, and Rust's panics.
const NEVER_RETURN_PREFIXES: &[&str] = &[
    "_ZSt20__throw_",
    "_ZSt19__throw_",
    "_ZSt24__throw_",
    "_ZSt21__throw_",
    "_ZSt16__throw_",
    "_ZN4core9panicking",
];

/// How far callees of callees are looked into.
const DEPTH_MAX: u32 = 4;
/// A procedure larger than this is taken to return: reading it would cost more than it tells.
const LOOKED_INTO_BYTES_MAX: u64 = 4096;

/// An image as its procedures see each other.
#[derive(Debug)]
pub struct Callees<'a> {
    binary: &'a Binary,
    bytes: &'a [u8],
    returns: RefCell<HashMap<u64, bool>>,
    depth: Cell<u32>,
}

impl<'a> Callees<'a> {
    /// Of a parsed image and its bytes.
    pub fn new(binary: &'a Binary, bytes: &'a [u8]) -> Callees<'a> {
        Callees { binary, bytes, returns: RefCell::default(), depth: Cell::new(0) }
    }

    /// The flow of a procedure, the part that was moved away included.
    ///
    /// None if the image does not hold its code.
    pub fn flow_of(&self, procedure: &Procedure) -> Option<FlowGraph> {
        Some(self.flow_and_parts_of(procedure)?.0)
    }

    /// The same, with the code that it was read from.
    pub fn flow_and_parts_of(
        &self,
        procedure: &Procedure,
    ) -> Option<(FlowGraph, Vec<CodePart<'a>>)> {
        let mut parts = vec![self.part(procedure)?];
        let alone = FlowGraph::build(&parts, self);
        let cold = self.moved_away(procedure, &alone);
        if cold.is_empty() {
            return Some((alone, parts));
        }
        parts.extend(cold.iter().filter_map(|procedure| self.part(procedure)));
        Some((FlowGraph::build(&parts, self), parts))
    }

    fn part(&self, procedure: &Procedure) -> Option<CodePart<'a>> {
        let code = self.binary.code(self.bytes, procedure).ok()?;
        Some(CodePart { address: self.binary.address_of(procedure.start)?, code })
    }

    /// Compilers move what is unlikely into a piece of its own: `name.cold` where there are
    /// symbols; in a stripped image a nameless piece that is entered by a branch. A conditional
    /// branch is no tail call, and neither is a jump into the middle.
    fn moved_away(&self, procedure: &Procedure, graph: &FlowGraph) -> Vec<Procedure> {
        let mut found: Vec<Procedure> = Vec::new();
        for step in graph.steps.iter().filter(|step| step.jumps()) {
            let offset = step.target.and_then(|target| self.binary.offset_of(target));
            let other = offset.and_then(|offset| self.binary.procedures().find(offset));
            let Some((offset, other)) = offset.zip(other) else { continue };
            let is_unlikely = step.flow == Flow::Branch || offset != other.start;
            let belongs = match (&procedure.raw_name, &other.raw_name) {
                (Some(name), Some(cold)) => cold.strip_prefix(&**name) == Some(".cold"),
                (_, None) => is_unlikely,
                (None, Some(_)) => false,
            };
            if belongs && other.start != procedure.start && !found.contains(other) {
                found.push(other.clone());
            }
        }
        found
    }

    fn look_into(&self, procedure: &Procedure) -> bool {
        if procedure.len_bytes() > LOOKED_INTO_BYTES_MAX || self.depth.get() >= DEPTH_MAX {
            return true;
        }
        let Some(part) = self.part(procedure) else { return true };
        self.depth.set(self.depth.get() + 1);
        let graph = FlowGraph::build(&[part], self);
        self.depth.set(self.depth.get() - 1);
        let comes_back = |exit: Exit, last: usize| match exit {
            Exit::Return | Exit::Unknown => true,
            // A jump elsewhere returns if that does; one into nowhere may.
            Exit::TailCall => graph.steps[last].target.is_none_or(|target| self.returns(target)),
            Exit::NoReturn | Exit::Trap => false,
        };
        graph.has_missing_edges()
            || graph.blocks.iter().any(|b| b.exit.is_some_and(|exit| comes_back(exit, b.end - 1)))
    }
}

impl Surroundings for Callees<'_> {
    fn data(&self, address: u64, len: usize) -> Option<&[u8]> {
        let Offset(at) = self.binary.offset_of(address)?;
        let at = usize::try_from(at).ok()?;
        self.bytes.get(at..at.checked_add(len)?)
    }

    fn returns(&self, address: u64) -> bool {
        if let Some(&known) = self.returns.borrow().get(&address) {
            return known;
        }
        let offset = self.binary.offset_of(address);
        let procedure = offset.and_then(|offset| self.binary.procedures().find(offset));
        let Some(procedure) = procedure.filter(|found| Some(found.start) == offset) else {
            return true;
        };
        if let Some(name) = &procedure.raw_name
            && never_returns(name)
        {
            self.returns.borrow_mut().insert(address, false);
            return false;
        }
        // Whoever calls itself is assumed to come back while we look.
        self.returns.borrow_mut().insert(address, true);
        let returns = self.look_into(procedure);
        self.returns.borrow_mut().insert(address, returns);
        returns
    }
}

fn never_returns(name: &str) -> bool {
    let plain = name.split('@').next().unwrap_or(name);
    NEVER_RETURN.contains(&plain) || NEVER_RETURN_PREFIXES.iter().any(|p| plain.starts_with(p))
}
