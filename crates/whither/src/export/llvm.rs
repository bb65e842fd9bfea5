//! LLVM's sample profile in text: counts by line within each procedure and each inlined call.
//!
//! ```text
//! main:1800:1            procedure : sum of its counts : times entered
//!  2: 10                 line - line of the declaration . discriminator : count
//!  3: 590 foo:590        what was called from there
//!  4: bar:1200           an inlined call, its own lines one column further in
//!   1: 600
//! ```
//!
//! The count of a line is the largest of its instructions': optimised code leaves some of them out
//! of line, and a line that ran is one whose most frequent instruction ran.

use std::collections::BTreeMap;

use analyse::ProcedureTime;
use image::{Binary, Callees, DebugInfo, Flow, Lines};
use vocab::{Count, ImageId};

use super::Exported;
use crate::cli::ExportJob;
use crate::examined::{Examined, Examiner};
use crate::failure::{ERROR, Failure};
use crate::listing::Code;
use crate::sampled::Sampled;

/// LLVM keeps the low sixteen bits of a line's distance.
const DISTANCE: u32 = 0xffff;

/// A line within a procedure: its distance from the declaration, and its discriminator.
type At = (u32, u32);

/// Counts of a procedure or of an inlined call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Body {
    lines: BTreeMap<At, u64>,
    calls: BTreeMap<At, BTreeMap<String, u64>>,
    inlined: BTreeMap<(At, String), Body>,
}

impl Body {
    fn total(&self) -> u64 {
        let inlined = self.inlined.values().map(Body::total);
        self.lines.values().copied().chain(inlined).fold(0, u64::saturating_add)
    }

    fn write(&self, depth: usize, text: &mut String) {
        let indent = " ".repeat(depth);
        let place = |at: &At| match at.1 {
            0 => at.0.to_string(),
            discriminator => format!("{}.{discriminator}", at.0),
        };
        for (at, count) in &self.lines {
            text.push_str(&format!("{indent}{}: {count}", place(at)));
            for (callee, count) in self.calls.get(at).into_iter().flatten() {
                text.push_str(&format!(" {callee}:{count}"));
            }
            text.push('\n');
        }
        for ((at, callee), body) in &self.inlined {
            text.push_str(&format!("{indent}{}: {callee}:{}\n", place(at), body.total()));
            body.write(depth + 1, text);
        }
    }
}

pub(super) fn llvm(job: &ExportJob, sampled: &mut Sampled) -> Result<Exported, Failure> {
    let mut times = sampled.procedures(false);
    times.sort_by_key(|time| (time.image, time.procedure.as_ref().map(|p| p.start)));
    let sampled = &*sampled;
    let examiner = Examiner::new(sampled, job.machine.as_deref())?;
    let mut bodies: BTreeMap<String, (u64, Body)> = BTreeMap::new();
    let mut told = Count::ZERO;
    for of_image in times.chunk_by(|a, b| a.image == b.image) {
        let Some(first) = of_image.first() else { continue };
        told += image(sampled, &examiner, first.image, of_image, &mut bodies);
    }
    if let (true, Some(unread)) = (bodies.is_empty(), sampled.unread()) {
        return Err(Failure::new(ERROR, unread).remedy("`whither prof` still counts its samples"));
    }
    if bodies.is_empty() {
        return Err(Failure::new(ERROR, "no sampled procedure has line information").remedy(
            "build with -g (clang: -gmlt -fdebug-info-for-profiling), record, export again",
        ));
    }
    let mut order: Vec<(&String, &(u64, Body))> = bodies.iter().collect();
    order.sort_by_key(|(_, (_, body))| std::cmp::Reverse(body.total()));
    let mut text = String::new();
    for (name, (entered, body)) in order {
        text.push_str(&format!("{name}:{}:{entered}\n", body.total()));
        body.write(1, &mut text);
    }
    let mut exported = Exported::text(text, told);
    if told < sampled.whole() {
        let left = sampled.whole().0 - told.0;
        exported.notes.push(format!("{left} samples lie in code without line information"));
    }
    Ok(exported)
}

/// Adds an image's procedures; returns their samples.
fn image(
    sampled: &Sampled,
    examiner: &Examiner<'_>,
    id: ImageId,
    times: &[ProcedureTime],
    bodies: &mut BTreeMap<String, (u64, Body)>,
) -> Count {
    let mut told = Count::ZERO;
    let debug_bytes = sampled.images().debug_bytes(id);
    let Some(debug) = debug_bytes.as_deref().and_then(DebugInfo::read) else { return told };
    let Ok(around) = examiner.callees(id) else { return told };
    let Some((binary, bytes)) = sampled.images().code(id) else { return told };
    let syntax = image::Syntax::Intel;
    let code = Code { binary, bytes, syntax, image: "", debug: Some(&debug) };
    for time in times {
        if add(&code, examiner, &around, time, bodies).is_some() {
            told += time.count;
        }
    }
    told
}

fn add(
    code: &Code<'_>,
    examiner: &Examiner<'_>,
    around: &(Callees<'_>, &Binary),
    time: &ProcedureTime,
    bodies: &mut BTreeMap<String, (u64, Body)>,
) -> Option<()> {
    let procedure = time.procedure.as_ref()?;
    let lines = code.source_lines(procedure);
    let declared_line = lines.declared.as_ref()?.line?;
    let examined = examiner.examine(time, around).ok()?;
    // A part that was moved away is the procedure's own.
    let name = procedure.raw_name.as_deref()?;
    let name = name.strip_suffix(".cold").unwrap_or(name);
    let (entered, body) = bodies.entry(printable(name)?).or_default();
    let entry = examined.graph.entries.first().and_then(|&k| examined.report.blocks.get(k));
    *entered = entry.map_or(0, |block| block.frequency.value.round() as u64).max(*entered);
    fill(body, declared_line, &lines, &examined, code.binary);
    Some(())
}

/// Names with spaces or colons would be something else to LLVM.
fn printable(name: &str) -> Option<String> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == ':';
    (!name.is_empty() && !name.contains(odd)).then(|| name.to_owned())
}

fn fill(body: &mut Body, declared_line: u32, lines: &Lines, examined: &Examined, binary: &Binary) {
    for instruction in &examined.report.instructions {
        let Some(row) = lines.row_at(instruction.address) else { continue };
        let count = instruction.frequency.value.max(0.0).round() as u64;
        let mut chain: Vec<&image::Inline> =
            lines.chain(lines.inline_at(instruction.address)).collect();
        chain.reverse();
        let (mut held, mut base) = (&mut *body, declared_line);
        let mut is_known = true;
        for call in chain {
            let at = (distance(call.call_line, base), call.call_discriminator);
            match (printable(&call.name), call.declared_line) {
                (Some(name), Some(line)) => {
                    held = held.inlined.entry((at, name)).or_default();
                    base = line;
                }
                _ => is_known = false,
            }
        }
        if !is_known {
            continue;
        }
        let at = (distance(row.line, base), row.discriminator);
        let most = held.lines.entry(at).or_default();
        *most = count.max(*most);
        if let Some(callee) = callee(examined, instruction.address, binary) {
            let most = held.calls.entry(at).or_default().entry(callee).or_default();
            *most = count.max(*most);
        }
    }
}

fn distance(line: u32, base: u32) -> u32 {
    line.wrapping_sub(base) & DISTANCE
}

/// The name that a direct call goes to.
fn callee(examined: &Examined, address: u64, binary: &Binary) -> Option<String> {
    let step = examined.graph.steps.get(examined.graph.step_at(address)?)?;
    let target = step.target.filter(|_| step.flow == Flow::Call)?;
    let called = binary.procedures().find(binary.offset_of(target)?)?;
    let raw = called.raw_name.as_deref()?;
    printable(raw.strip_suffix("@plt").unwrap_or(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_written_as_llvm_documents_it() {
        let mut body = Body::default();
        body.lines.extend([((2, 0), 10), ((3, 0), 590), ((4, 3), 5)]);
        body.calls.insert((3, 0), BTreeMap::from([("foo".to_owned(), 590)]));
        let inner = Body { lines: BTreeMap::from([((1, 0), 600)]), ..Body::default() };
        body.inlined.insert(((4, 0), "bar".into()), inner);
        let mut text = String::new();
        body.write(1, &mut text);
        assert_eq!(text, " 2: 10\n 3: 590 foo:590\n 4.3: 5\n 4: bar:600\n  1: 600\n");
        assert_eq!(body.total(), 1205);
    }

    #[test]
    fn a_line_above_its_declaration_wraps_as_llvm_has_it() {
        assert_eq!(distance(10, 8), 2);
        assert_eq!(distance(8, 10), 0xfffe);
        assert_eq!(printable("a b"), None);
    }
}
