//! Reading the program's memory without trusting its pointers.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How far the program's addresses are from the engine's own. Usually 0.
static BASE: AtomicU64 = AtomicU64::new(0);

/// The longest string and the most strings that exec takes from us.
const STRING_BYTES: usize = 128 << 10;
const STRINGS: usize = 1 << 20;

/// Says where the program's address 0 is among the engine's.
pub fn set_base(base: u64) {
    BASE.store(base, Relaxed);
}

/// The program's memory. Read through the kernel, so that a bad pointer is an error, not a fault.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// This process's.
    pub fn open() -> Option<Memory> {
        // By way of the thread: the process's first may have ended.
        File::open("/proc/thread-self/mem").ok().map(Memory)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address.wrapping_add(BASE.load(Relaxed))).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The string at an address, without the zero that ends it.
    pub fn string(&self, address: u64) -> Option<OsString> {
        let mut string = Vec::new();
        let mut at = address.wrapping_add(BASE.load(Relaxed));
        while string.len() < STRING_BYTES {
            // To the end of the page at most: the next one may not be there.
            let mut piece = vec![0; (4096 - at % 4096) as usize];
            let read = self.0.read_at(&mut piece, at).ok().filter(|read| *read > 0)?;
            piece.truncate(read);
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                string.extend_from_slice(piece.get(..end)?);
                return Some(OsString::from_vec(string));
            }
            string.extend_from_slice(&piece);
            at += read as u64;
        }
        None
    }

    /// The strings that an array of pointers ending in 0 points to. No array means no strings.
    pub fn strings(&self, address: u64) -> Option<Vec<OsString>> {
        let mut strings = Vec::new();
        if address == 0 {
            return Some(strings);
        }
        for index in 0..STRINGS as u64 {
            match self.word(address.wrapping_add(index * 8))? {
                0 => return Some(strings),
                pointer => strings.push(self.string(pointer)?),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_and_bad_pointers_are_not_followed() {
        let memory = Memory::open().unwrap();
        let (long, short) = (std::ffi::CString::new(vec![b'x'; 10_000]).unwrap(), c"a");
        let array = [long.as_ptr() as u64, short.as_ptr() as u64, 0];
        let at = array.as_ptr() as u64;
        let read = memory.strings(at).unwrap();
        assert_eq!(read, [OsString::from("x".repeat(10_000)), OsString::from("a")]);
        assert_eq!(memory.strings(0), Some(Vec::new()));
        assert_eq!(memory.string(8), None);
        let bad = [short.as_ptr() as u64, 8, 0];
        assert_eq!(memory.strings(bad.as_ptr() as u64), None);
    }
}
