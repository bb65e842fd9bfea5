//! A node's times in every lane, and what is done to all lanes at once.
//!
//! Plain loops over arrays: the compiler makes vector code of them wherever they are inlined.

/// Times of one node of the last micro-ops, by lane.
#[derive(Clone, Debug)]
pub(crate) struct Node<const L: usize> {
    pub(crate) times: Vec<[u32; L]>,
}

impl<const L: usize> Node<L> {
    pub(crate) fn new(places: usize) -> Node<L> {
        Node { times: vec![[0; L]; places] }
    }

    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> &[u32; L] {
        &self.times[place & (self.times.len() - 1)]
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, place: usize, times: &[u32; L]) {
        let mask = self.times.len() - 1;
        self.times[place & mask] = *times;
    }
}

/// Whether the processor has AVX2.
pub(crate) fn has_wide_registers() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// No earlier than so long after other times, in the lanes that keep it.
#[inline(always)]
pub(crate) fn latest<const L: usize>(
    at: &mut [u32; L],
    from: &[u32; L],
    label: u32,
    keep: &[u32; L],
) {
    for lane in 0..L {
        at[lane] = at[lane].max((from[lane] + label) & keep[lane]);
    }
}

/// The same in every lane.
#[inline(always)]
pub(crate) fn behind<const L: usize>(at: &mut [u32; L], from: &[u32; L], label: u32) {
    for lane in 0..L {
        at[lane] = at[lane].max(from[lane] + label);
    }
}

/// Adds a label in the lanes that keep it.
#[inline(always)]
pub(crate) fn plus<const L: usize>(at: &[u32; L], label: u32, keep: &[u32; L]) -> [u32; L] {
    let mut sum = *at;
    for lane in 0..L {
        sum[lane] += label & keep[lane];
    }
    sum
}
