//! What a thread ran, read back. The bytes are untrusted.

use model::stream::{Access, BlockId};

use super::encode::{Expectation, Slot, control};
use crate::varint::Input;

/// One thing that a listener is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A block ran.
    Executed {
        /// The block.
        id: BlockId,
        /// How many instructions, if not all.
        ran: Option<u16>,
        /// What it touched.
        accesses: &'a [Access],
    },
    /// Its last instruction touched more.
    Continued {
        /// The block.
        id: BlockId,
        /// What it touched.
        accesses: &'a [Access],
    },
    /// A signal handler begins.
    Interrupted,
    /// The thread entered the kernel.
    SystemCall(u64),
}

/// Reads what a thread ran.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    expectation: Expectation,
    accesses: Vec<Access>,
}

impl Decoder {
    /// The next event; `None` if there is none, or none that makes sense. Blocks are numbered below
    /// `blocks`.
    pub fn next(&mut self, input: &mut Input<'_>, blocks: u32) -> Option<Event<'_>> {
        let what = input.byte()?;
        match what {
            control::CONTINUED => self.continued(input),
            control::INTERRUPTED => Some(Event::Interrupted),
            control::SYSTEM_CALL => Some(Event::SystemCall(input.varint()?)),
            _ if what >= control::OTHER => None,
            _ => self.executed(what, input, blocks),
        }
    }

    fn executed(&mut self, what: u8, input: &mut Input<'_>, blocks: u32) -> Option<Event<'_>> {
        let id = match what & control::BLOCK {
            0 => self.expectation.next(),
            _ => {
                let id = i64::from(self.expectation.last).checked_add(input.signed()?)?;
                u32::try_from(id).ok()?
            }
        };
        if id >= blocks {
            return None;
        }
        self.expectation.learn(id);
        let ran = if what & control::RAN == 0 { None } else { Some(input.small()?) };
        let slots = &mut self.expectation.block(id).slots;
        if what & control::SHAPE != 0 {
            let count: usize = input.small()?;
            // Each takes bytes, so more than there are bytes is damage.
            if count > input.0.len() {
                return None;
            }
            slots.resize_with(count, Slot::default);
            for slot in slots.iter_mut() {
                slot.instruction = input.small()?;
                (slot.size, slot.is_store) = size_and_kind(input)?;
            }
        }
        self.accesses.clear();
        for slot in slots {
            let address = slot.expected().wrapping_add(input.signed()? as u64);
            slot.learn(address);
            let Slot { instruction, size, is_store, .. } = *slot;
            self.accesses.push(Access { address, instruction, size, is_store });
        }
        Some(Event::Executed { id: BlockId(id), ran, accesses: &self.accesses })
    }

    fn continued(&mut self, input: &mut Input<'_>) -> Option<Event<'_>> {
        let count: usize = input.small()?;
        self.accesses.clear();
        let mut ends = [0u64; 2];
        for _ in 0..count {
            let instruction = input.small()?;
            let (size, is_store) = size_and_kind(input)?;
            let end = &mut ends[usize::from(is_store)];
            let address = end.wrapping_add(input.signed()? as u64);
            *end = address.wrapping_add(u64::from(size));
            self.accesses.push(Access { address, instruction, size, is_store });
        }
        Some(Event::Continued { id: BlockId(self.expectation.last), accesses: &self.accesses })
    }
}

fn size_and_kind(input: &mut Input<'_>) -> Option<(u8, bool)> {
    let both = input.varint()?;
    Some((u8::try_from(both >> 1).ok()?, both & 1 != 0))
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
    use super::*;

    /// A small generator with a fixed seed: the test is the same every time.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % below
        }
    }

    fn accesses(numbers: &mut Numbers, count: u64) -> Vec<Access> {
        let access = |_| Access {
            address: numbers.next(1 << 20) * numbers.next(1 << 40).max(1),
            instruction: numbers.next(30) as u16,
            size: numbers.next(65) as u8,
            is_store: numbers.next(2) == 1,
        };
        (0..count).map(access).collect()
    }

    #[test]
    fn whatever_is_told_comes_back_the_same() {
        let mut numbers = Numbers(42);
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let mut bytes = Vec::new();
        let mut told = Vec::new();
        for _ in 0..20_000 {
            let count = numbers.next(6);
            let touched = accesses(&mut numbers, count);
            let id = BlockId(numbers.next(50) as u32);
            match numbers.next(20) {
                0 => encoder.continued(&touched, &mut bytes),
                1 => encoder.interrupted(&mut bytes),
                2 => encoder.system_call(id.0.into(), &mut bytes),
                3 => encoder.executed(id, 3, false, &touched, &mut bytes),
                _ => encoder.executed(id, 9, true, &touched, &mut bytes),
            }
            told.push((id, touched));
        }
        let mut input = Input(&bytes);
        let mut numbers = Numbers(42);
        let mut last = BlockId(0);
        for (id, touched) in &told {
            let count = numbers.next(6);
            accesses(&mut numbers, count);
            numbers.next(50);
            let event = decoder.next(&mut input, 50).unwrap();
            let executed = |ran| Event::Executed { id: *id, ran, accesses: touched };
            match numbers.next(20) {
                0 => assert_eq!(event, Event::Continued { id: last, accesses: touched }),
                1 => assert_eq!(event, Event::Interrupted),
                2 => assert_eq!(event, Event::SystemCall(id.0.into())),
                3 => {
                    assert_eq!(event, executed(Some(3)));
                    last = *id;
                }
                _ => {
                    assert_eq!(event, executed(None));
                    last = *id;
                }
            }
        }
        assert!(input.is_empty());
    }

    #[test]
    fn a_loop_that_strides_takes_a_byte_a_block_and_one_an_access() {
        let mut encoder = Encoder::default();
        let mut bytes = Vec::new();
        for turn in 0..1000 {
            let access =
                Access { address: 0x1000 + turn * 8, instruction: 0, size: 8, is_store: false };
            encoder.executed(BlockId(7), 4, true, &[access], &mut bytes);
        }
        assert!(bytes.len() < 2 * 1000 + 32, "{}", bytes.len());
    }

    #[test]
    fn a_block_that_was_never_recorded_is_none() {
        let mut bytes = Vec::new();
        Encoder::default().executed(BlockId(5), 1, true, &[], &mut bytes);
        assert_eq!(Decoder::default().next(&mut Input(&bytes), 5), None);
        assert!(Decoder::default().next(&mut Input(&bytes), 6).is_some());
    }
}
