//! Many threads with nested and overlapping sets, all taking turns, against planted counts.
//!
//! `WHITHER_SOAK_ROUNDS` lengthens it; 20 last for a minute or two.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::cell::Cell;
use std::hint::black_box;

use counters::NotCounted;
use counters::sets::{EventSet, SetOptions, Value, configure};
use metrology::student_quantile;
use perf::{BreakpointKind, breakpoint};

const THREADS: u64 = 64;
const WORDS: usize = 4;

/// What a thread plants. A watched write takes a trap, and so time: a thread plants one kind only,
/// all at the same rate, so that time runs alike whichever event has its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Writes to words that breakpoints watch.
    Writes,
    /// First touches of pages.
    Faults,
}

struct Load {
    kind: Kind,
    words: [Cell<u64>; WORDS],
    draw: u64,
    written: [u64; WORDS],
}

impl Load {
    fn new(kind: Kind, seed: u64) -> Load {
        Load { kind, words: Default::default(), draw: seed, written: [0; WORDS] }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.draw >> 33) % below
    }

    /// Work of varying length between, so that no slice keeps step.
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            let word = self.draw(WORDS as u64) as usize;
            match self.kind {
                Kind::Writes => black_box(&self.words[word]).set(self.draw),
                Kind::Faults => touch_new_pages(1),
            }
            self.written[word] += 1;
            let work = 1_000 + self.draw(8_000);
            black_box((0..work).fold(0_u64, |sum, step| black_box(sum.wrapping_add(step))));
        }
    }

    /// The planted counts so far; of faults the kernel's own tally for this thread.
    fn planted(&self) -> [u64; WORDS] {
        match self.kind {
            Kind::Writes => self.written,
            Kind::Faults => [minor_faults(); WORDS],
        }
    }

    /// A set of the events at these places.
    fn set(&self, places: &[usize]) -> EventSet {
        const FAULTS: [&str; WORDS] =
            ["page-faults", "minor-faults", "page-faults:u", "minor-faults:u"];
        let mut set = EventSet::new().unwrap();
        for &place in places {
            match self.kind {
                Kind::Writes => {
                    let address = self.words[place].as_ptr() as u64;
                    set.add_event(&breakpoint(BreakpointKind::Write, address)).unwrap();
                }
                Kind::Faults => set.add(FAULTS[place]).unwrap(),
            }
        }
        set
    }

    /// Every value within five of its own uncertainties of what was planted; how many were checked.
    ///
    /// An uncertainty from few slices is itself uncertain: five then means as far as five are for
    /// a normal distribution.
    fn check(&self, values: &[Value], places: &[usize], before: [u64; WORDS]) -> usize {
        const FIVE: f64 = 1.0 - 2.866_5e-7;
        let after = self.planted();
        assert_eq!(values.len(), places.len());
        let mut checked = 0;
        for (value, &place) in values.iter().zip(places) {
            let counted = match value {
                Ok(counted) => counted,
                // On a machine that is short of time a turn may not come: that is said.
                Err(NotCounted::NoTurn) => continue,
                Err(why) => panic!("{:?} {place}: {why}", self.kind),
            };
            checked += 1;
            let truth = after[place] - before[place];
            let k = student_quantile(FIVE, counted.estimate.degrees_of_freedom);
            let off = (counted.estimate.value - truth as f64).abs();
            // A page or two of the library's own fall between the kernel's tally and the set.
            let own = if self.kind == Kind::Faults { 16.0 } else { 0.0 };
            let allowed = k * counted.estimate.standard_uncertainty + own;
            assert!(off <= allowed, "{:?} {place}: planted {truth}, {counted:?}", self.kind);
        }
        checked
    }
}

fn touch_new_pages(pages: usize) {
    let bytes = pages * 4096;
    // SAFETY: a new private mapping, written within its bounds and unmapped again.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let base = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        for page in 0..pages {
            base.cast::<u8>().add(page * 4096).write_volatile(1);
        }
        libc::munmap(base, bytes);
    }
}

fn minor_faults() -> u64 {
    // SAFETY: the structure is plain numbers, filled by the call.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_minflt as u64
}

fn one_thread(seed: u64, rounds: u64) -> usize {
    configure(SetOptions { slice_ns: 1_000_000, counters: Some(1), seed }).unwrap();
    let kind = if seed % 4 < 2 { Kind::Writes } else { Kind::Faults };
    let mut load = Load::new(kind, seed);
    let (mut outer, mut inner) = (load.set(&[0, 1, 2]), load.set(&[1, 2, 3]));
    let mut checked = 0;
    for _ in 0..rounds {
        let began_outer = load.planted();
        outer.start().unwrap();
        load.run(400);
        let began_inner = load.planted();
        inner.start().unwrap();
        load.run(400);
        assert_eq!(outer.read().unwrap().len(), 3);
        load.run(400);
        let values = outer.stop().unwrap();
        checked += load.check(&values, &[0, 1, 2], began_outer);
        load.run(400);
        let values = inner.stop().unwrap();
        checked += load.check(&values, &[1, 2, 3], began_inner);
    }
    if seed.is_multiple_of(2) {
        // This one ends inside a running set.
        outer.start().unwrap();
        std::mem::forget((outer, inner));
    }
    checked
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn sixty_four_threads_recover_what_was_planted_and_leave_nothing_open() {
    let rounds = std::env::var("WHITHER_SOAK_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    // SAFETY: the structure is plain numbers; raising the soft limit is always allowed.
    unsafe {
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    let before = open_descriptors();
    let spawn = |seed| std::thread::spawn(move || one_thread(seed, rounds));
    let threads: Vec<_> = (0..THREADS).map(spawn).collect();
    let checked: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let all = (THREADS * rounds * 6) as usize;
    println!("{checked} of {all} values checked");
    assert!(2 * checked > all, "{checked} of {all}");
    assert_eq!(open_descriptors(), before);
}
