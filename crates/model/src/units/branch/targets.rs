//! Where branches go whose target is not in their bytes.

/// Targets by address and the path that led there.
#[derive(Clone, Debug)]
pub(super) struct Indirect {
    entries: Vec<(u64, u64)>,
    path: u64,
}

impl Indirect {
    pub(super) fn new(entries: usize) -> Indirect {
        Indirect { entries: vec![(u64::MAX, 0); entries.max(1)], path: 0 }
    }

    /// The target remembered for this path, if any; then remembers the true one.
    pub(super) fn observe(&mut self, pc: u64, target: u64) -> Option<u64> {
        let key =
            pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.path.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = ((key >> 24) % self.entries.len() as u64) as usize;
        let (held, guess) = self.entries[place];
        self.entries[place] = (key, target);
        self.path = (self.path << 5) ^ (target ^ (target >> 7)) & 0xffff;
        (held == key).then_some(guess)
    }
}

/// Return addresses, newest last; a full stack forgets its oldest. It does not know when it is
/// empty: what was there before comes up again, which is right when a procedure calls itself.
#[derive(Clone, Debug)]
pub(super) struct Returns {
    ring: Vec<u64>,
    top: usize,
}

impl Returns {
    pub(super) fn new(entries: usize) -> Returns {
        Returns { ring: vec![0; entries.max(1)], top: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, address: u64) {
        self.top = if self.top + 1 == self.ring.len() { 0 } else { self.top + 1 };
        self.ring[self.top] = address;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> u64 {
        let address = self.ring[self.top];
        self.top = if self.top == 0 { self.ring.len() - 1 } else { self.top - 1 };
        address
    }
}
