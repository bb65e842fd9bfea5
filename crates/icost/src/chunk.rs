//! Some lanes at a time, as many as a register holds.
//!
//! The graph is written once, over this trait. Which form runs is decided when lanes are made: on
//! x86-64 by what the processor has, elsewhere the plain one.

use crate::ports::Calendar;

/// The times of some neighbouring lanes.
pub(crate) trait Chunk: Copy {
    /// How many.
    const LANES: usize;

    /// Reads the first lanes of a row. A row that is too short counts as nothing.
    fn load(from: &[u32]) -> Self;

    /// Writes the first lanes of a row, unless it is too short.
    fn store(self, to: &mut [u32]);

    /// The same in every lane.
    fn splat(value: u32) -> Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;

    /// The bits that both have.
    fn and(self, other: Self) -> Self;

    /// The later.
    fn max(self, other: Self) -> Self;

    /// Whether it books ports in all its lanes at once.
    const BOOKS: bool = false;

    /// Takes one of some ports in the cycle at which each lane stands. Lanes in which none is free
    /// come back as bits, and nothing is taken there. A chunk that does not book says so of all.
    fn book(calendars: &mut [Calendar], _at: &[u32], _ports: u32) -> u32 {
        (1_u32 << calendars.len().min(31)) - 1
    }
}

/// So many lanes for any machine. Plain loops: the compiler makes of them what it can.
#[derive(Clone, Copy)]
pub(crate) struct Plain<const N: usize>([u32; N]);

impl<const N: usize> Plain<N> {
    #[inline(always)]
    fn each(self, other: Self, f: impl Fn(u32, u32) -> u32) -> Self {
        Plain(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl<const N: usize> Chunk for Plain<N> {
    const LANES: usize = N;

    #[inline(always)]
    fn load(from: &[u32]) -> Self {
        Plain(from.first_chunk().copied().unwrap_or([0; N]))
    }

    #[inline(always)]
    fn store(self, to: &mut [u32]) {
        if let Some(to) = to.first_chunk_mut() {
            *to = self.0;
        }
    }

    #[inline(always)]
    fn splat(value: u32) -> Self {
        Plain([value; N])
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.each(other, u32::wrapping_add)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self.each(other, |a, b| a & b)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.each(other, u32::max)
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Eight, Sixteen};

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Registers of 256 and of 512 bits.
    //!
    //! Every operation is inlined into a caller that has the instructions enabled, and such a caller
    //! runs only where the processor was asked for them.
    #![allow(unsafe_code)]

    use std::arch::x86_64::*;

    use super::{Calendar, Chunk};
    use crate::ports::{CYCLES_SHIFT, MASK, PORTS};

    macro_rules! chunk {
        ($(#[doc = $doc:literal])+ $name:ident, $lanes:literal, $vector:ty, $load:ident,
         $store:ident, $splat:ident, $add:ident, $and:ident, $max:ident $(, $more:item)*) => {
            $(#[doc = $doc])+
            #[derive(Clone, Copy)]
            pub(crate) struct $name($vector);

            impl Chunk for $name {
                const LANES: usize = $lanes;

                #[inline(always)]
                fn load(from: &[u32]) -> Self {
                    let from: &[u32; $lanes] = from.first_chunk().unwrap_or(&[0; $lanes]);
                    // SAFETY: as many lanes can be read as are; the processor has the instruction.
                    unsafe { $name($load(from.as_ptr().cast())) }
                }

                #[inline(always)]
                fn store(self, to: &mut [u32]) {
                    if let Some(to) = to.first_chunk_mut::<$lanes>() {
                        // SAFETY: as many lanes can be written; the processor has the instruction.
                        unsafe { $store(to.as_mut_ptr().cast(), self.0) }
                    }
                }

                #[inline(always)]
                fn splat(value: u32) -> Self {
                    // SAFETY: the processor has the instruction.
                    unsafe { $name($splat(value as i32)) }
                }

                #[inline(always)]
                fn plus(self, other: Self) -> Self {
                    // SAFETY: the processor has the instruction.
                    unsafe { $name($add(self.0, other.0)) }
                }

                #[inline(always)]
                fn and(self, other: Self) -> Self {
                    // SAFETY: the processor has the instruction.
                    unsafe { $name($and(self.0, other.0)) }
                }

                #[inline(always)]
                fn max(self, other: Self) -> Self {
                    // SAFETY: the processor has the instruction.
                    unsafe { $name($max(self.0, other.0)) }
                }

                $($more)*
            }
        };
    }

    chunk! {
        /// Eight lanes, with AVX2.
        Eight, 8, __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32,
        _mm256_add_epi32, _mm256_and_si256, _mm256_max_epu32
    }

    chunk! {
        /// Sixteen lanes, with AVX-512.
        Sixteen, 16, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32,
        _mm512_add_epi32, _mm512_and_si512, _mm512_max_epu32,

        const BOOKS: bool = true;,

        #[inline(always)]
        fn book(calendars: &mut [Calendar], at: &[u32], ports: u32) -> u32 {
            book_sixteen(calendars, at, ports)
        }
    }

    /// Entries are read together and written one by one, which is faster than writing them together.
    #[inline(always)]
    fn book_sixteen(calendars: &mut [Calendar], at: &[u32], ports: u32) -> u32 {
        let lanes = calendars.len().min(16);
        let asked = ((1_u32 << lanes) - 1) as u16;
        let words = calendars.as_flattened_mut();
        let at = Sixteen::load(at).0;
        let (mut places, mut entries) = ([0_u32; 16], [0_u32; 16]);
        // SAFETY: the processor has the instructions. Lane k reads the word at k calendars and less
        // than one more, which is one of `words` for those that are asked.
        let free = unsafe {
            let lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let cycle = _mm512_and_si512(at, _mm512_set1_epi32(MASK as i32));
            let place = _mm512_or_si512(_mm512_slli_epi32::<CYCLES_SHIFT>(lane), cycle);
            let round = _mm512_slli_epi32::<PORTS>(_mm512_srli_epi32::<CYCLES_SHIFT>(at));
            let none = _mm512_setzero_si512();
            let held = _mm512_mask_i32gather_epi32::<4>(none, asked, place, words.as_ptr().cast());
            // Without the round, what is left are ports; an entry of another round is void.
            let taken = _mm512_xor_si512(held, round);
            let is_now = _mm512_cmplt_epu32_mask(taken, _mm512_set1_epi32(1 << PORTS));
            let taken = _mm512_maskz_mov_epi32(is_now, taken);
            let free = _mm512_andnot_si512(taken, _mm512_set1_epi32(ports as i32));
            let port = _mm512_and_si512(free, _mm512_sub_epi32(none, free));
            let entry = _mm512_or_si512(round, _mm512_or_si512(taken, port));
            _mm512_storeu_si512(places.as_mut_ptr().cast(), place);
            _mm512_storeu_si512(entries.as_mut_ptr().cast(), entry);
            _mm512_test_epi32_mask(free, free)
        };
        for (&place, entry) in places.iter().zip(entries).take(lanes) {
            if let Some(word) = words.get_mut(place as usize) {
                *word = entry;
            }
        }
        u32::from(asked & !free)
    }
}
