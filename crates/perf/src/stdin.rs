//! Standard input that can be read twice.

use std::fs::File;
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;

/// Everything that was on standard input, kept so that two runs of a program find the same.
#[derive(Debug)]
pub struct KeptInput {
    file: Option<File>,
}

impl KeptInput {
    /// Reads standard input to its end and keeps it in a file without a name. A terminal is left
    /// alone: nobody types the same twice, and [`KeptInput::is_kept`] says so.
    pub fn keep() -> io::Result<KeptInput> {
        if io::stdin().is_terminal() {
            return Ok(KeptInput { file: None });
        }
        let mut file = nameless_file()?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        file.flush()?;
        Ok(KeptInput { file: Some(file) })
    }

    /// Whether there is anything to give a second time.
    pub fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Puts what was kept on standard input, from its start; nothing where it was a terminal and
    /// `again` is set.
    pub fn give(&mut self, again: bool) -> io::Result<()> {
        match &mut self.file {
            Some(file) => {
                file.seek(SeekFrom::Start(0))?;
                put_on_stdin(file)
            }
            None if again => put_on_stdin(&File::open("/dev/null")?),
            None => Ok(()),
        }
    }
}

fn nameless_file() -> io::Result<File> {
    // SAFETY: the name is a C string; the descriptor is checked before it is owned.
    let fd = unsafe { libc::memfd_create(c"whither-stdin".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new and ours.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) })
}

fn put_on_stdin(file: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open; the new one stays open across exec, as it should.
    match unsafe { libc::dup2(file.as_raw_fd(), 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
