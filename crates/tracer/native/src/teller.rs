//! From recorded blocks to a listener.

use model::stream::{Access, BlockId, CoreListener};
use tracer::idle::Idle;

use crate::cache::{self, Block};
use crate::context::{IDS, Mode};
use crate::template::{NONE, Room, WINDOW};

/// Blocks that are recorded with their addresses before the listener hears of them. What they leave
/// stays in the host's second level until then.
const TOLD: usize = 1024;
/// Instructions from which on blocks are told with their addresses though the listener idles: it then
/// hears from the very block on at which it wakes.
const SHORT: u64 = 8192;
/// The least that the longest block is taken for.
const LONGEST_LEAST: u16 = 16;
/// Accesses that one call to a listener carries at most.
const ACCESSES_MAX: usize = 2047;

/// How many blocks ahead descriptions are brought, and what says where they are.
const NEAR_AHEAD: usize = 6;
const FAR_AHEAD: usize = 12;

/// How many blocks ahead the listener hears which addresses come, where it looks far beyond what the
/// host has at hand: so often between two times that it is asked.
const ADDRESSES_AHEAD: usize = 16;
const FAR_LOOKS: u64 = 16;
/// Addresses of one block that it hears of so.
const APPROACHED_MAX: usize = 16;

/// Has the host bring a line of memory.
#[inline]
fn bring<T>(line: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint, which reads nothing whatever the address is.
    unsafe { _mm_prefetch(line.cast::<i8>(), _MM_HINT_T0) };
}

/// Blocks that ran, as translated code left them.
pub(crate) struct Ran<'a> {
    /// Their numbers, in order.
    pub(crate) ids: &'a [BlockId],
    /// What they recorded, one after the other, if they were told.
    pub(crate) slots: &'a [u64],
    pub(crate) mode: Mode,
    /// The thread pointer.
    pub(crate) fs: u64,
    /// How many instructions of the last one ran, if a fault cut it short.
    pub(crate) cut: Option<u16>,
}

/// One thread's listener.
pub(crate) struct Teller {
    listener: Box<dyn CoreListener>,
    known: Vec<Block>,
    idle: Idle,
    hears_lines: bool,
    room: Box<Room>,
    accesses: Vec<Access>,
    /// Instructions of each block, by number.
    lens: Vec<u16>,
    /// Instructions of the longest block that ran lately.
    longest: u16,
    /// The listener's far looks when it was last asked, and whether they are frequent.
    far_looks: u64,
    is_far: bool,
}

/// A block ahead of the one that is told, and where its values begin.
#[derive(Clone, Copy, Default)]
struct Ahead {
    place: usize,
    at: usize,
}

impl Teller {
    pub(crate) fn new(listener: Box<dyn CoreListener>) -> Teller {
        Teller {
            listener,
            known: Vec::new(),
            idle: Idle::default(),
            hears_lines: true,
            room: Box::new([NONE; _]),
            accesses: Vec::with_capacity(256),
            lens: Vec::new(),
            longest: LONGEST_LEAST,
            far_looks: 0,
            is_far: false,
        }
    }

    /// How the blocks that come next are recorded, and how many of them.
    pub(crate) fn next(&mut self) -> (Mode, usize) {
        if !self.idle.is_on() {
            self.ask();
        }
        if !self.idle.is_on() || self.hears_lines || self.idle.left() < SHORT {
            return (Mode::Told, TOLD);
        }
        // So few that no more instructions run unseen than may, unless blocks become longer all at once.
        let blocks = self.idle.left() / u64::from(self.longest);
        (Mode::Noted, (blocks as usize).clamp(1, IDS))
    }

    fn ask(&mut self) {
        let is_ordered = self.listener.hears_order();
        self.idle.begin(self.listener.idles_for(), is_ordered, self.known.len() as u32);
        self.hears_lines = self.listener.hears_lines();
        let far_looks = self.listener.far_looks();
        // A child may count anew.
        self.is_far = far_looks.saturating_sub(self.far_looks) >= FAR_LOOKS;
        self.far_looks = far_looks;
    }

    /// Tells what ran.
    pub(crate) fn tell(&mut self, ran: &Ran<'_>) {
        if let Some(highest) = ran.ids.iter().max().filter(|id| id.0 as usize >= self.known.len()) {
            self.introduce(highest.0);
        }
        match ran.mode {
            Mode::Noted => self.count(ran),
            Mode::Told => self.tell_all(ran),
        }
    }

    /// Makes the listener know the blocks up to one.
    #[cold]
    fn introduce(&mut self, highest: u32) {
        let new: Vec<Block> = match cache::lock() {
            Some(cache) => {
                cache.blocks.get(self.known.len()..=highest as usize).unwrap_or_default().to_vec()
            }
            None => return,
        };
        for block in new {
            self.listener.translated(block.id, &block.live.code);
            self.lens.push(block.len);
            self.known.push(block);
        }
    }

    /// Blocks ran while the listener idled.
    fn count(&mut self, ran: &Ran<'_>) {
        let (cut, whole) = match (ran.cut, ran.ids.split_last()) {
            (Some(cut), Some((_, whole))) => (Some(cut), whole),
            _ => (None, ran.ids),
        };
        let instructions = self.idle.count_all(whole, &self.lens);
        if self.idle.is_ordered() {
            // What was told with its addresses since the listener idles ran before.
            self.tell_order();
            self.listener.passed(whole);
        }
        let longest =
            whole.iter().map(|id| self.lens.get(id.0 as usize).copied().unwrap_or(0)).max();
        self.longest = longest.unwrap_or(0).max(LONGEST_LEAST);
        let is_over = self.idle.add(instructions);
        if let (Some(cut), Some(id)) = (cut.filter(|cut| *cut > 0), ran.ids.last()) {
            self.cut_short(*id, cut);
        }
        if is_over {
            self.wake();
        }
    }

    #[cold]
    fn cut_short(&mut self, id: BlockId, cut: u16) {
        let Some(block) = self.known.get(id.0 as usize).copied() else { return };
        self.listener.executed(block.id, cut, &[]);
        self.idle.spend(cut);
    }

    fn tell_all(&mut self, ran: &Ran<'_>) {
        let (mut place, mut at) = (0, 0);
        let mut ahead = Ahead::default();
        let last = ran.ids.len() - 1;
        while let Some(id) = ran.ids.get(place) {
            self.look_ahead(ran.ids, place);
            let Some(block) = self.known.get(id.0 as usize).copied() else {
                place += 1;
                continue;
            };
            let values = ran.slots.get(at..).unwrap_or_default();
            let cut = ran.cut.filter(|_| place == last);
            let is_plain = block.is_plain & cut.is_none();
            // The last block may be cut short: it is told by itself.
            let others = &ran.ids[place..last.max(place + 1)];
            let mut times = 1;
            match values.first_chunk::<WINDOW>() {
                Some(_) if is_plain && self.idle.is_on() => {
                    times = self.pass_again(block, others, values, ran.fs);
                }
                Some(values) if is_plain => {
                    if self.is_far {
                        ahead = self.approach(ran, ahead, Ahead { place, at });
                    }
                    self.tell_plain(block, values, ran.fs);
                }
                _ => self.tell_odd(block, values, ran.fs, cut.unwrap_or(block.len)),
            }
            place += times;
            at += times * usize::from(block.slots);
        }
    }

    /// Has the host bring what blocks further on will need: which ones come is known, where their
    /// descriptions lie the host could not guess.
    #[inline]
    fn look_ahead(&self, ids: &[BlockId], place: usize) {
        let known = |distance: usize| self.known.get(ids.get(place + distance)?.0 as usize);
        if let Some(block) = known(FAR_AHEAD) {
            bring(std::ptr::from_ref(block));
        }
        if let Some(block) = known(NEAR_AHEAD) {
            bring(block.plain.start());
        }
    }

    /// The listener hears which addresses come a few blocks further on; says how far.
    #[inline]
    fn approach(&self, ran: &Ran<'_>, ahead: Ahead, here: Ahead) -> Ahead {
        let mut ahead = if ahead.place < here.place { here } else { ahead };
        while let Some(id) =
            ran.ids.get(ahead.place).filter(|_| ahead.place < here.place + ADDRESSES_AHEAD)
        {
            let Some(block) = self.known.get(id.0 as usize) else { return ahead };
            let values = ran.slots.get(ahead.at..).unwrap_or_default();
            let addresses = values.first_chunk().and_then(|values| block.plain.addresses(values));
            let mut all = [0; APPROACHED_MAX];
            let count =
                addresses.into_iter().flatten().zip(&mut all).map(|(from, to)| *to = from).count();
            self.listener.approach(&all[..count]);
            ahead = Ahead { place: ahead.place + 1, at: ahead.at + usize::from(block.slots) };
        }
        ahead
    }

    #[inline]
    fn tell_plain(&mut self, block: Block, values: &[u64; WINDOW], fs: u64) {
        let count = block.plain.fill(values, fs, &mut self.room);
        let accesses = self.room.get(..count).unwrap_or_default();
        self.listener.executed(block.id, block.len, accesses);
        if self.idle.is_time_to_ask(block.len) {
            self.ask();
        }
    }

    /// Tells of a block that was cut short, or that touches memory in unusual ways.
    #[cold]
    #[inline(never)]
    fn tell_odd(&mut self, block: Block, values: &[u64], fs: u64, len: u16) {
        if len == 0 {
            return;
        }
        let id = block.id;
        self.accesses.clear();
        block.template.expand(values, fs, len, &mut self.accesses);
        self.tell_order();
        let accesses = std::mem::take(&mut self.accesses);
        let (first, rest) = accesses.split_at(accesses.len().min(ACCESSES_MAX));
        self.listener.executed(id, len, first);
        rest.chunks(ACCESSES_MAX).for_each(|some| self.listener.continued(id, some));
        self.accesses = accesses;
        if !self.idle.is_on() {
            if self.idle.is_time_to_ask(len) {
                self.ask();
            }
        } else if self.idle.spend(len) {
            self.wake();
        }
    }

    /// The listener idles and wants to hear what a block touched.
    #[inline]
    fn touch(&mut self, block: Block, values: &[u64; WINDOW], fs: u64) {
        let is_full = if let Some(addresses) = block.plain.addresses(values) {
            self.idle.touch_all(addresses)
        } else {
            let count = block.plain.fill(values, fs, &mut self.room);
            let accesses = self.room.get(..count).unwrap_or_default();
            self.idle.touch_all(accesses.iter().map(|access| access.address))
        };
        if is_full {
            self.tell_addresses();
        }
    }

    /// The listener idles. A block ran whole, perhaps again and again, that it may want lines of, or that
    /// began before it was known that it would not. Says how often it ran: what is counted of a loop is
    /// counted once.
    ///
    /// ```text
    /// ids:     7 7 7 7 9 ..        values: | 1st run | 2nd | 3rd | 4th | ..
    ///          '-----' at most until the listener wakes
    /// ```
    #[inline]
    fn pass_again(&mut self, block: Block, ids: &[BlockId], values: &[u64], fs: u64) -> usize {
        let len = u64::from(block.len);
        // Most blocks are no loops of one block, and a division takes longer than all else here.
        let mut times = match ids.get(1) == Some(&block.id) {
            true => self.times_alike(len, ids),
            false => 1,
        };
        if self.hears_lines {
            times = self.touch_again(block, times, values, fs);
        }
        self.idle.count(block.id, times as u32);
        if self.idle.is_order_full() {
            self.tell_order();
        }
        if self.idle.add(len * times as u64) {
            self.wake();
        }
        times
    }

    /// How often a block of so many instructions runs in a row, until the listener wakes.
    #[inline]
    fn times_alike(&self, len: u64, ids: &[BlockId]) -> usize {
        let most = ids.len().min(self.idle.left().div_ceil(len.max(1)) as usize);
        let again = ids.get(1..most).unwrap_or_default();
        1 + again.iter().take_while(|id| Some(*id) == ids.first()).count()
    }

    /// Puts down what so many runs of a block touched, given the values from the first run's on; how
    /// many of them were put down before there were too few values.
    #[inline]
    fn touch_again(&mut self, block: Block, times: usize, values: &[u64], fs: u64) -> usize {
        for turn in 0..times {
            let values = values.get(turn * usize::from(block.slots)..).unwrap_or_default();
            let Some(values) = values.first_chunk::<WINDOW>() else { return turn };
            self.touch(block, values, fs);
        }
        times
    }

    fn tell_order(&mut self) {
        let listener = &mut self.listener;
        self.idle.tell_order(|blocks| listener.passed(blocks));
    }

    #[cold]
    #[inline(never)]
    fn tell_addresses(&mut self) {
        let listener = &mut self.listener;
        self.idle.tell_addresses(|addresses| listener.touched(addresses));
    }

    /// Tells what ran while the listener idled, if it did.
    fn wake(&mut self) {
        self.tell_order();
        self.tell_addresses();
        let listener = &mut self.listener;
        self.idle.end(|runs, instructions| listener.ran(runs, instructions));
    }

    /// The thread enters the kernel. All that ran was told.
    pub(crate) fn system_call(&mut self, number: u64) {
        self.wake();
        self.listener.system_call(number);
    }

    /// A signal handler begins.
    pub(crate) fn interrupted(&mut self) {
        self.listener.interrupted();
    }

    /// This is the child of a fork.
    pub(crate) fn forked(&mut self) {
        self.idle = Idle::default();
        self.listener.forked();
    }

    /// The process ends.
    pub(crate) fn ended(&mut self) {
        self.wake();
        self.listener.ended();
    }
}

#[cfg(test)]
mod tests;
