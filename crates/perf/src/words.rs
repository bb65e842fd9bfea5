//! Reading a descriptor that answers in whole words.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// The largest group whose reading fits on the stack; larger ones take a vector.
const ON_STACK: usize = 64;

/// How often a reading is tried that the kernel says it cannot do at this moment.
const TRIES: u32 = 10_000;

/// Reads `wanted` words in one call and hands them over. Fewer are an error: end of file means that
/// the event is in error (a pinned group that lost its counters).
pub(crate) fn read_words(fd: &OwnedFd, wanted: usize, each: impl FnOnce(&[u64])) -> io::Result<()> {
    let mut short = [0_u64; ON_STACK];
    let mut long = Vec::new();
    let words = match short.get_mut(..wanted) {
        Some(words) => words,
        None => {
            long.resize(wanted, 0);
            &mut long[..]
        }
    };
    let bytes = size_of_val(words);
    for tried in 0.. {
        // SAFETY: the pointer and the length are those of one live slice of plain numbers.
        let got = unsafe { libc::read(fd.as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
        match usize::try_from(got) {
            Ok(got) if got < bytes => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => break,
            Err(_) => {
                let error = io::Error::last_os_error();
                // A child of an inherited group is just taking its members apart as it ends.
                let passes = matches!(error.raw_os_error(), Some(libc::ECHILD | libc::EINTR));
                if !passes || tried == TRIES {
                    return Err(error);
                }
                std::thread::yield_now();
            }
        }
    }
    each(words);
    Ok(())
}
