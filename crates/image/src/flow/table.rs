//! Jump tables: where an indirect jump leads.
//!
//! Compilers write two shapes, and we look for nothing else:
//!
//! ```text
//! absolute                         relative to the table
//!   cmp  idx, N                      cmp    idx, N
//!   ja   default                     ja     default
//!   jmp  [table + idx*8]             lea    base, [rip + table]
//!                                    movsxd to, dword [base + idx*4]
//!                                    add    to, base
//!                                    jmp    to
//! ```
//!
//! A jump through a pointer that was picked without an index is no switch but a tail call.
//!
//! The base may have been loaded long before, outside of a loop. A table is believed only if every
//! entry up to its bound leads to the start of an instruction of the procedure.

use std::collections::HashMap;

use iced_x86::{Instruction as Decoded, Mnemonic, OpKind, Register};

use super::step::Full;
use super::{CodePart, Surroundings};
use crate::disassemble::Flow;

/// How far back the pieces of one jump lie at most, except for a base that was hoisted.
const REACH: usize = 24;
/// More targets than any compiler makes of one switch; bounds the work on hostile bytes.
const ENTRIES_MAX: u64 = 4096;

/// What an indirect jump turned out to be; what is not known has no entry.
#[derive(Debug)]
pub(super) enum Jump {
    /// A switch, with the places that it leads to.
    Switch(Vec<u64>),
    /// A call through a pointer in the place of a return.
    TailCall,
}

/// How many bases of a register are tried, so that work stays bounded.
const CANDIDATES_MAX: usize = 16;

/// Of indirect jumps, by the index of their step.
pub(super) type Tables = HashMap<usize, Jump>;

pub(super) fn resolve_all(
    steps: &[Full],
    parts: &[CodePart<'_>],
    around: &dyn Surroundings,
) -> Tables {
    let bases = Bases::read(steps);
    let jumps = steps.iter().enumerate().filter(|(_, full)| full.step.flow == Flow::IndirectJump);
    let back = Back::of(steps);
    let search =
        |k: usize| Search { steps, at: k, parts, around, bases: &bases, path: back.path(steps, k) };
    let known = |k: usize| {
        let search = search(k);
        let table = search.targets().map(Jump::Switch);
        table.or_else(|| search.is_tail_call().then_some(Jump::TailCall))
    };
    jumps.filter_map(|(k, _)| Some((k, known(k)?))).collect()
}

/// Ways backwards through the code: to the instruction before, or, where that one does not lead
/// here, to a branch that does.
struct Back {
    /// A branch to each address that is branched to.
    sources: HashMap<u64, usize>,
    /// Steps that control does not fall out of: jumps, returns, and the filler behind them.
    dead: Vec<bool>,
}

impl Back {
    fn of(steps: &[Full]) -> Back {
        let jumping = steps.iter().enumerate().filter(|(_, full)| full.step.jumps());
        let sources = jumping.filter_map(|(k, full)| Some((full.step.target?, k))).collect();
        let mut dead = Vec::with_capacity(steps.len());
        for full in steps {
            let stops = matches!(
                full.step.flow,
                Flow::Jump | Flow::IndirectJump | Flow::Return | Flow::Trap
            );
            let after_dead = dead.last() == Some(&true);
            dead.push(stops || after_dead && full.decoded.mnemonic() == Mnemonic::Nop);
        }
        Back { sources, dead }
    }

    /// The steps before one, nearest first, as far as we look.
    fn path(&self, steps: &[Full], from: usize) -> Vec<usize> {
        let before = |k: usize| {
            let linear = k.checked_sub(1).filter(|&before| !self.dead[before]);
            linear.or_else(|| self.sources.get(&steps[k].step.address).copied())
        };
        std::iter::successors(before(from), |&k| before(k)).take(REACH).collect()
    }
}

/// Every place whose address is loaded into a register, by register.
struct Bases {
    of_register: HashMap<Register, Vec<u64>>,
    sorted: Vec<u64>,
}

impl Bases {
    fn read(steps: &[Full]) -> Bases {
        let mut of_register: HashMap<Register, Vec<u64>> = HashMap::new();
        let mut sorted = Vec::new();
        for full in steps {
            let Some(address) = loaded_address(&full.decoded) else { continue };
            of_register
                .entry(full.decoded.op0_register().full_register())
                .or_default()
                .push(address);
            sorted.push(address);
        }
        sorted.sort_unstable();
        Bases { of_register, sorted }
    }

    /// The places that a register ever points to, a few at most.
    fn of(&self, register: Register) -> Vec<u64> {
        let mut all = self.of_register.get(&register).cloned().unwrap_or_default();
        all.sort_unstable();
        all.dedup();
        all.truncate(CANDIDATES_MAX);
        all
    }

    /// Where the next table begins at the latest.
    fn next_after(&self, address: u64) -> u64 {
        let after = self.sorted.partition_point(|&base| base <= address);
        self.sorted.get(after).copied().unwrap_or(u64::MAX)
    }
}

fn loaded_address(decoded: &Decoded) -> Option<u64> {
    match decoded.mnemonic() {
        Mnemonic::Lea if decoded.is_ip_rel_memory_operand() => {
            Some(decoded.ip_rel_memory_address())
        }
        Mnemonic::Mov if decoded.op0_kind() == OpKind::Register => match decoded.op1_kind() {
            OpKind::Immediate64 | OpKind::Immediate32 | OpKind::Immediate32to64 => {
                Some(decoded.immediate(1))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A table: where it lies, how wide its entries are, and what is added to each.
struct Table {
    address: u64,
    entry_bytes: u64,
    relative_to: Option<u64>,
}

struct Search<'a> {
    steps: &'a [Full],
    at: usize,
    parts: &'a [CodePart<'a>],
    around: &'a dyn Surroundings,
    bases: &'a Bases,
    path: Vec<usize>,
}

impl Search<'_> {
    /// Where the jump leads, if exactly one table makes sense.
    fn targets(&self) -> Option<Vec<u64>> {
        let mut found = self.tables().into_iter().filter_map(|table| self.entries(&table));
        let targets = found.next()?;
        found.all(|other| other == targets).then_some(targets)
    }

    fn entries(&self, table: &Table) -> Option<Vec<u64>> {
        let room = (self.bases.next_after(table.address) - table.address) / table.entry_bytes;
        let bound = self.bound().filter(|&bound| bound <= ENTRIES_MAX);
        let bounded = bound.and_then(|bound| self.sound_entries(table, bound));
        // Without a bound a table ends where the next begins, or where entries stop making sense;
        // one entry may be chance.
        let targets = bounded.or_else(|| match bound {
            Some(_) => self.sound_entries(table, room),
            None => {
                let valid = (0..room.min(ENTRIES_MAX)).map_while(|k| self.entry(table, k));
                Some(valid.collect::<Vec<u64>>()).filter(|targets| targets.len() > 1)
            }
        });
        targets.map(|mut targets| {
            targets.sort_unstable();
            targets.dedup();
            targets
        })
    }

    /// All of that many entries, if every one leads to an instruction of the procedure.
    fn sound_entries(&self, table: &Table, count: u64) -> Option<Vec<u64>> {
        (1..=ENTRIES_MAX)
            .contains(&count)
            .then(|| (0..count).map(|k| self.entry(table, k)).collect())?
    }

    fn begins(&self, address: u64) -> bool {
        let known = self.steps.binary_search_by_key(&address, |full| full.step.address);
        known.is_ok() && self.parts.iter().any(|part| part.holds(address))
    }

    fn entry(&self, table: &Table, k: u64) -> Option<u64> {
        self.raw_entry(table, k).filter(|&target| self.begins(target))
    }

    fn raw_entry(&self, table: &Table, k: u64) -> Option<u64> {
        let at = table.address.checked_add(k * table.entry_bytes)?;
        let bytes = self.around.data(at, table.entry_bytes as usize)?;
        match table.relative_to {
            Some(base) => {
                let entry = i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
                Some(base.wrapping_add_signed(i64::from(entry)))
            }
            None => Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?)),
        }
    }

    fn tables(&self) -> Vec<Table> {
        let Some(jump) = self.steps.get(self.at).map(|full| full.decoded) else {
            return Vec::new();
        };
        match jump.op0_kind() {
            OpKind::Memory => self.absolute(&jump, 0),
            OpKind::Register => self.through(jump.op0_register().full_register()),
            _ => Vec::new(),
        }
    }

    /// `[base + idx*8]`, with or without a base.
    fn absolute(&self, load: &Decoded, before: usize) -> Vec<Table> {
        if load.memory_index() == Register::None || load.memory_index_scale() != 8 {
            return Vec::new();
        }
        let bases = match load.memory_base() {
            Register::None => vec![0],
            register => self.values(register.full_register(), before),
        };
        let table = |base: u64| {
            let address = base.wrapping_add(load.memory_displacement64());
            Table { address, entry_bytes: 8, relative_to: None }
        };
        bases.into_iter().map(table).collect()
    }

    /// `jmp to`: what was put into the register?
    fn through(&self, to: Register) -> Vec<Table> {
        let Some((place, last)) = self.definition(to, 0) else { return Vec::new() };
        match (last.mnemonic(), last.op1_kind()) {
            (Mnemonic::Mov, OpKind::Memory) => self.absolute(&last, place),
            (Mnemonic::Add, OpKind::Register) => {
                let other = last.op1_register().full_register();
                // Either operand may be the entry and the other the base.
                let tables = self.relative(to, other, place);
                if tables.is_empty() { self.relative(other, to, place) } else { tables }
            }
            _ => Vec::new(),
        }
    }

    fn relative(&self, entry: Register, base: Register, before: usize) -> Vec<Table> {
        let Some((place, load)) = self.definition(entry, before) else { return Vec::new() };
        let fits = load.mnemonic() == Mnemonic::Movsxd
            && load.op1_kind() == OpKind::Memory
            && load.memory_index_scale() == 4;
        if !fits {
            return Vec::new();
        }
        let start = load.memory_base().full_register();
        let table = |start: u64, base: u64| {
            let address = start.wrapping_add(load.memory_displacement64());
            Table { address, entry_bytes: 4, relative_to: Some(base) }
        };
        let starts = self.values(start, place);
        if start == base {
            return starts.into_iter().map(|start| table(start, start)).collect();
        }
        let bases = self.values(base, before);
        starts
            .iter()
            .flat_map(|&s| bases.iter().map(move |&b| (s, b)))
            .map(|(s, b)| table(s, b))
            .collect()
    }

    /// The last instruction within reach that wrote a register, before the place on the path.
    fn definition(&self, register: Register, before: usize) -> Option<(usize, Decoded)> {
        let mut steps = self.path.iter().enumerate().skip(before);
        steps.find_map(|(place, &k)| {
            let decoded = self.steps.get(k)?.decoded;
            writes(&decoded, register).then_some((place + 1, decoded))
        })
    }

    /// The addresses that a register may hold: the one loaded last, or those that are ever loaded.
    fn values(&self, register: Register, before: usize) -> Vec<u64> {
        let near = self.definition(register, before);
        if let Some(address) = near.and_then(|(_, decoded)| loaded_address(&decoded)) {
            return vec![address];
        }
        let copied = near.filter(|(_, decoded)| {
            decoded.mnemonic() == Mnemonic::Mov && decoded.op1_kind() == OpKind::Register
        });
        let register =
            copied.map_or(register, |(_, decoded)| decoded.op1_register().full_register());
        self.bases.of(register)
    }

    /// A pointer that was picked without an index is one procedure's address, not a table's
    /// entry: a method, a callback, an import.
    fn is_tail_call(&self) -> bool {
        let Some(jump) = self.steps.get(self.at).map(|full| &full.decoded) else { return false };
        let unindexed = |decoded: &Decoded| decoded.memory_index() == Register::None;
        if self.frame_is_gone() {
            return true;
        }
        match jump.op0_kind() {
            OpKind::Memory => unindexed(jump),
            OpKind::Register => {
                let register = jump.op0_register().full_register();
                match self.definition(register, 0) {
                    Some((_, last)) => {
                        last.mnemonic() == Mnemonic::Mov
                            && match last.op1_kind() {
                                OpKind::Memory => unindexed(&last),
                                kind => kind == OpKind::Register,
                            }
                    }
                    // Never written here: it came as an argument.
                    None => !self.steps.iter().any(|full| writes(&full.decoded, register)),
                }
            }
            _ => false,
        }
    }

    /// A switch needs the procedure's frame; a jump right behind the instructions that give the
    /// frame back leaves for good.
    fn frame_is_gone(&self) -> bool {
        let near = self.path.iter().take(4).filter_map(|&k| Some(self.steps.get(k)?.decoded));
        let mut near =
            near.take_while(|decoded| decoded.flow_control() == iced_x86::FlowControl::Next);
        near.any(|decoded| match decoded.mnemonic() {
            Mnemonic::Pop | Mnemonic::Leave => true,
            Mnemonic::Add => decoded.op0_register() == Register::RSP,
            _ => false,
        })
    }

    /// How many entries the comparison before the jump allows.
    fn bound(&self) -> Option<u64> {
        let near = |place: usize| Some(self.steps.get(*self.path.get(place)?)?.decoded);
        let is_branch = |&k: &usize| self.steps.get(k).is_some_and(|f| f.step.flow == Flow::Branch);
        let branch = self.path.iter().position(is_branch)?;
        let beyond = match near(branch)?.mnemonic() {
            Mnemonic::Ja | Mnemonic::Jbe => 1,
            Mnemonic::Jae | Mnemonic::Jb => 0,
            _ => return None,
        };
        let mut compares = (branch + 1..self.path.len()).filter_map(near);
        let compare = compares.find(|decoded| decoded.mnemonic() == Mnemonic::Cmp)?;
        let is_constant = !matches!(compare.op1_kind(), OpKind::Register | OpKind::Memory);
        is_constant.then(|| compare.immediate(1))?.checked_add(beyond)
    }
}

fn writes(decoded: &Decoded, register: Register) -> bool {
    let reads_only = matches!(
        decoded.mnemonic(),
        Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::Push
            | Mnemonic::Bt
            | Mnemonic::Jmp
            | Mnemonic::Call
    );
    !reads_only
        && decoded.op0_kind() == OpKind::Register
        && decoded.op0_register().full_register() == register
}
