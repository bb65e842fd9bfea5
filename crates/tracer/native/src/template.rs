//! What a block touches, given what it recorded.

use model::stream::Access;

/// The address is known without a slot.
pub(crate) const FIXED: u8 = 128;
/// It is relative to the thread pointer.
pub(crate) const FS: u8 = 129;

/// One access whose address is a slot's value and a constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touch {
    pub(crate) displacement: u64,
    pub(crate) instruction: u16,
    pub(crate) slot: u8,
    pub(crate) size: u8,
    pub(crate) is_store: bool,
}

impl Touch {
    /// Where it is, but for the thread pointer.
    #[inline]
    fn address(&self, values: &[u64; WINDOW]) -> u64 {
        // Whether there is a value follows no pattern: no decision is made of it.
        let mask = u64::from(self.slot >> 7).wrapping_sub(1);
        let value = values[usize::from(self.slot) % WINDOW] & mask;
        value.wrapping_add(self.displacement)
    }
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
    /// Its accesses, if all are plain and none too many.
    pub(crate) plain: Plain,
    /// Its accesses, if not.
    steps: Box<[Step]>,
}

/// Accesses that all follow from one value and a constant each. They live as long as the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plain {
    touches: &'static [Touch],
    /// Which of those are relative to the thread pointer.
    in_thread: &'static [u8],
}

/// More values than any block records: those of one block and of some that follow.
pub(crate) const WINDOW: usize = 128;
/// Accesses that a block has at most to be plain.
const PLAIN_MAX: usize = 256;
/// Room for the accesses of a plain block.
pub(crate) type Room = [Access; PLAIN_MAX];
/// An access to fill room with.
pub(crate) const NONE: Access = Access { address: 0, instruction: 0, size: 0, is_store: false };

impl Plain {
    /// Where the description begins.
    pub(crate) fn start(self) -> *const Touch {
        self.touches.as_ptr()
    }

    /// The addresses that a plain block touched, given the values from its first on; none if some are
    /// relative to the thread pointer.
    #[inline]
    pub(crate) fn addresses(self, values: &[u64; WINDOW]) -> Option<impl Iterator<Item = u64>> {
        let address = |touch: &Touch| touch.address(values);
        self.in_thread.is_empty().then(|| self.touches.iter().map(address))
    }

    /// Puts down what a plain block touched that ran whole, given the values from its first on and the
    /// thread pointer. Says how many accesses there are.
    #[inline]
    pub(crate) fn fill(self, values: &[u64; WINDOW], fs: u64, room: &mut Room) -> usize {
        for (touch, access) in self.touches.iter().zip(room.iter_mut()) {
            let Touch { instruction, size, is_store, .. } = *touch;
            *access = Access { address: touch.address(values), instruction, size, is_store };
        }
        for place in self.in_thread {
            let address = &mut room[usize::from(*place)].address;
            *address = address.wrapping_add(fs);
        }
        self.touches.len()
    }
}

/// The bytes of a line, within which the pieces of a repeated instruction are joined.
const LINE_BYTES: u64 = 64;

impl Template {
    pub(crate) fn new(steps: Vec<Step>, slots: u16) -> Template {
        let plain = |step: &Step| match step {
            Step::Touch(touch) => Some(*touch),
            Step::Odd(_) => None,
        };
        let all = steps.iter().map(plain).collect::<Option<Box<[Touch]>>>();
        match all.filter(|plain| plain.len() <= PLAIN_MAX) {
            Some(plain) => {
                let places = plain.iter().enumerate().filter(|(_, touch)| touch.slot == FS);
                let in_thread: Vec<u8> = places.map(|(place, _)| place as u8).collect();
                let plain = Plain { touches: Box::leak(plain), in_thread: in_thread.leak() };
                Template { slots, plain, steps: Box::default() }
            }
            None => Template { slots, steps: steps.into(), ..Template::default() },
        }
    }

    /// Whether all accesses are plain.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }

    /// Puts down what the first `ran` instructions of any block touched.
    #[cold]
    #[inline(never)]
    pub(crate) fn expand(&self, slots: &[u64], fs: u64, ran: u16, out: &mut Vec<Access>) {
        if !self.is_plain() {
            return self.expand_slowly(slots, fs, ran, out);
        }
        let steps: Vec<Step> = self.plain.touches.iter().map(|touch| Step::Touch(*touch)).collect();
        Template { steps: steps.into(), ..Template::default() }.expand_slowly(slots, fs, ran, out);
    }

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
                // One that did not run recorded nothing: what is in its slots is anybody's, and as a
                // distance it may be without end.
                Step::Odd(odd) if odd.instruction() >= ran => {}
                Step::Odd(odd) => odd.expand(slots, &mut push),
            }
        }
    }
}

fn base(slots: &[u64], fixed: &[u64; 2], slot: u8) -> u64 {
    match slot {
        FIXED | FS => fixed[usize::from(slot - FIXED)],
        _ => slots.get(usize::from(slot)).copied().unwrap_or(0),
    }
}

impl Odd {
    fn instruction(&self) -> u16 {
        match *self {
            Odd::InThread(Touch { instruction, .. })
            | Odd::Gather { instruction, .. }
            | Odd::Repeat { instruction, .. } => instruction,
        }
    }

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
        let Odd::Gather {
            base,
            displacement,
            indices,
            mask,
            scale,
            is_wide_index,
            size,
            lanes,
            instruction,
        } = *self
        else {
            return;
        };
        let value = |slot: u8| slots.get(usize::from(slot)).copied().unwrap_or(0);
        let narrow =
            |slot: u8, lane: u8| (value(slot + lane / 2) >> (u32::from(lane % 2) * 32)) as u32;
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
                let address =
                    base.wrapping_add(displacement).wrapping_add(index.wrapping_mul(scale.into()));
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
        if let Some(from) =
            from.as_ref().filter(|_| next_from < turns && (next_from <= next_to || to.is_none()))
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the instructions of a block touch, given the values that they record in order.
    fn touched(bytes: &[u8], values: &[u64]) -> Vec<(u64, u8, bool)> {
        let plan = crate::plan::read(0x1000, bytes).unwrap();
        let mut slow = Vec::new();
        plan.template.expand(values, 0x7000, u16::MAX, &mut slow);
        if plan.template.is_plain() {
            let mut window = [0; WINDOW];
            window[..values.len()].copy_from_slice(values);
            let mut room = [NONE; PLAIN_MAX];
            let count = plan.template.plain.fill(&window, 0x7000, &mut room);
            assert_eq!(room[..count], slow);
        }
        slow.iter().map(|access| (access.address, access.size, access.is_store)).collect()
    }

    #[test]
    fn addresses_follow_from_registers_at_the_beginning() {
        // push rbx; mov rax,[rdi+16]; mov [rsp+8],rcx; pop rbx; ret
        let bytes = [0x53, 0x48, 0x8b, 0x47, 0x10, 0x48, 0x89, 0x4c, 0x24, 8, 0x5b, 0xc3];
        let expected = [
            (0x8ff8, 8, true),
            (0x5010, 8, false),
            (0x9000, 8, true),
            (0x8ff8, 8, false),
            (0x9000, 8, false),
        ];
        assert_eq!(touched(&bytes, &[0x9000, 0x5000]), expected);
    }

    #[test]
    fn a_changed_register_and_an_indexed_operand_are_recorded_where_they_stand() {
        // mov rax,[rdi]; mov rcx,[rax+8]; add [rax+rcx*4+1],edx; ret
        let bytes = [0x48, 0x8b, 0x07, 0x48, 0x8b, 0x48, 8, 0x01, 0x54, 0x88, 1, 0xc3];
        let plan = crate::plan::read(0x1000, &bytes).unwrap();
        assert_eq!(plan.first.len(), 2, "rdi, and rsp for ret");
        assert_eq!(
            plan.records.iter().map(|record| record.instruction).collect::<Vec<_>>(),
            [1, 2]
        );
        let found = touched(&bytes, &[0x10, 0x20, 0x30, 0x40]);
        let expected = [
            (0x10, 8, false),
            (0x28, 8, false),
            (0x31, 4, false),
            (0x31, 4, true),
            (0x40, 8, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_thread_pointer_and_fixed_addresses_need_no_value() {
        // mov rax,fs:[0x28]; mov ecx,[rip+0x10]; ret
        let bytes = [0x64, 0x48, 0x8b, 4, 0x25, 0x28, 0, 0, 0, 0x8b, 0x0d, 0x10, 0, 0, 0, 0xc3];
        let found = touched(&bytes, &[0x9000]);
        assert_eq!(found, [(0x7028, 8, false), (0x101f, 4, false), (0x9000, 8, false)]);
    }

    #[test]
    fn a_repeated_move_touches_lines_in_turn() {
        // rep movsb of 100 bytes from 0x1010 to 0x2000.
        let found = touched(&[0xf3, 0xa4], &[0x1010, 0x2000, 0x2064]);
        let expected =
            [(0x1010, 48, false), (0x2000, 64, true), (0x1040, 52, false), (0x2040, 36, true)];
        assert_eq!(found, expected);
        assert_eq!(touched(&[0xf3, 0xaa], &[0x2000, 0x2000]), []);
        // Downwards each stands alone.
        assert_eq!(
            touched(&[0xf3, 0x48, 0xab], &[0x2000, 0x1ff0]),
            [(0x2000, 8, true), (0x1ff8, 8, true)]
        );
    }
    #[test]
    fn a_repeated_move_that_faulted_is_not_followed_to_where_its_slots_happen_to_point() {
        // mov rax,[rdi]; rep movsb, of which only the load ran.
        let plan = crate::plan::read(0x1000, &[0x48, 0x8b, 0x07, 0xf3, 0xa4]).unwrap();
        let mut found = Vec::new();
        let slots = [0x5000, 0x6000, u64::MAX / 2];
        plan.template.expand(&slots, 0, 1, &mut found);
        let load = Access { address: 0x5000, instruction: 0, size: 8, is_store: false };
        assert_eq!(found, [load]);
    }
}
