//! Lines and inlined calls of a program whose every line is known (fixtures/walk.c).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use image::{Binary, DebugInfo, Lines};

const WALK: &[u8] = include_bytes!("fixtures/walk");
const PACKED: &[u8] = include_bytes!("fixtures/walk-packed");
const STRIPPED: &[u8] = include_bytes!("fixtures/walk-stripped");

fn lines_of(bytes: &[u8], name: &str) -> (Lines, u64) {
    let binary = Binary::parse(WALK).unwrap();
    let procedure = binary.procedures().named(name).unwrap();
    let start = binary.address_of(procedure.start).unwrap();
    let debug = DebugInfo::read(bytes).unwrap();
    (debug.lines_of(&[(start, start + procedure.len_bytes())]), start)
}

#[test]
fn every_instruction_has_the_line_that_objdump_gives_it() {
    for bytes in [WALK, PACKED] {
        let (lines, start) = lines_of(bytes, "walk");
        assert_eq!(start, 0x40_0150);
        let line = |at: u64| lines.row_at(at).map(|row| row.line);
        // objdump --dwarf=decodedline; of several rows at one address the last holds code.
        let expected = [
            (0x150, 13),
            (0x155, 13),
            (0x157, 12),
            (0x160, 7),
            (0x163, 13),
            (0x16a, 7),
            (0x16e, 13),
        ];
        for (low, number) in expected {
            assert_eq!(line(0x40_0000 + low), Some(number), "{low:#x}");
        }
        assert_eq!(line(start - 1), None);
        let row = lines.row_at(start).unwrap();
        assert_eq!(lines.file(row.file), "/src/walk.c");
        assert!(lines.rows.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}

#[test]
fn an_inlined_call_knows_where_it_was_called_and_declared() {
    let (lines, _) = lines_of(WALK, "walk");
    let declared = lines.declared.as_ref().unwrap();
    assert_eq!((declared.name.as_str(), declared.line), ("walk", Some(10)));
    let inlined: Vec<u64> =
        (0x40_0150..0x40_0178).filter(|&at| lines.inline_at(at).is_some()).collect();
    // mov, and, add: the body of step; the counter between them is walk's own.
    assert!(inlined.contains(&0x40_0160) && inlined.contains(&0x40_016a));
    assert!(!inlined.contains(&0x40_0163) && !inlined.contains(&0x40_0173));
    let chain: Vec<_> = lines.chain(lines.inline_at(0x40_016a)).collect();
    assert_eq!(chain.len(), 1);
    assert_eq!((chain[0].name.as_str(), chain[0].declared_line), ("step", Some(5)));
    assert_eq!((chain[0].call_line, chain[0].parent), (14, None));
}

#[test]
fn procedures_of_one_unit_are_told_apart() {
    let (lines, _) = lines_of(WALK, "fill");
    assert_eq!(lines.declared.as_ref().unwrap().line, Some(18));
    assert!(lines.inlines.is_empty());
    assert_eq!(lines.row_at(0x40_018f).unwrap().line, 21);
}

#[test]
fn a_stripped_program_has_no_lines() {
    assert!(DebugInfo::read(STRIPPED).is_none());
    assert!(DebugInfo::read(b"").is_none());
}

#[test]
fn damaged_sections_never_panic_and_lines_stay_in_order() {
    let rounds: u64 = std::env::var("WHITHER_FUZZ_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3000);
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..rounds {
        let mut bytes = if draw(4) == 0 { PACKED.to_vec() } else { WALK.to_vec() };
        for _ in 0..=draw(6) {
            // Beyond the headers, where the sections are.
            let at = 0x120 + draw(bytes.len() - 0x120);
            bytes[at] = draw(256) as u8;
        }
        let Some(debug) = DebugInfo::read(&bytes) else { continue };
        let lines = debug.lines_of(&[(0x40_0150, 0x40_0200)]);
        assert!(lines.rows.windows(2).all(|pair| pair[0].end <= pair[1].start));
        for at in (0x40_0150..0x40_0200).step_by(7) {
            assert!(lines.chain(lines.inline_at(at)).count() <= lines.inlines.len());
        }
    }
}
