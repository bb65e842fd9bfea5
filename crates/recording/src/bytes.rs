//! Numbers from the front of some bytes; running out is `None`.

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes }
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(front)
    }

    /// Passes over so many words, a number that came from outside.
    pub(crate) fn skip_words(&mut self, count: u64) -> Option<()> {
        let bytes = usize::try_from(count.checked_mul(8)?).ok()?;
        self.take(bytes).map(drop)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Up to the first zero byte, or all of it.
    pub(crate) fn text(&self) -> String {
        let end = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(self.bytes.get(..end).unwrap_or(&[])).into_owned()
    }

    /// A text with its length before it, as in features.
    pub(crate) fn counted_text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u32()?).ok()?;
        Some(Cursor::new(self.take(length)?).text())
    }
}
