//! Progress on stderr: a bar on a terminal, nothing elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where work under way is shown.
#[derive(Debug)]
pub struct Progress {
    shown: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Progress {
    /// Shown when `wanted` and stderr is a terminal.
    pub fn new(wanted: bool) -> Progress {
        Progress { shown: wanted && std::io::stderr().is_terminal(), bar: Mutex::new(None) }
    }

    /// Starts a bar of `steps`.
    pub fn start(&self, steps: u64) {
        if !self.shown {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{pos:>4}/{len} {wide_bar} {msg:30} {eta}")
        {
            bar.set_style(style);
        }
        self.put(Some(bar));
    }

    /// One step further, now at `what`.
    pub fn step(&self, what: &str) {
        if let Ok(slot) = self.bar.lock()
            && let Some(bar) = slot.as_ref()
        {
            bar.set_message(what.to_owned());
            bar.inc(1);
        }
    }

    /// One line beside the bar.
    pub fn say(&self, what: &str) {
        if self.shown {
            eprintln!("{what}");
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.put(None);
    }

    fn put(&self, bar: Option<ProgressBar>) {
        if let Ok(mut slot) = self.bar.lock()
            && let Some(old) = std::mem::replace(&mut *slot, bar)
        {
            old.finish_and_clear();
        }
    }
}
