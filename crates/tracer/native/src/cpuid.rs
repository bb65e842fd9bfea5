//! The processor that the program finds.
//!
//! It is the same on every host, so that a program picks the same routines everywhere: the one that
//! QEMU shows its programs, less what this host lacks and what needs more state than AVX.

use std::arch::x86_64::__cpuid_count;

/// What was asked, and the answer in EAX, EBX, ECX and EDX. What is not here answers 0.
const ANSWERS: [(u32, u32, [u32; 4]); 18] = [
    (0x0, 0, [0xd, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
    (0x1, 0, [0x0006_0fb1, 0x0000_0800, 0xfed8_320b, 0x0fcb_fbfd]),
    (0x5, 0, [0, 0, 3, 0]),
    (0x6, 0, [4, 0, 0, 0]),
    // Without MPX, PKU and five-level paging.
    (0x7, 0, [0, 0x01d8_03a9, 0x0000_0204, 0]),
    (0xb, 0, [0, 1, 0x100, 0]),
    (0xb, 1, [0, 1, 0x201, 0]),
    (0xd, 0, [7, 832, 832, 0]),
    (0xd, 1, [1, 832, 0, 0]),
    (0xd, 2, [0x100, 0x240, 0, 0]),
    (0x8000_0000, 0, [0x8000_0008, 0x6874_7541, 0x444d_4163, 0x6974_6e65]),
    (0x8000_0001, 0, [0x0006_0fb1, 0, 0x75, 0x2dd3_fbfd]),
    // "modelled x86-64"
    (0x8000_0002, 0, [0x6564_6f6d, 0x6465_6c6c, 0x3678_2038, 0x0034_362d]),
    (0x8000_0005, 0, [0x01ff_01ff, 0x01ff_01ff, 0x4002_0140, 0x4002_0140]),
    (0x8000_0006, 0, [0, 0x4200_4200, 0x0200_8140, 0x0080_8140]),
    (0x8000_0008, 0, [0x3928, 0, 0, 0]),
    (0x4000_0000, 0, [0x4000_0001, 0x6874_6977, 0x7265_6874, 0x6968_7772]),
    (0x4000_0001, 0, [0; 4]),
];

/// Which words of which answers say what instructions there are.
fn features(leaf: u32, subleaf: u32) -> [bool; 4] {
    match (leaf, subleaf) {
        (0x1, _) | (0x8000_0001, _) => [false, false, true, true],
        (0x7, 0) => [false, true, true, true],
        (0xd, 1) => [true, false, false, false],
        _ => [false; 4],
    }
}

/// What the program is told.
pub(crate) fn answer(leaf: u32, subleaf: u32) -> [u32; 4] {
    let is_asked = |known: &&(u32, u32, [u32; 4])| known.0 == leaf && known.1 == subleaf;
    // Leaves without parts answer whatever part is asked for.
    let has_parts = matches!(leaf, 0x4 | 0x7 | 0xb | 0xd);
    let is_whole = |known: &&(u32, u32, [u32; 4])| known.0 == leaf && !has_parts;
    let Some(&(.., said)) = ANSWERS.iter().find(is_asked).or_else(|| ANSWERS.iter().find(is_whole))
    else {
        return match leaf {
            0xb => [0, 0, subleaf & 0xff, 0],
            _ => [0; 4],
        };
    };
    let here = __cpuid_count(leaf, subleaf);
    let here = [here.eax, here.ebx, here.ecx, here.edx];
    let is_feature = features(leaf, subleaf);
    std::array::from_fn(|word| {
        if is_feature[word] { said[word] & (here[word] | always(leaf, word)) } else { said[word] }
    })
}

/// What holds whatever the host has: that it is a virtual machine.
fn always(leaf: u32, word: usize) -> u32 {
    if leaf == 1 && word == 2 { 1 << 31 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_finds_no_more_than_the_host_has_and_nothing_beyond_avx() {
        let [_, _, ecx, edx] = answer(1, 0);
        let here = __cpuid_count(1, 0);
        assert_eq!((ecx & !here.ecx & !(1 << 31), edx & !here.edx), (0, 0));
        let [_, ebx, ..] = answer(7, 0);
        assert_eq!(ebx & 1 << 16, 0, "no AVX-512");
        assert_eq!(answer(0xd, 0), [7, 832, 832, 0]);
        assert_eq!(answer(0x1234_5678, 0), [0; 4]);
        assert_eq!(answer(0xb, 9), [0, 0, 9, 0]);
        assert_eq!(answer(0, 7), answer(0, 0), "a leaf without parts");
    }
}
