//! From recorded blocks to a listener.

use model::stream::{Access, CoreListener};
use tracer::idle::Idle;

use crate::cache::{self, Block};
use crate::context::{IDS, Mode};

/// Blocks that are recorded with their addresses before the listener hears of them. What they leave
/// stays in the host's second level until then.
const TOLD: usize = 1024;
/// Accesses that one call to a listener carries at most.
const ACCESSES_MAX: usize = 2047;

/// Blocks that ran, as translated code left them.
pub(crate) struct Ran<'a> {
    /// Their numbers, the last first.
    pub(crate) ids: &'a [u32],
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
    accesses: Vec<Access>,
    /// Instructions of the longest block that ran.
    longest: u16,
}

impl Teller {
    pub(crate) fn new(listener: Box<dyn CoreListener>) -> Teller {
        Teller {
            listener,
            known: Vec::new(),
            idle: Idle::default(),
            hears_lines: true,
            accesses: Vec::with_capacity(256),
            longest: 16,
        }
    }

    /// How the blocks that come next are recorded, and how many of them.
    pub(crate) fn next(&mut self) -> (Mode, usize) {
        if !self.idle.is_on() {
            self.ask();
        }
        if !self.idle.is_on() || self.hears_lines {
            return (Mode::Told, TOLD);
        }
        // So few that no more instructions run unseen than may.
        let blocks = self.idle.left() / u64::from(self.longest);
        (Mode::Noted, (blocks as usize).clamp(1, IDS))
    }

    fn ask(&mut self) {
        let is_ordered = self.listener.hears_order();
        self.idle.begin(self.listener.idles_for(), is_ordered, self.known.len() as u32);
        self.hears_lines = self.listener.hears_lines();
    }

    /// Tells what ran.
    pub(crate) fn tell(&mut self, ran: &Ran<'_>) {
        if let Some(&highest) = ran.ids.iter().max().filter(|id| **id as usize >= self.known.len()) {
            self.introduce(highest);
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
            Some(cache) => cache.blocks.get(self.known.len()..=highest as usize).unwrap_or_default().to_vec(),
            None => return,
        };
        for block in new {
            self.listener.translated(block.live.id, &block.live.code);
            self.longest = self.longest.max(block.live.len);
            self.known.push(block);
        }
    }

    /// Blocks ran while the listener idled.
    fn count(&mut self, ran: &Ran<'_>) {
        let (cut, whole) = match ran.cut {
            Some(cut) => (Some(cut), ran.ids.get(1..).unwrap_or_default()),
            None => (None, ran.ids),
        };
        let mut instructions = 0;
        for id in whole.iter().rev() {
            let Some(block) = self.known.get(*id as usize) else { continue };
            self.idle.count(block.live.id);
            instructions += u64::from(block.live.len);
            if self.idle.is_order_full() {
                self.tell_order();
            }
        }
        self.tell_order();
        let is_over = self.idle.add(instructions);
        if let (Some(cut), Some(id)) = (cut.filter(|cut| *cut > 0), ran.ids.first()) {
            self.cut_short(*id, cut);
        }
        if is_over {
            self.wake();
        }
    }

    #[cold]
    fn cut_short(&mut self, id: u32, cut: u16) {
        let Some(block) = self.known.get(id as usize).copied() else { return };
        self.listener.executed(block.live.id, cut, &[]);
        self.idle.spend(cut);
    }

    fn tell_all(&mut self, ran: &Ran<'_>) {
        let mut at = 0;
        for (left, id) in ran.ids.iter().enumerate().rev() {
            let Some(block) = self.known.get(*id as usize).copied() else { continue };
            let end = at + usize::from(block.template.slots);
            let slots = ran.slots.get(at..end).unwrap_or_default();
            at = end;
            let len = ran.cut.filter(|_| left == 0).unwrap_or(block.live.len);
            if len == 0 {
                continue;
            }
            let is_whole = len == block.live.len;
            if !self.idle.is_on() || self.hears_lines || !is_whole {
                self.accesses.clear();
                block.template.expand(slots, ran.fs, len, &mut self.accesses);
            }
            if self.idle.is_on() && is_whole {
                self.pass(block);
            } else {
                self.execute(block, len);
            }
        }
    }

    #[inline]
    fn execute(&mut self, block: Block, len: u16) {
        let id = block.live.id;
        match self.accesses.split_at_checked(ACCESSES_MAX) {
            None => self.listener.executed(id, len, &self.accesses),
            Some((first, rest)) => {
                self.listener.executed(id, len, first);
                rest.chunks(ACCESSES_MAX).for_each(|some| self.listener.continued(id, some));
            }
        }
        if self.idle.is_on() {
            self.idle.spend(len);
        } else if self.idle.is_time_to_ask(len) {
            self.ask();
        }
    }

    /// A block ran whole that the listener wants lines of, or that began before it was known that it
    /// would not.
    fn pass(&mut self, block: Block) {
        if self.hears_lines {
            for place in 0..self.accesses.len() {
                if self.idle.touch(self.accesses[place].address) {
                    self.tell_addresses();
                }
            }
        }
        self.idle.count(block.live.id);
        if self.idle.is_order_full() {
            self.tell_order();
        }
        if self.idle.add(u64::from(block.live.len)) {
            self.wake();
        }
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
