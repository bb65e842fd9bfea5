//! The caches of both sides and what lies behind them.
//!
//! Latencies are from issue to data, everything nearer included. A line that is still on its way
//! keeps when it arrives, and whoever asks for it meanwhile waits for that moment. Lines enter
//! every level that they pass. Warming uses the same memory with `TIMED` off: lines arrive at once.

mod code;
mod coming;
mod far;
mod line;
mod near;
mod outer;
mod told;

pub use line::Line;
pub use told::{MemoryCounts, Outcome};

use super::Level;
use super::cache::Cache;
use super::misses::{Channel, MissFile};
use super::newest::Newest;
use super::prefetch::{Reach, StreamPrefetcher, StridePrefetcher};
use super::tlb::{Tlb, Translation};
use crate::machine::{CacheFacts, Machine};

/// Where page tables lie, as a line: beyond every line of a program.
const TABLES: u64 = 1 << 63;
/// The power of two of a table entry's bytes.
const ENTRY_SHIFT: u32 = 3;

/// Both sides and all levels.
#[derive(Clone, Debug)]
pub struct Memory {
    l1d: Cache<Line>,
    /// The newest line of each set that is no guess, as `key` has it.
    l1d_newest: Newest<u64>,
    l1i: Cache<Line>,
    /// The newest line of each set that is no guess.
    l1i_newest: Newest<u64>,
    l2: Cache<Line>,
    l3: Option<Cache<Line>>,
    dtlb: Tlb,
    itlb: Tlb,
    l1d_misses: MissFile,
    /// Until when misses are known to have waited for one of its registers.
    waited_until: u64,
    l1i_misses: MissFile,
    l2_misses: MissFile,
    l3_misses: Option<MissFile>,
    walks: MissFile,
    l3_channel: Option<Channel>,
    channel: Channel,
    strides: Option<StridePrefetcher>,
    streams: Option<StreamPrefetcher>,
    next_line: bool,
    /// Lines that were guessed for something that nobody follows, and not asked for yet.
    guessed: Box<[u64; GUESSED]>,
    /// How far ahead of a line that was told far from anything timed its stream asked for another, last;
    /// 0 if it did not.
    far_ahead: u64,
    code_next_line: bool,
    line_shift: u32,
    page_lines: u64,
    page_shift: u32,
    l1d_cycles: u32,
    l1i_cycles: u32,
    l2_cycles: u64,
    l3_cycles: u64,
    memory_cycles: u64,
    /// Things that happened beside instructions.
    pub counts: MemoryCounts,
}

/// Guesses that are remembered while nobody follows what is touched; a power of two, and less than first
/// levels hold.
const GUESSED: usize = 256;
/// No line: lines are shifted addresses.
const NO_LINE: u64 = u64::MAX;
/// What lines and pages are on most machines, as powers of two: the host shifts by what it knows in
/// fewer steps.
const USUAL_LINE: u32 = 6;
const USUAL_PAGE: u32 = 12;

/// A line, and whether it is dirty, in a word: both are compared at once. Lines that a program touches
/// have a bit to spare.
#[inline]
fn key(line: u64, is_dirty: bool) -> u64 {
    line << 1 | u64::from(is_dirty)
}

fn cache(facts: &CacheFacts) -> Cache<Line> {
    let entries = u64::from(facts.size_kib) * 1024 / u64::from(facts.line_bytes);
    Cache::new(entries as usize, facts.ways as usize)
}

impl Memory {
    /// An empty memory of a machine.
    pub fn new(machine: &Machine) -> Memory {
        let caches = &machine.caches;
        let tlbs = &machine.tlbs;
        let line_bytes = caches.l1d.line_bytes;
        let page_lines = u64::from((tlbs.page_bytes / line_bytes).max(1));
        let prefetch = &machine.prefetch;
        let reach = Reach {
            lines: u64::from(prefetch.l2_stream_lines),
            lines_max: u64::from(prefetch.l2_stream_lines_max),
            crosses_pages: prefetch.l2_stream_crosses_pages,
        };
        let cycles_each = |bytes: u32| u64::from(line_bytes.div_ceil(bytes.max(1)));
        let l3_bytes = caches.l3.as_ref().and_then(|l3| l3.bytes_per_cycle);
        let (l1d, l1i) = (cache(&caches.l1d), cache(&caches.l1i));
        let is_scattered = machine.memory.scattered_pages;
        let far = |facts| {
            if is_scattered { cache(facts).scattered(page_lines) } else { cache(facts) }
        };
        Memory {
            l1d_newest: Newest::new(l1d.sets(), NO_LINE),
            l1d,
            l1i_newest: Newest::new(l1i.sets(), NO_LINE),
            l1i,
            l2: far(&caches.l2),
            l3: caches.l3.as_ref().map(far),
            dtlb: Tlb::new(tlbs, &tlbs.l1d, tlbs.l2d.as_ref()),
            itlb: Tlb::new(tlbs, &tlbs.l1i, tlbs.l2i.as_ref()),
            l1d_misses: MissFile::new(caches.l1d.misses as usize),
            waited_until: 0,
            l1i_misses: MissFile::new(caches.l1i.misses as usize),
            l2_misses: MissFile::new(caches.l2.misses as usize),
            l3_misses: caches.l3.as_ref().map(|l3| MissFile::new(l3.misses as usize)),
            walks: MissFile::new(tlbs.walkers as usize),
            l3_channel: l3_bytes.map(|bytes| Channel::new(cycles_each(bytes))),
            channel: Channel::new(cycles_each(machine.memory.bytes_per_cycle)),
            strides: prefetch.l1_stride.then(StridePrefetcher::default),
            streams: prefetch.l2_stream.then(|| StreamPrefetcher::new(reach, page_lines)),
            next_line: prefetch.l1_next_line,
            guessed: Box::new([NO_LINE; GUESSED]),
            far_ahead: 0,
            code_next_line: prefetch.code_next_line,
            line_shift: line_bytes.trailing_zeros(),
            page_lines,
            page_shift: tlbs.page_bytes.trailing_zeros(),
            l1d_cycles: caches.l1d.latency_cycles,
            l1i_cycles: caches.l1i.latency_cycles,
            l2_cycles: u64::from(caches.l2.latency_cycles),
            l3_cycles: caches.l3.as_ref().map_or(0, |l3| u64::from(l3.latency_cycles)),
            memory_cycles: u64::from(machine.memory.latency_cycles),
            counts: MemoryCounts::default(),
        }
    }

    /// The power of two of a line's bytes.
    pub fn line_shift(&self) -> u32 {
        self.line_shift
    }

    /// Translations of either side that missed the first level.
    pub fn translation_misses(&self) -> u64 {
        self.dtlb.misses + self.itlb.misses
    }

    /// Loads or stores `size` bytes at a time. A store's outcome is when its line may be written.
    #[inline]
    pub fn data<const TIMED: bool>(
        &mut self,
        pc: u64,
        address: u64,
        size: u64,
        is_store: bool,
        at: u64,
    ) -> Outcome {
        let mut translation = self.dtlb.translate(address);
        if translation.walked {
            translation.cycles += self.walk::<TIMED>(address, at, translation.cycles);
        }
        let line = address >> self.line_shift;
        let start = at + u64::from(translation.cycles);
        let mut outcome = self.data_line::<TIMED>(line, is_store, (at, start));
        let last = address.wrapping_add(size.max(1) - 1) >> self.line_shift;
        if last != line {
            let other = self.data_line::<TIMED>(last, is_store, (at, start));
            outcome.cycles = outcome.cycles.max(other.cycles) + 1;
            outcome.level = outcome.level.max(other.level);
            outcome.from = outcome.from.max(other.from);
            // Whoever misses one of them is no joiner.
            outcome.joined = (outcome.joined || other.joined) && outcome.level == Level::L1;
            outcome.split = true;
        }
        outcome.cycles += translation.cycles;
        outcome.translation = translation;
        if !is_store {
            self.follow_stride::<TIMED>(pc, address, line, at);
        }
        outcome
    }

    /// Whether lines and pages are as usual, which `USUAL` says below.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.line_shift == USUAL_LINE && self.page_shift == USUAL_PAGE
    }

    /// The power of two of a line's bytes, known to the host where it is as usual.
    #[inline]
    pub(crate) fn line_shift_if<const USUAL: bool>(&self) -> u32 {
        self.shifts::<USUAL>().0
    }

    /// The powers of two of a line's and a page's bytes.
    #[inline]
    fn shifts<const USUAL: bool>(&self) -> (u32, u32) {
        if USUAL { (USUAL_LINE, USUAL_PAGE) } else { (self.line_shift, self.page_shift) }
    }

    /// A load within one line that hits TLB and first level with nothing on its way: true, and all
    /// is done that `data` would do. False leaves everything to `data`.
    #[inline]
    pub fn plain_load<const TIMED: bool>(
        &mut self,
        pc: u64,
        address: u64,
        size: u64,
        at: u64,
    ) -> bool {
        let line = address >> self.line_shift;
        let last = address.wrapping_add(size.max(1) - 1) >> self.line_shift;
        if last != line || !self.dtlb.hits(address) {
            return false;
        }
        let there = at + u64::from(self.l1d_cycles);
        let is_plain = |state: &Line| (!TIMED || state.ready() <= there) && !state.is_guess();
        let Some(state) = self.l1d.touch_if(line, is_plain) else { return false };
        self.l1d_newest.note(line, key(line, state.is_dirty()));
        self.follow_stride::<TIMED>(pc, address, line, at);
        true
    }

    /// A store within one line that hits TLB and first level, when nobody asks for the time: true,
    /// and all is done that `data` would do. False leaves everything to `data`.
    #[inline]
    pub fn plain_store(&mut self, address: u64, size: u64) -> bool {
        let line = address >> self.line_shift;
        let last = address.wrapping_add(size.max(1) - 1) >> self.line_shift;
        if last != line || !self.dtlb.hits(address) {
            return false;
        }
        let Some(state) = self.l1d.touch_if(line, |state| !state.is_guess()) else { return false };
        state.write(true);
        self.l1d_newest.note(line, key(line, true));
        true
    }

    /// Does what `data` does when nobody asks for the time, and takes the shortest way to it.
    #[inline]
    pub(crate) fn warm_data<const USUAL: bool>(
        &mut self,
        pc: u64,
        address: u64,
        size: u64,
        is_store: bool,
    ) {
        let (line_shift, page_shift) = self.shifts::<USUAL>();
        let line = address >> line_shift;
        if (address & ((1 << line_shift) - 1)) + size > 1 << line_shift {
            return self.warm_split(pc, address, size, is_store);
        }
        if !self.dtlb.has(address >> page_shift) {
            self.warm_page(address);
        }
        // Of a load, either will do.
        let newest = self.l1d_newest.of(line) | u64::from(!is_store);
        if newest != key(line, true) {
            self.warm_older(line, is_store);
        }
        if !is_store {
            self.follow_stride::<false>(pc, address, line, 0);
        }
    }

    #[cold]
    #[inline(never)]
    fn warm_split(&mut self, pc: u64, address: u64, size: u64, is_store: bool) {
        self.data::<false>(pc, address, size, is_store, 0);
    }

    /// Brings the translation that the first level lacks.
    #[cold]
    #[inline(never)]
    fn warm_page(&mut self, address: u64) {
        if self.dtlb.miss(address >> self.page_shift).walked {
            self.walk::<false>(address, 0, 0);
        }
    }

    /// Uses a line that is not known to be the newest of its set.
    #[inline(never)]
    fn warm_older(&mut self, line: u64, is_store: bool) {
        let Some(state) = self.l1d.touch(line) else {
            self.data_miss::<false>(line, is_store, (0, 0));
            return;
        };
        state.write(is_store);
        self.counts.prefetches_useful += u64::from(state.ask());
        self.l1d_newest.note(line, key(line, state.is_dirty()));
    }

    /// Reads the entry of the last table of a walk that has taken so many cycles besides. Returns
    /// the cycles that the reading, and the wait for a free walker, add.
    #[cold]
    fn walk<const TIMED: bool>(&mut self, address: u64, at: u64, cycles: u32) -> u32 {
        let line = self.table_line(address);
        let start = if TIMED { self.walks.admit(at) } else { 0 };
        let read = start + u64::from(cycles);
        let there = match self.l2.touch(line) {
            Some(state) => state.ready().max(read + self.l2_cycles),
            None => self.beyond_l2::<TIMED>(line, read, false).ready,
        };
        if !TIMED {
            return 0;
        }
        self.walks.hold(start, there);
        there.saturating_sub(at + u64::from(cycles)) as u32
    }

    /// Uses a line that was asked for at a time, and whose address was translated at another.
    #[inline]
    fn data_line<const TIMED: bool>(
        &mut self,
        line: u64,
        is_store: bool,
        (asked, at): (u64, u64),
    ) -> Outcome {
        let Some(state) = self.l1d.touch(line) else {
            return self.data_miss::<TIMED>(line, is_store, (asked, at));
        };
        state.write(is_store);
        let guessed = state.ask();
        self.l1d_newest.note(line, key(line, state.is_dirty()));
        self.counts.prefetches_useful += u64::from(guessed);
        let in_time = at + u64::from(self.l1d_cycles);
        let joined = TIMED && state.ready() > in_time;
        let (there, from) = match joined {
            true => self.l1d_comes(line, asked),
            false => (in_time, Level::L1),
        };
        Outcome {
            cycles: there.max(in_time).saturating_sub(at) as u32,
            level: Level::L1,
            from,
            translation: Translation::default(),
            joined,
            guessed,
            split: false,
        }
    }

    #[inline(never)]
    fn data_miss<const TIMED: bool>(
        &mut self,
        line: u64,
        is_store: bool,
        (asked, at): (u64, u64),
    ) -> Outcome {
        self.counts.l2_data += 1;
        let brought = if TIMED {
            let start = self.l1d_misses.admit(at);
            self.counts.wait_cycles += start.saturating_sub(at.max(self.waited_until));
            self.waited_until = self.waited_until.max(start);
            let brought = self.beyond::<true>(line, start);
            self.l1d_misses.hold(start, brought.ready);
            brought
        } else {
            self.beyond::<false>(line, 0)
        };
        let mut state = brought.line(asked);
        state.write(is_store);
        self.fill_l1d(line, state);
        if let Some(next) = self.guess_of(line) {
            self.guess_l1d::<TIMED>(next, at);
        }
        Outcome {
            cycles: brought.ready.saturating_sub(at) as u32,
            level: brought.level,
            from: brought.from,
            translation: Translation::default(),
            joined: false,
            guessed: false,
            split: false,
        }
    }

    /// The line that holds the last table's entry for an address.
    #[inline]
    fn table_line(&self, address: u64) -> u64 {
        TABLES + (address >> self.page_shift >> (self.line_shift - ENTRY_SHIFT))
    }

    /// The line that the first level guesses beside one that it lacks, if it does.
    #[inline]
    fn guess_of(&self, line: u64) -> Option<u64> {
        (self.next_line && (line + 1) & (self.page_lines - 1) != 0).then_some(line + 1)
    }

    fn fill_l1d(&mut self, line: u64, state: Line) {
        let newest = if state.is_guess() { NO_LINE } else { key(line, state.is_dirty()) };
        self.l1d_newest.note(line, newest);
        let Some((left, was)) = self.l1d.insert(line, state) else { return };
        self.counts.evictions_l1 += 1;
        self.counts.prefetches_useless += u64::from(was.is_guess());
        if was.is_dirty() {
            self.counts.writebacks_l1 += 1;
            match self.l2.peek_mut(left) {
                Some(below) => below.write(true),
                None => self.leave_l2(left, was),
            }
        }
    }

    #[inline]
    fn follow_stride<const TIMED: bool>(&mut self, pc: u64, address: u64, line: u64, at: u64) {
        let Some(strides) = &mut self.strides else { return };
        let Some(next) = strides.observe(pc, address) else { return };
        let next_line = next >> self.line_shift;
        // A guess stops at the page's end: where the next page lies, nobody has translated.
        let is_in_page = next >> self.page_shift == address >> self.page_shift;
        if next_line != line && is_in_page {
            self.guess_l1d::<TIMED>(next_line, at);
        }
    }

    fn guess_l1d<const TIMED: bool>(&mut self, line: u64, at: u64) {
        if self.l1d_newest.of(line) >> 1 == line || self.l1d.peek(line).is_some() {
            return;
        }
        self.counts.prefetches_l1 += 1;
        let brought = self.beyond::<TIMED>(line, at);
        self.fill_l1d(line, brought.line(at).guessed(true));
    }
}

#[cfg(test)]
mod tests;
