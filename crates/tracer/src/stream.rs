//! A program's instructions, wherever they come from.
//!
//! ```text
//! Live      launch --> engine --chunks over a socket--> replay --> listeners, here
//! Recorded  file -----------------------------chunks--> replay --> listeners, here
//! ```
//!
//! Both give a listener the same calls in the same order. A listener that is to run as fast as can be
//! runs inside the engine instead, where no chunk is packed or unpacked.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, thread};

use crate::launch::{Engines, Finished, Launch, LaunchError, Running, Scratch};
use crate::settings::Listener;
use crate::trace::{Audience, ChunkReader, FILE_HEADER, Replay, Replayed, is_trace, leftovers};

/// Why a stream cannot be had.
#[derive(Debug)]
pub enum StreamError {
    /// The program cannot be run.
    Launch(LaunchError),
    /// The trace cannot be read.
    Io(PathBuf, io::Error),
    /// The file is no trace, or one of another version.
    Foreign(PathBuf),
    /// The engine cannot be listened to.
    Socket(io::Error),
    /// The directory in which the engine finds its listener is there no longer.
    Gone,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Launch(why) => why.fmt(f),
            StreamError::Io(path, why) => {
                write!(f, "the trace {} cannot be read: {why}", path.display())
            }
            StreamError::Foreign(path) => {
                let name = path.display();
                write!(f, "{name} is no trace that `whither model --record` of this version made")
            }
            StreamError::Socket(why) => write!(f, "the engine cannot be listened to: {why}"),
            StreamError::Gone => f.write_str(
                "somebody removed the directory that the engine and its listener share while the \
                 program ran; what it did is not known whole, run it again",
            ),
        }
    }
}

impl std::error::Error for StreamError {}

/// A program's instructions, to be told once.
pub trait InstructionStream {
    /// What there is to say about the run besides.
    type Rest;

    /// Tells an audience everything.
    fn play<A: Audience>(self, audience: &mut A) -> Result<(Replayed, Self::Rest), StreamError>;
}

/// A program that runs now.
#[derive(Clone, Debug)]
pub struct Live<'a> {
    /// The program. Its listener is ours.
    pub launch: Launch,
    /// The engines to choose from.
    pub engines: Engines<'a>,
}

impl InstructionStream for Live<'_> {
    type Rest = Finished;

    fn play<A: Audience>(self, audience: &mut A) -> Result<(Replayed, Finished), StreamError> {
        let scratch =
            Scratch::new().map_err(|why| StreamError::Launch(LaunchError::Scratch(why)))?;
        let path = scratch.path().join("socket");
        let socket = UnixListener::bind(&path).map_err(StreamError::Socket)?;
        let launch = Launch { listener: Listener::Socket(path.clone()), ..self.launch };
        let running = launch.start_in(scratch, &self.engines).map_err(StreamError::Launch)?;
        let mut replay = Replay::new(audience);
        let (finished, skipped) = listen(&socket, &path, running, &mut replay)?;
        finished.processes.values().flat_map(leftovers).for_each(|chunk| replay.feed(&chunk));
        let replayed = replay.finish();
        let skipped_bytes = replayed.skipped_bytes + skipped;
        Ok((Replayed { skipped_bytes, ..replayed }, finished))
    }
}

/// What the launcher sends to itself when the program has ended.
const ENDED: &[u8] = b"WHENDED\x01";
/// How long it waits for someone before it looks whether anyone may still come.
const PATIENCE_MS: libc::c_int = 500;

/// Feeds what the engine sends until the program has ended. Another thread waits for that and says
/// so over the same socket, behind everything that the program sent.
fn listen<A: Audience>(
    socket: &UnixListener,
    path: &Path,
    mut running: Running,
    replay: &mut Replay<'_, A>,
) -> Result<(Finished, u64), StreamError> {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let finished = running.wait();
            say_ended(path);
            finished
        });
        let mut skipped = 0;
        loop {
            if !waits_for(socket)? {
                // Nobody can say that it has ended where nobody finds the socket.
                if waiter.is_finished() && !path.exists() {
                    return Err(StreamError::Gone);
                }
                continue;
            }
            let (mut connection, _) = socket.accept().map_err(StreamError::Socket)?;
            let mut bytes = Vec::new();
            // What cannot be read is missing, which the replay notices.
            let _ = connection.read_to_end(&mut bytes);
            if bytes == ENDED {
                break;
            }
            skipped += feed(&bytes, replay);
        }
        let finished = waiter.join().map_err(|_| {
            StreamError::Socket(io::Error::other("the thread that waits for the program died"))
        })?;
        Ok((finished.map_err(StreamError::Launch)?, skipped))
    })
}

/// Waits until someone wants to be heard, and not for long; whether someone does.
fn waits_for(socket: &UnixListener) -> Result<bool, StreamError> {
    let mut polled = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, which is open for as long as the socket is borrowed.
    let ready = unsafe { libc::poll(&raw mut polled, 1, PATIENCE_MS) };
    match ready {
        0.. => Ok(ready > 0),
        _ => match io::Error::last_os_error() {
            why if why.kind() == io::ErrorKind::Interrupted => Ok(false),
            why => Err(StreamError::Socket(why)),
        },
    }
}

/// Says that the program has ended. It has to be heard, so a failure, for want of a descriptor, is
/// tried again.
fn say_ended(path: &Path) {
    let say = || UnixStream::connect(path).and_then(|mut socket| socket.write_all(ENDED));
    while path.exists() && say().is_err() {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Feeds the chunks in some bytes; says how many bytes belonged to none.
fn feed<A: Audience>(bytes: &[u8], replay: &mut Replay<'_, A>) -> u64 {
    let mut reader = ChunkReader::new(bytes);
    // Reading from memory does not fail.
    while let Ok(Some(chunk)) = reader.next_chunk() {
        replay.feed(&chunk);
    }
    reader.skipped_bytes
}

/// A trace in a file.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The file.
    pub path: PathBuf,
}

impl InstructionStream for Recorded {
    type Rest = ();

    fn play<A: Audience>(self, audience: &mut A) -> Result<(Replayed, ()), StreamError> {
        let failed = |why| StreamError::Io(self.path.clone(), why);
        let mut file = BufReader::new(File::open(&self.path).map_err(failed)?);
        let mut start = Vec::new();
        let header_bytes = FILE_HEADER.len() as u64;
        file.by_ref().take(header_bytes).read_to_end(&mut start).map_err(failed)?;
        if !is_trace(&start) {
            return Err(StreamError::Foreign(self.path));
        }
        let mut reader = ChunkReader::new(file);
        let mut replay = Replay::new(audience);
        while let Some(chunk) = reader.next_chunk().map_err(failed)? {
            replay.feed(&chunk);
        }
        Ok((Replayed { skipped_bytes: reader.skipped_bytes, ..replay.finish() }, ()))
    }
}
