//! What a machine file must promise before a core is built from it.

use std::collections::BTreeSet;

use crate::event::Event;

use super::{CacheFacts, Class, Front, Machine, TlbFacts, Window};

/// The most ports a machine may have: a port mask is 32 bits.
const PORTS_MAX: usize = 32;
/// The most schedulers: occupancy is counted in eight lanes of a word.
const SCHEDULERS_MAX: usize = 8;
/// The largest cache: a gibibyte.
const SIZE_KIB_MAX: u32 = 1 << 20;
/// Lines that a stream counts.
const STREAM_LINES_MAX: u32 = 255;

pub(super) fn check(machine: &Machine) -> Result<(), String> {
    if machine.name.trim().is_empty() || machine.title.trim().is_empty() {
        return Err("name and title must not be empty".into());
    }
    sources(machine)?;
    ports(machine)?;
    classes(machine)?;
    widths(machine)?;
    at_most(machine)?;
    for (name, cache) in caches(machine) {
        shape(name, cache)?;
    }
    let line = machine.caches.l1d.line_bytes;
    if let Some((name, _)) = caches(machine).iter().find(|(_, cache)| cache.line_bytes != line) {
        return Err(format!("[{name}] line_bytes must be the same in every cache"));
    }
    for (name, tlb) in tlbs(machine) {
        tlb_shape(name, tlb)?;
    }
    powers_of_two(machine)?;
    counters(machine)
}

fn sources(machine: &Machine) -> Result<(), String> {
    let fixed = [
        ("identity", &machine.identity.source),
        ("front", &machine.front.source),
        ("window", &machine.window.source),
        ("classes", &machine.classes.source),
        ("tlbs", &machine.tlbs.source),
        ("memory", &machine.memory.source),
        ("prefetch", &machine.prefetch.source),
        ("branch", &machine.branch.source),
        ("pmu", &machine.pmu.source),
    ];
    let caches = caches(machine).into_iter().map(|(name, cache)| (name, &cache.source));
    let schedulers = machine.schedulers.iter().map(|s| (s.name.as_str(), &s.source));
    match fixed.into_iter().chain(caches).chain(schedulers).find(|(_, s)| s.trim().is_empty()) {
        Some((table, _)) => Err(format!("[{table}] source is empty")),
        None => Ok(()),
    }
}

fn ports(machine: &Machine) -> Result<(), String> {
    if machine.schedulers.is_empty() || machine.schedulers.len() > SCHEDULERS_MAX {
        return Err(format!("[[schedulers]] there must be 1 to {SCHEDULERS_MAX}"));
    }
    let mut seen = BTreeSet::new();
    for port in machine.ports() {
        if !seen.insert(port) {
            return Err(format!("[[schedulers]] port {port} is named twice"));
        }
    }
    if seen.len() > PORTS_MAX {
        return Err(format!("[[schedulers]] more than {PORTS_MAX} ports"));
    }
    Ok(())
}

fn classes(machine: &Machine) -> Result<(), String> {
    for &class in Class::ALL {
        let name = class.name();
        let execution =
            machine.execution(class).ok_or_else(|| format!("[classes.of] {name} is missing"))?;
        if execution.busy == 0 || execution.busy > 1000 || execution.latency > 1000 {
            return Err(format!("[classes.of] {name}: latency and busy must be at most 1000"));
        }
        let mut homes = BTreeSet::new();
        for port in &execution.ports {
            let home = machine.schedulers.iter().position(|s| s.ports.contains(port));
            homes.insert(home.ok_or_else(|| format!("[classes.of] {name}: no port {port}"))?);
        }
        if homes.len() > 1 {
            return Err(format!("[classes.of] {name}: its ports belong to several schedulers"));
        }
    }
    Ok(())
}

fn widths(machine: &Machine) -> Result<(), String> {
    let (front, window) = (&machine.front, &machine.window);
    let sizes = [
        ("front.fetch_width", front.fetch_width, 64),
        ("front.fetch_bytes", front.fetch_bytes, 1024),
        ("front.taken_per_cycle", front.taken_per_cycle, 64),
        ("front.queue", front.queue, 4096),
        ("front.decode_width", front.decode_width, 64),
        ("window.dispatch_width", window.dispatch_width, 64),
        ("window.retire_width", window.retire_width, 64),
        ("window.rob", window.rob, 1 << 16),
        ("window.load_queue", window.load_queue, 1 << 16),
        ("window.store_queue", window.store_queue, 1 << 16),
        ("window.stores_per_cycle", window.stores_per_cycle, 64),
        ("window.wakeup_cycles", window.wakeup_cycles, 64),
        ("memory.bytes_per_cycle", machine.memory.bytes_per_cycle, 4096),
        ("memory.latency_cycles", machine.memory.latency_cycles, 100_000),
        ("identity.clock_mhz", machine.identity.clock_mhz, 100_000),
        ("tlbs.walkers", machine.tlbs.walkers, 64),
        ("branch.base_entries", machine.branch.base_entries, 1 << 24),
    ];
    let l3_bytes = machine.caches.l3.as_ref().and_then(|l3| l3.bytes_per_cycle);
    let l3_bytes = l3_bytes.map(|bytes| ("caches.l3.bytes_per_cycle", bytes, 4096));
    let entries = machine.schedulers.iter().map(|s| (s.name.as_str(), s.entries, 250));
    for (name, value, most) in sizes.into_iter().chain(l3_bytes).chain(entries) {
        if value == 0 || value > most {
            return Err(format!("{name} must be between 1 and {most}, not {value}"));
        }
    }
    if window.mispredict_cycles > 1000 || front.front_cycles > window.mispredict_cycles {
        return Err(
            "window.mispredict_cycles must hold front.front_cycles and be at most 1000".into()
        );
    }
    let prefetch = &machine.prefetch;
    if prefetch.l2_stream_lines.max(prefetch.l2_stream_lines_max) > STREAM_LINES_MAX {
        return Err(format!("[prefetch] streams run at most {STREAM_LINES_MAX} lines ahead"));
    }
    if window.blocked_forward_cycles > 1000 {
        return Err("window.blocked_forward_cycles must be at most 1000".into());
    }
    disambiguation(front, window)?;
    let boundary = window.store_boundary_bytes;
    if boundary != 0 && !(boundary.is_power_of_two() && boundary <= 4096) {
        return Err("window.store_boundary_bytes must be 0 or a power of two up to 4096".into());
    }
    if window.bundle_slots > 64 || (window.bundle_slots > 0 && window.bundle_branches == 0) {
        return Err("window.bundle_branches must be at least 1 where there are groups".into());
    }
    if window.bundle_slots > 0 && window.rob < window.bundle_slots {
        return Err("window.rob must hold one group".into());
    }
    Ok(())
}

/// The predictor of loads that may go ahead of stores, where there is one.
fn disambiguation(front: &Front, window: &Window) -> Result<(), String> {
    let (entries, trust) = (window.disambiguation_entries, window.disambiguation_trust);
    if entries == 0 {
        return Ok(());
    }
    if !entries.is_power_of_two() || entries > 1 << 20 {
        return Err(
            "window.disambiguation_entries must be 0 or a power of two up to 1048576".into()
        );
    }
    if !(1..=255).contains(&trust) {
        return Err(format!("window.disambiguation_trust must be between 1 and 255, not {trust}"));
    }
    let restart = window.disambiguation_restart_cycles;
    if restart > 1000 || restart < front.front_cycles {
        return Err("window.disambiguation_restart_cycles must hold front.front_cycles and be at \
                    most 1000"
            .into());
    }
    Ok(())
}

/// What may be 0, and how much of it is absurd: a slip that would take all memory, or a run without
/// end.
fn at_most(machine: &Machine) -> Result<(), String> {
    let (front, window, branch) = (&machine.front, &machine.window, &machine.branch);
    let limits = [
        ("front.uop_cache_uops", front.uop_cache_uops, 1 << 20),
        ("front.uop_cache_ways", front.uop_cache_ways, 1 << 10),
        ("front.uop_cache_line_uops", front.uop_cache_line_uops, 1 << 10),
        ("window.dispatch_to_issue_cycles", window.dispatch_to_issue_cycles, 1000),
        ("window.complete_to_retire_cycles", window.complete_to_retire_cycles, 1000),
        ("window.store_forward_cycles", window.store_forward_cycles, 1000),
        ("window.renamed_forward_cycles", window.renamed_forward_cycles, 1000),
        ("tlbs.walk_cycles", machine.tlbs.walk_cycles, 10_000),
        ("branch.table_entries", branch.table_entries, 1 << 24),
        ("branch.indirect_entries", branch.indirect_entries, 1 << 24),
        ("branch.call_bubble_cycles", branch.call_bubble_cycles, 100),
        ("branch.indirect_bubble_cycles", branch.indirect_bubble_cycles, 100),
        ("pmu.skid_cycles", machine.pmu.skid_cycles, 1_000_000),
    ];
    match limits.into_iter().find(|(_, value, most)| value > most) {
        Some((name, value, most)) => Err(format!("{name} must be at most {most}, not {value}")),
        None => Ok(()),
    }
}

fn caches(machine: &Machine) -> Vec<(&'static str, &CacheFacts)> {
    let caches = &machine.caches;
    let mut all =
        vec![("caches.l1i", &caches.l1i), ("caches.l1d", &caches.l1d), ("caches.l2", &caches.l2)];
    all.extend(caches.l3.as_ref().map(|l3| ("caches.l3", l3)));
    all
}

fn shape(name: &str, cache: &CacheFacts) -> Result<(), String> {
    let line = cache.line_bytes;
    if !line.is_power_of_two() || !(16..=4096).contains(&line) {
        return Err(format!("[{name}] line_bytes must be a power of two from 16 to 4096"));
    }
    let bytes = u64::from(cache.size_kib) * 1024;
    let whole = u64::from(cache.ways) * u64::from(line);
    if cache.size_kib > SIZE_KIB_MAX {
        return Err(format!("[{name}] size_kib must be at most {SIZE_KIB_MAX}"));
    }
    if whole == 0 || bytes == 0 || bytes % whole != 0 {
        return Err(format!("[{name}] size_kib must be a multiple of ways × line_bytes"));
    }
    if cache.misses == 0 || cache.misses > 1024 || cache.latency_cycles > 10_000 {
        return Err(format!("[{name}] misses must be 1 to 1024 and latency_cycles at most 10000"));
    }
    Ok(())
}

fn tlbs(machine: &Machine) -> Vec<(&'static str, &TlbFacts)> {
    let tlbs = &machine.tlbs;
    let mut all = vec![("tlbs.l1i", &tlbs.l1i), ("tlbs.l1d", &tlbs.l1d)];
    all.extend(tlbs.l2i.as_ref().map(|t| ("tlbs.l2i", t)));
    all.extend(tlbs.l2d.as_ref().map(|t| ("tlbs.l2d", t)));
    all
}

fn tlb_shape(name: &str, tlb: &TlbFacts) -> Result<(), String> {
    let whole = tlb.ways > 0 && tlb.entries > 0 && tlb.entries.is_multiple_of(tlb.ways);
    if !whole {
        return Err(format!("{name}: entries must be a multiple of ways"));
    }
    if tlb.entries > 1 << 20 || tlb.latency_cycles > 10_000 {
        return Err(format!("{name}: at most 1048576 entries and a latency of 10000 cycles"));
    }
    Ok(())
}

fn powers_of_two(machine: &Machine) -> Result<(), String> {
    let branch = &machine.branch;
    let page = machine.tlbs.page_bytes;
    if !page.is_power_of_two() || !(1024..=1 << 30).contains(&page) {
        return Err("tlbs.page_bytes must be a power of two from 1024 to 1073741824".into());
    }
    if !branch.base_entries.is_power_of_two() {
        return Err("branch.base_entries must be a power of two".into());
    }
    if branch.tables > 0 && !branch.table_entries.is_power_of_two() {
        return Err("branch.table_entries must be a power of two".into());
    }
    if branch.tables > 16 || branch.history_bits > 128 || branch.return_stack > 1024 {
        return Err("branch: at most 16 tables, 128 bits of history, 1024 returns".into());
    }
    if branch.resteer_cycles > 100 || branch.taken_bubble_cycles > 100 {
        return Err("branch: resteer_cycles and taken_bubble_cycles must be at most 100".into());
    }
    if branch.crowded_bubble_cycles > 100 {
        return Err("branch.crowded_bubble_cycles must be at most 100".into());
    }
    let (entries, ways) = (branch.btb_entries, branch.btb_ways);
    if ways == 0 || entries == 0 || !entries.is_multiple_of(ways) || entries > 1 << 24 {
        return Err("branch.btb_entries must be a multiple of btb_ways".into());
    }
    Ok(())
}

fn counters(machine: &Machine) -> Result<(), String> {
    let pmu = &machine.pmu;
    if pmu.general == 0 || pmu.general > 64 || !(8..=64).contains(&pmu.width_bits) {
        return Err("pmu: 1 to 64 general counters of 8 to 64 bits".into());
    }
    let named = pmu.constraints.iter().flat_map(|constraint| &constraint.events);
    for name in pmu.fixed.iter().chain(named) {
        if Event::named(name).is_none() {
            return Err(format!("pmu: no event {name}"));
        }
    }
    for constraint in &pmu.constraints {
        if constraint.source.trim().is_empty() {
            return Err("[[pmu.constraints]] source is empty".into());
        }
        if constraint.counters.is_empty() || constraint.counters.iter().any(|&c| c >= pmu.general) {
            return Err("[[pmu.constraints]] counters must name general counters".into());
        }
    }
    Ok(())
}
