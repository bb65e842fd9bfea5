//! What a switch of ours throws out of the first-level data cache, measured on this machine.
//!
//! A chain of pointers fills the cache, one a line, in an order that no prefetcher follows. After a
//! switch it is walked again: every line that is gone costs a trip to the second level. The trip's
//! price comes from walking the chain after all lines were thrown out on purpose.
//!
//! ```text
//! walk, walk ── t0        all there
//! walk, switch, walk ─ t1 some gone        lines gone = lines · (t1 − t0) / (t2 − t0)
//! walk, sweep, walk ── t2 all gone
//! ```

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use metrology::{Coverage, Estimate, Interval, median};
use perf::{Group, GroupOptions, GroupReading, Target, cpus_online, pin_to, this_thread};
use vocab::{Event, EventCode, Mode};

/// A first-level cache of 32 KiB in lines of 64 bytes: the smallest of today.
pub const LINES: usize = 512;
/// Sweeping through so much leaves nothing of the chain in the first level, and all in the second.
const SWEEP_BYTES: usize = 256 << 10;
const TIMES: usize = 801;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line {
    next: usize,
    _rest: [u64; 7],
}

/// A chain through `LINES` lines.
fn chain() -> Vec<Line> {
    let mut order: Vec<usize> = (1..LINES).collect();
    let mut draw = 1_u64;
    for place in (1..order.len()).rev() {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(place, (draw >> 33) as usize % (place + 1));
    }
    let mut lines = vec![Line { next: 0, _rest: [0; 7] }; LINES];
    let mut at = 0;
    for next in order {
        lines[at].next = next;
        at = next;
    }
    lines
}

/// The time of a walk, in nanoseconds.
fn walk(lines: &[Line]) -> f64 {
    let start = Instant::now();
    let mut at = 0;
    for _ in 0..LINES {
        at = black_box(lines[at].next);
    }
    black_box(at);
    start.elapsed().as_nanos() as f64
}

/// The time of a walk after something was done to the cache: the median of the quickest quarter,
/// because whatever else runs on the CPU in between throws lines out too.
fn after(lines: &[Line], mut what: impl FnMut()) -> Option<(f64, Interval)> {
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        for _ in 0..4 {
            black_box(walk(lines));
        }
        what();
        times.push(walk(lines));
    }
    times.sort_by(f64::total_cmp);
    median(&times[..TIMES / 4], Coverage::P95).ok()
}

/// Two groups of four on the calling thread, and a thread beside it on the same CPU that switches
/// them when it is written to.
fn switcher(tid: u32) -> Option<UnixStream> {
    let (mine, mut theirs) = UnixStream::pair().ok()?;
    let names = [("task-clock", 1), ("page-faults", 2), ("minor-faults", 5), ("major-faults", 6)];
    let event = |(name, config): (&str, u64)| Event {
        name: name.into(),
        code: EventCode::new(1, config),
        mode: Mode::User,
    };
    let events: Vec<Event> = names.into_iter().map(event).collect();
    let open = || Group::open(&events, &Target::Thread(tid), GroupOptions::default()).ok();
    let groups = [open()?, open()?];
    let cpu = *cpus_online().first()?;
    std::thread::spawn(move || {
        let _ = pin_to(cpu);
        let (mut reading, mut byte, mut turn) = (GroupReading::default(), [0], 0);
        while theirs.read_exact(&mut byte).is_ok() {
            let switched = groups[turn % 2].disable().is_ok()
                && groups[(turn + 1) % 2].enable().is_ok()
                && groups[turn % 2].read(&mut reading).is_ok();
            turn += 1;
            if !switched || theirs.write_all(&byte).is_err() {
                return;
            }
        }
    });
    Some(mine)
}

/// Lines that a switch from beside the target throws out, its waking and two changes of context
/// included. None where the second level cannot be told from the first.
pub fn lines_a_switch() -> Option<Estimate> {
    std::thread::spawn(|| {
        pin_to(*cpus_online().first()?).ok()?;
        let lines = chain();
        let other = vec![1_u8; SWEEP_BYTES];
        let mut asked = switcher(this_thread())?;
        let mut byte = [0];
        let (there, _) = after(&lines, || ())?;
        let (gone, _) = after(&lines, || {
            black_box(other.iter().step_by(64).map(|&b| u64::from(b)).sum::<u64>());
        })?;
        let (switched, interval) = after(&lines, || {
            let _ = asked.write_all(&[1]).and_then(|()| asked.read_exact(&mut byte));
        })?;
        let price = (gone - there) / LINES as f64;
        let lost = ((switched - there) / price).clamp(0.0, LINES as f64);
        (price > 0.0).then(|| Estimate::known(lost, interval.half_width() / 2.0 / price))
    })
    .join()
    .ok()?
}
