//! From the tables to counts by image and offset.

use std::collections::HashSet;

use collect::{Collector, Drained, Entry, KernelLayout, Processes, Taking, Watch};
use vocab::Pid;

use super::account::Account;
use super::pending::Pending;
use super::proc::{self, KernelFiles};
use crate::run::online_cpus;

/// Everything between the kernel and the pending counts.
#[derive(Debug)]
pub(super) struct Gather {
    pub(super) collector: Collector,
    /// None where single threads are followed: their maps come with their samples.
    pub(super) watch: Option<Watch>,
    pub(super) processes: Processes,
    pub(super) kernel: KernelFiles,
    /// Only this user's processes can be looked at.
    pub(super) only_user: Option<u32>,
    /// Threads that are followed one by one, where that is so.
    pub(super) followed: HashSet<u32>,
}

impl Gather {
    /// Reads every ring once; says whether it is time to drain, and how much.
    pub(super) fn attend(&mut self) -> Option<Taking> {
        let Gather { collector, watch, processes, .. } = self;
        if let Some(watch) = watch {
            watch.read(processes);
        }
        let woken = collector.attend(|record| processes.hear_record(&record));
        processes.end_round();
        match processes.changes >= MANY_CHANGES {
            true => Some(Taking::All),
            false => woken.then_some(Taking::Spill),
        }
    }

    /// Follows CPUs as they come and go; true if there are other things to wait for now.
    pub(super) fn follow_cpus(&mut self) -> bool {
        let online = online_cpus();
        // What a ring that is let go holds is read first.
        self.attend();
        let opened = self.collector.follow_cpus(&online);
        let watched = self.watch.as_mut().is_some_and(|w| w.follow_cpus(&online, &opened));
        if !opened.is_empty() {
            // Maps of the moments in between were in no ring.
            proc::scan(&mut self.processes, self.only_user);
        }
        watched || !opened.is_empty()
    }

    /// Takes everything that was counted until now and adds it to the pending counts.
    pub(super) fn drain(
        &mut self,
        taking: Taking,
        pending: &mut Pending,
        account: &mut Account,
    ) -> Drained {
        self.collector.flip(taking);
        // Twice: what is held back as too young in the first round is handed on in the second, and
        // every map that a sample needs was written before the sample was taken.
        self.attend();
        self.attend();
        self.heal(account);
        let Gather { collector, processes, kernel, .. } = self;
        if taking == Taking::All {
            kernel.tell(processes);
        }
        let mut placed = 0;
        let mut again = Again { kernel, asked: HashSet::new(), looked: taking == Taking::All };
        let drained = collector.drain(taking, |entry| {
            placed += u64::from(entry.count);
            place(processes, &entry, pending, account, &mut again);
        });
        account.add(&drained, placed);
        pending.take_tally(&drained);
        if let Some(chains) = collector.take_chains() {
            pending.take_chains(processes, &chains);
        }
        // A table that goes on counting may hold samples of the dead.
        if taking == Taking::All {
            processes.settle(proc::is_there);
        }
        drained
    }

    /// Whether a thread was not followed until now; from now on it is. A thread that a followed one
    /// started is followed with it, and following it twice would count it twice.
    pub(super) fn is_new_thread(&mut self, thread: u32) -> bool {
        let inherited = self.processes.name(Pid(thread)).is_some();
        self.followed.insert(thread) && !inherited
    }

    /// Maps that found no room in their ring are read from /proc instead.
    fn heal(&mut self, account: &mut Account) {
        let lost = std::mem::take(&mut self.processes.lost_records);
        if lost > 0 {
            account.lost_maps += lost;
            proc::scan(&mut self.processes, self.only_user);
        }
    }
}

/// So many beginnings and ends of processes, and process numbers may come round again before the
/// next drain on time (the default `pid_max` is 32768), and maps of the dead become many.
const MANY_CHANGES: u64 = 8192;

/// What can still be asked about an entry that has no place.
struct Again<'a> {
    kernel: &'a mut KernelFiles,
    /// Processes that were looked for in this drain.
    asked: HashSet<Pid>,
    /// Whether the kernel's modules were.
    looked: bool,
}

impl Again<'_> {
    /// Whether somebody knew more. A process that no record told of may still be there to be asked,
    /// once; a module may have been loaded since the kernel was last looked at.
    fn ask(&mut self, processes: &mut Processes, entry: &Entry) -> bool {
        if KernelLayout::is_kernel_address(entry.pc) {
            return !std::mem::replace(&mut self.looked, true) && self.kernel.tell(processes);
        }
        self.asked.insert(entry.pid) && proc::scan_one(processes, entry.pid)
    }
}

fn place(
    processes: &mut Processes,
    entry: &Entry,
    pending: &mut Pending,
    account: &mut Account,
    again: &mut Again<'_>,
) {
    let count = u64::from(entry.count);
    if entry.pid == Pid(0) {
        account.idle += count;
    }
    let mut found = processes.place(entry.pid, entry.pc);
    if found.is_err() && again.ask(processes, entry) {
        found = processes.place(entry.pid, entry.pc);
    }
    match found {
        Ok(placed) => {
            account.blind += if placed.blind { count } else { 0 };
            account.ambiguous += if placed.ambiguous { count } else { 0 };
            match pending.store(processes, placed, entry) {
                true => account.stored += count,
                false => account.dropped += count,
            }
        }
        Err(reason) => {
            *account.unplaced.entry(reason).or_default() += count;
            pending.leave_out(reason, count);
        }
    }
}
