//! What a record changes, small enough to wait in thousands.

use std::borrow::Cow;

use perf::ForkOrExit;
use vocab::{ImageId, Offset, Pc, Pid};

/// A change of somebody's life or maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Mapped(Mapped),
    Named { pid: Pid, exec: bool, name: Name },
    Forked(ForkOrExit),
    Exited(ForkOrExit),
    Lost(u64),
}

/// A stretch of a known image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mapped {
    pub(crate) pid: Pid,
    pub(crate) start: Pc,
    pub(crate) length: u64,
    pub(crate) image: ImageId,
    /// The image's offset at the start.
    pub(crate) offset: Offset,
}

/// The kernel cuts names at fifteen bytes.
const NAME_BYTES: usize = 15;

/// A process's name, without a box of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Name {
    bytes: [u8; NAME_BYTES],
    length: u8,
}

impl Name {
    pub(crate) fn new(name: &[u8]) -> Name {
        let mut bytes = [0; NAME_BYTES];
        let length = name.len().min(NAME_BYTES);
        bytes.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        Name { bytes, length: length as u8 }
    }

    /// As text. Untrusted.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes.get(..usize::from(self.length)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_as_far_as_the_kernel_would() {
        assert_eq!(Name::new(b"cc1").text(), "cc1");
        assert_eq!(Name::new(b"0123456789abcdef").text(), "0123456789abcde");
        assert_eq!(Name::new(b"a\xff").text(), "a\u{fffd}");
        assert_eq!(Name::default().text(), "");
    }

    #[test]
    fn a_change_that_waits_is_small() {
        assert!(size_of::<(u64, Change)>() <= 56, "{}", size_of::<(u64, Change)>());
    }
}
