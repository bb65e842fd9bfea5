//! A machine's numbers as a core uses them, after mode and idealisation.

use crate::machine::{Class, Machine, Order};
use crate::units::branch::Verdict;
use crate::units::ordering::Disambiguation;
use crate::uop::Flow;

/// How micro-ops travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// As the machine file says.
    #[default]
    Native,
    /// One instruction a group, groups in flight as usual.
    Single,
    /// Nothing issues before the group before it has retired.
    InOrder,
    /// Micro-ops issue in program order, several a cycle.
    InOrderSuperscalar,
}

/// Parts of the machine made perfect. Any combination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ideal(pub u16);

impl Ideal {
    /// Nothing.
    pub const NONE: Ideal = Ideal(0);
    /// First-level data-cache hits take no time.
    pub const L1D_LATENCY: Ideal = Ideal(1);
    /// Data misses and data TLB misses become hits.
    pub const DATA_MISSES: Ideal = Ideal(1 << 1);
    /// Code misses and instruction TLB misses become hits.
    pub const CODE_MISSES: Ideal = Ideal(1 << 2);
    /// Branches are predicted right.
    pub const MISPREDICTS: Ideal = Ideal(1 << 3);
    /// The window, its schedulers and queues are twenty times as large.
    pub const WINDOW: Ideal = Ideal(1 << 4);
    /// Fetch, dispatch, issue and retirement are as wide as needed.
    pub const BANDWIDTH: Ideal = Ideal(1 << 5);
    /// One-cycle integer work takes no time.
    pub const SHORT_ALU: Ideal = Ideal(1 << 6);
    /// Longer integer, floating-point and vector work takes no time.
    pub const LONG_ALU: Ideal = Ideal(1 << 7);
    /// Values are there before they are computed.
    pub const DEPENDENCES: Ideal = Ideal(1 << 8);
    /// Each by the short name used for it in interaction costs.
    pub const NAMES: [(&'static str, Ideal); 9] = [
        ("dl1", Ideal::L1D_LATENCY),
        ("dmiss", Ideal::DATA_MISSES),
        ("imiss", Ideal::CODE_MISSES),
        ("bmisp", Ideal::MISPREDICTS),
        ("win", Ideal::WINDOW),
        ("bw", Ideal::BANDWIDTH),
        ("shalu", Ideal::SHORT_ALU),
        ("lgalu", Ideal::LONG_ALU),
        ("dep", Ideal::DEPENDENCES),
    ];

    /// Both.
    pub const fn with(self, other: Ideal) -> Ideal {
        Ideal(self.0 | other.0)
    }

    /// Whether all of `other` is idealised.
    pub const fn has(self, other: Ideal) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How to run a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// How micro-ops travel.
    pub mode: Mode,
    /// What is made perfect.
    pub ideal: Ideal,
}

/// How retired stores are written to the cache, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writing {
    pub(crate) per_cycle: u64,
    share_line: bool,
    line_shift: u32,
    boundary_shift: Option<u32>,
}

impl Writing {
    fn new(machine: &Machine, endless: bool) -> Writing {
        let window = &machine.window;
        let boundary = window.store_boundary_bytes;
        Writing {
            per_cycle: if endless { ENDLESS } else { u64::from(window.stores_per_cycle) },
            share_line: window.stores_share_line && !endless,
            line_shift: machine.caches.l1d.line_bytes.trailing_zeros(),
            boundary_shift: (boundary > 0 && !endless).then(|| boundary.trailing_zeros()),
        }
    }

    /// What all stores written in one cycle must have alike.
    #[inline]
    pub(crate) fn place(&self, address: u64) -> u64 {
        if self.share_line { address >> self.line_shift } else { 0 }
    }

    /// Whether a store is written in two.
    #[inline]
    pub(crate) fn is_twice(&self, address: u64, size: u64) -> bool {
        let last = address.wrapping_add(size.max(1) - 1);
        self.boundary_shift.is_some_and(|shift| address >> shift != last >> shift)
    }

    /// Whether the halves of a store that is written in two have cycles of their own.
    #[inline]
    pub(crate) fn halves_go_alone(&self) -> bool {
        self.share_line
    }
}

/// As wide as needed.
const ENDLESS: u64 = 1 << 40;
/// The narrowest load that is renamed: half a register.
const RENAMED_BYTES: u64 = 4;
/// How much larger an ideal window is.
const WINDOW_FACTOR: u64 = 20;

/// The numbers of a core.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) fetch_width: u64,
    pub(crate) decode_width: u64,
    pub(crate) fetch_bytes: u64,
    pub(crate) taken_per_cycle: u64,
    pub(crate) queue: usize,
    pub(crate) front: u64,
    pub(crate) dispatch_width: u64,
    pub(crate) retire_width: u64,
    /// Micro-ops in flight, or groups where there are groups.
    pub(crate) rob: usize,
    pub(crate) load_queue: usize,
    pub(crate) store_queue: usize,
    pub(crate) to_issue: u64,
    pub(crate) to_retire: u64,
    pub(crate) redirect: u64,
    pub(crate) resteer: u64,
    pub(crate) bubble: u64,
    pub(crate) call_bubble: u64,
    pub(crate) indirect_bubble: u64,
    pub(crate) crowded_bubble: u64,
    pub(crate) wakeup: u64,
    pub(crate) forward: u64,
    pub(crate) renamed_forward: u64,
    pub(crate) blocked_forward: u64,
    /// How loads learn whom they depend on; none where they know.
    pub(crate) disambiguation: Option<Disambiguation>,
    pub(crate) l1d: u64,
    pub(crate) writing: Writing,
    /// Entries by scheduler lane; 255 for no limit.
    pub(crate) schedulers: [u8; 8],
    /// Slots of a group; 0 when micro-ops travel alone.
    pub(crate) group_slots: u64,
    pub(crate) group_branches: u64,
    /// One instruction a group.
    pub(crate) is_single: bool,
    /// Nothing issues before the group before it has retired.
    pub(crate) waits_for_group: bool,
    /// Issue follows program order.
    pub(crate) in_order: bool,
    pub(crate) ideal: Ideal,
    pub(crate) uop_cache: (usize, usize),
}

impl Shape {
    pub(crate) fn new(machine: &Machine, settings: Settings) -> Shape {
        let (front, window, branch) = (&machine.front, &machine.window, &machine.branch);
        let ideal = settings.ideal;
        let endless = ideal.has(Ideal::BANDWIDTH);
        let width = |value: u32| if endless { ENDLESS } else { u64::from(value) };
        let bubble = |cycles: u32| if endless { 0 } else { u64::from(cycles) };
        let factor = if ideal.has(Ideal::WINDOW) { WINDOW_FACTOR } else { 1 };
        let room = |value: u32| (u64::from(value) * factor) as usize;
        let has_bundles = window.bundle_slots > 0 && !endless;
        let is_single = matches!(settings.mode, Mode::Single);
        let waits_for_group = settings.mode == Mode::InOrder;
        let group_slots = match window.bundle_slots {
            slots if has_bundles => slots,
            _ if is_single || waits_for_group => window.dispatch_width,
            _ => 0,
        };
        let rob_divisor = if has_bundles { u64::from(window.bundle_slots) } else { 1 };
        let lines = front.uop_cache_uops / front.uop_cache_line_uops.max(1);
        let in_order = settings.mode == Mode::InOrderSuperscalar || window.order == Order::InOrder;
        let knows = group_slots > 0 || in_order || ideal.has(Ideal::DEPENDENCES);
        Shape {
            fetch_width: width(front.fetch_width),
            decode_width: width(front.decode_width),
            fetch_bytes: width(front.fetch_bytes),
            taken_per_cycle: width(front.taken_per_cycle),
            queue: room(front.queue),
            front: u64::from(front.front_cycles),
            dispatch_width: width(window.dispatch_width),
            retire_width: width(window.retire_width),
            rob: (u64::from(window.rob) * factor / rob_divisor).max(1) as usize,
            load_queue: room(window.load_queue),
            store_queue: room(window.store_queue),
            to_issue: u64::from(window.dispatch_to_issue_cycles),
            to_retire: u64::from(window.complete_to_retire_cycles),
            redirect: u64::from(window.mispredict_cycles - front.front_cycles),
            resteer: u64::from(branch.resteer_cycles),
            bubble: bubble(branch.taken_bubble_cycles),
            call_bubble: bubble(branch.call_bubble_cycles),
            indirect_bubble: bubble(branch.indirect_bubble_cycles),
            crowded_bubble: bubble(branch.crowded_bubble_cycles),
            wakeup: u64::from(window.wakeup_cycles.max(1)) - 1,
            forward: u64::from(window.store_forward_cycles),
            renamed_forward: u64::from(window.renamed_forward_cycles),
            blocked_forward: u64::from(window.blocked_forward_cycles),
            disambiguation: Disambiguation::of(window).filter(|_| !knows),
            l1d: u64::from(machine.caches.l1d.latency_cycles),
            writing: Writing::new(machine, endless),
            schedulers: scheduler_limits(machine, ideal),
            group_slots: u64::from(group_slots),
            group_branches: if has_bundles { u64::from(window.bundle_branches) } else { ENDLESS },
            is_single,
            waits_for_group,
            in_order,
            ideal,
            uop_cache: (lines as usize, front.uop_cache_ways as usize),
        }
    }

    /// Cycles of fetch lost after a branch that was taken as predicted.
    #[inline]
    pub(crate) fn bubble_of(&self, flow: Flow, verdict: &Verdict) -> u64 {
        let more = match flow {
            Flow::Call | Flow::Return => self.call_bubble,
            Flow::IndirectJump if verdict.retargeted => self.indirect_bubble,
            Flow::IndirectCall if verdict.retargeted => self.call_bubble.max(self.indirect_bubble),
            Flow::IndirectCall => self.call_bubble,
            _ => 0,
        };
        self.bubble + if verdict.crowded { more.max(self.crowded_bubble) } else { more }
    }

    /// Whether renaming may hand a store's value to a load of a class and so many bytes.
    #[inline]
    pub(crate) fn renames(&self, class: Class, bytes: u64) -> bool {
        self.renamed_forward < self.forward && bytes >= RENAMED_BYTES && class != Class::VecLoad
    }

    /// Whether none of the questions that slow the one-pass core down need asking.
    pub(crate) fn is_plain(&self) -> bool {
        !self.has_groups() && !self.in_order && self.ideal == Ideal::NONE
    }

    /// Whether micro-ops are dispatched and retired by groups.
    pub(crate) fn has_groups(&self) -> bool {
        self.group_slots > 0
    }
}

fn scheduler_limits(machine: &Machine, ideal: Ideal) -> [u8; 8] {
    let mut limits = [u8::MAX; 8];
    if !ideal.has(Ideal::WINDOW) {
        for (limit, scheduler) in limits.iter_mut().zip(&machine.schedulers) {
            *limit = scheduler.entries.min(250) as u8;
        }
    }
    limits
}

/// The latency of a class after idealisation, and whether it still competes for ports.
pub(crate) fn ideal_latency(ideal: Ideal, class: Class, latency: u16) -> u16 {
    let is_memory = class.is_load() || class.is_store_data() || class == Class::StoreAddress;
    let is_short = latency <= 1 && class < Class::VecStoreData;
    let knob = if is_short { Ideal::SHORT_ALU } else { Ideal::LONG_ALU };
    if !is_memory && ideal.has(knob) { 0 } else { latency }
}
