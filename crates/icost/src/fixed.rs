//! A machine's numbers that stand on edges.

use model::machine::{Class, Machine};

/// The machine's numbers that stand on edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// Slots fetched a cycle.
    pub fetch_width: u32,
    /// Taken branches fetched a cycle.
    pub taken: u32,
    /// Cycles of fetch lost behind a taken branch, and further ones behind calls and returns.
    pub taken_bubbles: (u32, u32),
    /// Slots of the queue between fetch and dispatch.
    pub queue: u32,
    /// Slots dispatched a cycle.
    pub dispatch_width: u32,
    /// Slots retired a cycle.
    pub retire_width: u32,
    /// Slots of the window.
    pub window: u32,
    /// Loads in flight.
    pub load_queue: u32,
    /// Stores from dispatch until they are written.
    pub store_queue: u32,
    /// Stores written a cycle.
    pub stores_per_cycle: u32,
    /// From dispatch to the earliest issue.
    pub to_issue: u32,
    /// From completion to the earliest retirement.
    pub to_retire: u32,
    /// From a result to who waits for it, beyond back to back.
    pub wakeup: u32,
    /// A hit in the first level.
    pub hit: u32,
    /// From the execution of a mispredicted branch to dispatch behind it.
    pub redirect: u32,
    /// From fetch to dispatch.
    pub front: u32,
    /// What a branch costs that the front end sets right by itself.
    pub resteer: u32,
    /// From a store's data to a load that takes it.
    pub forward: u32,
    /// Misses of the first level under way at a time.
    pub misses: u32,
    /// Walks of the page tables under way at a time.
    pub walkers: u32,
    /// A data translation that takes longer than this walked the tables.
    pub translation: u32,
    /// Bytes of a line, as a shift.
    pub line_shift: u32,
    /// Ports of each class, as a mask, and for how many cycles it takes one.
    pub ports: [(u32, u32); 64],
}

impl Fixed {
    /// Of a machine.
    pub fn of(machine: &Machine) -> Fixed {
        let (window, front, branch) = (&machine.window, &machine.front, &machine.branch);
        // With a cache of decoded micro-ops most come from there; the rest is observed.
        let is_decoded = front.uop_cache_uops > 0;
        Fixed {
            fetch_width: if is_decoded { front.fetch_width } else { front.decode_width },
            taken: front.taken_per_cycle.max(1),
            taken_bubbles: (branch.taken_bubble_cycles, branch.call_bubble_cycles),
            queue: front.queue,
            dispatch_width: window.dispatch_width,
            retire_width: window.retire_width,
            window: window.rob,
            load_queue: window.load_queue,
            store_queue: window.store_queue,
            stores_per_cycle: window.stores_per_cycle.max(1),
            to_issue: window.dispatch_to_issue_cycles,
            to_retire: window.complete_to_retire_cycles,
            wakeup: window.wakeup_cycles.max(1) - 1,
            hit: machine.caches.l1d.latency_cycles,
            redirect: window.mispredict_cycles,
            front: front.front_cycles,
            resteer: branch.resteer_cycles,
            forward: window.store_forward_cycles,
            misses: machine.caches.l1d.misses.max(1),
            walkers: machine.tlbs.walkers.max(1),
            translation: machine.tlbs.l2d.as_ref().map_or(0, |second| second.latency_cycles),
            line_shift: machine.caches.l1d.line_bytes.trailing_zeros(),
            ports: ports(machine),
        }
    }
}

fn ports(machine: &Machine) -> [(u32, u32); 64] {
    let mut ports = [(0, 1); 64];
    let all: Vec<&str> = machine.ports().collect();
    for &class in Class::ALL {
        let Some(execution) = machine.execution(class) else { continue };
        let place = |name: &String| all.iter().position(|known| known == name);
        let places = execution.ports.iter().filter_map(place);
        let mask = places.fold(0, |mask, place| mask | 1 << place);
        if let Some(entry) = ports.get_mut(class as usize) {
            *entry = (mask, execution.busy.max(1));
        }
    }
    ports
}
