//! Translated code, shared by the threads of the process.
//!
//! Blocks are linked to each other as they are found; a block whose bytes may have changed is cut off
//! from all that lead to it, and lies there unused until its half of the room is needed again.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use model::stream::{BlockId, Code};
use tracer::block::LiveBlock;

use crate::context::Mode;
use crate::emit::Gpr;
use crate::plan;
use crate::special::Special;
use crate::switch::whither_leave;
use crate::template::{Plain, Template};
use crate::translate::{Displaced, Exit, Setting, translate};
use crate::ways::second_look;

/// A block of the program. What is looked at whenever it runs lies in one line of the host's caches.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Block {
    pub(crate) live: &'static LiveBlock,
    pub(crate) template: &'static Template,
    pub(crate) plain: Plain,
    pub(crate) id: BlockId,
    /// Instructions, and values that it records.
    pub(crate) len: u16,
    pub(crate) slots: u16,
    pub(crate) is_plain: bool,
    /// The instruction that it ends in, if the engine carries that out.
    pub(crate) special: Option<Special>,
}

const _: () = assert!(size_of::<Block>() == 64);

impl Block {
    /// A block that was read, whose template it keeps.
    pub(crate) fn new(live: &'static LiveBlock, plan: &mut plan::Plan) -> Block {
        let special = match plan.end {
            plan::End::Special(special) => Some(special),
            _ => None,
        };
        let template: &'static Template = Box::leak(Box::new(std::mem::take(&mut plan.template)));
        Block {
            live,
            template,
            plain: template.plain,
            id: live.id,
            len: live.len,
            slots: template.slots,
            is_plain: template.is_plain(),
            special,
        }
    }
}

/// What is known of a block besides.
#[derive(Default)]
struct Code2 {
    /// Where its code is, by mode; 0 if nowhere.
    entry: [u64; 2],
    /// Exits that were made to lead to it, by mode.
    incoming: [Vec<u32>; 2],
}

/// Where code of the host comes from.
struct Origin {
    end: u64,
    block: u32,
    /// Where the program's instructions are, from the start.
    offsets: Box<[u16]>,
    displaced: Box<[Displaced]>,
}

/// The program's instruction that code of the host stands for.
pub(crate) struct Found {
    pub(crate) block: u32,
    pub(crate) index: u16,
    /// Registers that hold something of the engine's there.
    pub(crate) displaced: Vec<Gpr>,
}

/// The room for code, in two halves.
const HALF: u64 = 512 << 20;
/// No block's code is longer.
const LONGEST: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// Rises when all code is thrown away: threads then forget where branches went.
static EPOCH: AtomicU64 = AtomicU64::new(0);
static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();

/// All translated code.
pub(crate) struct Cache {
    base: u64,
    next: u64,
    second: [u64; 2],
    leave: u64,
    has_wider_vectors: bool,
    pub(crate) blocks: Vec<Block>,
    codes: Vec<Code2>,
    by_pc: HashMap<u64, u32>,
    exits: Vec<(Exit, Mode)>,
    origins: BTreeMap<u64, Origin>,
    /// Blocks by the pages that they lie in.
    pages: HashMap<u64, Vec<u32>>,
    /// Makes a block known to the process, with its number.
    intern: fn(Vec<Code>) -> &'static LiveBlock,
}

/// How often all code was thrown away.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Acquire)
}

/// The cache, for one thread at a time.
pub(crate) fn lock() -> Option<MutexGuard<'static, Cache>> {
    CACHE.get().map(|cache| cache.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Cache {
    /// Makes room for code at an address, near which the program will lie.
    pub(crate) fn start(
        base: u64,
        has_wider_vectors: bool,
        intern: fn(Vec<Code>) -> &'static LiveBlock,
    ) -> Option<()> {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: new memory where there is none; refused otherwise.
        let room =
            unsafe { libc::mmap(base as *mut _, 2 * HALF as usize, protection, flags, -1, 0) };
        if room as u64 != base {
            return None;
        }
        let mut cache = Cache {
            base,
            next: base,
            second: [0; 2],
            leave: 0,
            has_wider_vectors,
            blocks: Vec::new(),
            codes: Vec::new(),
            by_pc: HashMap::new(),
            exits: Vec::new(),
            origins: BTreeMap::new(),
            pages: HashMap::new(),
            intern,
        };
        // jmp [rip + 2]; the address: the engine itself is too far for a branch. Aligned, since a program
        // may have asked that what is not traps.
        let mut leave = vec![0xff, 0x25, 2, 0, 0, 0, 0x90, 0x90];
        leave.extend((whither_leave as *const () as u64).to_le_bytes());
        cache.leave = cache.put(&leave);
        for mode in [Mode::Noted, Mode::Told] {
            let code = second_look(cache.next, mode, cache.leave);
            cache.second[mode as usize] = cache.put(&code);
        }
        CACHE.set(Mutex::new(cache)).ok()
    }

    /// The range in which code of the host is translated code.
    pub(crate) fn range(&self) -> std::ops::Range<u64> {
        self.base..self.base + 2 * HALF
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let start = self.next;
        // SAFETY: the room is ours, and what is at its end was not handed out yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len()) };
        self.next = (start + bytes.len() as u64).next_multiple_of(16);
        start
    }

    /// Where the code of an address is, translated if need be. `read` gives the program's bytes there;
    /// `None` if there are none.
    pub(crate) fn find(
        &mut self,
        pc: u64,
        mode: Mode,
        read: impl FnOnce(u64) -> Vec<u8>,
    ) -> Option<u64> {
        if let Some(&id) = self.by_pc.get(&pc) {
            let entry = self.codes[id as usize].entry[mode as usize];
            return Some(if entry != 0 { entry } else { self.translate_again(id, mode) });
        }
        let id = self.known(plan::read(pc, &read(pc))?);
        self.by_pc.insert(pc, id);
        let live = self.blocks[id as usize].live;
        for page in live.start / PAGE..=(live.end - 1) / PAGE {
            self.pages.entry(page).or_default().push(id);
        }
        Some(self.translate_again(id, mode))
    }

    /// The code of the first of these instructions alone. For one that has just written to a page of
    /// code, which may be its own: it goes through while nobody watches that page.
    pub(crate) fn find_alone(&mut self, pc: u64, mode: Mode, bytes: &[u8]) -> Option<u64> {
        let id = self.known(plan::read_some(pc, bytes, 1)?);
        let entry = self.codes[id as usize].entry[mode as usize];
        Some(if entry != 0 { entry } else { self.translate_again(id, mode) })
    }

    /// The number of a block.
    fn known(&mut self, mut plan: plan::Plan) -> u32 {
        let live = (self.intern)(plan.codes.clone());
        let id = live.id.0;
        if id as usize == self.blocks.len() {
            self.blocks.push(Block::new(live, &mut plan));
            self.codes.push(Code2::default());
        }
        id
    }

    /// Translates a block that is known, from the bytes that it was known with.
    fn translate_again(&mut self, id: u32, mode: Mode) -> u64 {
        let live = self.blocks[id as usize].live;
        let bytes: Vec<u8> = live
            .code
            .instructions
            .iter()
            .flat_map(|code| code.bytes.iter().take(usize::from(code.len)).copied())
            .collect();
        let Some(plan) = plan::read(live.start, &bytes) else { return 0 };
        self.make_room();
        let setting = Setting {
            base: self.next,
            leave: self.leave,
            second: self.second,
            first_exit: self.exits.len() as u32,
            has_wider_vectors: self.has_wider_vectors,
        };
        let made = translate(&plan, id, mode, setting);
        let start = self.put(&made.bytes);
        let end = start + made.bytes.len() as u64;
        self.exits.extend(made.exits.iter().map(|exit| (*exit, mode)));
        self.origins.insert(
            start,
            Origin { end, block: id, offsets: made.offsets, displaced: made.displaced },
        );
        self.codes[id as usize].entry[mode as usize] = made.entry;
        made.entry
    }

    /// Goes on in the other half once one is full. What is left of the old half in other threads'
    /// hands they leave within a few thousand blocks, long before it is written over.
    fn make_room(&mut self) {
        let half = (self.next - self.base) / HALF;
        if self.next + LONGEST < self.base + (half + 1) * HALF {
            return;
        }
        let start = self.base + (1 - half % 2) * HALF;
        // What code is left through, and the second look, stay where they are.
        let fixed = self.second[1] + PAGE;
        self.next = start.max(fixed).next_multiple_of(PAGE);
        self.codes.iter_mut().for_each(|code| *code = Code2::default());
        let kept = self.base + half * HALF..self.base + (half + 1) * HALF;
        self.origins.retain(|at, _| kept.contains(at));
        EPOCH.fetch_add(1, Release);
    }

    /// An exit was taken that is not linked: where it leads, linked from now on.
    pub(crate) fn follow(
        &mut self,
        exit: u32,
        read: impl FnOnce(u64) -> Vec<u8>,
    ) -> (u64, Option<u64>) {
        let Some(&(to, mode)) = self.exits.get(exit as usize) else { return (0, None) };
        let epoch = epoch();
        let found = self.find(to.to, mode, read);
        // Unless translating has just thrown away the block that the exit belongs to.
        if let (Some(entry), true) = (found, epoch == self::epoch()) {
            self.lead(&to, entry);
            if let Some(&id) = self.by_pc.get(&to.to) {
                self.codes[id as usize].incoming[mode as usize].push(exit);
            }
        }
        (to.to, found)
    }

    /// Makes a jump lead somewhere.
    fn lead(&self, exit: &Exit, target: u64) {
        let distance = target.wrapping_sub(exit.place + 4) as i32;
        // SAFETY: four bytes of a jump in our room, within one word: others run either jump.
        unsafe { (*(exit.place as *const std::sync::atomic::AtomicI32)).store(distance, Release) };
    }

    /// Cuts off all code that came from a range of the program. Says where the blocks began: threads
    /// may remember.
    pub(crate) fn forget(&mut self, start: u64, end: u64) -> Vec<u64> {
        let (first, last) = (start / PAGE, end.saturating_sub(1) / PAGE);
        let few = last - first < self.pages.len() as u64;
        let pages: Vec<u64> = match few {
            true => (first..=last).filter(|page| self.pages.contains_key(page)).collect(),
            false => {
                self.pages.keys().copied().filter(|page| (first..=last).contains(page)).collect()
            }
        };
        let ids: Vec<u32> =
            pages.iter().filter_map(|page| self.pages.remove(page)).flatten().collect();
        ids.iter().for_each(|id| self.cut_off(*id));
        ids.iter().map(|id| self.blocks[*id as usize].live.start).collect()
    }

    fn cut_off(&mut self, id: u32) {
        let pc = self.blocks[id as usize].live.start;
        if self.by_pc.get(&pc) == Some(&id) {
            self.by_pc.remove(&pc);
        }
        let code = std::mem::take(&mut self.codes[id as usize]);
        for exit in code.incoming.iter().flatten() {
            if let Some((exit, _)) = self.exits.get(*exit as usize) {
                self.lead(exit, exit.stub);
            }
        }
    }

    /// Forgets everything: blocks get other numbers from now on. For the child of a fork that nobody
    /// listens to; its one thread is not in translated code.
    pub(crate) fn start_over(&mut self) {
        self.blocks.clear();
        self.codes.clear();
        self.by_pc.clear();
        self.exits.clear();
        self.origins.clear();
        self.pages.clear();
        EPOCH.fetch_add(1, Release);
    }

    /// Which block and which of its instructions an address of the host belongs to.
    pub(crate) fn origin(&self, host: u64) -> Option<Found> {
        let (start, origin) = self.origins.range(..=host).next_back()?;
        if host >= origin.end {
            return None;
        }
        let offset = (host - start) as u16;
        let index = origin.offsets.partition_point(|at| *at <= offset).saturating_sub(1) as u16;
        let here = origin.displaced.iter().filter(|one| (one.from..one.until).contains(&index));
        let displaced = here.map(|one| one.register).collect();
        Some(Found { block: origin.block, index, displaced })
    }
}
