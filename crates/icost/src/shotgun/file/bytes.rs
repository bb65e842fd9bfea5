//! Numbers and lists in bytes that are not believed.

/// Appends a number, seven bits a byte.
pub(super) fn number(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Bytes that are taken from the front.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Reader<'a> {
        Reader { rest }
    }

    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for k in 0..10 {
            let byte = u64::from(*self.take(1)?.first()?);
            let part = byte & 0x7f;
            // The tenth byte has room for one bit.
            if k == 9 && part > 1 {
                return None;
            }
            value |= part << (7 * k);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// How many things follow, each of so many bytes at least; none if they do not fit.
    pub(super) fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count.checked_mul(bytes_each)? <= self.left()).then_some(count)
    }

    /// A count, and as many things.
    pub(super) fn list<T>(
        &mut self,
        bytes_each: usize,
        one: impl Fn(&mut Reader<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.count(bytes_each)?;
        (0..count).map(|_| one(self)).collect()
    }
}
