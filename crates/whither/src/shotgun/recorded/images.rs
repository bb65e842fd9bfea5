//! The code behind the addresses of a recording.
//!
//! Processes map the same image at different addresses. Here an instruction has one address: the
//! number of its image above, what the linker gave it below.

use std::collections::BTreeMap;
use std::fs;

use image::{Binary, Syntax, disassemble};
use model::stream::{Code, StaticBlock};
use perf::Mapping;
use vocab::{BuildId, Offset, Pc};

/// The longest straight line that is believed.
const LINE_BYTES_MAX: u64 = 1 << 13;
/// An image's number stands above these bits.
const IMAGE_SHIFT: u32 = 48;

/// The code that a process has mapped.
#[derive(Clone, Debug, Default)]
pub(super) struct Maps {
    by_start: BTreeMap<u64, Mapping>,
}

impl Maps {
    pub(super) fn add(&mut self, mapping: Mapping) {
        self.by_start.insert(mapping.start.0, mapping);
    }

    /// The mapping that holds an address, and the place in its file.
    fn find(&self, pc: Pc) -> Option<(&Mapping, Offset)> {
        let (_, mapping) = self.by_start.range(..=pc.0).next_back()?;
        let within = pc.0.checked_sub(mapping.start.0)?;
        let offset = mapping.file_offset.checked_add(within)?;
        (within < mapping.length).then_some((mapping, Offset(offset)))
    }
}

/// Images, each read once.
#[derive(Debug, Default)]
pub(super) struct Images {
    numbers: BTreeMap<String, usize>,
    read: Vec<Result<(Binary, Vec<u8>), String>>,
    /// Addresses that no map holds.
    unmapped: u64,
}

impl Images {
    /// The one address of an instruction.
    pub(super) fn place(&mut self, maps: &Maps, pc: Pc) -> Option<u64> {
        let Some((mapping, offset)) = maps.find(pc) else {
            self.unmapped += 1;
            return None;
        };
        let next = self.read.len();
        let number = match self.numbers.get(&mapping.path) {
            Some(&number) => number,
            None => {
                self.numbers.insert(mapping.path.clone(), next);
                self.read.push(load(&mapping.path, mapping.build_id));
                next
            }
        };
        let (binary, _) = self.read.get(number)?.as_ref().ok()?;
        let address = binary.address_of(offset)?;
        (address >> IMAGE_SHIFT == 0).then_some((number as u64 + 1) << IMAGE_SHIFT | address)
    }

    /// The instructions of a straight line from one place up to another, that one included.
    pub(super) fn line(&self, from: u64, to: u64) -> Option<StaticBlock> {
        let base = from >> IMAGE_SHIFT << IMAGE_SHIFT;
        let len = to.checked_sub(from).filter(|&len| len < LINE_BYTES_MAX)?;
        let number = usize::try_from((from >> IMAGE_SHIFT).checked_sub(1)?).ok()?;
        let (binary, bytes) = self.read.get(number)?.as_ref().ok()?;
        let start = usize::try_from(binary.offset_of(from - base)?.0).ok()?;
        // The last instruction is at most fifteen bytes long.
        let rest = bytes.get(start..)?;
        let code = rest.get(..(len as usize + 15).min(rest.len()))?;
        let listing =
            disassemble(binary.architecture(), code, from - base, Syntax::Intel, &|_| None).ok()?;
        let mut instructions = Vec::new();
        for one in &listing.instructions {
            let pc = base | one.address;
            let at = usize::try_from(pc - from).ok()?;
            let held = code.get(at..at + usize::from(one.len_bytes))?;
            let mut bytes = [0; 15];
            bytes.get_mut(..held.len())?.copy_from_slice(held);
            instructions.push(Code { pc, bytes, len: one.len_bytes });
            if pc >= to {
                break;
            }
        }
        let ends_there = instructions.last().is_some_and(|last| last.pc == to);
        ends_there.then(|| StaticBlock { instructions: instructions.into() })
    }

    /// Why code could not be found.
    pub(super) fn why_not(&self) -> String {
        let missing = self.numbers.iter().filter_map(|(path, &number)| {
            Some(format!("{path}: {}", self.read.get(number)?.as_ref().err()?))
        });
        let mut missing: Vec<String> = missing.collect();
        let others = missing.len().saturating_sub(2);
        missing.truncate(2);
        if others > 0 {
            missing.push(format!("and {others} images more"));
        }
        if missing.is_empty() && self.unmapped > 0 {
            missing.push(format!("{} addresses lie in no mapped image", self.unmapped));
        }
        if missing.is_empty() {
            missing.push("their branches do not fit the code".to_owned());
        }
        missing.join("; ")
    }
}

fn load(path: &str, build_id: Option<BuildId>) -> Result<(Binary, Vec<u8>), String> {
    let bytes = fs::read(path).map_err(|why| why.to_string())?;
    let binary = Binary::parse(&bytes).map_err(|why| why.to_string())?;
    if build_id.is_some() && build_id != binary.build_id() {
        return Err("the file has changed since it ran (its build-id differs)".to_owned());
    }
    Ok((binary, bytes))
}
