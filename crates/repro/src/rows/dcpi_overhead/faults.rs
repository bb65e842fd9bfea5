//! What the handler costs, driven by page faults: every touched page is one event.
//!
//! ```text
//! code   mov byte [rdi + 0×4096], 1     the faulting pc of page 0
//!        mov byte [rdi + 1×4096], 1     of page 1: distinct pcs
//!        …
//!        ret
//! ```
//! With one pc the pages are touched in a loop instead. Each way of handling is timed in turn, on
//! one CPU; its cost is the time of a fault above that of a fault that nobody counts.

use std::time::Instant;

use collect::{CpuTable, Geometry, Handler, Taking, handler};
use metrology::{Coverage, Interval, median};
use perf::{CpuEvent, CpuEventRequest, Program, Ring, Scope};
use vocab::{Cpu, Event, EventCode, EventId, Mode};

use crate::native::Pinned;

/// Pages of the region that is touched again and again.
const PAGES: usize = 8192;
/// Distinct pcs: several times what a table holds.
const BLOCKS: usize = 8;
const PAGE: usize = 4096;
/// `mov byte ptr [rdi + disp32], 1`
const TOUCH_BYTES: usize = 7;

/// Nanoseconds above a plain fault.
#[derive(Debug, Clone)]
pub(super) struct Cost {
    pub(super) way: &'static str,
    pub(super) same: (f64, Interval),
    pub(super) distinct: (f64, Interval),
}

/// Times every way, in turn, so often.
pub(super) fn measure(rounds: usize) -> Result<(f64, Vec<Cost>), String> {
    let pinned = Pinned::to_one()?;
    let cpu = Cpu(pinned.cpu() as u32);
    let mut bench = Bench::new()?;
    let table = CpuTable::new(Geometry::for_rate(20_000)).map_err(|e| e.to_string())?;
    let made_for = Handler {
        geometry: Geometry::for_rate(20_000),
        table: table.raw_fd(),
        bell: None,
        event: EventId(0),
        kernel_by_process: false,
    };
    let code = handler(&made_for).ok_or("the handler cannot be assembled")?;
    let program = Program::load(&code).map_err(|e| e.to_string())?;
    // `r0 = 0; exit`: what any program costs.
    let empty = Program::load(&[0xb7, 0x95]).map_err(|e| e.to_string())?;
    let (ours, nothing, ringed) = (event(cpu)?, event(cpu)?, event(cpu)?);
    ours.attach(&program).map_err(|e| e.to_string())?;
    nothing.attach(&empty).map_err(|e| e.to_string())?;
    let mut ring = ringed.ring(1024).map_err(|e| e.to_string())?;
    let mut readings: [[Vec<f64>; 2]; 4] = Default::default();
    for _ in 0..rounds {
        for (way, timed) in [None, Some(&nothing), Some(&ours), Some(&ringed)].iter().enumerate() {
            for (kind, slot) in [false, true].into_iter().zip(&mut readings[way]) {
                let after = |ring: &mut Ring| {
                    table.flip(Taking::All);
                    table.drain(Taking::All, |_| {});
                    ring.drain(|_| {});
                };
                slot.push(bench.time(*timed, kind, &mut ring, after)?);
            }
        }
    }
    costs(&readings)
}

fn costs(readings: &[[Vec<f64>; 2]; 4]) -> Result<(f64, Vec<Cost>), String> {
    let above = |way: usize, kind: usize| {
        // Round by round, so that a slow moment is on both sides.
        let pairs = readings[way][kind].iter().zip(&readings[0][kind]);
        let differences: Vec<f64> = pairs.map(|(with, without)| with - without).collect();
        median(&differences, Coverage::P95).map_err(|too_few| too_few.to_string())
    };
    let plain = median(&readings[0][0], Coverage::P95).map_err(|too_few| too_few.to_string())?.0;
    let ways = [(1, "an empty program"), (2, "our table"), (3, "perf's ring")];
    let costs = ways
        .into_iter()
        .map(|(way, name)| Ok(Cost { way: name, same: above(way, 0)?, distinct: above(way, 1)? }));
    Ok((plain, costs.collect::<Result<_, String>>()?))
}

/// Page faults of this thread, each of them an event.
fn event(cpu: Cpu) -> Result<CpuEvent, String> {
    let code = EventCode::new(1, 2);
    let event = Event { name: "page-faults".into(), code, mode: Mode::User };
    let request =
        CpuEventRequest { event, period: 1, scope: Scope::Everyone, chains: false, maps: false };
    CpuEvent::open(&request, cpu).map_err(|refusal| format!("page faults: {refusal}"))
}

/// The pages, and code that touches each from another place.
struct Bench {
    pages: Mapped,
    code: Mapped,
}

impl Bench {
    fn new() -> Result<Bench, String> {
        let pages = Mapped::new(PAGES * PAGE, libc::PROT_READ | libc::PROT_WRITE)?;
        let block = PAGES * TOUCH_BYTES + 1;
        let mut code = Mapped::new(BLOCKS * block, libc::PROT_READ | libc::PROT_WRITE)?;
        for (place, bytes) in code.bytes().chunks_exact_mut(block).enumerate() {
            write_block(bytes, place);
        }
        code.make_executable()?;
        Ok(Bench { pages, code })
    }

    /// Nanoseconds a fault.
    fn time(
        &mut self,
        event: Option<&CpuEvent>,
        distinct: bool,
        ring: &mut Ring,
        mut after: impl FnMut(&mut Ring),
    ) -> Result<f64, String> {
        let mut spent = 0.0;
        for block in 0..BLOCKS {
            self.pages.forget();
            if let Some(event) = event {
                event.enable().map_err(|e| e.to_string())?;
            }
            let began = Instant::now();
            if distinct {
                self.run(block);
            } else {
                self.pages.touch();
            }
            spent += began.elapsed().as_nanos() as f64;
            if let Some(event) = event {
                event.disable().map_err(|e| e.to_string())?;
            }
            // Rings and tables are emptied while nobody looks at the clock; a table that holds the
            // last block's pcs only misses on all of this one's.
            after(ring);
        }
        Ok(spent / (BLOCKS * PAGES) as f64)
    }

    fn run(&mut self, block: usize) {
        let at = self.code.base.wrapping_byte_add(block * (PAGES * TOUCH_BYTES + 1));
        // SAFETY: the block was written by `write_block` and made executable: it stores one byte to
        // each page of the region whose start it is given, clobbers nothing else, and returns.
        unsafe {
            let touch: extern "sysv64" fn(*mut libc::c_void) = std::mem::transmute(at);
            touch(self.pages.base);
        }
    }
}

/// Stores to every page, in an order of its own for each block, then `ret`.
fn write_block(bytes: &mut [u8], block: usize) {
    let (touches, ret) = bytes.split_at_mut(PAGES * TOUCH_BYTES);
    for (place, touch) in touches.chunks_exact_mut(TOUCH_BYTES).enumerate() {
        let page = (place + block * 97) % PAGES;
        touch[..2].copy_from_slice(&[0xc6, 0x87]);
        touch[2..6].copy_from_slice(&((page * PAGE) as u32).to_le_bytes());
        touch[6] = 1;
    }
    ret[0] = 0xc3;
}

/// Anonymous memory of our own.
struct Mapped {
    base: *mut libc::c_void,
    bytes: usize,
}

impl Mapped {
    fn new(bytes: usize, protection: i32) -> Result<Mapped, String> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(format!("no memory: {}", std::io::Error::last_os_error()));
        }
        // SAFETY: our own mapping; one fault a page is what is measured.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Mapped { base, bytes })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: our own mapping, readable and writable, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), self.bytes) }
    }

    fn make_executable(&mut self) -> Result<(), String> {
        // SAFETY: our own mapping, whole.
        let changed =
            unsafe { libc::mprotect(self.base, self.bytes, libc::PROT_READ | libc::PROT_EXEC) };
        match changed {
            0 => Ok(()),
            _ => Err(format!("code may not be made here: {}", std::io::Error::last_os_error())),
        }
    }

    /// The next touch of any page faults again.
    fn forget(&mut self) {
        // SAFETY: our own mapping; its content is not needed.
        unsafe { libc::madvise(self.base, self.bytes, libc::MADV_DONTNEED) };
    }

    /// Touches every page from one place.
    #[inline(never)]
    fn touch(&mut self) {
        for page in self.bytes().chunks_exact_mut(PAGE) {
            std::hint::black_box(page)[0] = 1;
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped with this base and length; no borrow outlives it.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}
