//! One micro-op in every lane.
//!
//! The rows that its edges come from are found once. Then some lanes after the other go from node to
//! node in registers:
//!
//! ```text
//! arrived ─► dispatched ─► ready   ─► ports, walkers: lane by lane ─►   completed ─► committed
//! ```
//!
//! Edges that most micro-ops have are followed without asking: where there is none, a row of
//! nothing stands in.

use super::Lanes;
use super::far::{BLOCK, Far};
use crate::Kind;
use crate::chunk::Chunk;
use crate::history::IDEAL_WINDOW;
use crate::node::Node;
use crate::player::Keep;
use crate::step::{Step, Wait};

/// When the micro-op that is under way passes each node. One set is kept and filled again and
/// again, so that nothing is cleared or copied for each.
#[derive(Clone, Debug)]
pub(super) struct Times<const L: usize> {
    arrived: [u32; L],
    dispatched: [u32; L],
    issued: [u32; L],
    walked: [u32; L],
    completed: [u32; L],
    committed: [u32; L],
    written: [u32; L],
}

impl<const L: usize> Default for Times<L> {
    fn default() -> Times<L> {
        let [arrived, dispatched, issued, walked, completed, committed, written] = [[0; L]; 7];
        Times { arrived, dispatched, issued, walked, completed, committed, written }
    }
}

/// An edge whose beginning is found.
#[derive(Clone, Copy)]
struct Edge<'a, const L: usize> {
    from: &'a [u32; L],
    label: u32,
    keep: &'a [u32; L],
}

impl<'a, const L: usize> Edge<'a, L> {
    /// From the node of the micro-op so many before; none if it is out of sight.
    #[inline(always)]
    fn found(
        (node, count): (&'a Node<L>, usize),
        (distance, label): (u32, u32),
        keep: &'a [u32; L],
    ) -> Option<Edge<'a, L>> {
        Some(Edge { from: node.before(count, distance)?, label, keep })
    }

    /// The same, or one that holds nobody up.
    #[inline(always)]
    fn of(from: (&'a Node<L>, usize), edge: (u32, u32), keep: &'a [u32; L]) -> Edge<'a, L> {
        Edge::found(from, edge, keep).unwrap_or(Edge { from: &Node::<L>::NOTHING, label: 0, keep })
    }

    /// No earlier than the edge says, in the lanes that keep it.
    #[inline(always)]
    fn later<C: Chunk>(&self, at: C, lane: usize) -> C {
        at.max(self.end::<C>(lane).and(C::load(&self.keep[lane..])))
    }

    /// The same in every lane.
    #[inline(always)]
    fn always<C: Chunk>(&self, at: C, lane: usize) -> C {
        at.max(self.end::<C>(lane))
    }

    #[inline(always)]
    fn end<C: Chunk>(&self, lane: usize) -> C {
        C::load(&self.from[lane..]).plus(C::splat(self.label))
    }
}

/// A label in the lanes that keep it.
#[inline(always)]
fn kept<C: Chunk, const L: usize>(label: u32, keep: &[u32; L], lane: usize) -> C {
    C::splat(label).and(C::load(&keep[lane..]))
}

/// What leads a micro-op to the front end's queue.
struct Arrival<'a, const L: usize> {
    last: &'a [u32; L],
    queue: Edge<'a, L>,
    ideal_queue: Option<Edge<'a, L>>,
    resteer: Option<Edge<'a, L>>,
    redirect: Option<Edge<'a, L>>,
    taken: Option<Edge<'a, L>>,
    width: Edge<'a, L>,
    keep: &'a Keep<L>,
}

impl<'a, const L: usize> Arrival<'a, L> {
    #[inline(always)]
    fn of(lanes: &'a Lanes<L>, step: &Step, keep: &'a Keep<L>) -> Arrival<'a, L> {
        let (arrived, dispatched) =
            ((&lanes.arrived, lanes.count), (&lanes.dispatched, lanes.count));
        let (window, width) = (&keep[Kind::Window as usize], &keep[Kind::Width as usize]);
        let front = lanes.fixed.front;
        // The fault is the branch's, which is the instruction before.
        let branch = &lanes.keeps.of(lanes.last)[Kind::Mispredict as usize];
        let is_resteered = u32::from(step.resteer > 0);
        Arrival {
            last: lanes.arrived.before(lanes.count, 1).unwrap_or(&Node::<L>::NOTHING),
            queue: match step.queue {
                None => Edge::of(dispatched, (1, 0), &Lanes::<L>::EVERYWHERE),
                Some(distance) => Edge::of(dispatched, (distance, front), window),
            },
            ideal_queue: Edge::found(dispatched, (step.ideal_queue, front), window),
            resteer: Edge::found(arrived, (is_resteered, step.resteer), branch),
            redirect: Edge::found((&lanes.completed, lanes.count), step.redirect, branch),
            taken: Edge::found(arrived, step.taken, width),
            width: Edge::of(arrived, (step.fetch_width, 1), width),
            keep,
        }
    }

    #[inline(always)]
    fn time<C: Chunk>(&self, step: &Step, is_wide: bool, lane: usize) -> C {
        let mut at = self.queue.later(C::load(&self.last[lane..]), lane);
        if let Some(edge) = &self.ideal_queue {
            at = edge.always(at, lane);
        }
        for edge in [&self.resteer, &self.redirect].into_iter().flatten() {
            at = edge.later(at, lane);
        }
        if let Some(edge) = self.taken.filter(|_| is_wide) {
            at = edge.later(at, lane);
        }
        if step.code | step.code_translation > 0 {
            at = at.plus(kept(step.code, &self.keep[Kind::Code as usize], lane));
            let translation = &self.keep[Kind::CodeTranslation as usize];
            at = at.plus(kept(step.code_translation, translation, lane));
        }
        if is_wide {
            at = self.width.later(at, lane);
        }
        if step.bubble > 0 && is_wide {
            at = at.plus(kept(step.bubble, &self.keep[Kind::Width as usize], lane));
        }
        at
    }
}

/// What leads it into the window.
struct Dispatch<'a, const L: usize> {
    last: &'a [u32; L],
    stuck: Option<Edge<'a, L>>,
    width: Edge<'a, L>,
    window: Edge<'a, L>,
    far: &'a Far,
    ideal_window: Option<usize>,
    load_room: Option<Edge<'a, L>>,
    store_room: Option<Edge<'a, L>>,
    ideal_store_room: Option<Edge<'a, L>>,
    wait: Option<Edge<'a, L>>,
}

impl<'a, const L: usize> Dispatch<'a, L> {
    #[inline(always)]
    fn of(lanes: &'a Lanes<L>, step: &Step, keep: &'a Keep<L>) -> Dispatch<'a, L> {
        let count = lanes.count;
        let (dispatched, committed) = ((&lanes.dispatched, count), (&lanes.committed, count));
        let window = &keep[Kind::Window as usize];
        let stuck = (u32::from(step.stuck > 0), step.stuck);
        let stores = (&lanes.written, lanes.stores);
        let room = if step.takes_store { lanes.fixed.store_queue } else { 0 };
        let wait = step.wait.and_then(|wait| {
            let from = match wait.from {
                Wait::Issue => &lanes.issued,
                Wait::Commit => &lanes.committed,
            };
            Edge::found((from, count), (wait.distance, wait.label), window)
        });
        Dispatch {
            last: lanes.dispatched.before(count, 1).unwrap_or(&Node::<L>::NOTHING),
            stuck: Edge::found(dispatched, stuck, window),
            width: Edge::of(dispatched, (step.width, 1), &keep[Kind::Width as usize]),
            window: Edge::of(committed, (step.window, 0), window),
            far: &lanes.far,
            ideal_window: lanes.far.before(count, step.ideal_window),
            load_room: Edge::found(committed, (step.load_room, 0), window),
            store_room: Edge::found(stores, (room, 0), window),
            ideal_store_room: Edge::found(stores, (IDEAL_WINDOW * room, 0), window),
            wait,
        }
    }

    #[inline(always)]
    fn time<C: Chunk>(&self, arrived: C, is_wide: bool, lane: usize) -> C {
        let mut at = arrived.max(C::load(&self.last[lane..]));
        if is_wide {
            at = self.width.later(at, lane);
        }
        at = self.window.later(at, lane);
        if let Some(row) = self.ideal_window {
            at = self.far.later(row, at, lane);
        }
        let others = [&self.stuck, &self.load_room, &self.store_room, &self.wait];
        for edge in others.into_iter().flatten() {
            at = edge.later(at, lane);
        }
        if let Some(edge) = &self.ideal_store_room {
            at = edge.always(at, lane);
        }
        at
    }
}

/// What leads it to its result and out of the window.
struct Rest<'a, const L: usize> {
    line: Option<Edge<'a, L>>,
    miss_room: Option<Edge<'a, L>>,
    /// The data and the address of a store.
    forward: [Option<Edge<'a, L>>; 2],
    last: &'a [u32; L],
    width: Edge<'a, L>,
    to_retire: u32,
    keep: &'a Keep<L>,
}

impl<'a, const L: usize> Rest<'a, L> {
    #[inline(always)]
    fn of(lanes: &'a Lanes<L>, step: &Step, keep: &'a Keep<L>) -> Rest<'a, L> {
        let (completed, committed) =
            ((&lanes.completed, lanes.count), (&lanes.committed, lanes.count));
        let (data, label) = step.forward;
        let address = if data > 0 { data + 1 } else { 0 };
        let dependence = &keep[Kind::Dependence as usize];
        Rest {
            line: Edge::found(completed, step.line, &keep[Kind::Line as usize]),
            miss_room: Edge::found(completed, step.miss_room, &keep[step.level as usize]),
            forward: [data, address].map(|from| Edge::found(completed, (from, label), dependence)),
            last: lanes.committed.before(lanes.count, 1).unwrap_or(&Node::<L>::NOTHING),
            width: Edge::of(committed, (step.retire_width, 1), &keep[Kind::Width as usize]),
            to_retire: lanes.fixed.to_retire,
            keep,
        }
    }

    #[inline(always)]
    fn complete<C: Chunk>(&self, step: &Step, addressed: C, lane: usize) -> C {
        let mut at = addressed.plus(C::splat(step.fixed));
        for (label, kind) in [
            (step.hit, Kind::Hit),
            (step.short, Kind::Short),
            (step.long, Kind::Long),
            (step.miss, step.level),
            (step.translation, Kind::Translation),
        ] {
            if label > 0 {
                at = at.plus(kept(label, &self.keep[kind as usize], lane));
            }
        }
        for edge in [&self.line, &self.miss_room].into_iter().flatten() {
            at = edge.later(at, lane);
        }
        for edge in self.forward.iter().flatten() {
            let label = kept(edge.label, &self.keep[Kind::Forward as usize], lane);
            let from = C::load(&edge.from[lane..]).plus(label);
            at = at.max(from.and(C::load(&edge.keep[lane..])));
        }
        at
    }

    #[inline(always)]
    fn commit<C: Chunk>(&self, step: &Step, completed: C, is_wide: bool, lane: usize) -> C {
        let mut at = completed.plus(C::splat(self.to_retire)).max(C::load(&self.last[lane..]));
        if is_wide {
            at = self.width.later(at, lane);
        }
        at.plus(C::splat(step.late))
    }
}

impl<const L: usize> Lanes<L> {
    /// Adds a micro-op, some lanes at a time: as many as divide all of them.
    #[inline(always)]
    pub(super) fn advance<C: Chunk>(&mut self, step: &Step) {
        let Some(mut row) = self.row.take() else { return };
        self.enter::<C>(step, &mut row);
        let keep = self.keeps.of(step.instruction);
        match &mut self.ports {
            Some(ports) if step.ports.0 != 0 => ports.take::<C>(&mut row.issued, step.ports),
            Some(_) => {}
            None => {
                for lane in (0..L).step_by(C::LANES) {
                    let wait = kept(step.contention, &keep[Kind::Ports as usize], lane);
                    C::load(&row.issued[lane..]).plus(wait).store(&mut row.issued[lane..]);
                }
            }
        }
        let mut addressed = &row.issued;
        if let Some(walk) = step.walk {
            let translation = &keep[Kind::Translation as usize];
            row.walked = self.walkers.take(walk, translation, &row.issued);
            if walk.holds_up {
                addressed = &row.walked;
            }
        }
        let rest = Rest::of(self, step, keep);
        for lane in (0..L).step_by(C::LANES) {
            let done = rest.complete(step, C::load(&addressed[lane..]), lane);
            done.store(&mut row.completed[lane..]);
            let out = rest.commit(step, done, self.is_wide(lane), lane);
            out.store(&mut row.committed[lane..]);
        }
        if let Some(cycles) = step.write {
            self.write::<C>(cycles, step, &mut row);
        }
        self.arrived.put::<C>(self.count, &row.arrived);
        self.dispatched.put::<C>(self.count, &row.dispatched);
        self.issued.put::<C>(self.count, &row.issued);
        self.completed.put::<C>(self.count, &row.completed);
        self.committed.put::<C>(self.count, &row.committed);
        self.far.put::<C>(self.count, &row.committed);
        self.last = step.instruction;
        self.count += 1;
        self.row = Some(row);
    }

    /// Whether any lane of a block keeps widths. In those that stand idle nobody asks.
    #[inline(always)]
    fn is_wide(&self, lane: usize) -> bool {
        self.is_wide.get(lane / BLOCK).copied().unwrap_or(false)
    }

    /// When it is at hand, dispatched and ready.
    #[inline(always)]
    fn enter<C: Chunk>(&self, step: &Step, row: &mut Times<L>) {
        // The first begins the graph with its dispatch, and nobody is before it.
        if self.count == 0 {
            *row = Times { issued: [self.fixed.to_issue; L], ..Times::default() };
            return;
        }
        let keep = self.keeps.of(step.instruction);
        let arrival = Arrival::of(self, step, keep);
        let dispatch = Dispatch::of(self, step, keep);
        let dependence = &keep[Kind::Dependence as usize];
        let makers = step.producers.iter().chain([&step.data]);
        let completed = (&self.completed, self.count);
        let wakeup = self.fixed.wakeup;
        let mut operands = [Edge { from: &Node::<L>::NOTHING, label: 0, keep: dependence }; 5];
        let mut some = 0;
        for edge in makers.filter_map(|&from| Edge::found(completed, (from, wakeup), dependence)) {
            operands[some] = edge;
            some += 1;
        }
        for lane in (0..L).step_by(C::LANES) {
            let is_wide = self.is_wide(lane);
            let at: C = arrival.time(step, is_wide, lane);
            at.store(&mut row.arrived[lane..]);
            let at = dispatch.time(at, is_wide, lane);
            at.store(&mut row.dispatched[lane..]);
            let mut at = at.plus(C::splat(self.fixed.to_issue));
            for edge in operands.iter().take(some) {
                at = match self.keeps_dependences {
                    true => edge.always(at, lane),
                    false => edge.later(at, lane),
                };
            }
            at.store(&mut row.issued[lane..]);
        }
    }

    /// Writes the store whose data has just retired.
    #[inline(always)]
    fn write<C: Chunk>(&mut self, cycles: u32, step: &Step, row: &mut Times<L>) {
        let keep = self.keeps.of(step.instruction);
        let misses = &keep[Kind::Line as usize];
        let address = self.issued.before(self.count, 1);
        let last = self.written.before(self.stores, 1).unwrap_or(&Node::<L>::NOTHING);
        let ports = (self.fixed.stores_per_cycle, 1);
        let ported = Edge::of((&self.written, self.stores), ports, &keep[Kind::Width as usize]);
        for lane in (0..L).step_by(C::LANES) {
            let mut at = C::load(&row.committed[lane..]).plus(C::splat(1));
            if let Some(address) = address {
                // All of it goes with the misses: who hits writes within a cycle too.
                at = at.max(C::load(&address[lane..]).plus(kept(cycles, misses, lane)));
            }
            at = ported.later(at.max(C::load(&last[lane..])), lane);
            at.store(&mut row.written[lane..]);
        }
        self.written.put::<C>(self.stores, &row.written);
        self.stores += 1;
    }
}
