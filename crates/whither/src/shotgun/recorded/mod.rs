//! Samples from a recording of perf: branch stacks become signatures, load latencies and recorded
//! branches become detailed samples. What a processor of today does not record is said.
//!
//! ```text
//! branch stack, newest first   c→d  b→c' a→b'      mispredicted? each
//! path                         b' … b, c' … c, d … pc       straight lines, from the image
//! signature                    bit 1 of each is known: accesses are in the code, every branch
//!                              that was taken is in the stack. Bit 2 is not: it stays 0.
//! ```

mod images;
mod stacks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use icost::Fixed;
use icost::shotgun::{CodeBook, Defaults, Gathered};
use model::machine::Machine;
use perf::SampleMode;
use recording::{Body, Item, RawBranch, RawLoad, read_file};
use vocab::{Pc, Pid, Source};

use self::images::{Images, Maps};
use self::stacks::Stacks;
use super::Taken;
use crate::cli::ShotgunJob;
use crate::failure::{ERROR, Failure};
use crate::progress::Progress;

/// Reads a recording.
pub(super) fn read(job: &ShotgunJob, path: &Path, progress: bool) -> Result<Taken, Failure> {
    let name = path.display().to_string();
    let cannot = |why: std::io::Error| Failure::new(ERROR, format!("cannot read {name}: {why}"));
    let file = BufReader::new(File::open(path).map_err(cannot)?);
    let bar = Progress::clock("reading the recording", progress);
    let mut reader = Reader::new(&job.icost.model.machine);
    let mut outcome = read_file(file, |item| reader.take(item));
    drop(bar);
    let mut lacks = Vec::new();
    if let Some(damage) = outcome.damage.take() {
        lacks.push(format!("The recording breaks off: {damage}."));
    }
    if reader.seen == 0 {
        let what = format!("{name}: no sample of a program carries a branch stack");
        return Err(Failure::new(ERROR, what).remedy("record with `perf record -b`"));
    }
    if reader.stacks.samples.signatures.is_empty() {
        let what = format!(
            "{name}: none of its {} branch stacks can be followed: {}",
            reader.seen,
            reader.images.why_not()
        );
        let remedy = "analyse it where it was recorded, or put its images at the same paths";
        return Err(Failure::new(ERROR, what).remedy(remedy));
    }
    lacks.extend(reader.lacks());
    let Stacks { samples, code, .. } = reader.stacks;
    let gathered = vec![Gathered { process: 0, samples, code }];
    Ok(Taken {
        what: name,
        source: Source::Modelled,
        gathered,
        instructions: None,
        exit: None,
        lacks,
    })
}

/// Items on their way into samples.
struct Reader {
    maps: HashMap<Pid, Maps>,
    images: Images,
    stacks: Stacks,
    /// Branch stacks of programs, and loads with a latency.
    seen: u64,
    loads: u64,
}

impl Reader {
    fn new(machine: &Machine) -> Reader {
        Reader {
            maps: HashMap::new(),
            images: Images::default(),
            stacks: Stacks::new(
                CodeBook::new(machine),
                Defaults::of(machine),
                Fixed::of(machine).redirect,
            ),
            seen: 0,
            loads: 0,
        }
    }

    fn take(&mut self, item: Item) {
        match item.body {
            Body::Mapped { mapping, in_kernel: false } if mapping.executable => {
                self.maps.entry(mapping.pid).or_default().add(mapping);
            }
            Body::Named { pid, exec: true, .. } => {
                self.maps.remove(&pid);
            }
            Body::Forked(fork) if fork.pid != fork.parent => {
                let maps = self.maps.get(&fork.parent).cloned().unwrap_or_default();
                self.maps.insert(fork.pid, maps);
            }
            Body::Sample(sample) if sample.mode == SampleMode::User => {
                if let Some(load) = sample.load {
                    self.take_load(sample.pid, sample.pc, load);
                }
                if !sample.branches.is_empty() {
                    self.take_stack(sample.pid, sample.pc, &sample.branches);
                }
            }
            _ => {}
        }
    }

    fn take_load(&mut self, pid: Pid, pc: Pc, load: RawLoad) {
        self.loads += 1;
        let Some(maps) = self.maps.get(&pid) else { return };
        if let Some(place) = self.images.place(maps, pc)
            && let Some(block) = self.images.line(place, place)
        {
            self.stacks.take_load(place, &block, load);
        }
    }

    fn take_stack(&mut self, pid: Pid, pc: Pc, branches: &[RawBranch]) {
        self.seen += 1;
        let none = Maps::default();
        let maps = self.maps.get(&pid).unwrap_or(&none);
        // Oldest first: where each straight line began and ended, and whether the branch before it
        // had been mispredicted.
        let ends = branches.iter().map(|branch| branch.from);
        let mut lines = Vec::new();
        for (branch, end) in branches.iter().zip(std::iter::once(pc).chain(ends)) {
            let from = self.images.place(maps, branch.to);
            let to = self.images.place(maps, end);
            let block = from.zip(to).and_then(|(from, to)| self.images.line(from, to));
            // What came before cannot be joined to what came after.
            let Some(block) = block else { break };
            lines.push((block, branch.mispredicted));
        }
        lines.reverse();
        self.stacks.take(&lines);
    }

    /// What the recording does not tell.
    fn lacks(&self) -> Vec<String> {
        let mut lacks = vec![
            "The recording does not say which instructions missed a cache or a TLB, nor how long \
             any waited for a port, for code or for a store: bit 2 of every signature is 0, and \
             what is not below is taken for granted."
                .to_owned(),
        ];
        lacks.push(match self.loads {
            0 => {
                "It holds no load latencies: every load is taken for a first-level hit. `perf mem \
                  record -b` would add them."
                    .to_owned()
            }
            loads => format!(
                "It holds the latencies of {loads} loads. Processors sample loads above a latency \
                 that the recording does not tell, so that misses look more common than they are."
            ),
        });
        let followed = self.stacks.samples.signatures.len() as u64;
        if followed < self.seen {
            lacks.push(format!(
                "{} of {} branch stacks cannot be followed: {}.",
                self.seen - followed,
                self.seen,
                self.images.why_not()
            ));
        }
        lacks
    }
}
