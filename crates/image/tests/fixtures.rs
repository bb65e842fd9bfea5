//! Small ELF files whose every procedure is known from their source (see fixtures/make.sh).

use image::{Architecture, Binary, Flow, ImageError, NameSource, Syntax};
use vocab::Offset;

const TINY: &[u8] = include_bytes!("fixtures/tiny");
const STRIPPED: &[u8] = include_bytes!("fixtures/tiny-stripped");
const DEBUG: &[u8] = include_bytes!("fixtures/tiny.debug");
const CALLS: &[u8] = include_bytes!("fixtures/calls");
const CALLS_IBT: &[u8] = include_bytes!("fixtures/calls-ibt");
const AARCH64: &[u8] = include_bytes!("fixtures/calls-aarch64");
const AARCH64_BTI: &[u8] = include_bytes!("fixtures/calls-aarch64-bti");

/// Where the sections of `tiny` begin in the file; the lengths are those of tiny.s.
const TEXT: u64 = 0x10c;
const FAR: u64 = 0x1100;

type Part = (u64, u64, String, NameSource);

fn parts(binary: &Binary) -> Vec<Part> {
    let part = |p: &image::Procedure| (p.start.0, p.end.0, p.name("tiny"), p.source);
    binary.procedures().iter().map(part).collect()
}

/// Turns lengths into ranges that follow one another; a gap has no name.
fn row(start: u64, source: NameSource, lengths: &[(u64, &str)]) -> Vec<Part> {
    let (mut at, mut row) = (start, Vec::new());
    for &(len, name) in lengths {
        if !name.is_empty() {
            row.push((at, at + len, name.to_owned(), source));
        }
        at += len;
    }
    row
}

fn symbol_rows() -> Vec<Part> {
    let text = [
        (16, "_start"),
        (5, "unsized"),
        (3, ""),
        (7, "label"),
        (8, "outer"),
        (4, "around"),
        (2, "within"),
        (6, "around"),
        (9, "tiny+0x13f"),
        (11, "last"),
    ];
    let far = [(32, "far::place(int)"), (8, "far::place(int) [clone .cold]")];
    let mut rows = row(TEXT, NameSource::Symtab, &text);
    rows.extend(row(FAR, NameSource::Symtab, &far));
    rows[7].3 = NameSource::Unwind;
    rows
}

#[test]
fn symbols_give_every_procedure_of_the_source_its_exact_range() {
    let binary = Binary::parse(TINY).unwrap();
    assert_eq!(parts(&binary), symbol_rows());
    assert_eq!(binary.architecture(), Architecture::X86_64);
    assert_eq!(binary.build_id().unwrap().to_string(), "00112233445566778899aabbccddeeff00112233");
    assert!(binary.has_symtab() && !binary.has_dynsym());
    assert_eq!(binary.entry(), Some(Offset(TEXT)));
    assert_eq!(binary.entry_address(), 0x1_0000 + TEXT);
}

#[test]
fn without_symbols_the_unwind_ranges_remain() {
    let binary = Binary::parse(STRIPPED).unwrap();
    let ranges: Vec<_> = binary.procedures().iter().map(|p| (p.start.0, p.len_bytes())).collect();
    let expected =
        [(TEXT, 16), (TEXT + 16, 5), (TEXT + 31, 8), (TEXT + 51, 9), (FAR, 32), (FAR + 32, 8)];
    assert_eq!(ranges, expected);
    assert!(binary.procedures().iter().all(|p| p.raw_name.is_none()));
    assert!(!binary.has_symtab());
}

#[test]
fn a_debug_file_gives_the_names_back_although_its_offsets_differ() {
    let (stripped, debug) = (Binary::parse(STRIPPED).unwrap(), Binary::parse(DEBUG).unwrap());
    assert!(debug.has_symtab());
    let mut expected = symbol_rows();
    for part in expected.iter_mut().filter(|part| part.3 == NameSource::Symtab) {
        part.3 = NameSource::DebugFile;
    }
    assert_eq!(parts(&stripped.with_debug(&debug).unwrap()), expected);
    assert_eq!(parts(&stripped.with_linked_debug(DEBUG).unwrap()), expected);
    assert_eq!(stripped.debug_link().unwrap().name, "tiny.debug");
}

#[test]
fn a_debug_file_of_another_build_is_refused() {
    let (stripped, other) = (Binary::parse(STRIPPED).unwrap(), Binary::parse(CALLS).unwrap());
    let refusal = stripped.with_debug(&other).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the debug file is of another build \
         (no build-id where the image has 00112233445566778899aabbccddeeff00112233)"
    );
    assert!(other.with_debug(&other).is_err(), "two without a build-id prove nothing");
    assert_eq!(stripped.with_linked_debug(CALLS).unwrap_err(), ImageError::OtherChecksum);
}

#[test]
fn linkage_table_entries_are_named_after_their_targets() {
    let named = |bytes| {
        let binary = Binary::parse(bytes).unwrap();
        let parts = parts(&binary).into_iter();
        let table = parts.filter(|part| part.3 == NameSource::Plt);
        table.map(|(start, end, name, _)| (start, end - start, name)).collect::<Vec<_>>()
    };
    let entry = |start, len, name: &str| (start, len, name.to_owned());
    assert_eq!(named(CALLS), [entry(0x280, 16, "near_one@plt"), entry(0x290, 8, "near_two@plt")]);
    assert_eq!(
        named(CALLS_IBT),
        [
            entry(0x280, 16, "near_one@plt"),
            entry(0x290, 16, "near_two@plt"),
            entry(0x2a0, 16, "near_one@plt")
        ]
    );
    assert_eq!(
        named(AARCH64),
        [entry(0x290, 16, "near_one@plt"), entry(0x2a0, 16, "near_two@plt")]
    );
    assert_eq!(
        named(AARCH64_BTI),
        [entry(0x320, 24, "near_one@plt"), entry(0x338, 24, "near_two@plt")]
    );
}

#[test]
fn calls_through_the_table_are_listed_with_the_name_of_their_target() {
    let binary = Binary::parse(CALLS).unwrap();
    let start = binary.procedures().named("_start").unwrap();
    let listing = binary.disassemble(CALLS, start, Syntax::Intel, "calls").unwrap();
    let texts: Vec<&str> = listing.instructions.iter().map(|i| i.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "call 0x400280 <near_one@plt>",
            "call 0x400290 <near_two@plt>",
            "jmp qword ptr [rip+0x1d38] # 0x401fe0"
        ]
    );
    let flows: Vec<Flow> = listing.instructions.iter().map(|i| i.flow).collect();
    assert_eq!(flows, [Flow::Call, Flow::Call, Flow::IndirectJump]);
}

#[test]
fn aarch64_has_procedures_but_no_decoder() {
    let binary = Binary::parse(AARCH64).unwrap();
    assert_eq!(binary.architecture(), Architecture::Aarch64);
    let start = binary.procedures().named("_start").unwrap();
    assert_eq!((start.start, start.len_bytes()), (Offset(0x2b0), 12));
    let refusal = binary.disassemble(AARCH64, start, Syntax::Intel, "calls").unwrap_err();
    assert_eq!(refusal, ImageError::NoDecoder { architecture: Architecture::Aarch64 });
}

#[test]
fn executable_segments_with_different_shifts_map_both_ways() {
    let binary = Binary::parse(TINY).unwrap();
    let pairs = [(TEXT, 0x1_010c), (FAR, 0x80_0100), (FAR + 39, 0x80_0127)];
    for (offset, address) in pairs {
        assert_eq!(binary.address_of(Offset(offset)), Some(address));
        assert_eq!(binary.offset_of(address), Some(Offset(offset)));
    }
    assert_eq!(binary.offset_of(0x80_0128), None);
    assert_eq!(binary.describe(0x80_0104, "tiny").unwrap(), "far::place(int)+0x4");
    assert_eq!(binary.describe(0x1_0141, "tiny").unwrap(), "tiny+0x141");
}

/// A copy of a file with some bytes overwritten.
fn patched(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    copy[at..at + with.len()].copy_from_slice(with);
    copy
}

#[test]
fn a_symbol_of_every_size_stays_in_its_section() {
    // _start is the tenth entry of the symbol table, whose entries keep their size at the end.
    let huge = patched(TINY, 0x1128 + 24 * 9 + 16, &u64::MAX.to_le_bytes());
    let text = [
        (16 + 5 + 3 + 7, "_start"),
        (8, "outer"),
        (4, "around"),
        (2, "within"),
        (6, "around"),
        (20, "_start"),
    ];
    let mut expected = row(TEXT, NameSource::Symtab, &text);
    expected.extend(symbol_rows().into_iter().skip(9));
    assert_eq!(parts(&Binary::parse(&huge).unwrap()), expected);
}

#[test]
fn an_unwind_range_over_everything_leaves_the_others_whole() {
    // The first frame description begins at 0x18 in .eh_frame and keeps its length at 12 in it.
    let huge = patched(STRIPPED, 0x158 + 0x18 + 12, &i32::MAX.to_le_bytes());
    let binary = Binary::parse(&huge).unwrap();
    let lengths: Vec<u64> = binary.procedures().iter().map(image::Procedure::len_bytes).collect();
    assert_eq!(lengths, [16, 5, 10, 8, 12, 9, 11, 32, 8]);
}

#[test]
fn sections_that_claim_more_than_the_file_holds_are_as_if_absent() {
    let section_headers = u64::from_le_bytes(TINY[0x28..0x30].try_into().unwrap()) as usize;
    let size_of_symtab = section_headers + 64 * 5 + 32;
    let huge = patched(TINY, size_of_symtab, &u64::MAX.to_le_bytes());
    let binary = Binary::parse(&huge).unwrap();
    assert!(!binary.has_symtab());
    assert_eq!(parts(&binary), parts(&Binary::parse(STRIPPED).unwrap()));
}

#[test]
fn a_file_without_section_headers_still_maps_addresses() {
    let binary = Binary::parse(&patched(TINY, 0x28, &[0; 8])).unwrap();
    assert!(binary.procedures().is_empty());
    assert_eq!(binary.address_of(Offset(FAR)), Some(0x80_0100));
}

#[test]
fn every_truncation_is_read_or_refused_in_a_sentence() {
    for len in 0..TINY.len() {
        match Binary::parse(&TINY[..len]) {
            Ok(binary) => assert!(binary.procedures().iter().all(|p| p.end.0 <= len as u64)),
            Err(refusal) => assert!(!refusal.to_string().is_empty()),
        }
    }
}
