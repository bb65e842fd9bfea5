//! A word on stderr when something takes longer than a second.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Shows `what done/of` until dropped; silent for the first second, and on anything but a
/// terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    done: Arc<AtomicUsize>,
    end: Option<Sender<()>>,
    painter: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, of: usize, wanted: bool) -> Progress {
        let done = Arc::new(AtomicUsize::new(0));
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { done, end: None, painter: None };
        }
        let (end, ended) = channel();
        let seen = Arc::clone(&done);
        let painter = std::thread::spawn(move || {
            let mut wait = Duration::from_secs(1);
            let mut painted = false;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) {
                let done = seen.load(Ordering::Relaxed);
                let _ = write!(std::io::stderr(), "\r\x1b[Kwhither: {what} {done}/{of}");
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
