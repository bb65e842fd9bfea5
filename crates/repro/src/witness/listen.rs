//! Listening to a program, and putting what was seen in its images.

use std::collections::{BTreeMap, HashMap};

use model::core::Settings;
use model::event::Event;
use model::fast::FastCore;
use model::machine::Machine;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::uop::Flow;
use tracer::counts::{Maps, Place};
use tracer::record::ProcessRecord;
use tracer::results::ProcessKey;
use tracer::trace::Audience;

use super::watch::Watch;
use super::{Image, Question, Seen, Witness};

/// Blocks between two looks at the samplers.
const GATHER_EVERY: u32 = 1 << 14;

/// What is known of a process.
#[derive(Debug, Default, Clone)]
struct Process {
    maps: Maps,
    images: Vec<String>,
    /// Where each block is, by number.
    places: Vec<Option<Place>>,
}

/// One image, as it is put together.
#[derive(Debug, Default)]
struct Sum {
    seen: BTreeMap<u64, Seen>,
    ways: HashMap<(u64, u64), u64>,
    stacks: Vec<HashMap<(u64, u64), u64>>,
    passed: Vec<HashMap<(u64, u64), u64>>,
    code: BTreeMap<u64, Vec<u8>>,
}

/// The ways of an image that were seen, by seed.
type Sums = fn(&mut Sum) -> &mut Vec<HashMap<(u64, u64), u64>>;

/// Those who listen to a program's threads.
#[derive(Debug)]
pub struct Witnesses {
    machine: Machine,
    /// One that has seen nothing yet.
    watch: Watch,
    question: Question,
    processes: BTreeMap<ProcessKey, Process>,
    images: BTreeMap<String, Sum>,
    instructions: u64,
    cycles: u64,
    unplaced: u64,
    keeps_code: bool,
}

impl Witnesses {
    /// Nothing has been heard yet.
    ///
    /// # Errors
    ///
    /// The machine is not known, or cannot sample what is asked.
    pub fn new(question: Question) -> Result<Witnesses, String> {
        let machine = Machine::named(&question.machine).map_err(|e| e.to_string())?;
        let watch = Watch::new(&machine, &question)?;
        Ok(Witnesses {
            watch,
            machine,
            question,
            processes: BTreeMap::new(),
            images: BTreeMap::new(),
            instructions: 0,
            cycles: 0,
            unplaced: 0,
            keeps_code: false,
        })
    }

    /// The same, keeping the code that runs.
    pub fn with_code(self) -> Witnesses {
        Witnesses { keeps_code: true, ..self }
    }

    /// Everything that was seen.
    pub fn finish(self) -> Witness {
        let list = |ways: HashMap<(u64, u64), u64>| {
            let mut list: Vec<_> = ways.into_iter().map(|((a, b), n)| (a, b, n)).collect();
            list.sort_unstable();
            list
        };
        let image = |(path, sum): (String, Sum)| Image {
            path,
            seen: sum.seen.into_values().collect(),
            ways: list(sum.ways),
            stacks: sum.stacks.into_iter().map(list).collect(),
            passed: sum.passed.into_iter().map(list).collect(),
            code: sum.code.into_iter().collect(),
        };
        Witness {
            question: self.question,
            instructions: self.instructions,
            cycles: self.cycles,
            unplaced: self.unplaced,
            images: self.images.into_iter().map(image).collect(),
        }
    }

    fn add(&mut self, process: &Process, core: &Core) {
        let program = core.fast.program();
        let (account, watch) = (core.fast.account(), core.fast.watcher());
        let runs = account.runs();
        // Where every instruction is: its image by number, and its offset there.
        let mut places: Vec<Option<(usize, u64)>> = vec![None; program.instructions.len()];
        for (block, held) in program.blocks.iter().enumerate() {
            let place = process.places.get(block).copied().flatten();
            let range = held.first as usize..(held.first + held.count) as usize;
            let first = program.instructions.get(range.start).map_or(0, |it| it.pc);
            for k in range {
                let at = |place: Place| {
                    let offset = place.offset + (program.instructions[k].pc - first);
                    (place.image as usize, offset)
                };
                places[k] = place.map(at);
            }
        }
        for (k, place) in places.iter().enumerate() {
            let ran = runs.get(k).copied().unwrap_or(0);
            if ran == 0 {
                continue;
            }
            let Some((image, offset)) = *place else {
                self.unplaced += ran;
                continue;
            };
            let Some(path) = process.images.get(image) else { continue };
            let misses = account.happenings(k, Event::L1iMisses).unwrap_or(0);
            let new =
                Seen(offset, ran, account.ticks(k), misses, watch.causes(k), watch.samples(k));
            let sum = self.images.entry(path.clone()).or_default();
            match sum.seen.get_mut(&offset) {
                Some(held) => join(held, new),
                None => drop(sum.seen.insert(offset, new)),
            }
        }
        let way = |from: usize, to: usize| {
            let (a, from) = (*places.get(from)?)?;
            let (b, to) = (*places.get(to)?)?;
            (a == b).then_some((a, from, to))
        };
        let last = |block: u32| {
            let held = program.blocks.get(block as usize)?;
            (held.first + held.count).checked_sub(1).map(|k| k as usize)
        };
        let first = |block: u32| Some(program.blocks.get(block as usize)?.first as usize);
        for (from, ways) in core.ways.iter().enumerate() {
            for &(to, count) in ways {
                let Some((from, to)) = last(from as u32).zip(first(to)) else { continue };
                let Some((image, from, to)) = way(from, to) else { continue };
                let Some(path) = process.images.get(image) else { continue };
                let sum = self.images.entry(path.clone()).or_default();
                *sum.ways.entry((from, to)).or_default() += count;
            }
        }
        let mut gather = |seed: usize, seen: &HashMap<(u32, u32), u64>, of: Sums| {
            for (&(from, to), &count) in seen {
                let Some((image, from, to)) = way(from as usize, to as usize) else { continue };
                let Some(path) = process.images.get(image) else { continue };
                let sums = of(self.images.entry(path.clone()).or_default());
                if sums.len() <= seed {
                    sums.resize(seed + 1, HashMap::new());
                }
                *sums[seed].entry((from, to)).or_default() += count;
            }
        };
        for (seed, seen) in watch.stacks().enumerate() {
            gather(seed, seen, |sum| &mut sum.stacks);
        }
        for (seed, seen) in watch.passed().iter().enumerate() {
            gather(seed, seen, |sum| &mut sum.passed);
        }
        self.instructions += core.fast.counts()[Event::Instructions];
        self.cycles += core.fast.cycles();
    }
}

/// Keeps the bytes of a block that is at an offset.
fn keep(code: &mut BTreeMap<u64, Vec<u8>>, block: &StaticBlock, offset: u64) {
    let start = block.instructions.first().map_or(0, |first| first.pc);
    for it in &block.instructions {
        let bytes = it.bytes.get(..usize::from(it.len)).unwrap_or_default();
        code.insert(offset + (it.pc - start), bytes.to_vec());
    }
}

/// Adds what another thread saw of the same instruction.
fn join(held: &mut Seen, new: Seen) {
    held.1 += new.1;
    held.2 += new.2;
    held.3 += new.3;
    for (cause, cycles) in new.4 {
        match held.4.iter_mut().find(|(other, _)| *other == cause) {
            Some((_, sum)) => *sum += cycles,
            None => held.4.push((cause, cycles)),
        }
    }
    held.5.iter_mut().zip(new.5).for_each(|(sum, count)| *sum += count);
}

impl Audience for Witnesses {
    type Core = Core;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Core {
        Core {
            fast: FastCore::watched(&self.machine, Settings::default(), self.watch.clone()),
            ways: Vec::new(),
            before: None,
            due: GATHER_EVERY,
        }
    }

    fn record(&mut self, process: ProcessKey, record: &ProcessRecord) {
        let held = self.processes.entry(process).or_default();
        match record {
            ProcessRecord::Mapped(map) => held.maps.add(&mut held.images, map.clone()),
            ProcessRecord::Unmapped { start, end } => held.maps.remove(*start, *end),
            ProcessRecord::Block(block) => {
                let place = held.maps.place(block);
                held.places.push(place);
                if self.keeps_code
                    && let Some(place) = place
                    && let Some(image) = held.images.get(place.image as usize)
                {
                    let sum = self.images.entry(image.clone()).or_default();
                    keep(&mut sum.code, block, place.offset);
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, process: ProcessKey, _: u32, mut core: Core) {
        core.fast.finish();
        core.fast.watcher_mut().gather();
        let held = self.processes.get(&process).cloned().unwrap_or_default();
        self.add(&held, &core);
    }
}

/// The listener of one thread.
#[derive(Debug)]
pub struct Core {
    fast: FastCore<Watch>,
    /// By block: the blocks that followed, and how often.
    ways: Vec<Vec<(u32, u64)>>,
    /// The block that ran last, if the way out of it is to be counted.
    before: Option<u32>,
    due: u32,
}

impl Core {
    fn follow(&mut self, id: u32) {
        let Some(from) = self.before.take().map(|from| from as usize) else { return };
        if self.ways.len() <= from {
            self.ways.resize(from + 1, Vec::new());
        }
        let ways = &mut self.ways[from];
        match ways.iter().position(|(to, _)| *to == id) {
            Some(at) => {
                ways[at].1 += 1;
                // The usual way is looked at first.
                if at > 0 && ways[at].1 > ways[at - 1].1 {
                    ways.swap(at, at - 1);
                }
            }
            None => ways.push((id, 1)),
        }
    }

    /// Whether the way out of a block is one between blocks of a procedure.
    fn is_inside(&self, id: u32, ran: u16) -> bool {
        let program = self.fast.program();
        let Some(held) = program.blocks.get(id as usize) else { return false };
        let last = (held.first + held.count).checked_sub(1);
        let last = last.and_then(|last| program.instructions.get(last as usize));
        u32::from(ran) == held.count
            && last.is_some_and(|it| {
                !matches!(it.flow, Flow::Call | Flow::IndirectCall | Flow::Return)
            })
    }
}

impl CoreListener for Core {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.fast.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.follow(id.0);
        self.fast.executed(id, ran, accesses);
        self.before = self.is_inside(id.0, ran).then_some(id.0);
        self.due -= 1;
        if self.due == 0 {
            self.due = GATHER_EVERY;
            self.fast.watcher_mut().gather();
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.fast.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.before = None;
        self.fast.interrupted();
    }
}
