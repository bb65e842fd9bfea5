//! A word on stderr when something takes longer than a second.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shows how far something is until dropped; silent for the first second, and on anything but a
/// terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    done: Arc<AtomicUsize>,
    end: Option<Sender<()>>,
    painter: Option<JoinHandle<()>>,
}

impl Progress {
    /// So many of so many.
    pub(crate) fn new(what: &'static str, of: usize, wanted: bool) -> Progress {
        Progress::start(wanted, move |done, _| format!("{what} {done}/{of}"))
    }

    /// How long it has taken, where nobody knows how much there is to do.
    pub(crate) fn clock(what: &'static str, wanted: bool) -> Progress {
        Progress::start(wanted, move |_, seconds| format!("{what}, {seconds} s"))
    }

    fn start(wanted: bool, line: impl Fn(usize, u64) -> String + Send + 'static) -> Progress {
        let done = Arc::new(AtomicUsize::new(0));
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { done, end: None, painter: None };
        }
        let (end, ended) = channel();
        let seen = Arc::clone(&done);
        let painter = std::thread::spawn(move || {
            let began = Instant::now();
            let mut wait = Duration::from_secs(1);
            let mut painted = false;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
                let done = seen.load(Ordering::Relaxed);
                let line = line(done, began.elapsed().as_secs());
                let _ = write!(std::io::stderr(), "\r\x1b[Kwhither: {line}");
                wait = Duration::from_millis(200);
                painted = true;
            }
            if painted {
                let _ = write!(std::io::stderr(), "\r\x1b[K");
            }
        });
        Progress { done, end: Some(end), painter: Some(painter) }
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(painter) = self.painter.take() {
            let _ = painter.join();
        }
    }
}
