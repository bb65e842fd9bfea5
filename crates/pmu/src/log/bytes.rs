//! Numbers and texts as bytes.

/// Appends a number, seven bits to a byte, least significant first.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a text with its length before it.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// FNV-1a of 32 bits: finds torn and damaged records; nobody is attacked here.
pub(super) fn check(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Bytes of a record, read from the front. `None` means that they make no sense.
#[derive(Debug)]
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if bits.leading_zeros() < shift {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let len = self.small()?;
        let (taken, rest): (&'a [u8], _) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(String::from_utf8_lossy(taken).into_owned())
    }

    /// A list whose every item takes at least a byte, so that a false length costs no memory.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Body<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let len: usize = self.small()?;
        if len > self.0.len() {
            return None;
        }
        (0..len).map(|_| item(self)).collect()
    }
}
