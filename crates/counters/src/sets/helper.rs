//! The one helper thread of a program that gives turns to the sets of all its threads.
//!
//! It is there only while somebody takes turns, takes no signals, and holds no thread's master list
//! alive: a thread that ends inside a running set takes its list with it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use perf::{ring_on_time, run_first, take_no_signals};

use super::master::Master;

/// The helper wakes at least and at most this often while anybody takes turns.
const WAIT_MAX: Duration = Duration::from_millis(10);
const WAIT_MIN: Duration = Duration::from_micros(50);
/// A list that is in use is tried again after this.
const BUSY: Duration = Duration::from_millis(1);

#[derive(Debug)]
struct Registry {
    masters: Vec<Weak<Mutex<Master>>>,
    is_running: bool,
    /// How often somebody began to take turns: a helper that saw nobody ends only if nobody came
    /// since it began to look.
    wakes: u64,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { masters: Vec::new(), is_running: false, wakes: 0 });
static CHANGED: Condvar = Condvar::new();

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a thread's list known.
pub(super) fn register(master: Weak<Mutex<Master>>) {
    let mut registry = registry();
    registry.masters.retain(|known| known.strong_count() > 0);
    registry.masters.push(master);
}

/// Somebody takes turns now.
pub(super) fn wake() -> std::io::Result<()> {
    let mut registry = registry();
    registry.wakes += 1;
    if !registry.is_running {
        std::thread::Builder::new().name("whither-turns".to_owned()).spawn(help)?;
        registry.is_running = true;
    }
    CHANGED.notify_one();
    Ok(())
}

fn help() {
    take_no_signals();
    ring_on_time();
    // Slices end when they are due only if the helper need not queue with the threads it counts.
    run_first();
    loop {
        let (known, wakes) = {
            let registry = registry();
            (registry.masters.clone(), registry.wakes)
        };
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        for master in known.iter().filter_map(Weak::upgrade) {
            let due = match master.try_lock() {
                Ok(mut master) => master.tick(now),
                Err(TryLockError::Poisoned(master)) => master.into_inner().tick(now),
                // Its thread is in a call of its own, and may have lost its CPU there: whoever
                // waited for it would make all others wait.
                Err(TryLockError::WouldBlock) => Some(now + BUSY),
            };
            next = due.into_iter().chain(next).min();
        }
        let mut registry = registry();
        match next {
            Some(next) => {
                let wait = next.saturating_duration_since(now).clamp(WAIT_MIN, WAIT_MAX);
                drop(CHANGED.wait_timeout(registry, wait).unwrap_or_else(PoisonError::into_inner));
            }
            None if registry.wakes == wakes => {
                registry.is_running = false;
                return;
            }
            None => {}
        }
    }
}
