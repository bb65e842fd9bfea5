//! Starting: in the foreground, or apart from whoever started it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::control::{Server, request};
use super::room::Room;
use super::{open, serve};
use crate::cli::{Ask, StartJob};
use crate::failure::{ERROR, Failure};
use crate::output::Output;

/// How long a daemon may take to be ready: it scans /proc of a busy machine.
const READY: Duration = Duration::from_secs(60);

/// Collects until it is told to end.
pub(super) fn in_foreground(job: &StartJob) -> Result<(), Failure> {
    perf::keep_files_private();
    if job.apart {
        perf::leave_session();
        // Whatever directory it was started in may be unmounted.
        let _ = std::env::set_current_dir("/");
    }
    let room = Room::of(&job.database);
    room.make()?;
    let lock = room.lock()?;
    // Heard as something to read, before there is any other thread.
    let requests = perf::Requests::hear()
        .map_err(|error| Failure::new(ERROR, format!("cannot hear signals: {error}")))?;
    let server = Server::open(&room).map_err(|error| {
        let socket = room.socket();
        Failure::new(ERROR, format!("cannot listen on {}: {error}", socket.display()))
    })?;
    let mut service = open::open(job, &room)?;
    serve::serve(&mut service, &server, requests)?;
    drop(server);
    drop(lock);
    Ok(())
}

/// Starts another process, waits until it collects, and leaves it alone.
pub(super) fn apart(job: &StartJob, output: &Output) -> Result<(), Failure> {
    perf::keep_files_private();
    let room = Room::of(&job.database);
    room.make()?;
    // Refused early, and by name; the process itself takes the lock again.
    drop(room.lock()?);
    let mut child = spawn(&room)?;
    let began = Instant::now();
    loop {
        if request(&room, Ask::Status, true).is_ok() {
            break;
        }
        if let Ok(Some(_)) = child.try_wait() {
            return Err(did_not_start(&room));
        }
        if began.elapsed() > READY {
            let _ = child.kill();
            return Err(Failure::new(ERROR, "the daemon did not become ready and was ended"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let text =
        format!("whither daemon: pid {} collects into {}\n", child.id(), room.database.display());
    match output.json {
        true => output.write_text(&request(&room, Ask::Status, true)?),
        false => output.write_text(&text),
    }
}

/// This program again, with the same arguments and `--foreground`.
fn spawn(room: &Room) -> Result<Child, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(ERROR, format!("cannot start a process: {error}"));
    let log = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(room.log())
        .map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    // Only what was asked of the daemon: `--json` and colours are for whoever started it.
    let spoken = |argument: &std::ffi::OsString| argument != "--json";
    Command::new(program)
        .args(std::env::args_os().skip(1).filter(spoken))
        .args(["--foreground", "--apart"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(failed)
}

/// What it said before it ended.
fn did_not_start(room: &Room) -> Failure {
    let log = std::fs::read_to_string(room.log()).unwrap_or_default();
    let last = log.lines().last().unwrap_or_default();
    match last.strip_prefix("whither: ") {
        Some(said) => Failure::new(ERROR, said),
        None => Failure::new(ERROR, "the daemon ended at once")
            .remedy(format!("{} holds what it said", room.log().display())),
    }
}
