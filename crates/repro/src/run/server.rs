//! Running a server: start it, wait until it listens, run its clients, wait for its end.

use std::fs::{File, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Task;
use super::spawn::{Running, Spent, Start, swap};

/// A server under a slow tool takes its time to listen.
const READY: Duration = Duration::from_secs(60);

pub(super) fn serve(task: &Task, start: &Start<'_>, streams: &Path) -> Result<Spent, String> {
    let port = free_port().map_err(|e| format!("{}: no free port: {e}", task.name))?;
    let port = port.to_string();
    let swaps = [("{port}", port.as_str())];
    // What clients of a run before this one printed is not this one's.
    File::create(streams.join("client")).map_err(|e| format!("{}: {e}", task.name))?;
    let mut running = start.spawn(&swaps)?;
    let clients = listens(&mut running, task, &port).and_then(|()| {
        task.clients.iter().try_for_each(|client| run_client(task, client, &swaps, streams))
    });
    if let Err(sentence) = clients {
        running.end();
        return Err(sentence);
    }
    running.wait()
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn listens(running: &mut Running, task: &Task, port: &str) -> Result<(), String> {
    let began = Instant::now();
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        if running.reaped()?.is_some() {
            return Err(format!("{} ended before it listened", task.name));
        }
        if began.elapsed() > READY {
            return Err(format!("{} did not listen within {} s", task.name, READY.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Clients are not measured; what they print is appended to the file `client`.
fn run_client(
    task: &Task,
    client: &[String],
    swaps: &[(&str, &str)],
    streams: &Path,
) -> Result<(), String> {
    let words: Vec<String> = client.iter().map(|word| swap(word, swaps)).collect();
    // A last word `<FILE` is the client's input.
    let (words, stdin) = match words.split_last() {
        Some((last, rest)) if last.starts_with('<') => {
            let path = task.directory.join(last.trim_start_matches('<'));
            let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            (rest.to_vec(), Stdio::from(file))
        }
        _ => (words, Stdio::null()),
    };
    let Some((program, arguments)) = words.split_first() else {
        return Err(format!("{}: a client's command is empty", task.name));
    };
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(streams.join("client"))
        .map_err(|e| format!("{}: {e}", task.name))?;
    let mut command = Command::new(program);
    task.surround(&mut command);
    let status = command
        .args(arguments)
        .stdin(stdin)
        .stdout(log)
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("{}: its client {program} cannot be started: {e}", task.name))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: its client {program} failed ({status})", task.name))
}

#[cfg(test)]
mod tests {
    use super::super::{Wrap, run};
    use super::*;

    #[test]
    fn what_clients_print_is_that_of_the_last_run() {
        let name = format!("repro-served-{}", std::process::id());
        let streams = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&streams).unwrap();
        let serve = "use IO::Socket::INET; \
                     my $s = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', \
                     LocalPort => shift) or die; $s->accept for 1..2";
        let ask = "use IO::Socket::INET; \
                   IO::Socket::INET->new('127.0.0.1:' . shift) or die; print 'asked'";
        let words = |code: &str| ["/usr/bin/perl", "-e", code, "{port}"].map(String::from).to_vec();
        let mut task = Task::from_command("/usr/bin/perl", &streams).unwrap();
        (task.argv, task.clients) = (words(serve), vec![words(ask)]);
        for _ in 0..2 {
            run(&task, &Wrap::default(), &streams).unwrap();
        }
        let printed = std::fs::read_to_string(streams.join("client")).unwrap();
        std::fs::remove_dir_all(&streams).unwrap();
        assert_eq!(printed, "asked");
    }
}
