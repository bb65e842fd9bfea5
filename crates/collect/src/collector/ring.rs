//! Counted here, from rings.

use std::os::fd::RawFd;
use std::sync::Arc;

use perf::{
    CpuEvent, CpuEventRequest, Record, RecordBody, Refusal, Ring, Scope, parse_chain, parse_record,
};
use vocab::{Cpu, EventId};

use super::chains::ChainTable;
use super::pace::{Expected, Paced, Pacer, sum};
use super::presence::Presence;
use super::program::begin;
use super::{CollectError, Request};
use crate::table::{Drained, Entry, Hash, PlainTable, Replacement, TableShape, Taking};

/// Pages of each ring.
const RING_PAGES: usize = 128;
/// Entries that fell out of the table before it is time to drain.
const SPILL: usize = 1 << 14;

/// Rings and the table behind them.
#[derive(Debug)]
pub(super) struct RingRoute {
    /// A thread's event moves with it: its period is left alone.
    own: bool,
    cpus: Vec<OneCpu>,
    /// What CPUs that are gone owed.
    past: Vec<Expected>,
    seed: u64,
    request: Request,
    chains: bool,
    /// Events of single threads; they write into the rings above.
    followed: Vec<CpuEvent>,
    table: PlainTable,
    spill: Vec<Entry>,
    chains_seen: ChainTable,
    /// Samples that were sent and have not left with a drain, and those that were not.
    entries: u64,
    lost: u64,
    throttled: u64,
}

#[derive(Debug)]
struct OneCpu {
    /// First to go: it uses the events.
    pacer: Option<Pacer>,
    presence: Presence,
    cpu: Cpu,
    events: Arc<Vec<Paced>>,
    rings: Vec<Ring>,
}

impl RingRoute {
    pub(super) fn open(
        request: &Request,
        chains: bool,
        own: bool,
    ) -> Result<RingRoute, CollectError> {
        let first = request.own_threads.first().copied().unwrap_or(std::process::id());
        let scope = if own { Scope::Task(first) } else { Scope::Everyone };
        let mut cpus = Vec::new();
        for &cpu in &request.cpus {
            match open_cpu(request, chains, scope, cpu) {
                Ok(one) => cpus.push(one),
                Err(CollectError::Event(_, Refusal::NoSuchEvent)) if !cpus.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        let mut route = RingRoute {
            own,
            cpus,
            past: Vec::new(),
            seed: 0,
            request: request.clone(),
            chains,
            followed: Vec::new(),
            table: PlainTable::new(TableShape {
                ways: request.geometry.ways as usize,
                buckets: 1 << request.geometry.bucket_bits.min(20),
                hash: Hash::Multiply,
                replacement: Replacement::SwapToFront,
            }),
            spill: Vec::new(),
            chains_seen: ChainTable::default(),
            entries: 0,
            lost: 0,
            throttled: 0,
        };
        if own {
            route.follow(request.own_threads.get(1..).unwrap_or_default());
        }
        Ok(route)
    }

    pub(super) fn begin(&mut self, seed: u64) -> Result<(), CollectError> {
        for one in &self.cpus {
            begin(&one.events)?;
        }
        self.seed = seed;
        for one in self.cpus.iter_mut().filter(|_| !self.own) {
            one.pacer = Some(Pacer::start(one.cpu, Arc::clone(&one.events), seed));
        }
        Ok(())
    }

    /// Where single threads are followed they are followed on the CPUs of the beginning.
    pub(super) fn follow_cpus(&mut self, online: &[Cpu]) -> Vec<Cpu> {
        let mut opened = Vec::new();
        for one in self.cpus.iter_mut().filter(|_| !self.own) {
            one.presence.look(one.cpu, online, &one.events);
            if !one.presence.is_here() {
                one.pacer = None;
            }
        }
        for &cpu in online.iter().filter(|_| !self.own) {
            let is_here = |one: &OneCpu| one.cpu == cpu && one.presence.is_here();
            if self.cpus.iter().any(is_here) {
                continue;
            }
            // One that cannot be opened is tried again the next time.
            if let Ok(mut one) = open_cpu(&self.request, self.chains, Scope::Everyone, cpu)
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
        let paced = self.cpus.iter().flat_map(|one| one.events.iter());
        paced.map(|paced| paced.event.raw_fd()).collect()
    }

    /// Reads every ring once.
    pub(super) fn attend(&mut self, mut other: impl FnMut(Record)) -> bool {
        let RingRoute {
            cpus,
            table,
            spill,
            chains_seen,
            entries,
            lost,
            throttled,
            chains,
            request,
            ..
        } = self;
        for one in cpus {
            for (paced, ring) in one.events.iter().zip(&mut one.rings) {
                let read = ring.drain(|bytes| {
                    let Some(record) = parse_record(bytes) else {
                        *entries += 1;
                        *lost += 1;
                        return;
                    };
                    match record.body {
                        RecordBody::Sample { pid, pc, .. } => {
                            *entries += 1;
                            let under = match request.kernel_by_process {
                                true => pid,
                                false => Entry::counted_under(pid, pc),
                            };
                            spill.extend(table.count(under, pc, paced.id));
                            match chains.then(|| parse_chain(bytes)) {
                                Some(Some(chain)) => chains_seen.count(pid, paced.id, chain),
                                Some(None) => chains_seen.without += 1,
                                None => {}
                            }
                        }
                        RecordBody::Lost(count) => {
                            *entries += count.0;
                            *lost += count.0;
                        }
                        RecordBody::Throttled => *throttled += 1,
                        _ => other(record),
                    }
                });
                if read.skipped_bytes > 0 {
                    *entries += 1;
                    *lost += 1;
                }
            }
        }
        spill.len() >= SPILL
    }

    pub(super) fn drain(&mut self, taking: Taking, mut each: impl FnMut(Entry)) -> Drained {
        let mut drained = Drained {
            inserted: std::mem::take(&mut self.table.inserted),
            spilled: self.spill.len() as u64,
            lost: std::mem::take(&mut self.lost),
            ..Drained::default()
        };
        let mut hand_out = |entry: Entry| {
            drained.samples += u64::from(entry.count);
            drained.handed += 1;
            each(entry);
        };
        self.spill.drain(..).for_each(&mut hand_out);
        if taking == Taking::All {
            self.table.drain().for_each(&mut hand_out);
            drained.entries = std::mem::take(&mut self.entries);
        } else {
            // The rest is in the table still.
            drained.entries = drained.samples + drained.lost;
            self.entries = self.entries.saturating_sub(drained.entries);
        }
        self.spill.shrink_to(SPILL);
        let past = &mut self.past;
        self.cpus.retain_mut(|one| {
            let stays = taking == Taking::Spill || one.presence.after_drain();
            if !stays {
                past.extend(one.events.iter().map(Paced::expected));
            }
            stays
        });
        drained
    }

    pub(super) fn take_chains(&mut self) -> Option<ChainTable> {
        self.chains.then(|| std::mem::take(&mut self.chains_seen))
    }

    pub(super) fn waiting(&self) -> u64 {
        self.entries
    }

    pub(super) fn expected(&self) -> Vec<Expected> {
        let now = self.cpus.iter().flat_map(|one| one.events.iter()).map(Paced::expected);
        sum(now.chain(self.past.iter().copied()))
    }

    pub(super) fn throttled(&self) -> u64 {
        self.throttled
    }

    pub(super) fn kernel_bytes_per_cpu(&self) -> u64 {
        (self.request.events.len() * (RING_PAGES + 1) * Ring::page_size()) as u64
    }

    /// Opens events for further threads, writing into the rings that are there.
    pub(super) fn follow(&mut self, threads: &[u32]) -> usize {
        let mut refused = 0;
        for &thread in threads {
            for one in &self.cpus {
                for (paced, sampled) in one.events.iter().zip(&self.request.events) {
                    let asked = asked(sampled, Scope::Task(thread), self.chains);
                    let followed = CpuEvent::open(&asked, one.cpu).and_then(|event| {
                        event.share_ring_of(&paced.event)?;
                        event.enable()?;
                        Ok(event)
                    });
                    match followed {
                        Ok(event) => self.followed.push(event),
                        // It has ended: nothing was missed.
                        Err(Refusal::ProcessGone) => {}
                        Err(_) => refused += 1,
                    }
                }
            }
        }
        refused
    }
}

fn asked(sampled: &super::Sampled, scope: Scope, chains: bool) -> CpuEventRequest {
    CpuEventRequest {
        event: sampled.event.clone(),
        period: sampled.period,
        scope,
        chains,
        // Whoever watches single threads hears of their maps in the same ring.
        maps: scope != Scope::Everyone,
    }
}

fn open_cpu(
    request: &Request,
    chains: bool,
    scope: Scope,
    cpu: Cpu,
) -> Result<OneCpu, CollectError> {
    let (mut events, mut rings) = (Vec::new(), Vec::new());
    for (id, sampled) in (0..).map(EventId).zip(&request.events) {
        let refused = |refusal| CollectError::Event(sampled.event.name.clone(), refusal);
        let event = CpuEvent::open(&asked(sampled, scope, chains), cpu).map_err(refused)?;
        rings.push(event.ring(RING_PAGES).map_err(refused)?);
        events.push(Paced::new(event, id, sampled));
    }
    Ok(OneCpu { pacer: None, presence: Presence::NEW, cpu, events: Arc::new(events), rings })
}
