//! Files made to cost as much as possible: work and memory must stay in proportion to the file.

use image::{Binary, NameSource};

const BASE: u64 = 0x10_0000;
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;

/// A section of the file to be made.
struct Section {
    kind: u32,
    flags: u64,
    address: u64,
    link: u32,
    name: u32,
    data: Vec<u8>,
}

impl Section {
    fn new(kind: u32, data: Vec<u8>) -> Section {
        Section { kind, flags: 0, address: 0, link: 0, name: 0, data }
    }
}

/// Writes an x86-64 program of one executable segment, the whole file, loaded at [`BASE`].
/// Section 1 must hold the names of the sections. More headers may point at the last section.
fn program(sections: &[Section], more_headers: usize) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES + SEGMENT_BYTES];
    let mut headers = vec![0; 64];
    for section in sections {
        let (offset, len) = (bytes.len() as u64, section.data.len() as u64);
        bytes.extend(&section.data);
        headers.extend(section.name.to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        let numbers = [section.flags, section.address, offset, len];
        headers.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        headers.extend(section.link.to_le_bytes());
        headers.extend([0; 20]);
    }
    let last = headers[headers.len() - 64..].to_vec();
    headers.extend(last.repeat(more_headers));
    let table = bytes.len() as u64;
    let count = (headers.len() / 64) as u64;
    // A count that does not fit in the header is kept in the first entry of the table.
    headers[32..40].copy_from_slice(&count.to_le_bytes());
    bytes.extend(headers);
    let len = bytes.len() as u64;
    let header: [(usize, &[u8]); 9] = [
        (0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]),
        (16, &[2, 0, 62, 0, 1]),
        (32, &(HEADER_BYTES as u64).to_le_bytes()),
        (40, &table.to_le_bytes()),
        (52, &[64, 0, SEGMENT_BYTES as u8, 0, 1, 0, 64, 0, 0, 0, 1, 0]),
        (64, &[1, 0, 0, 0, 5, 0, 0, 0]),
        (80, &BASE.to_le_bytes()),
        (96, &len.to_le_bytes()),
        (104, &len.to_le_bytes()),
    ];
    for (at, field) in header {
        bytes[at..at + field.len()].copy_from_slice(field);
    }
    bytes
}

/// Symbols of one byte each, one after the other, all with the name at `name`.
fn symbols(count: u64, name: u32, size: u64) -> Vec<u8> {
    let symbol = |index: u64| {
        let mut entry = name.to_le_bytes().to_vec();
        // Local, declared as a procedure, absolute.
        entry.extend([2, 0, 0xf1, 0xff]);
        entry.extend((BASE + index).to_le_bytes());
        entry.extend(size.to_le_bytes());
        entry
    };
    (0..count).flat_map(symbol).collect()
}

fn names_of_sections() -> Section {
    Section::new(3, b"\0.eh_frame\0".to_vec())
}

#[test]
fn many_symbols_that_share_one_endless_name_keep_few_bytes_of_it() {
    let strings = Section::new(3, vec![b'a'; 1 << 17]);
    let table = Section { link: 2, ..Section::new(2, symbols(40_000, 7, 1)) };
    let bytes = program(&[names_of_sections(), strings, table], 0);
    let binary = Binary::parse(&bytes).unwrap();
    let kept: usize =
        binary.procedures().iter().filter_map(|p| p.raw_name.as_ref()).map(|n| n.len()).sum();
    assert!(binary.has_symtab());
    assert!(0 < kept && kept <= 8 * bytes.len());
}

#[test]
fn symbols_that_all_cover_everything_give_at_most_two_pieces_each() {
    let strings = Section::new(3, b"\0f\0".to_vec());
    let count = 50_000;
    let table = Section { link: 2, ..Section::new(2, symbols(count, 1, u64::MAX)) };
    let bytes = program(&[names_of_sections(), strings, table], 0);
    let binary = Binary::parse(&bytes).unwrap();
    assert_eq!(binary.procedures().len() as u64, count);
    let last = binary.procedures().iter().last().unwrap();
    assert_eq!((last.start.0, last.end.0), (count - 1, bytes.len() as u64));
}

#[test]
fn many_sections_and_notes_over_the_same_bytes_are_not_multiplied() {
    // Each note is empty: no name, no content, kind 1.
    let notes = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0].repeat(50_000);
    let bytes = program(&[names_of_sections(), Section::new(7, notes)], 60_000);
    let binary = Binary::parse(&bytes).unwrap();
    assert_eq!(binary.build_id(), None);
    let code = Section { flags: 6, address: BASE, ..Section::new(1, vec![0x90; 1 << 16]) };
    let binary = Binary::parse(&program(&[names_of_sections(), code], 60_000)).unwrap();
    assert!(binary.procedures().is_empty());
}

/// A frame table of one common entry and many descriptions, each of which covers everything
/// from its own address on.
fn frames(count: u32) -> Vec<u8> {
    // Version 1, no augmentation, factors 1 and -8, return address in register 16, padding.
    let common = [1, 0, 1, 0x78, 16, 0, 0, 0];
    let mut table = Vec::new();
    table.extend((4 + common.len() as u32).to_le_bytes());
    table.extend(0_u32.to_le_bytes());
    table.extend(common);
    for index in 0..count {
        let back = table.len() as u32 + 4;
        table.extend(20_u32.to_le_bytes());
        table.extend(back.to_le_bytes());
        table.extend((BASE + u64::from(index)).to_le_bytes());
        table.extend(u64::MAX.to_le_bytes());
    }
    table
}

#[test]
fn unwind_ranges_that_all_cover_everything_are_cut_at_one_another() {
    let count = 50_000;
    let table = Section { name: 1, ..Section::new(1, frames(count)) };
    let bytes = program(&[names_of_sections(), table], 0);
    let binary = Binary::parse(&bytes).unwrap();
    assert_eq!(binary.procedures().len() as u32, count);
    assert!(binary.procedures().iter().all(|p| p.source == NameSource::Unwind));
    let ones = binary.procedures().iter().filter(|p| p.len_bytes() == 1).count();
    assert_eq!(ones as u32, count - 1);
}
