//! SSB's table 4 on this machine: what taking turns costs a program, by how often groups are
//! switched, beside the kernel's own rotation.
//!
//! Cost is CPU time: the program's own and the switching thread's, against the program's alone in
//! the same round. What others do on the machine lengthens both.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use counters::{Ask, On, Session, Slice, Slicing};
use metrology::{Coverage, geometric_ratio};
use perf::Held;
use show::{Cell, Column, Row, Table, Tone, Unit};
use vocab::{Event, EventCode, Mode};

use crate::context::Context;
use crate::result::{Figure, RowResult};
use crate::smoke::compile;

/// SSB's rates, with the keys of the page.
const RATES: [(u64, &str); 5] = [
    (1_000, "pct_1khz"),
    (2_000, "pct_2khz"),
    (5_000, "pct_5khz"),
    (20_000, "pct_20khz"),
    (100_000, "pct_100khz"),
];
const ROUNDS: usize = 40;
const QUICK_ROUNDS: usize = 8;
/// A rate counts as reached from this share of it on.
const REACHED: f64 = 0.8;
/// The program: about a tenth of a second of the tiled loop.
const ARGUMENTS: [&str; 5] = ["loops", "tiled", "24", "1", "quiet"];

const COLUMNS: [Column; 4] = [
    Column::text("turns", "turns"),
    Column::number("reached", "reached"),
    Column::number("overhead", "overhead"),
    Column::text("note", ""),
];

/// One run: CPU seconds in all, and switches a second of the program's time.
#[derive(Debug, Clone, Copy)]
struct Run {
    cpu_seconds: f64,
    switches_hz: f64,
}

/// What is tried in each round; the first is the program alone.
fn ways() -> Vec<Option<Slicing>> {
    let own = |(hertz, _): &(u64, &str)| {
        let slice = Slice::Nanoseconds(1_000_000_000 / hertz);
        Some(Slicing::Own { slice, however_short: true })
    };
    [None].into_iter().chain(RATES.iter().map(own)).chain([Some(Slicing::Kernel)]).collect()
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let directory = context.work.streams()?;
    compile(context, "kernels/loops.c", &directory)?;
    let program = directory.join("program");
    let (ways, rounds) = (ways(), if context.quick { QUICK_ROUNDS } else { ROUNDS });
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); ways.len()];
    context.progress.start(rounds as u64);
    for round in 0..rounds {
        // Every round begins elsewhere, so that nothing always follows the same neighbour.
        for step in 0..ways.len() {
            let place = (round + step) % ways.len();
            runs[place].push(timed(&program, ways[place])?);
        }
        context.progress.step(&format!("round {}", round + 1));
    }
    context.progress.finish();
    Ok(told(&runs, rounds))
}

fn told(runs: &[Vec<Run>], rounds: usize) -> RowResult {
    let mut result = RowResult {
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        caption: format!(
            "two groups of four software events on this machine, {rounds} interleaved rounds; CPU \
             time of the program and of the thread that switches, against the program alone"
        ),
        ..RowResult::default()
    };
    let alone: Vec<f64> = runs.first().into_iter().flatten().map(|run| run.cpu_seconds).collect();
    let names =
        RATES.iter().map(|(hertz, key)| (format!("{} kHz", hertz / 1000), Some((hertz, key))));
    let names = names.chain([("the kernel's rotation".to_owned(), None)]);
    for ((name, rate), with) in names.zip(runs.iter().skip(1)) {
        let pairs: Vec<(f64, f64)> =
            with.iter().zip(&alone).map(|(run, alone)| (run.cpu_seconds, *alone)).collect();
        let reached =
            with.iter().map(|run| run.switches_hz).sum::<f64>() / with.len().max(1) as f64;
        let Ok((ratio, interval)) = geometric_ratio(&pairs, Coverage::P95) else { continue };
        let shifted =
            metrology::Interval { low: interval.low - 1.0, high: interval.high - 1.0, ..interval };
        let mut note = String::new();
        if let Some((&hertz, &key)) = rate {
            let is_reached = reached >= REACHED * hertz as f64;
            if is_reached {
                result.ours.push(Figure::measured(
                    key,
                    100.0 * (ratio - 1.0),
                    shifted.scaled(100.0),
                ));
            } else {
                note = format!("not reached: {:.1} kHz", reached / 1000.0);
                result.notes.push(format!(
                    "{name} was not reached on this machine: {:.1} kHz is what its timers and \
                     scheduler gave, at the overhead shown",
                    reached / 1000.0
                ));
            }
        } else {
            note = "software events do not compete: nothing is rotated".to_owned();
        }
        let cells = vec![
            Cell::text(name),
            Cell::Number(reached, Unit::Hertz),
            Cell::Estimate(ratio - 1.0, shifted, Unit::Share),
            Cell::text(note),
        ];
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
    }
    result.notes.push(
        "this machine has no PMU: the kernel's rotation, which is perf's, has nothing to rotate, \
         and its line is the cost of open events alone; it could not go beyond its tick of 1 kHz"
            .to_owned(),
    );
    result
}

/// Runs the program, counted in that way or not at all.
fn timed(program: &Path, way: Option<Slicing>) -> Result<Run, String> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(|e| e.to_string());
    let words =
        ARGUMENTS.iter().map(|word| text(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let held = Held::fork(&text(program.as_os_str().as_bytes())?, &words, &[])
        .map_err(|e| format!("loops: {e}"))?;
    let mut session = match way {
        None => None,
        Some(slicing) => {
            let ask =
                Ask { slicing, counters: Some(4), ..Ask::new(events(), On::Command(held.pid())) };
            let mut session = Session::open(&ask).map_err(|e| e.to_string())?;
            session.start().map_err(|e| e.to_string())?;
            Some(session)
        }
    };
    let before = own_cpu_seconds();
    let running = held.go().map_err(|e| format!("loops: errno {}", e.errno))?;
    let ended = running.wait().map_err(|e| e.to_string())?;
    let ours = own_cpu_seconds() - before;
    if ended.code() != Some(0) {
        return Err(format!("loops ended with {:?}", ended.code()));
    }
    let own = (ended.usage.user + ended.usage.system).as_secs_f64();
    let switches = session.as_mut().map_or(0, |session| session.stop().switches);
    let extra = if session.is_some() { ours } else { 0.0 };
    Ok(Run { cpu_seconds: own + extra, switches_hz: switches as f64 / own.max(1e-9) })
}

/// Eight events of which four are counted at a time.
fn events() -> Vec<Event> {
    let kinds =
        [("page-faults", 2), ("context-switches", 3), ("minor-faults", 5), ("major-faults", 6)];
    let event = |mode: Mode| {
        move |(name, config): (&str, u64)| Event {
            name: name.into(),
            code: EventCode::new(1, config),
            mode,
        }
    };
    let both = kinds.into_iter().map(event(Mode::Both));
    both.chain(kinds.into_iter().map(event(Mode::User))).collect()
}

/// This process's CPU time so far.
fn own_cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_was_not_reached_has_a_name_and_no_figure() {
        let run = |cpu_seconds, switches_hz| Run { cpu_seconds, switches_hz };
        let mut runs = vec![vec![run(1.0, 0.0), run(1.01, 0.0), run(0.99, 0.0)]];
        for (hertz, _) in RATES {
            let reached = if hertz < 50_000 { hertz as f64 } else { 12_000.0 };
            runs.push(vec![run(1.02, reached), run(1.0302, reached), run(1.0098, reached)]);
        }
        runs.push(vec![run(1.0, 0.0); 3]);
        let result = told(&runs, 3);
        assert!((result.figure("pct_1khz").unwrap().value - 2.0).abs() < 1e-9);
        assert!(result.figure("pct_100khz").is_none());
        assert!(result.notes.iter().any(|note| note.contains("100 kHz was not reached")));
        assert_eq!(result.detail.rows.len(), 6);
    }
}
