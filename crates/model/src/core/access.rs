//! Which accesses belong to which micro-op.
//!
//! Engines report what the program touched, sometimes in pieces: a 32-byte load may arrive as four
//! of eight. Adjoining pieces of one instruction are one access again. The n-th load micro-op takes
//! the n-th of them and the last takes what is left, so that gathers and string moves lose nothing.

use crate::stream::Access;

/// A stretch of memory touched at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// Longest stretch that counts as one access: a vector register.
const PIECE_MAX: u64 = 64;

/// The accesses of one instruction, reads and writes each taken one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accesses<'a> {
    all: &'a [Access],
    load: usize,
    store: usize,
}

impl<'a> Accesses<'a> {
    /// None.
    pub(crate) const EMPTY: Accesses<'static> = Accesses { all: &[], load: 0, store: 0 };

    /// Splits off those of instruction `place` of the block; earlier strays are skipped.
    #[inline]
    pub(crate) fn of(all: &mut &'a [Access], place: u16) -> Accesses<'a> {
        // The common case: the next access is this instruction's and the only one.
        if let [only, after @ ..] = *all
            && only.instruction == place
            && after.first().is_none_or(|next| next.instruction != place)
        {
            let mine = std::slice::from_ref(only);
            *all = after;
            return Accesses { all: mine, load: 0, store: 0 };
        }
        let skip = all.iter().take_while(|a| a.instruction < place).count();
        let rest = &all[skip..];
        let count = rest.iter().take_while(|a| a.instruction == place).count();
        let (mine, after) = rest.split_at(count);
        *all = after;
        Accesses { all: mine, load: 0, store: 0 }
    }

    /// The one access there is, if it is a read.
    #[inline]
    pub(crate) fn only_load(&self) -> Option<Piece> {
        match self.all {
            [only] if !only.is_store => {
                Some(Piece { address: only.address, size: u64::from(only.size) })
            }
            _ => None,
        }
    }

    /// Whether reads may be left.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.load < self.all.len()
    }

    /// The next stretch read or written.
    #[inline]
    pub(crate) fn next(&mut self, is_store: bool) -> Option<Piece> {
        let cursor = if is_store { &mut self.store } else { &mut self.load };
        let mut piece: Option<Piece> = None;
        while let Some(access) = self.all.get(*cursor) {
            if access.is_store == is_store {
                let size = u64::from(access.size);
                match &mut piece {
                    None => piece = Some(Piece { address: access.address, size }),
                    Some(held) if adjoins(held, access) => held.size += size,
                    Some(_) => break,
                }
            }
            *cursor += 1;
        }
        piece
    }
}

fn adjoins(piece: &Piece, access: &Access) -> bool {
    access.address == piece.address.wrapping_add(piece.size)
        && piece.size + u64::from(access.size) <= PIECE_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(instruction: u16, address: u64, size: u8, is_store: bool) -> Access {
        Access { address, instruction, size, is_store }
    }

    #[test]
    fn pieces_of_one_access_are_joined_and_others_stay_apart() {
        let all = [
            access(1, 100, 8, false),
            access(1, 108, 8, false),
            access(1, 300, 8, false),
            access(2, 308, 8, false),
        ];
        let mut left = &all[..];
        assert_eq!(Accesses::of(&mut left, 0).next(false), None);
        let mut mine = Accesses::of(&mut left, 1);
        assert_eq!(mine.next(false), Some(Piece { address: 100, size: 16 }));
        assert_eq!(mine.next(false), Some(Piece { address: 300, size: 8 }));
        assert_eq!(mine.next(false), None);
        assert_eq!(Accesses::of(&mut left, 2).next(false), Some(Piece { address: 308, size: 8 }));
    }

    #[test]
    fn reads_and_writes_of_a_string_move_interleave_without_loss() {
        let all: Vec<Access> = (0..16)
            .flat_map(|k| [access(0, 8 * k, 8, false), access(0, 4096 + 8 * k, 8, true)])
            .collect();
        let mut left = &all[..];
        let mut mine = Accesses::of(&mut left, 0);
        for base in [4096, 0] {
            let is_store = base == 4096;
            assert_eq!(mine.next(is_store), Some(Piece { address: base, size: 64 }));
            assert_eq!(mine.next(is_store), Some(Piece { address: base + 64, size: 64 }));
            assert_eq!(mine.next(is_store), None);
        }
    }
}
