//! Numbers in as few bytes as they need, seven bits to a byte, least significant first.

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a difference; small ones of either sign are short.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends bytes with their length before them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes from outside, read from the front. `None` means that they ended or made no sense.
#[derive(Clone, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next number; one that needs more than 64 bits is no number.
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
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

    /// The next number, if it fits.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.varint()?).ok()
    }

    /// The next difference.
    pub fn signed(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The next bytes that have their length before them.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.small()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_and_takes_a_byte_for_seven_bits() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put(&mut out, value);
                let bits = 64 - value.leading_zeros() as usize;
                assert_eq!(out.len(), bits.div_ceil(7).max(1));
                let mut input = Input(&out);
                assert_eq!(input.varint(), Some(value));
                assert!(input.is_empty());
                let mut out = Vec::new();
                put_signed(&mut out, value as i64);
                assert_eq!(Input(&out).signed(), Some(value as i64));
            }
        }
    }

    #[test]
    fn a_number_that_is_cut_short_or_too_long_is_none() {
        assert_eq!(Input(&[0x80, 0x80]).varint(), None);
        assert_eq!(Input(&[0xff; 10]).varint(), None);
        assert_eq!(
            Input(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).varint(),
            None
        );
        assert_eq!(Input(&[3, b'a', b'b']).bytes(), None);
    }
}
