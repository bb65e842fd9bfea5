//! One thread of the program: translated code in turn with all that it needs from the engine.

use std::alloc::{Layout as Memory, alloc_zeroed, handle_alloc_error};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, PoisonError};

use tracer::inside::{Inside, listeners};

use crate::cache;
use crate::calls::{self, After};
use crate::context::{Context, Fault, IDS, Mode, SLOTS_MAX, Set, Vectors, Way, leave, set_of};
use crate::memory::LONGEST_INSTRUCTION;
use crate::plan::INSTRUCTIONS_MAX;
use crate::sandbox::Sandbox;
use crate::signals::{self, Signals};
use crate::special::Special;
use crate::switch::whither_enter;
use crate::teller::{Ran, Teller};
use crate::template::WINDOW;
use crate::{cpuid, guest, memory};

/// What a thread is doing, for whoever ends the process.
pub(crate) mod state {
    /// It runs the program, or tells its listener.
    pub(crate) const RUNNING: u32 = 0;
    /// It is in the kernel, or goes nowhere any more; its listener was told everything.
    pub(crate) const AWAY: u32 = 1;
}

/// Set when the process ends: threads that come by stay where they are.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Every thread.
static THREADS: Mutex<Vec<Address>> = Mutex::new(Vec::new());

/// A thread's address, which lives until the thread has taken itself off the list.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Address(*mut Thread);

// SAFETY: the list is only read under its lock, and what it points to is only used while its thread
// is away.
unsafe impl Send for Address {}

/// A thread of the program.
pub(crate) struct Thread {
    pub(crate) context: Box<Context>,
    /// What the context points to.
    vectors: Box<Vectors>,
    slots: Box<[u64]>,
    pub(crate) teller: Teller,
    pub(crate) number: u32,
    pub(crate) state: AtomicU32,
    pub(crate) signals: Signals,
    pub(crate) sandbox: Sandbox,
    /// Where the kernel would write 0 when the thread ends.
    pub(crate) clear_at_end: u64,
    mode: Mode,
    /// Blocks that were to be recorded when recording began.
    limit: usize,
    epoch: u64,
    /// Whether the next instruction is to be run for itself (see [`cache::Cache::find_alone`]).
    runs_one_alone: bool,
    pub(crate) is_main: bool,
}

impl Thread {
    /// A thread that is about to begin, with registers as given.
    pub(crate) fn new(context: Box<Context>, vectors: Vectors) -> Box<Thread> {
        let number = Inside::get().map_or(0, |inside| inside.process().begin_thread());
        let teller = Teller::new(listener(number));
        let mut thread = Box::new(Thread {
            context,
            vectors: Box::new(vectors),
            slots: vec![0; IDS * SLOTS_MAX + WINDOW].into(),
            teller,
            number,
            state: AtomicU32::new(state::RUNNING),
            signals: Signals::default(),
            sandbox: Sandbox::default(),
            clear_at_end: 0,
            mode: Mode::Told,
            limit: 0,
            epoch: u64::MAX,
            runs_one_alone: false,
            is_main: false,
        });
        thread.context.vectors = &raw mut *thread.vectors;
        thread
    }

    /// The program's vectors, as they are while it does not run.
    pub(crate) fn vectors(&mut self) -> &mut Vectors {
        &mut self.vectors
    }

    /// Makes the host's thread that calls this the program's, and says so before the first signal can
    /// come.
    pub(crate) fn begin(&mut self, say: impl FnOnce()) {
        signals::adopt(&raw mut *self.context);
        self.context.host_fs = memory::thread_pointer();
        signals::set_own_stack(self);
        THREADS.lock().unwrap_or_else(PoisonError::into_inner).push(Address(self));
        say();
        signals::set_kernel_mask(self);
        self.begin_recording();
    }

    /// Whether a child uses the thread while its parent waits (see [`crate::lend`]).
    pub(crate) fn is_borrowed(&self) -> bool {
        self.signals.own_actions.is_some()
    }

    /// Runs the thread to its end.
    pub(crate) fn run(&mut self) {
        loop {
            if IS_ENDING.load(SeqCst) && !self.is_borrowed() {
                self.drain(None);
                self.stay_away();
            }
            if self.context.has_signal != 0 {
                self.drain(None);
                signals::deliver_pending(self);
            }
            if self.step() == After::Ended {
                break;
            }
        }
    }

    /// Runs translated code until it is left, and does what it was left for.
    fn step(&mut self) -> After {
        let pc = self.context.pc;
        if calls::is_old_call(pc) {
            return calls::old_call(self);
        }
        let found = match std::mem::take(&mut self.runs_one_alone) {
            true => self.find_alone(pc),
            false => self.find(pc),
        };
        let Some(host) = found else {
            let fault = Fault {
                signal: libc::SIGSEGV as u64,
                code: 1,
                address: pc,
                error: 0x14,
                trap: 14,
                host: 0,
            };
            self.drain(None);
            return signals::deliver_fault(self, &fault);
        };
        self.enter(host)
    }

    fn enter(&mut self, host: u64) -> After {
        let mut host = host;
        loop {
            self.context.target = host;
            // SAFETY: the context is this thread's, at its GS base; the code is a block's.
            unsafe { whither_enter(&raw mut *self.context) };
            match self.context.why {
                leave::LINK => {
                    // Straight on, if there is nothing else to look after.
                    let Some(next) = self.follow() else { return After::GoesOn };
                    host = next;
                }
                leave::INDIRECT => return After::GoesOn,
                leave::FULL => {
                    self.context.pc = self.block_start();
                    self.drain(None);
                    return After::GoesOn;
                }
                leave::SPECIAL => return self.special(),
                _ => return self.fault(),
            }
        }
    }

    /// Links the exit that was taken.
    fn follow(&mut self) -> Option<u64> {
        let mut cache = cache::lock()?;
        let (to, entry) = cache.follow(self.context.argument, bytes_at);
        self.context.pc = to;
        let is_same = self.epoch == cache::epoch();
        drop(cache);
        entry.filter(|_| is_same && self.context.has_signal == 0)
    }

    /// Where the code of an address is; from now on the thread's table knows.
    fn find(&mut self, pc: u64) -> Option<u64> {
        if self.epoch != cache::epoch() {
            self.forget_branches();
        }
        let host = cache::lock()?.find(pc, self.mode, bytes_at)?;
        let set: &mut Set = &mut self.context.tables[self.mode as usize][set_of(pc)];
        if set[0].minus_pc != pc.wrapping_neg() {
            set[1] = set[0];
            set[0] = Way { minus_pc: pc.wrapping_neg(), host };
        }
        Some(host)
    }

    fn find_alone(&self, pc: u64) -> Option<u64> {
        let bytes = guest::read(pc, LONGEST_INSTRUCTION);
        cache::lock()?.find_alone(pc, self.mode, &bytes)
    }

    fn forget_branches(&mut self) {
        self.epoch = cache::epoch();
        for table in &mut self.context.tables {
            for set in table.iter_mut() {
                // Most were never used, and stay untouched.
                if set[0].host != 0 {
                    *set = [NOWHERE; 2];
                }
            }
            table[0] = [NOWHERE; 2];
        }
    }

    fn block_start(&self) -> u64 {
        self.with_block(self.context.argument, |block| block.live.start)
    }

    fn with_block<T: Default>(&self, id: u32, look: impl FnOnce(&cache::Block) -> T) -> T {
        let cache = cache::lock();
        cache.and_then(|cache| cache.blocks.get(id as usize).map(look)).unwrap_or_default()
    }

    /// A block ended in an instruction that is ours to carry out.
    fn special(&mut self) -> After {
        let (end, special) =
            self.with_block(self.context.argument, |block| (block.live.end, block.special));
        self.context.pc = end;
        if special != Some(Special::Cpuid) {
            self.drain(None);
        }
        match special {
            Some(Special::Call) => calls::call(self),
            Some(Special::NarrowCall) => calls::narrow_call(self),
            Some(Special::Cpuid) | None => self.tell_processor(),
        }
    }

    /// The program asked what the processor is.
    fn tell_processor(&mut self) -> After {
        let registers = &mut self.context.registers;
        let [eax, ebx, ecx, edx] = cpuid::answer(registers[0] as u32, registers[1] as u32);
        for (register, value) in [(0, eax), (3, ebx), (1, ecx), (2, edx)] {
            registers[register] = u64::from(value);
        }
        After::GoesOn
    }

    /// An instruction of the program faulted.
    fn fault(&mut self) -> After {
        let fault = self.context.fault;
        let found = cache::lock().and_then(|cache| {
            let found = cache.origin(fault.host)?;
            let block = cache.blocks.get(found.block as usize)?;
            let code = block.live.code.instructions.get(usize::from(found.index))?;
            let is_last = found.index + 1 == block.len;
            Some((code, found, is_last && ends_through(block)))
        });
        let Some((code, found, is_through)) = found else { return signals::give_up(self, &fault) };
        if is_through {
            // A branch whose target or stack was not there: RCX was in use.
            self.context.registers[1] = self.context.spill[1];
        }
        for register in &found.displaced {
            let place = usize::from(register.0);
            self.context.registers[place] = self.context.spill[place];
        }
        let index = found.index;
        self.context.pc = code.pc;
        self.drain(Some(index));
        if fault.signal == libc::SIGTRAP as u64 {
            // A trap is told behind its instruction.
            self.context.pc = code.pc.wrapping_add(u64::from(code.len));
        }
        // A write to what is there and may not be written to.
        let is_refused =
            fault.signal == libc::SIGSEGV as u64 && fault.code == 2 && fault.error & 2 != 0;
        if is_refused && memory::unguard(fault.address) {
            self.runs_one_alone = true;
            return After::GoesOn;
        }
        signals::deliver_fault(self, &fault)
    }

    /// Tells the listener what ran, and begins anew. Of the last block so many instructions ran, if not
    /// all.
    pub(crate) fn drain(&mut self, cut: Option<u16>) {
        let end = IDS - self.context.left.unsigned_abs() as usize / 4;
        let ids = self.context.ids.get(IDS - self.limit..end).unwrap_or_default();
        if !ids.is_empty() {
            let slots = &self.slots;
            let ran = Ran { ids, slots, mode: self.mode, fs: self.context.guest_fs, cut };
            self.teller.tell(&ran);
        }
        self.begin_recording();
    }

    pub(crate) fn begin_recording(&mut self) {
        let (mode, limit) = self.teller.next();
        self.mode = mode;
        self.limit = limit;
        self.context.left = -4 * limit as i64;
        self.context.slots = self.slots.as_ptr() as u64;
    }

    /// Goes nowhere any more: the process is about to end.
    pub(crate) fn stay_away(&self) -> ! {
        self.state.store(state::AWAY, SeqCst);
        loop {
            // SAFETY: waits for a signal, for ever.
            unsafe { libc::pause() };
        }
    }

    /// The thread ends, others go on.
    pub(crate) fn leave_list(&mut self) {
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| *thread != Address(self));
    }

    /// The process forked, and this is the one thread of the child.
    pub(crate) fn be_alone(&mut self) {
        let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        *threads = vec![Address(self)];
        self.number = 0;
        self.is_main = true;
    }
}

/// Has every thread's listener say its last word. Threads that run the program are waited for; one that
/// does not come by in time is left alone.
pub(crate) fn end_all(own: &mut Thread) {
    if IS_ENDING.swap(true, SeqCst) {
        own.stay_away();
    }
    own.teller.ended();
    let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut patience = 2000;
    for other in threads.iter().filter(|other| other.0 != &raw mut *own) {
        // SAFETY: on the list, so it lives; only its state is looked at.
        let is_away = || unsafe { (*other.0).state.load(SeqCst) } == state::AWAY;
        while !is_away() && patience > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            patience -= 1;
        }
        if is_away() {
            // SAFETY: away, and stays so: whoever comes back now looks at the flag first.
            unsafe { (*other.0).teller.ended() };
        }
    }
}

/// Whether the process has one thread only.
pub(crate) fn is_only() -> bool {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner).len() == 1
}

/// Whether the process is about to end.
pub(crate) fn is_ending() -> bool {
    IS_ENDING.load(SeqCst)
}

fn ends_through(block: &cache::Block) -> bool {
    block.live.goes_anywhere && block.special.is_none()
}

fn bytes_at(pc: u64) -> Vec<u8> {
    memory::code(pc, INSTRUCTIONS_MAX * 15)
}

/// Has every thread forget where branches to these addresses went. A thread that is just taking one goes
/// there once more.
pub(crate) fn forget_branches(pcs: &[u64]) {
    if pcs.is_empty() {
        return;
    }
    for thread in THREADS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        for pc in pcs {
            // SAFETY: on the list, so it lives. Of an entry only the address is written, as one word,
            // while its thread may read it: it finds the old one or none.
            unsafe {
                let tables = &raw mut (*thread.0).context.tables;
                for mode in 0..2 {
                    for way in 0..2 {
                        let place = &raw mut (*tables)[mode][set_of(*pc)][way].minus_pc;
                        if place.read_volatile() == pc.wrapping_neg() {
                            place.write_volatile(NOWHERE.minus_pc);
                        }
                    }
                }
            }
        }
    }
}

/// An entry that no branch finds: nothing lies at the last address.
const NOWHERE: Way = Way { minus_pc: 1, host: 0 };

fn listener(number: u32) -> Box<dyn model::stream::CoreListener> {
    match Inside::get() {
        Some(inside) => listeners::make(inside, number),
        None => Box::new(Nobody),
    }
}

/// Listens to nothing: the program runs untraced.
pub(crate) struct Nobody;

impl model::stream::CoreListener for Nobody {
    fn translated(&mut self, _: model::stream::BlockId, _: &model::stream::StaticBlock) {}
    fn executed(&mut self, _: model::stream::BlockId, _: u16, _: &[model::stream::Access]) {}

    fn idles_for(&self) -> u64 {
        u64::MAX
    }

    fn hears_lines(&self) -> bool {
        false
    }
}

/// A context with nothing in it. It is large, and most of it is never touched.
pub(crate) fn new_context() -> Box<Context> {
    let layout = Memory::new::<Context>();
    // SAFETY: all bits 0 are a context: numbers, and a pointer that is set before it is used. The size
    // is not 0.
    unsafe {
        let memory = alloc_zeroed(layout).cast::<Context>();
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        Box::from_raw(memory)
    }
}
