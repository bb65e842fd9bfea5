//! The socket: what a daemon can be asked, from both ends.
//!
//! One line of request, one line `ok` or `error`, then text until the end. The socket is the
//! owner's alone (0600), in a directory that is too (0700).

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::room::Room;
use crate::cli::Ask;
use crate::failure::{ERROR, Failure};
use crate::output::Output;

/// Whoever asks is local and quick; one who is not must not stop the daemon.
const PATIENCE: Duration = Duration::from_secs(2);
/// Writing everything to a slow disk takes this long at most.
const ANSWER: Duration = Duration::from_secs(120);

impl Ask {
    fn word(self) -> &'static str {
        match self {
            Ask::Stop => "stop",
            Ask::Status => "status",
            Ask::Flush => "flush",
            Ask::Epoch => "epoch",
        }
    }

    fn from_word(word: &str) -> Option<Ask> {
        [Ask::Stop, Ask::Status, Ask::Flush, Ask::Epoch].into_iter().find(|ask| ask.word() == word)
    }
}

/// The daemon's end.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
    path: PathBuf,
}

/// Somebody who asked and waits.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) what: Ask,
    pub(super) json: bool,
    stream: UnixStream,
}

impl Server {
    /// Listens. Only the holder of the lock may call this: an old socket is replaced.
    pub(super) fn open(room: &Room) -> io::Result<Server> {
        let path = room.socket();
        let _ = fs::remove_file(&path);
        let (_folder, short) = short_path(&path)?;
        let listener = UnixListener::bind(short)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, path })
    }

    /// For `poll`.
    pub(super) fn raw_fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// The next who waits, if anyone does. Nonsense is answered here.
    pub(super) fn next(&self) -> Option<Asked> {
        loop {
            let (stream, _) = self.listener.accept().ok()?;
            let prepared = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
                .and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
            let mut line = String::new();
            if prepared.is_err() || BufReader::new((&stream).take(64)).read_line(&mut line).is_err()
            {
                continue;
            }
            let mut words = line.split_whitespace();
            let what = words.next().and_then(Ask::from_word);
            let json = words.next() == Some("json");
            match what {
                Some(what) => return Some(Asked { what, json, stream }),
                None => {
                    let _ = (&stream).write_all(b"error\nthe daemon does not know this request\n");
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Asked {
    /// Answers; one who has gone is not missed.
    pub(super) fn answer(mut self, answer: &Result<String, String>) {
        let text = match answer {
            Ok(text) => format!("ok\n{text}"),
            Err(why) => format!("error\n{why}"),
        };
        let _ = self.stream.write_all(text.as_bytes());
    }
}

/// Sockets have names of at most 107 bytes; through an open directory every name is short.
fn short_path(path: &Path) -> io::Result<(Option<File>, PathBuf)> {
    const LONGEST: usize = 100;
    if path.as_os_str().len() <= LONGEST {
        return Ok((None, path.to_owned()));
    }
    let missing = || io::Error::from(io::ErrorKind::InvalidInput);
    let folder = File::open(path.parent().ok_or_else(missing)?)?;
    let name = path.file_name().ok_or_else(missing)?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    Ok((Some(folder), short))
}

/// Asks the daemon of this host and prints what it answers.
pub(super) fn ask(ask: Ask, database: &Path, output: &Output) -> Result<(), Failure> {
    let room = Room::of(database);
    let text = request(&room, ask, output.json)?;
    output.write_text(&text)
}

/// Asks; the answer, or why there is none.
pub(super) fn request(room: &Room, ask: Ask, json: bool) -> Result<String, Failure> {
    let nobody = |error: io::Error| {
        let (database, host) = (room.database.display(), &room.host);
        match (error.kind(), room.holder()) {
            (io::ErrorKind::PermissionDenied, _) => {
                Failure::new(ERROR, format!("the daemon of {database} is somebody else's"))
                    .remedy("ask as the user who started it")
            }
            (_, Some(pid)) => Failure::new(
                ERROR,
                format!("the daemon of {database} (pid {pid}) does not answer: {error}"),
            ),
            _ => Failure::new(ERROR, format!("no daemon collects into {database} on {host}"))
                .remedy("`whither daemon start` starts one"),
        }
    };
    let (_folder, short) = short_path(&room.socket()).map_err(nobody)?;
    let mut stream = UnixStream::connect(short).map_err(nobody)?;
    let form = if json { "json" } else { "text" };
    stream.set_read_timeout(Some(ANSWER)).map_err(nobody)?;
    stream.write_all(format!("{} {form}\n", ask.word()).as_bytes()).map_err(nobody)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(nobody)?;
    match answer.split_once('\n') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", why)) => Err(Failure::new(ERROR, why.trim_end())),
        _ => Err(nobody(io::Error::from(io::ErrorKind::UnexpectedEof))),
    }
}
