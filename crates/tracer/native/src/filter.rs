//! The small machine that seccomp's filters are written for: an accumulator, an index, sixteen words,
//! jumps forward only.

use std::sync::Arc;

use crate::calls::Call;

/// One instruction: what to do, how far to jump if a condition holds or not, a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    code: u16,
    if_so: u8,
    if_not: u8,
    number: u32,
}

/// What the kernel calls this processor.
pub(crate) const X86_64: u32 = 0xc000_003e;
/// What a filter is shown of a call.
const SHOWN_BYTES: usize = 64;
/// That the process is to end: also where a filter makes no sense.
const KILL: u32 = 0x8000_0000;

/// Reads a filter, eight bytes an instruction; `None` if the kernel would not take it.
pub(crate) fn read(bytes: &[u8]) -> Option<Arc<[Step]>> {
    let steps: Vec<Step> = bytes
        .chunks_exact(8)
        .map(|b| Step {
            code: u16::from_le_bytes([b[0], b[1]]),
            if_so: b[2],
            if_not: b[3],
            number: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        })
        .collect();
    let is_fine = steps.iter().all(is_known);
    let ends = steps.last().is_some_and(|last| last.code & 7 == 6);
    (is_fine && ends).then(|| steps.into())
}

fn is_known(step: &Step) -> bool {
    match step.code {
        0x20 => step.number as usize + 4 <= SHOWN_BYTES && step.number.is_multiple_of(4),
        0x60 | 0x61 | 0x02 | 0x03 => step.number < 16,
        0x34 => step.number != 0,
        code => {
            matches!(code, 0x80 | 0x81 | 0x00 | 0x01 | 0x06 | 0x16 | 0x07 | 0x87)
                || matches!(code, 0x05 | 0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d)
                || code & 7 == 4 && matches!(code & 0xf0, 0x00..=0x80 | 0xa0) && code < 0x100
        }
    }
}

/// What a filter answers to a call that ends before an address.
pub(crate) fn run(steps: &[Step], call: &Call, pc: u64) -> u32 {
    let [number, arguments @ ..] = call;
    let mut shown = [0u8; SHOWN_BYTES];
    shown[0..4].copy_from_slice(&(*number as u32).to_le_bytes());
    shown[4..8].copy_from_slice(&X86_64.to_le_bytes());
    shown[8..16].copy_from_slice(&pc.to_le_bytes());
    for (place, argument) in shown[16..].chunks_exact_mut(8).zip(arguments) {
        place.copy_from_slice(&argument.to_le_bytes());
    }
    let mut machine = Machine { shown, a: 0, x: 0, words: [0; 16] };
    let mut at = 0;
    while let Some(step) = steps.get(at) {
        match machine.step(*step) {
            Next::Skip(count) => at += 1 + count as usize,
            Next::Answer(answer) => return answer,
        }
    }
    KILL
}

enum Next {
    Skip(u32),
    Answer(u32),
}

struct Machine {
    shown: [u8; SHOWN_BYTES],
    a: u32,
    x: u32,
    words: [u32; 16],
}

impl Machine {
    fn step(&mut self, step: Step) -> Next {
        let Step { code, if_so, if_not, number } = step;
        let place = number as usize;
        let word = self.words.get(place).copied().unwrap_or(0);
        let operand = if code & 8 == 0 { number } else { self.x };
        match code {
            0x20 => self.a = self.load(place),
            0x80 => self.a = SHOWN_BYTES as u32,
            0x81 => self.x = SHOWN_BYTES as u32,
            0x00 => self.a = number,
            0x01 => self.x = number,
            0x60 => self.a = word,
            0x61 => self.x = word,
            0x02 => self.words[place % 16] = self.a,
            0x03 => self.words[place % 16] = self.x,
            0x07 => self.x = self.a,
            0x87 => self.a = self.x,
            0x06 => return Next::Answer(number),
            0x16 => return Next::Answer(self.a),
            0x05 => return Next::Skip(number),
            _ if code & 7 == 5 => {
                let holds = match code & 0xf0 {
                    0x10 => self.a == operand,
                    0x20 => self.a > operand,
                    0x30 => self.a >= operand,
                    _ => self.a & operand != 0,
                };
                return Next::Skip(u32::from(if holds { if_so } else { if_not }));
            }
            _ => match self.compute(code & 0xf0, operand) {
                Some(a) => self.a = a,
                None => return Next::Answer(KILL),
            },
        }
        Next::Skip(0)
    }

    fn load(&self, at: usize) -> u32 {
        let bytes = self.shown.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }

    fn compute(&self, what: u16, operand: u32) -> Option<u32> {
        Some(match what {
            0x00 => self.a.wrapping_add(operand),
            0x10 => self.a.wrapping_sub(operand),
            0x20 => self.a.wrapping_mul(operand),
            0x30 => self.a.checked_div(operand)?,
            0x40 => self.a | operand,
            0x50 => self.a & operand,
            0x60 => self.a.checked_shl(operand).unwrap_or(0),
            0x70 => self.a.checked_shr(operand).unwrap_or(0),
            0x80 => self.a.wrapping_neg(),
            0xa0 => self.a ^ operand,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(steps: &[(u16, u8, u8, u32)]) -> Vec<u8> {
        let one = |(code, if_so, if_not, number): &(u16, u8, u8, u32)| {
            let mut all = code.to_le_bytes().to_vec();
            all.extend([*if_so, *if_not]);
            all.extend(number.to_le_bytes());
            all
        };
        steps.iter().flat_map(one).collect()
    }

    #[test]
    fn a_filter_answers_by_number_and_arguments() {
        // Call 7 with an even first argument gets 1, other calls 2.
        let steps = [
            (0x20, 0, 0, 0),
            (0x15, 0, 4, 7),
            (0x20, 0, 0, 16),
            (0x54, 0, 0, 1),
            (0x15, 0, 1, 0),
            (0x06, 0, 0, 1),
            (0x06, 0, 0, 2),
        ];
        let filter = read(&bytes(&steps)).unwrap();
        let answer = |number, argument| run(&filter, &[number, argument, 0, 0, 0, 0, 0], 0);
        assert_eq!([answer(7, 4), answer(7, 5), answer(8, 4)], [1, 2, 2]);
    }

    #[test]
    fn what_the_kernel_would_not_take_is_not_taken() {
        for steps in [
            &[(0x20, 0, 0, 62), (0x06, 0, 0, 0)][..],
            &[(0x28, 0, 0, 0), (0x06, 0, 0, 0)],
            &[(0x34, 0, 0, 0), (0x06, 0, 0, 0)],
            &[(0x00, 0, 0, 0)],
            &[],
        ] {
            assert_eq!(read(&bytes(steps)), None, "{steps:?}");
        }
        let off = read(&bytes(&[(0x05, 0, 0, 9), (0x06, 0, 0, 1)])).unwrap();
        assert_eq!(run(&off, &[0; 7], 0), KILL, "a jump out of it");
    }
}
