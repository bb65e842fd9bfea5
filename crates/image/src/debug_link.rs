//! The name of the separate file that holds what was stripped from this one.

use crate::elf::Elf;

/// What .gnu_debuglink says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DebugLink {
    /// The name of the file, without a path. Untrusted: it may hold anything but a zero byte.
    pub name: String,
    /// The CRC-32 of the whole file.
    pub crc: u32,
}

impl DebugLink {
    pub(crate) fn read(elf: &Elf<'_>) -> Option<DebugLink> {
        DebugLink::parse(elf.data(elf.section(".gnu_debuglink")?))
    }

    /// A name, a zero byte, zeros up to a multiple of four, the checksum.
    fn parse(data: &[u8]) -> Option<DebugLink> {
        let len = data.iter().position(|&byte| byte == 0)?;
        let name = String::from_utf8_lossy(data.get(..len)?).into_owned();
        let crc = data.get((len + 1).next_multiple_of(4)..)?.first_chunk().copied()?;
        Some(DebugLink { name, crc: u32::from_le_bytes(crc) })
    }

    /// Whether these bytes are the file that is meant.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        crc32(bytes) == self.crc
    }
}

/// The CRC of Ethernet and zip, four bits at a time: a table of sixteen words is enough for a
/// file that is read once.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = table();
    let step = |crc: u32, bits: u32| (crc >> 4) ^ TABLE[((crc ^ bits) & 15) as usize];
    !bytes.iter().fold(!0, |crc, &byte| {
        let byte = u32::from(byte);
        step(step(crc, byte), byte >> 4)
    })
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        let (mut word, mut bit) = (index as u32, 0);
        while bit < 4 {
            word = if word & 1 == 1 { (word >> 1) ^ 0xedb8_8320 } else { word >> 1 };
            bit += 1;
        }
        table[index] = word;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_follows_the_padded_name() {
        let link = DebugLink::parse(b"a.debug\0\x04\x03\x02\x01").unwrap();
        assert_eq!(link, DebugLink { name: "a.debug".into(), crc: 0x0102_0304 });
        let link = DebugLink::parse(b"ab\0\0\x04\x03\x02\x01").unwrap();
        assert_eq!(link, DebugLink { name: "ab".into(), crc: 0x0102_0304 });
        assert_eq!(DebugLink::parse(b"ab\0\0\x04\x03\x02"), None);
        assert_eq!(DebugLink::parse(b"endless"), None);
    }

    #[test]
    fn the_checksum_has_the_standard_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
