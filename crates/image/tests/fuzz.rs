//! Damaged files and lists: nothing panics, and what is read keeps its promises.
//!
//! WHITHER_FUZZ_ROUNDS raises the number of mutations per input.

use image::{Binary, Callees, JitMap, Kernel, Procedures, Syntax, demangle};

/// A small generator with a fixed seed, so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }
}

fn rounds() -> usize {
    let asked = std::env::var("WHITHER_FUZZ_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(200)
}

/// Flips bits, plants extreme numbers, moves pieces about, cuts the end off.
fn mutate(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    const EXTREMES: [u64; 6] = [0, 1, u64::MAX, i64::MAX as u64, 0x7fff_ffff, 0xffff_fff0];
    let mut copy = bytes.to_vec();
    for _ in 0..=dice.below(8) {
        // The headers are at either end, and damage there goes furthest.
        let edge = 1024.min(copy.len());
        let place = match dice.below(4) {
            0 => dice.below(edge),
            1 => copy.len() - 1 - dice.below(edge),
            _ => dice.below(copy.len()),
        };
        match dice.below(5) {
            0 | 1 => copy[place] ^= 1 << dice.below(8),
            2 => {
                let number = EXTREMES[dice.below(EXTREMES.len())].to_le_bytes();
                let width = [1, 2, 4, 8][dice.below(4)];
                let place = place & !(width - 1);
                for (byte, &new) in copy[place..].iter_mut().zip(&number[..width]) {
                    *byte = new;
                }
            }
            3 => {
                let len = dice.below(256).min(copy.len() - place);
                let from = dice.below(copy.len() - len);
                copy.copy_within(from..from + len, place);
            }
            _ if dice.below(4) == 0 => copy.truncate(place + 1),
            _ => copy[place] = dice.roll() as u8,
        }
    }
    copy
}

fn assert_promises(procedures: &Procedures) {
    let mut reached = 0;
    for procedure in procedures {
        assert!(reached <= procedure.start.0 && procedure.start < procedure.end);
        reached = procedure.end.0;
        assert_eq!(procedures.find(procedure.start), Some(procedure));
    }
}

/// Reads damaged bytes and says whether any procedures were left.
fn read(bytes: &[u8], dice: &mut Dice) -> bool {
    let binary = match Binary::parse(bytes) {
        Ok(binary) => binary,
        Err(refusal) => {
            assert!(!refusal.to_string().is_empty());
            return false;
        }
    };
    let procedures = binary.procedures();
    assert_promises(procedures);
    assert!(procedures.iter().all(|p| p.end.0 <= bytes.len() as u64));
    for procedure in procedures.iter().skip(dice.below(procedures.len())).take(4) {
        let _ = binary.disassemble(bytes, procedure, Syntax::Intel, "x");
        let _ = Callees::new(&binary, bytes).flow_of(procedure);
        assert!(!procedure.name("x").is_empty());
    }
    let _ = binary.with_debug(&binary).map(|overlaid| assert_promises(overlaid.procedures()));
    !procedures.is_empty()
}

fn elf_files() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = vec![
        include_bytes!("fixtures/tiny").to_vec(),
        include_bytes!("fixtures/tiny-stripped").to_vec(),
        include_bytes!("fixtures/tiny.debug").to_vec(),
        include_bytes!("fixtures/calls").to_vec(),
        include_bytes!("fixtures/calls-ibt").to_vec(),
        include_bytes!("fixtures/calls-aarch64-bti").to_vec(),
    ];
    // Whole programs as well, where they are here.
    files.extend(["/bin/gzip", "/bin/sh"].iter().filter_map(|path| std::fs::read(path).ok()));
    files
}

#[test]
fn damaged_elf_files_are_read_or_refused() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut read_count = 0;
    for file in elf_files() {
        for _ in 0..rounds() {
            read_count += usize::from(read(&mutate(&file, &mut dice), &mut dice));
        }
    }
    assert!(read_count > rounds(), "most damage must leave something to read: {read_count}");
}

#[test]
fn pieces_of_one_file_in_another_are_read_or_refused() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let files = elf_files();
    let mut read_count = 0;
    for _ in 0..rounds() {
        let (left, right) = (&files[dice.below(files.len())], &files[dice.below(files.len())]);
        let cut = dice.below(left.len().min(right.len()));
        let spliced: Vec<u8> = left[..cut].iter().chain(&right[cut..]).copied().collect();
        read_count += usize::from(read(&spliced, &mut dice));
    }
    assert!(read_count > 0);
}

#[test]
fn damaged_lists_of_symbols_are_read_or_refused() {
    let mut dice = Dice(7);
    let kallsyms = "ffffffff81000000 T _text\nffffffff81000040 t a\nffffffff81000080 W b\n\
        ffffffff81000100 D c\nffffffffc0201000 t d\t[m]\nfffffffffffffff0 T top\n";
    let jit = "1000 20 one\n1010 8 two\n7f0000001000 fff LazyCompile:~x y.js:1\n";
    for _ in 0..rounds() * 10 {
        if let Ok(kernel) = Kernel::parse(&mutate(kallsyms.as_bytes(), &mut dice)) {
            assert_promises(kernel.procedures());
            for module in kernel.modules().values() {
                assert_promises(&module.procedures(module.start()));
            }
        }
        assert_promises(&JitMap::parse(&mutate(jit.as_bytes(), &mut dice)).procedures);
    }
}

#[test]
fn damaged_names_stay_within_bounds() {
    let mut dice = Dice(11);
    let names = [
        "_RNvXs5_NtCs1_5alloc3vecINtB5_3VechENtNtCs2_4core3fmt5Debug3fmt",
        "_ZNSt6vectorIiSaIiEE9push_backERKi",
        "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
        "_ZZN3fooIiEEvT_ENKUlS0_DpT_E_clIJidEEEDaS0_S2_",
        "_Z1fILi3EEvv1AIS_S_EDTcl1gfp_EE.part.0.cold",
    ];
    for _ in 0..rounds() * 10 {
        let name = mutate(names[dice.below(names.len())].as_bytes(), &mut dice);
        let raw = String::from_utf8_lossy(&name);
        assert!(demangle(&raw).len() <= 64 << 10);
    }
}
