//! Sets as values, and as numbers that another language can hold.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perf::this_thread;
use vocab::Event;

use super::master::{Master, Pages, SetOptions};
use super::set::{Set, State};
use super::{SetError, Value, event_named, helper};

/// Numbers are never used twice: a stale one is always noticed.
static NEXT: AtomicI32 = AtomicI32::new(1);
/// Which thread a live set belongs to.
static OWNERS: Mutex<BTreeMap<i32, u32>> = Mutex::new(BTreeMap::new());

fn owners() -> MutexGuard<'static, BTreeMap<i32, u32>> {
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread's list, and its mapped counters.
struct Local {
    master: Arc<Mutex<Master>>,
    pages: RefCell<Pages>,
}

thread_local! {
    static LOCAL: Local = Local::new();
}

impl Local {
    fn new() -> Local {
        let master = Arc::new(Mutex::new(Master::new()));
        helper::register(Arc::downgrade(&master));
        Local { master, pages: RefCell::default() }
    }
}

impl Drop for Local {
    /// The thread ends: so do its sets. The engine closes its descriptors as it goes.
    fn drop(&mut self) {
        let me = this_thread();
        owners().retain(|_, owner| *owner != me);
    }
}

/// Calls on this thread's list.
fn with_master<T>(
    call: impl FnOnce(&mut Master, &mut Pages) -> Result<T, SetError>,
) -> Result<T, SetError> {
    let called = LOCAL.try_with(|local| {
        let mut master = local.master.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pages = local.pages.try_borrow_mut().map_err(|_| SetError::Ending)?;
        let before = master.turns();
        let outcome = call(&mut master, &mut pages);
        pages.follow(&master);
        let after = master.turns();
        drop(master);
        Ok::<_, SetError>((outcome?, after.is_some() && after != before))
    });
    let (outcome, is_new) = called.map_err(|_| SetError::Ending)??;
    if is_new {
        helper::wake()?;
    }
    Ok(outcome)
}

/// The same, after it is clear whose set it is.
fn with_set<T>(
    id: i32,
    call: impl FnOnce(&mut Master, &mut Pages) -> Result<T, SetError>,
) -> Result<T, SetError> {
    match owners().get(&id).copied() {
        None => return Err(SetError::NoSuchSet),
        Some(owner) if owner != this_thread() => return Err(SetError::NotYours),
        Some(_) => {}
    }
    with_master(call)
}

/// Sets how this thread counts; only while none of its sets runs.
pub fn configure(options: SetOptions) -> Result<(), SetError> {
    with_master(|master, _| master.configure(options))
}

/// Whether a set runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetState {
    /// It was stopped or never started.
    Stopped,
    /// It was started.
    Running,
}

/// An event set of the thread that made it. It is stopped and destroyed when it goes out of scope.
#[derive(Debug)]
pub struct EventSet {
    id: i32,
    /// Not to be sent: a set belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl EventSet {
    /// A set without events.
    pub fn new() -> Result<EventSet, SetError> {
        EventSet::create().map(|id| EventSet { id, thread: PhantomData })
    }

    /// Adds an event by its name.
    pub fn add(&mut self, name: &str) -> Result<(), SetError> {
        self.add_event(&event_named(name)?)
    }

    /// Adds an event.
    pub fn add_event(&mut self, event: &Event) -> Result<(), SetError> {
        EventSet::add_by_id(self.id, event)
    }

    /// The names of its events, in their order.
    pub fn names(&self) -> Result<Vec<String>, SetError> {
        EventSet::names_by_id(self.id)
    }

    /// Whether it runs.
    pub fn state(&self) -> Result<SetState, SetError> {
        EventSet::state_by_id(self.id)
    }

    /// Starts counting from nought.
    pub fn start(&mut self) -> Result<(), SetError> {
        EventSet::start_by_id(self.id)
    }

    /// The totals so far, while it runs; those of the last run otherwise.
    pub fn read(&mut self) -> Result<Vec<Value>, SetError> {
        EventSet::read_by_id(self.id)
    }

    /// Counts from nought again, without stopping.
    pub fn reset(&mut self) -> Result<(), SetError> {
        EventSet::reset_by_id(self.id)
    }

    /// Stops; the totals.
    pub fn stop(&mut self) -> Result<Vec<Value>, SetError> {
        EventSet::stop_by_id(self.id)
    }

    /// Takes all events out.
    pub fn cleanup(&mut self) -> Result<(), SetError> {
        EventSet::cleanup_by_id(self.id)
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        let _ = EventSet::stop_by_id(self.id);
        // Gone already where the thread is ending.
        let _ = EventSet::destroy_by_id(self.id);
    }
}

/// The same by number, for the C interface: every number is looked up, none is trusted.
impl EventSet {
    /// Makes a set; its number.
    pub fn create() -> Result<i32, SetError> {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        with_master(|master, _| {
            master.sets.insert(id, Set::new());
            Ok(())
        })?;
        owners().insert(id, this_thread());
        Ok(id)
    }

    /// Adds an event.
    pub fn add_by_id(id: i32, event: &Event) -> Result<(), SetError> {
        with_set(id, |master, _| master.add(id, event))
    }

    /// The names of its events.
    pub fn names_by_id(id: i32) -> Result<Vec<String>, SetError> {
        with_set(id, |master, _| master.names(id))
    }

    /// Whether it runs.
    pub fn state_by_id(id: i32) -> Result<SetState, SetError> {
        with_set(id, |master, _| match master.sets.get(&id).map(|set| &set.state) {
            None => Err(SetError::NoSuchSet),
            Some(State::Stopped(_)) => Ok(SetState::Stopped),
            Some(State::Running(_)) => Ok(SetState::Running),
        })
    }

    /// Starts it.
    pub fn start_by_id(id: i32) -> Result<(), SetError> {
        with_set(id, |master, pages| master.start(id, pages))
    }

    /// Reads it.
    pub fn read_by_id(id: i32) -> Result<Vec<Value>, SetError> {
        with_set(id, |master, pages| master.read(id, pages))
    }

    /// Resets it.
    pub fn reset_by_id(id: i32) -> Result<(), SetError> {
        with_set(id, |master, pages| master.reset(id, pages))
    }

    /// Stops it.
    pub fn stop_by_id(id: i32) -> Result<Vec<Value>, SetError> {
        with_set(id, |master, pages| master.stop(id, pages))
    }

    /// Empties it.
    pub fn cleanup_by_id(id: i32) -> Result<(), SetError> {
        with_set(id, |master, _| master.cleanup(id))
    }

    /// Destroys it; it must not run.
    pub fn destroy_by_id(id: i32) -> Result<(), SetError> {
        with_set(id, |master, _| master.destroy(id))?;
        owners().remove(&id);
        Ok(())
    }
}
