//! What a block touches, given what it recorded.

use model::stream::Access;

/// The address is known without a slot.
pub(crate) const FIXED: u8 = 254;
/// It is relative to the thread pointer.
pub(crate) const FS: u8 = 255;

/// One access whose address is a slot's value and a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    pub(crate) displacement: u64,
    pub(crate) instruction: u16,
    pub(crate) slot: u8,
    pub(crate) size: u8,
    pub(crate) is_store: bool,
}

/// Accesses that take more than that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Odd {
    /// Relative to the thread pointer and to a slot.
    InThread(Touch),
    /// Wherever a vector of indices says, as far as a mask says so.
    Gather {
        base: u8,
        displacement: u64,
        indices: u8,
        mask: u8,
        scale: u8,
        is_wide_index: bool,
        size: u8,
        lanes: u8,
        instruction: u16,
    },
    /// A repeated string instruction: slots of its pointers before, whether RDI's is written, and of
    /// the one that tells how far it went.
    Repeat {
        from: Option<u8>,
        to: Option<(u8, bool)>,
        moved: u8,
        after: u8,
        size: u8,
        instruction: u16,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Touch(Touch),
    Odd(Odd),
}

/// What a block touches.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// How many values the block records.
    pub(crate) slots: u16,
    /// Its accesses, if all are plain.
    touches: Box<[Touch]>,
    /// Its accesses, if not.
    steps: Box<[Step]>,
}

/// The bytes of a line, within which the pieces of a repeated instruction are joined.
const LINE_BYTES: u64 = 64;

impl Template {
    pub(crate) fn new(steps: Vec<Step>, slots: u16) -> Template {
        let plain = |step: &Step| match step {
            Step::Touch(touch) => Some(*touch),
            Step::Odd(_) => None,
        };
        match steps.iter().map(plain).collect::<Option<Box<[Touch]>>>() {
            Some(touches) => Template { slots, touches, steps: Box::default() },
            None => Template { slots, touches: Box::default(), steps: steps.into() },
        }
    }

    /// Puts down what the first `ran` instructions touched, given the values that were recorded and
    /// the thread pointer.
    #[inline]
    pub(crate) fn expand(&self, slots: &[u64], fs: u64, ran: u16, out: &mut Vec<Access>) {
        if !self.steps.is_empty() {
            return self.expand_slowly(slots, fs, ran, out);
        }
        let fixed = [0, fs];
        for touch in &self.touches {
            let address = base(slots, &fixed, touch.slot).wrapping_add(touch.displacement);
            let Touch { instruction, size, is_store, .. } = *touch;
            out.push(Access { address, instruction, size, is_store });
        }
        if out.last().is_some_and(|last| last.instruction >= ran) {
            out.retain(|access| access.instruction < ran);
        }
    }

    #[cold]
    #[inline(never)]
    fn expand_slowly(&self, slots: &[u64], fs: u64, ran: u16, out: &mut Vec<Access>) {
        let fixed = [0, fs];
        let mut push = |access: Access| {
            if access.instruction < ran {
                out.push(access);
            }
        };
        let plain = |touch: &Touch, thread: u64| {
            let address = base(slots, &fixed, touch.slot).wrapping_add(touch.displacement);
            let Touch { instruction, size, is_store, .. } = *touch;
            Access { address: address.wrapping_add(thread), instruction, size, is_store }
        };
        for step in &self.steps {
            match step {
                Step::Touch(touch) => push(plain(touch, 0)),
                Step::Odd(Odd::InThread(touch)) => push(plain(touch, fs)),
                Step::Odd(odd) => odd.expand(slots, &mut push),
            }
        }
    }
}

#[inline]
fn base(slots: &[u64], fixed: &[u64; 2], slot: u8) -> u64 {
    match slot {
        FIXED | FS => fixed[usize::from(slot - FIXED)],
        _ => slots.get(usize::from(slot)).copied().unwrap_or(0),
    }
}

impl Odd {
    fn expand(&self, slots: &[u64], push: &mut dyn FnMut(Access)) {
        match *self {
            Odd::InThread(_) => {}
            Odd::Gather { .. } => self.gathered(slots, push),
            Odd::Repeat { from, to, moved, after, size, instruction } => {
                let value = |slot: u8| slots.get(usize::from(slot)).copied().unwrap_or(0);
                let distance = value(after).wrapping_sub(value(moved)) as i64;
                let turns = distance.unsigned_abs() / u64::from(size);
                let stream = |slot: u8, is_store| Stream {
                    address: value(slot),
                    size: u64::from(size),
                    is_falling: distance < 0,
                    is_store,
                    instruction,
                };
                let from = from.map(|slot| stream(slot, false));
                let to = to.map(|(slot, is_store)| stream(slot, is_store));
                repeat(from, to, turns, push);
            }
        }
    }

    fn gathered(&self, slots: &[u64], push: &mut dyn FnMut(Access)) {
        let Odd::Gather { base, displacement, indices, mask, scale, is_wide_index, size, lanes, instruction } =
            *self
        else {
            return;
        };
        let value = |slot: u8| slots.get(usize::from(slot)).copied().unwrap_or(0);
        let narrow = |slot: u8, lane: u8| (value(slot + lane / 2) >> (u32::from(lane % 2) * 32)) as u32;
        let base = if base == FIXED { 0 } else { value(base) };
        for lane in 0..lanes {
            let is_taken = match size {
                8 => value(mask + lane % 4) >> 63 == 1,
                _ => narrow(mask, lane) >> 31 == 1,
            };
            let index = match is_wide_index {
                true => value(indices + lane % 4),
                false => narrow(indices, lane) as i32 as u64,
            };
            if is_taken {
                let address = base.wrapping_add(displacement).wrapping_add(index.wrapping_mul(scale.into()));
                push(Access { address, instruction, size, is_store: false });
            }
        }
    }
}

/// One pointer of a repeated string instruction.
struct Stream {
    address: u64,
    size: u64,
    is_falling: bool,
    is_store: bool,
    instruction: u16,
}

impl Stream {
    /// The access that begins with turn `turn`, and how many turns it takes: as many as stay in a
    /// line, as a core would move them. Downwards each stands alone.
    fn access(&self, turn: u64, turns: u64) -> (Access, u64) {
        let moved = turn.wrapping_mul(self.size);
        let address = match self.is_falling {
            true => self.address.wrapping_sub(moved),
            false => self.address.wrapping_add(moved),
        };
        let room = (LINE_BYTES - address % LINE_BYTES) / self.size;
        let joined = if self.is_falling { 1 } else { room.clamp(1, turns - turn) };
        let size = (joined * self.size) as u8;
        let Stream { is_store, instruction, .. } = *self;
        (Access { address, instruction, size, is_store }, joined)
    }
}

/// What a repeated instruction touches, each access where its first turn is.
fn repeat(from: Option<Stream>, to: Option<Stream>, turns: u64, push: &mut dyn FnMut(Access)) {
    let (mut next_from, mut next_to) = (0, 0);
    while next_from < turns && from.is_some() || next_to < turns && to.is_some() {
        if let Some(from) = from.as_ref().filter(|_| next_from < turns && (next_from <= next_to || to.is_none())) {
            let (access, joined) = from.access(next_from, turns);
            push(access);
            next_from += joined;
        } else if let Some(to) = to.as_ref().filter(|_| next_to < turns) {
            let (access, joined) = to.access(next_to, turns);
            push(access);
            next_to += joined;
        } else {
            // The other is through.
            next_to = turns;
        }
    }
}
