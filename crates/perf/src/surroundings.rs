//! What a program finds around itself when it starts: its streams, and where things lie.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The kernel leaves at least this much for the stack below its top, whatever the limit says.
const STACK_GAP_BYTES: u64 = 128 << 20;
const PAGE_BYTES: u64 = 4096;

/// Where things lie in the program's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// As the kernel draws it.
    #[default]
    Drawn,
    /// Not drawn: the same in every run. Libraries and mappings lie so many pages lower than they
    /// would; the kernel places them below the largest stack there may be, so the limit of the
    /// stack moves them.
    Held {
        /// Pages.
        lower_by: u16,
    },
}

/// Streams and layout; by default the program shares ours and lies where the kernel puts it.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// Standard input, read from where the file stands.
    pub input: Option<File>,
    /// Where both output streams go.
    pub output: Option<File>,
    /// Where things lie.
    pub layout: Layout,
}

impl Surroundings {
    /// Puts them in place.
    ///
    /// # Safety
    ///
    /// Only in the child of a fork: it replaces the process's streams and limits.
    pub(crate) unsafe fn apply(&self) -> io::Result<()> {
        let onto = |file: &Option<File>, stream: i32| match file {
            // SAFETY: a system call on two descriptors; the file is open.
            Some(file) => done(unsafe { libc::dup2(file.as_raw_fd(), stream) }),
            None => Ok(()),
        };
        onto(&self.input, 0)?;
        onto(&self.output, 1)?;
        onto(&self.output, 2)?;
        match self.layout {
            Layout::Drawn => Ok(()),
            Layout::Held { lower_by } => hold(lower_by),
        }
    }
}

fn hold(lower_by: u16) -> io::Result<()> {
    const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
    // SAFETY: a system call with a number; nothing is touched.
    done(unsafe { libc::personality(ADDR_NO_RANDOMIZE) })?;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local.
    done(unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) })?;
    // Twice the gap leaves room for what the kernel keeps free beside the stack.
    let asked = 2 * STACK_GAP_BYTES + u64::from(lower_by) * PAGE_BYTES;
    limit.rlim_cur = asked.min(limit.rlim_max);
    // SAFETY: as above.
    done(unsafe { libc::setrlimit(libc::RLIMIT_STACK, &raw const limit) })
}

fn done(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Held;
    use std::ffi::CString;
    use std::io::{Read, Seek, Write};

    fn temporary(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("whither-{name}-{}", std::process::id()));
        let file =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    fn output_of(script: &str, input: Option<File>, layout: Layout, name: &str) -> String {
        let mut kept = temporary(name);
        let around = Surroundings { input, output: Some(kept.try_clone().unwrap()), layout };
        let words = ["sh", "-c", script].map(|word| CString::new(word).unwrap());
        let path = CString::new("/bin/sh").unwrap();
        let held = Held::fork_in(&path, &words, &[], &around).unwrap();
        assert_eq!(held.go().unwrap().wait().unwrap().code(), Some(0));
        kept.rewind().unwrap();
        let mut text = String::new();
        kept.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn streams_are_the_ones_given() {
        let mut input = temporary("in");
        input.write_all(b"hello").unwrap();
        input.rewind().unwrap();
        let script = "cat; echo ' there' >&2";
        assert_eq!(output_of(script, Some(input), Layout::Drawn, "out"), "hello there\n");
    }

    #[test]
    fn a_held_layout_is_the_same_every_time_and_moves_when_asked() {
        // Where the C library and the stack lie.
        let script = "while read -r line; do case $line in *libc*|*stack*) echo ${line%%-*};; \
                      esac; done < /proc/$$/maps";
        let at = |lower_by, name| output_of(script, None, Layout::Held { lower_by }, name);
        let first = at(0, "a");
        assert!(first.lines().count() >= 2, "{first}");
        assert_eq!(first, at(0, "b"));
        let moved = at(5, "c");
        let address = |text: &str| u64::from_str_radix(text.lines().next().unwrap(), 16).unwrap();
        assert_eq!(address(&first) - address(&moved), 5 * PAGE_BYTES);
    }
}
