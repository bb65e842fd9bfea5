//! The loop.

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use collect::{Route, Taking};
use perf::Requests;
use vocab::Slice;

use super::account::Account;
use super::aside;
use super::choose::Choice;
use super::clock::{Every, Moment};
use super::control::{Asked, Server};
use super::gather::Gather;
use super::keep::Keep;
use super::pending::Pending;
use super::proc;
use super::view;
use crate::cli::{Ask, StartJob};
use crate::failure::{ERROR, Failure};

/// New processes of a user that no followed one started are looked for this often.
const LOOK_FOR_OWN: Duration = Duration::from_secs(2);
/// A database that failed is tried again this often.
const TRY_AGAIN: Duration = Duration::from_secs(30);
/// Between two steps of a merge: its cost is spread, and it is done long before the next append.
const BETWEEN_STEPS: Duration = Duration::from_millis(250);
/// More images than this, and those that nobody maps are let go.
const MANY_IMAGES: usize = 2048;

/// A daemon that collects.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) job: StartJob,
    pub(super) choice: Choice,
    pub(super) route: Route,
    pub(super) gather: Gather,
    pub(super) pending: Pending,
    pub(super) keep: Keep,
    pub(super) account: Account,
    /// What is different from what was hoped for.
    pub(super) notes: Vec<String>,
    pub(super) started: Moment,
    /// The daemon's own directory.
    room: PathBuf,
    last: Moment,
    /// Whether CPUs came or went: there are other things to wait for.
    cpus_changed: bool,
}

impl Service {
    #[allow(clippy::too_many_arguments, reason = "the parts of one thing, each named")]
    pub(super) fn new(
        job: StartJob,
        choice: Choice,
        route: Route,
        gather: Gather,
        pending: Pending,
        keep: Keep,
        notes: Vec<String>,
        room: PathBuf,
        now: Moment,
    ) -> Service {
        let account = Account::default();
        Service {
            job,
            choice,
            route,
            gather,
            pending,
            keep,
            account,
            notes,
            started: now,
            room,
            last: now,
            cpus_changed: false,
        }
    }

    /// Takes everything from the kernel, or what its tables had no room for.
    fn drain(&mut self, taking: Taking) {
        let now = Moment::now();
        if let Some(step) = now.step_since(&self.last) {
            self.account.clock_steps += 1;
            self.account.last_step_s = step;
            say(&format!("the clock was set by {step:+.0} s"));
        }
        self.last = now;
        if taking == Taking::All {
            self.cpus_changed |= self.gather.follow_cpus();
        }
        if let Some(slice) = self.job.slice {
            let began = self.keep.epoch.began_unix_ns;
            let nth = now.unix_ns.saturating_sub(began) / (slice.as_nanos() as u64).max(1);
            self.pending.apart.slice = Some(Slice(nth.min(u64::from(u32::MAX)) as u32));
        }
        let vanished = self.pending.vanished;
        self.gather.drain(taking, &mut self.pending, &mut self.account);
        self.account.vanished = self.pending.vanished;
        aside::keep_jit_maps(&self.room, self.keep.number, &mut self.pending.made_code);
        aside::keep_foreign(&self.room, self.keep.number, &mut self.pending.foreign);
        if self.pending.vanished > vanished
            && let Some(path) = &self.pending.last_vanished
        {
            say(&format!("{path} could not be read any more; its samples are kept"));
        }
    }

    /// Writes everything to the database.
    fn flush(&mut self) -> Result<(), String> {
        self.drain(Taking::All);
        self.append()
    }

    fn append(&mut self) -> Result<(), String> {
        let before = self.keep.trouble.clone();
        let result = self.keep.append(&mut self.pending, Moment::now());
        self.account.flushes += 1;
        self.account.failed_flushes += u64::from(result.is_err());
        match &result {
            Err(why) if before.as_ref() != Some(why) => {
                say(&format!("{why}; collecting goes on, and nothing is lost yet"));
            }
            Ok(()) if before.is_some() => say("the database takes counts again"),
            _ => {}
        }
        if result.is_ok() {
            // Nobody holds a number of an image now.
            if self.gather.processes.image_count() > MANY_IMAGES {
                self.gather.processes.forget_unused_images();
            }
        }
        result
    }

    fn epoch(&mut self) -> Result<String, String> {
        self.flush()?;
        let number = self.keep.begin(&mut self.pending, Moment::now())?;
        Ok(format!("epoch {number} of {} has begun\n", self.keep.epoch.host))
    }

    /// Answers; true if it is to end.
    fn answer(&mut self, asked: Asked) -> bool {
        let answer = match asked.what {
            Ask::Status => Ok(view::status(self, asked.json)),
            Ask::Flush => self.flush().map(|()| view::flushed(self, asked.json)),
            Ask::Epoch => self.epoch().map(|said| view::said(&said, asked.json)),
            Ask::Stop => {
                let ended = self.end();
                let said = format!("{}stopped\n", view::last_words(self));
                let answer = ended.map(|()| view::said(&said, asked.json));
                asked.answer(&answer);
                return true;
            }
        };
        asked.answer(&answer);
        false
    }

    /// The last drain and the last append.
    fn end(&mut self) -> Result<(), String> {
        self.flush()?;
        self.keep.leave(Moment::now())
    }
}

/// Collects until it is asked to end.
pub(super) fn serve(
    service: &mut Service,
    server: &Server,
    mut requests: Requests,
) -> Result<(), Failure> {
    let now = Instant::now();
    let drain = service.job.slice.map_or(service.job.drain, |slice| slice.min(service.job.drain));
    let mut drains = Every::starting(now, drain);
    let mut merges = Every::starting(now, service.job.merge);
    let mut tries = Every::starting(now, TRY_AGAIN.min(service.job.merge));
    let mut looks = Every::starting(now, LOOK_FOR_OWN);
    let own = [server.raw_fd(), requests.raw_fd()];
    let mut fds = service.all_fds(own);
    loop {
        let now = Instant::now();
        if std::mem::take(&mut service.cpus_changed) {
            fds = service.all_fds(own);
        }
        let mut wait = drains.wait(now).min(merges.wait(now));
        if service.gather.only_user.is_some() {
            wait = wait.min(looks.wait(now));
        }
        if service.keep.may_compact {
            wait = wait.min(BETWEEN_STEPS);
        }
        perf::wait_for_any(&fds, wait + Duration::from_millis(1))
            .map_err(|error| Failure::new(ERROR, format!("cannot wait for samples: {error}")))?;
        let woken = service.gather.attend();
        if requests.came() {
            return service.end().map_err(|why| Failure::new(ERROR, why));
        }
        while let Some(asked) = server.next() {
            if service.answer(asked) {
                return Ok(());
            }
        }
        let now = Instant::now();
        if let Some(user) = service.gather.only_user
            && looks.is_due(now)
        {
            service.look_for_own(user);
        }
        let due = drains.is_due(now).then_some(Taking::All);
        if let Some(taking) = due.or(woken) {
            service.account.woken += u64::from(woken.is_some());
            service.drain(taking);
        }
        let failed_before = service.keep.trouble.is_some();
        let due = merges.is_due(now) || (failed_before && tries.is_due(now));
        if due || (service.pending.is_large() && !failed_before) {
            // It has said what is wrong; what could not be written stays pending.
            let _ = service.append();
            // What an append needed for a moment; not after every one, or its pages come and go.
            if due {
                perf::give_memory_back();
            }
        } else if service.keep.may_compact {
            service.keep.compact();
        }
    }
}

impl Service {
    /// Everything that may have something to say.
    fn all_fds(&self, own: [RawFd; 2]) -> Vec<RawFd> {
        let watched = self.gather.watch.iter().flat_map(collect::Watch::raw_fds);
        own.into_iter().chain(self.gather.collector.raw_fds()).chain(watched).collect()
    }

    fn look_for_own(&mut self, user: u32) {
        let threads = proc::threads_of(user);
        let new: Vec<u32> =
            threads.into_iter().filter(|thread| self.gather.is_new_thread(*thread)).collect();
        if !new.is_empty() {
            self.gather.collector.follow(&new);
            proc::scan(&mut self.gather.processes, Some(user));
        }
    }
}

/// One line in the log.
fn say(what: &str) {
    eprintln!("whither: {}", show::clean(what));
}
