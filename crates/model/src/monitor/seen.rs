//! How often instructions were sampled, so that those seldom seen are preferred.
//!
//! A table that hardware could have: small counters, found by some bits of the pc, no tags. Where
//! two instructions share one, both are thought to be seen as often as they were together.

/// Counters, as a power of two.
const COUNTERS_SHIFT: u32 = 13;
/// Sampled so often, an instruction is not rare any more.
const RARE: u8 = 16;
/// As many instructions may go by until a rare one comes.
const PATIENCE: u64 = 20;

/// How often instructions were sampled.
#[derive(Clone, Debug)]
pub struct Seen {
    counters: Vec<u8>,
    /// Instructions that have gone by, where the next sample waits for a rare one.
    waited: Option<u64>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { counters: vec![0; 1 << COUNTERS_SHIFT], waited: None }
    }
}

impl Seen {
    /// Whether a sample that is due is taken of this instruction. Every second one is taken where
    /// it falls, so that instructions that run often keep most of the samples; the others wait for
    /// a rare one for a while.
    pub(super) fn takes(&mut self, pc: u64) -> bool {
        // A multiplier that spreads neighbouring addresses and far ones alike.
        let place = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - COUNTERS_SHIFT);
        let Some(counter) = self.counters.get_mut(place as usize) else { return true };
        if let Some(waited) = self.waited.as_mut().filter(|waited| **waited < PATIENCE)
            && *counter >= RARE
        {
            *waited += 1;
            return false;
        }
        *counter = counter.saturating_add(1);
        true
    }

    /// The sample has been taken: how many instructions it waited for.
    pub(super) fn taken(&mut self) -> u64 {
        let waited = self.waited.take();
        if waited.is_none() {
            self.waited = Some(0);
        }
        waited.unwrap_or(0)
    }
}
