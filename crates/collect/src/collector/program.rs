//! Counted in the kernel.

use std::os::fd::RawFd;
use std::sync::Arc;

use perf::{Bell, CpuEvent, CpuEventRequest, Program, Refusal, Scope};
use vocab::{Cpu, EventId};

use super::pace::{Expected, Paced, Pacer, sum};
use super::presence::Presence;
use super::{CollectError, Request};
use crate::table::{CpuTable, Drained, Entry, Geometry, Handler, Taking, handler};

/// Events with a program behind each.
#[derive(Debug)]
pub(super) struct ProgramRoute {
    cpus: Vec<OneCpu>,
    /// What CPUs that are gone owed.
    past: Vec<Expected>,
    request: Request,
    seed: u64,
    /// Kernels before 5.8 have none; the daemon's clock alone then decides when to drain.
    bell: Option<Bell>,
    geometry: Geometry,
}

#[derive(Debug)]
struct OneCpu {
    /// First to go: it uses the events.
    pacer: Option<Pacer>,
    presence: Presence,
    cpu: Cpu,
    table: CpuTable,
    events: Arc<Vec<Paced>>,
}

impl ProgramRoute {
    pub(super) fn open(request: &Request) -> Result<ProgramRoute, CollectError> {
        let geometry =
            request.geometry.checked().map_err(|_| CollectError::Table(Refusal::NotUnderstood))?;
        let bell = Bell::new().ok();
        let bell_fd = bell.as_ref().map(Bell::raw_fd);
        let mut cpus = Vec::new();
        for &cpu in &request.cpus {
            match open_cpu(request, geometry, bell_fd, cpu) {
                Ok(one) => cpus.push(one),
                // Gone offline since the list was made: nothing will run there.
                Err(CollectError::Event(_, Refusal::NoSuchEvent)) if !cpus.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        let (past, request) = (Vec::new(), request.clone());
        Ok(ProgramRoute { cpus, past, request, seed: 0, bell, geometry })
    }

    pub(super) fn begin(&mut self, seed: u64) -> Result<(), CollectError> {
        self.seed = seed;
        for one in &self.cpus {
            begin(&one.events)?;
        }
        for one in &mut self.cpus {
            one.pacer = Some(Pacer::start(one.cpu, Arc::clone(&one.events), seed));
        }
        Ok(())
    }

    /// A CPU that cannot be opened is tried again the next time.
    pub(super) fn follow_cpus(&mut self, online: &[Cpu]) -> Vec<Cpu> {
        let mut opened = Vec::new();
        for one in &mut self.cpus {
            one.presence.look(one.cpu, online, &one.events);
            if !one.presence.is_here() {
                one.pacer = None;
            }
        }
        let bell = self.bell.as_ref().map(Bell::raw_fd);
        for &cpu in online {
            let is_here = |one: &OneCpu| one.cpu == cpu && one.presence.is_here();
            if self.cpus.iter().any(is_here) {
                continue;
            }
            if let Ok(mut one) = open_cpu(&self.request, self.geometry, bell, cpu)
                && begin(&one.events).is_ok()
            {
                one.pacer = Some(Pacer::start(cpu, Arc::clone(&one.events), self.seed));
                self.cpus.push(one);
                opened.push(cpu);
            }
        }
        opened
    }

    pub(super) fn raw_fds(&self) -> Vec<RawFd> {
        self.bell.iter().map(Bell::raw_fd).collect()
    }

    pub(super) fn was_woken(&mut self) -> bool {
        let rung = self.bell.as_mut().is_some_and(Bell::was_rung);
        // The bell may be missing or have been heard for another CPU already.
        let fill = u64::from(self.geometry.wake_at());
        rung || self.cpus.iter().any(|one| one.table.spill_fill() >= fill)
    }

    pub(super) fn flip(&mut self, taking: Taking) {
        self.cpus.iter().for_each(|one| one.table.flip(taking));
    }

    pub(super) fn drain(&mut self, taking: Taking, mut each: impl FnMut(Entry)) -> Drained {
        let mut all = Drained::default();
        for one in &self.cpus {
            all.add(&one.table.drain(taking, &mut each));
        }
        let past = &mut self.past;
        self.cpus.retain_mut(|one| {
            let stays = taking == Taking::Spill || one.presence.after_drain();
            if !stays {
                past.extend(one.events.iter().map(Paced::expected));
            }
            stays
        });
        all
    }

    pub(super) fn waiting(&self) -> u64 {
        self.cpus.iter().map(|one| one.table.waiting()).sum()
    }

    pub(super) fn expected(&self) -> Vec<Expected> {
        let now = self.cpus.iter().flat_map(|one| one.events.iter()).map(Paced::expected);
        sum(now.chain(self.past.iter().copied()))
    }

    pub(super) fn kernel_bytes_per_cpu(&self) -> u64 {
        u64::from(self.geometry.total_bytes())
    }
}

fn open_cpu(
    request: &Request,
    geometry: Geometry,
    bell: Option<i32>,
    cpu: Cpu,
) -> Result<OneCpu, CollectError> {
    let table = CpuTable::new(geometry).map_err(CollectError::Table)?;
    let mut events = Vec::new();
    for (id, sampled) in (0..).map(EventId).zip(&request.events) {
        let refused = |refusal| CollectError::Event(sampled.event.name.clone(), refusal);
        let made_for = Handler {
            geometry,
            table: table.raw_fd(),
            bell,
            event: id,
            kernel_by_process: request.kernel_by_process,
        };
        let code = handler(&made_for).ok_or(CollectError::Table(Refusal::NotUnderstood))?;
        let program = Program::load(&code).map_err(CollectError::Program)?;
        let asked = CpuEventRequest {
            event: sampled.event.clone(),
            period: sampled.period,
            scope: Scope::Everyone,
            chains: false,
            maps: false,
        };
        let event = CpuEvent::open(&asked, cpu).map_err(refused)?;
        event.attach(&program).map_err(refused)?;
        events.push(Paced::new(event, id, sampled));
    }
    Ok(OneCpu { pacer: None, presence: Presence::NEW, cpu, table, events: Arc::new(events) })
}

/// Enables what is always on, and the first of those that take turns.
pub(super) fn begin(events: &[Paced]) -> Result<(), CollectError> {
    let mut turn_taken = false;
    for paced in events {
        if paced.in_turn && std::mem::replace(&mut turn_taken, true) {
            continue;
        }
        let refused = |refusal| CollectError::Event(paced.name.clone(), refusal);
        paced.event.enable().map_err(refused)?;
    }
    Ok(())
}
