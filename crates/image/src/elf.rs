//! The few readings of the ELF format that the rest of this room needs, each bounded by the file.

use object::SectionIndex;
use object::elf;
use object::endian::LittleEndian as LE;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};

use crate::error::{Architecture, ImageError};
use crate::segments::{Segment, Segments};
use vocab::BuildId;

pub(crate) type Header = elf::FileHeader64<LE>;
pub(crate) type Section = elf::SectionHeader64<LE>;

/// How many notes, and how many tables of notes, are looked through for the build-id; real files
/// have a handful.
const NOTES_MAX: usize = 64;
/// The kernel loads no program with more program headers than fit in 64 KiB.
const SEGMENTS_MAX: usize = (64 << 10) / size_of::<elf::ProgramHeader64<LE>>();

/// A file whose headers have been found sound.
pub(crate) struct Elf<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) header: &'a Header,
    pub(crate) sections: SectionTable<'a, Header>,
    section_names: &'a [u8],
    pub(crate) segments: Segments,
}

impl<'a> Elf<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Elf<'a>, ImageError> {
        recognise(bytes)?;
        let header = Header::parse(bytes).map_err(|_| ImageError::Truncated)?;
        match header.e_type(LE) {
            elf::ET_REL => return Err(ImageError::Relocatable),
            elf::ET_CORE => return Err(ImageError::CoreDump),
            _ => {}
        }
        let segments = segments(header, bytes)?;
        // A file without section headers runs as well as any, so they may be missing or cut off.
        let sections = header.sections(LE, bytes).unwrap_or_default();
        let names = header.shstrndx(LE, bytes).ok();
        let names = names.and_then(|index| sections.section(SectionIndex(index as usize)).ok());
        let section_names = names.map_or(&[][..], |section| section.data(LE, bytes).unwrap_or(&[]));
        Ok(Elf { bytes, header, sections, section_names, segments })
    }

    pub(crate) fn architecture(&self) -> Architecture {
        match self.header.e_machine(LE) {
            elf::EM_X86_64 => Architecture::X86_64,
            elf::EM_AARCH64 => Architecture::Aarch64,
            other => Architecture::Other(other.0),
        }
    }

    pub(crate) fn section(&self, name: &str) -> Option<&'a Section> {
        // Only as much of each name is read as is compared: a hostile table may hold one endless
        // name for all of its sections.
        self.sections.iter().find(|section| {
            let held = self.section_names.get(section.sh_name(LE) as usize..).unwrap_or_default();
            held.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        })
    }

    pub(crate) fn section_of_type(&self, kind: elf::SectionType) -> Option<&'a Section> {
        self.sections.iter().find(|section| section.sh_type(LE) == kind)
    }

    /// The bytes of a section; none where it has none or claims more than the file holds.
    pub(crate) fn data(&self, section: &'a Section) -> &'a [u8] {
        section.data(LE, self.bytes).unwrap_or(&[])
    }

    /// The table of strings that a section refers to.
    pub(crate) fn linked(&self, section: &'a Section) -> &'a [u8] {
        self.sections.section(section.link(LE)).map_or(&[], |linked| self.data(linked))
    }

    pub(crate) fn build_id(&self) -> Option<BuildId> {
        // Sections first: a debug file keeps its note there, while its segments point nowhere.
        let sections = self.sections.iter().filter_map(|s| s.notes(LE, self.bytes).ok().flatten());
        let headers = self.header.program_headers(LE, self.bytes).unwrap_or_default();
        let segments = headers.iter().filter_map(|s| s.notes(LE, self.bytes).ok().flatten());
        sections.take(NOTES_MAX).chain(segments.take(NOTES_MAX)).find_map(|notes| {
            let mut sound = notes.map_while(Result::ok).take(NOTES_MAX);
            let id = sound.find(|note| {
                note.name() == elf::ELF_NOTE_GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID
            });
            BuildId::new(id?.desc())
        })
    }

    /// The virtual addresses that hold code: executable sections, or executable segments where
    /// there are no sections; each cut to what the file maps as executable.
    pub(crate) fn code(&self) -> Vec<Extent> {
        let executable_segments = self.segments.iter().filter(|segment| segment.executable);
        let whole = executable_segments
            .map(|segment| Extent { start: segment.address, end: segment.address_end() });
        let named = disjoint(self.sections.iter().filter_map(executable).collect());
        let whole = disjoint(whole.collect());
        if named.is_empty() { whole } else { common(&named, &whole) }
    }
}

/// Some virtual addresses, from `start` up to `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Extent {
    fn meet(self, other: Extent) -> Option<Extent> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Extent { start, end })
    }
}

/// The extent of a sorted, disjoint list that holds an address.
pub(crate) fn holding(extents: &[Extent], address: u64) -> Option<Extent> {
    let after = extents.partition_point(|extent| extent.start <= address);
    let candidate = *extents.get(after.checked_sub(1)?)?;
    (address < candidate.end).then_some(candidate)
}

/// What two sorted, disjoint lists have in common; there are fewer pieces than extents.
fn common(left: &[Extent], right: &[Extent]) -> Vec<Extent> {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut common = Vec::new();
    while let (Some(&&a), Some(&&b)) = (left.peek(), right.peek()) {
        common.extend(a.meet(b));
        if a.end <= b.end {
            left.next();
        } else {
            right.next();
        }
    }
    common
}

fn disjoint(mut extents: Vec<Extent>) -> Vec<Extent> {
    extents.sort_unstable();
    let mut reached = 0;
    extents.retain_mut(|extent| {
        extent.start = extent.start.max(reached);
        let left = extent.start < extent.end;
        if left {
            reached = extent.end;
        }
        left
    });
    extents
}

fn executable(section: &Section) -> Option<Extent> {
    let flags = section.sh_flags(LE).0;
    let start = section.sh_addr(LE);
    let both = elf::SHF_EXECINSTR.0 | elf::SHF_ALLOC.0;
    let extent = Extent { start, end: start.saturating_add(section.sh_size(LE)) };
    (flags & both == both && extent.start < extent.end).then_some(extent)
}

fn segments(header: &Header, bytes: &[u8]) -> Result<Segments, ImageError> {
    let headers = header
        .program_headers(LE, bytes)
        .map_err(|_| ImageError::Malformed { what: "program header table" })?;
    let load = headers.iter().filter(|header| header.p_type(LE) == elf::PT_LOAD);
    let list = load.filter_map(|header| {
        let executable = header.p_flags(LE).0 & elf::PF_X.0 != 0;
        let len = header.p_filesz(LE);
        let (offset, address) = (header.p_offset(LE), header.p_vaddr(LE));
        Segment::cut(offset, address, len, executable, bytes.len() as u64)
    });
    Ok(Segments::new(list.take(SEGMENTS_MAX).collect()))
}

/// Says what the bytes are if they are not a little-endian 64-bit ELF file.
fn recognise(bytes: &[u8]) -> Result<(), ImageError> {
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    if let Some(line) = bytes.strip_prefix(b"#!") {
        return Err(ImageError::Script { interpreter: interpreter(line) });
    }
    if !bytes.starts_with(b"\x7fELF") {
        let magic_begun = b"\x7fELF".starts_with(bytes);
        return Err(if magic_begun { ImageError::Truncated } else { ImageError::NotElf });
    }
    match (bytes.get(4), bytes.get(5)) {
        (Some(1), _) => Err(ImageError::Bits32),
        (Some(2), Some(1)) if bytes.len() >= size_of::<Header>() => Ok(()),
        (Some(2), Some(2)) => Err(ImageError::BigEndian),
        (Some(2), Some(1)) | (None, _) | (Some(2), None) => Err(ImageError::Truncated),
        _ => Err(ImageError::Malformed { what: "identification" }),
    }
}

/// The word after `#!`, cut where a hostile first line never ends.
fn interpreter(line: &[u8]) -> String {
    let cut = line.get(..256).unwrap_or(line);
    let first = cut.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(first);
    text.split_whitespace().next().unwrap_or("an unnamed interpreter").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_wrong_file_gets_a_sentence_of_its_own() {
        let sentence = |bytes: &[u8]| Elf::open(bytes).err().unwrap().to_string();
        let header = |class: u8, order: u8, len: usize| {
            let mut bytes = vec![0; len];
            bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, order, 1]);
            bytes
        };
        assert_eq!(sentence(b""), "the file is empty");
        assert_eq!(
            sentence(b"#! /bin/sh -e\nls"),
            "this is a script for /bin/sh, whose code is in the interpreter"
        );
        assert_eq!(sentence(b"MZ\x90"), "this is not an ELF file");
        assert_eq!(sentence(b"\x7fEL"), "the file ends before its ELF headers do");
        assert_eq!(sentence(&header(2, 1, 63)), "the file ends before its ELF headers do");
        assert_eq!(sentence(&header(1, 1, 64)), "this is a 32-bit ELF file; only 64-bit is read");
        assert_eq!(
            sentence(&header(2, 2, 64)),
            "this is a big-endian ELF file; only little-endian is read"
        );
        assert_eq!(sentence(&header(9, 1, 64)), "the ELF file's identification cannot be read");
        let mut object = header(2, 1, 64);
        object[16] = 1;
        assert!(sentence(&object).contains("object file"));
        object[16] = 4;
        assert!(sentence(&object).contains("core dump"));
    }

    #[test]
    fn extents_that_overlap_are_cut_apart() {
        let extents = [(5, 20), (0, 10), (6, 8), (30, 40)];
        let cut = disjoint(extents.map(|(start, end)| Extent { start, end }).to_vec());
        let pairs: Vec<_> = cut.iter().map(|extent| (extent.start, extent.end)).collect();
        assert_eq!(pairs, [(0, 10), (10, 20), (30, 40)]);
        let other = [(8, 12), (19, 35), (50, 60)].map(|(start, end)| Extent { start, end });
        let both = common(&cut, &other);
        let pairs: Vec<_> = both.iter().map(|extent| (extent.start, extent.end)).collect();
        assert_eq!(pairs, [(8, 10), (10, 12), (19, 20), (30, 35)]);
        assert_eq!(holding(&cut, 25), None);
        assert_eq!(holding(&cut, 39), Some(Extent { start: 30, end: 40 }));
    }
}
