//! How far the two cores are apart on a recorded program, window by window, and where they part.
//!
//! ```text
//! whither model --record FILE.trace -- PROGRAM
//! cargo run --release -p tracer --example cores -- FILE.trace MACHINE WINDOWS [WINDOW]
//! ```
//!
//! Units are warmed by all that runs before a window, and both cores begin with them and nothing in
//! flight. With a WINDOW that one is told in full: the events that differ most, and every micro-op
//! at whose retirement the cores come apart by much more than before it, with its life on both.

mod busiest;

use std::env;
use std::error::Error;
use std::path::PathBuf;

use busiest::Thread;
use model::core::{Accounting, Life, Settings, Watcher};
use model::event::{Counts, Event};
use model::fast::FastCore;
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::stream::CoreListener;
use model::warm::Warmer;

/// Instructions of a window.
const WINDOW: u64 = 200_000;
/// Cycles by which the cores come apart at once for it to be told.
const APART: i64 = 50;
/// Events told of a window.
const TOLD: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let path = PathBuf::from(words.next().ok_or("say which trace")?);
    let machine = Machine::named(&words.next().ok_or("say which machine")?)?;
    let windows: u64 = words.next().ok_or("say how many windows")?.parse()?;
    let only: Option<u64> = words.next().map(|text| text.parse()).transpose()?;
    let thread = Thread::busiest_of(path)?;
    let mut warmer = Warmer::new(&machine);
    thread.translate(&mut warmer);
    let (mut from, mut step, mut apart) = (0, 0, Vec::new());
    for window in 0..windows {
        let begins = window * thread.instructions / windows.max(1);
        while warmer.instructions() < begins
            && let Some(&(id, ran, to)) = thread.steps.get(step)
        {
            warmer.executed(id, ran, &thread.accesses[from..to as usize]);
            (from, step) = (to as usize, step + 1);
        }
        if only.is_some_and(|only| only != window) {
            continue;
        }
        let both = Both::time(&thread, &machine, &warmer, (step, from), only.is_some());
        apart.push(both.say(window));
        if only.is_some() {
            both.tell();
        }
    }
    if apart.is_empty() {
        return Err("no such window: say how many there are, and one from 0 on".into());
    }
    let mean = apart.iter().map(|off: &f64| off.abs()).sum::<f64>() / apart.len() as f64;
    println!("mean difference {mean:.2} % over {} windows", apart.len());
    Ok(())
}

/// Keeps every life, if asked to.
#[derive(Default)]
struct Lives {
    is_wanted: bool,
    lives: Vec<Life>,
}

impl Watcher for Lives {
    fn lived(&mut self, life: &Life) {
        if self.is_wanted {
            self.lives.push(*life);
        }
    }
}

/// A window on both cores.
struct Both {
    fast: (Counts, Vec<Life>),
    reference: (Counts, Vec<Life>),
}

impl Both {
    fn time(
        thread: &Thread,
        machine: &Machine,
        warmer: &Warmer,
        (mut step, mut from): (usize, usize),
        is_wanted: bool,
    ) -> Both {
        let units = || warmer.clone().into_units();
        let ((memory, predictor), (memory_too, predictor_too)) = (units(), units());
        let (settings, lives) = (Settings::default(), || Lives { is_wanted, lives: Vec::new() });
        let mut fast = FastCore::watched(machine, settings, lives()).with_units(memory, predictor);
        let mut reference = ReferenceCore::watched(machine, settings, lives())
            .with_units(memory_too, predictor_too);
        thread.translate(&mut fast);
        thread.translate(&mut reference);
        let before = (fast.counts(), reference.counts());
        let mut told = 0;
        while told < WINDOW
            && let Some(&(id, ran, to)) = thread.steps.get(step)
        {
            let accesses = &thread.accesses[from..to as usize];
            fast.executed(id, ran, accesses);
            reference.executed(id, ran, accesses);
            (from, step, told) = (to as usize, step + 1, told + u64::from(ran));
        }
        fast.settle_all();
        reference.settle_all();
        let lives =
            (std::mem::take(&mut fast.watcher_mut().lives), reference.watcher().lives.clone());
        Both {
            fast: (since(&fast.counts(), &before.0), lives.0),
            reference: (since(&reference.counts(), &before.1), lives.1),
        }
    }

    /// Says the cycles of both; returns how far apart they are, in per cent.
    fn say(&self, window: u64) -> f64 {
        let [fast, reference] = [&self.fast, &self.reference].map(|(all, _)| all[Event::Cycles]);
        let off = 100.0 * (fast as f64 / reference.max(1) as f64 - 1.0);
        println!("window {window:4}  fast {fast:8}  reference {reference:8} cycles  {off:+.2} %");
        off
    }

    fn tell(&self) {
        let differ = |event: &Event| self.fast.0[*event].abs_diff(self.reference.0[*event]);
        let mut events: Vec<Event> = Event::ALL.to_vec();
        events.sort_by_key(|event| std::cmp::Reverse(differ(event)));
        for event in events.into_iter().take(TOLD).filter(|event| differ(event) > 0) {
            let [fast, reference] = [&self.fast, &self.reference].map(|(all, _)| all[event]);
            println!("  {:28} {fast:10} {reference:10}", event.name());
        }
        let mut before = 0;
        for (fast, reference) in self.fast.1.iter().zip(&self.reference.1) {
            let apart = fast.committed as i64 - reference.committed as i64;
            if (apart - before).abs() >= APART {
                println!("{:+} at {:#x} {:?}", apart - before, fast.pc, fast.class);
                println!("  fast      {}", stages(fast));
                println!("  reference {}", stages(reference));
            }
            before = apart;
        }
    }
}

fn since(now: &Counts, before: &Counts) -> Counts {
    let mut since = now.clone();
    Event::ALL.iter().for_each(|&event| since[event] = now[event].saturating_sub(before[event]));
    since
}

fn stages(life: &Life) -> String {
    format!(
        "dispatched {} ready {} issued {} completed {} committed {}, {:?} {} cycles more",
        life.dispatched,
        life.ready,
        life.issued,
        life.completed,
        life.committed,
        life.level,
        life.miss_cycles
    )
}
