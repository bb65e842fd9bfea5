//! Lines of code with more taken branches than the target buffer follows at once.
//!
//! ```text
//! line 0x401040:  jmp . . jmp . . jcc . . jmp        of at most three: the fourth is one too many
//!                 bit 0   bit 3   bit 6
//! ```
//!
//! Asked when a target is learnt, which is rare: what it said is kept with the target.

/// Bytes of code that share room.
const LINE_SHIFT: u32 = 6;
/// Lines of which the branches are known. One that another displaces begins anew, so that code too
/// large for it is taken for code without crowds.
const LINES: usize = 1 << 12;

/// Which branches of each line have room.
#[derive(Clone, Debug)]
pub(super) struct Crowds {
    /// Of the line that was here last, its number and a bit for every byte that such a branch
    /// begins at.
    lines: Vec<(u64, u64)>,
    most: u32,
}

impl Crowds {
    /// Of lines with room for so many.
    pub(super) fn new(most: u32) -> Crowds {
        Crowds { lines: vec![(u64::MAX, 0); LINES], most }
    }

    /// Whether a branch is one too many of its line; the first ones are not.
    pub(super) fn is_one_too_many(&mut self, pc: u64) -> bool {
        let (line, bit) = (pc >> LINE_SHIFT, 1 << (pc & ((1 << LINE_SHIFT) - 1)));
        let Some(slot) = self.lines.get_mut(line as usize % LINES) else { return false };
        if slot.0 != line {
            *slot = (line, 0);
        }
        let is_full = slot.1.count_ones() >= self.most;
        if is_full && slot.1 & bit == 0 {
            return true;
        }
        slot.1 |= bit;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_branches_of_a_line_have_room_whenever_they_come_again() {
        let mut crowds = Crowds::new(3);
        let told = |crowds: &mut Crowds, offsets: &[u64]| -> Vec<bool> {
            offsets.iter().map(|at| crowds.is_one_too_many(0x40_1040 + at)).collect()
        };
        assert_eq!(told(&mut crowds, &[6, 0, 3, 9, 63]), [false, false, false, true, true]);
        assert_eq!(told(&mut crowds, &[9, 3, 6]), [true, false, false]);
        // The next line has room of its own.
        assert_eq!(told(&mut crowds, &[64, 65, 66, 67]), [false, false, false, true]);
        // Another in its place, then the first anew.
        let far = (LINES as u64) << LINE_SHIFT;
        assert_eq!(told(&mut crowds, &[far, 9]), [false, false]);
    }
}
