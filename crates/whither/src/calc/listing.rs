//! The listing of figure 2: blocks with their CPI, instructions with bubbles before them.

use std::collections::BTreeSet;

use analyse::{BlockReport, InstructionReport, ProcedureReport, Suspect};
use metrology::Coverage;
use show::{Body, Cell, Column, Row, Section, Table, Tone, Unit};
use vocab::Count;

use super::Calculated;
use crate::examined::{frequency_cell, instruction_cycles, is_vague, least_cpi, least_of, word};
use crate::listing::{CodeLine, Listing, Sources, aside, bubbles};

/// A block with less than this share of the procedure's samples is passed over in text.
const LEAST_SHARE: f64 = 0.01;
/// A bound below this would be written as nothing.
const LEAST_SHOWN: f64 = 0.05;
/// Pages that have room for those who are not cleared.
const SUSPECTS_COLUMNS: usize = 100;
/// Blocks that text shows, the hottest; JSON has all.
const BLOCKS_MAX: usize = 40;

pub(super) fn section(calculated: &Calculated, whole: bool, sources: &mut Sources) -> Section {
    let report = &calculated.examined.report;
    let shown = shown_blocks(report, whole);
    let mut explained = BTreeSet::new();
    let mut rows = Vec::new();
    let (mut block, mut skipped, mut from) = (None, 0, None);
    for line in &calculated.listing.lines {
        let found = report.at(line.address);
        let is_shown = found.is_some_and(|it| shown.contains(&it.block));
        let cells = cells(line, found, &calculated.listing);
        if !is_shown {
            skipped += 1;
            rows.push(Row::InJson(cells));
            continue;
        }
        if skipped > 0 {
            rows.push(Row::Gap(format!("{skipped} instructions of little weight")));
            (skipped, block, from) = (0, None, None);
        }
        let Some(instruction) = found else { continue };
        if block != Some(instruction.block) {
            rows.extend(report.blocks.get(instruction.block).into_iter().flat_map(heading));
            block = Some(instruction.block);
        }
        if line.from.is_some() && line.from != from {
            from.clone_from(&line.from);
            rows.extend(line.from.iter().map(|at| aside(&calculated.listing, at, sources)));
        }
        let before = bubbles::before(instruction, &mut explained);
        rows.extend(
            before.into_iter().map(|b| Row::Aside(Tone::Bad, "instruction", format!("  {b}"))),
        );
        rows.push(Row::Cells(tone(instruction, report), cells));
    }
    if skipped > 0 {
        rows.push(Row::Gap(format!("{skipped} instructions of little weight")));
    }
    Section {
        key: "code",
        title: "INSTRUCTION BY INSTRUCTION".into(),
        caption: "cycles at the head of the queue each time it ran; letters before an instruction \
                  are what may have held it up"
            .into(),
        body: Body::Table(Table { columns: columns(), rows, text_rows: None }),
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::number("offset", "offset"),
        Column::text("instruction", "instruction"),
        Column::number("samples", "samples"),
        Column::number("cycles", "").only_in_json(),
        Column::number("least_cycles", "").only_in_json(),
        Column::number("head", "cycles").only_in_text(),
        Column::number("frequency", "").only_in_json(),
        Column::text("confidence", "").only_in_json(),
        Column::text("culprit", "culprit").on_pages_of(70),
        Column::text("suspects", "may hide").only_in_text().on_pages_of(SUSPECTS_COLUMNS),
        Column::number("block", "").only_in_json(),
    ]
}

/// The blocks worth reading.
fn shown_blocks(report: &ProcedureReport, whole: bool) -> BTreeSet<usize> {
    let all: u64 = report.blocks.iter().map(|block| block.samples).sum();
    let mut order: Vec<usize> = (0..report.blocks.len()).collect();
    if whole {
        return order.into_iter().collect();
    }
    let samples = |k: &usize| report.blocks.get(*k).map_or(0, |block| block.samples);
    order.retain(|k| samples(k) as f64 >= LEAST_SHARE * (all as f64).max(1.0));
    order.sort_by_key(|k| std::cmp::Reverse(samples(k)));
    order.truncate(BLOCKS_MAX);
    order.into_iter().collect()
}

/// `*** Best-case 8/13 = 0.62 CPI`, `*** Actual 140/13 = 10.77 CPI`, and how often it ran.
fn heading(block: &BlockReport) -> Vec<Row> {
    let n = block.instructions;
    let told = |what: String| Row::Aside(Tone::Heading, "instruction", format!("*** {what}"));
    let best = block.best_cpi * n as f64;
    let mut rows = vec![
        Row::Aside(Tone::Plain, "instruction", String::new()),
        told(format!("Best-case {best:.1}/{n} = {:.2} CPI", block.best_cpi)),
    ];
    if let Some(actual) = block.actual_cpi.filter(|_| is_vague(block.frequency)) {
        let least = least_cpi(actual, block);
        rows.push(told(match least {
            // Filler that other instructions hide has no least.
            least if least < LEAST_SHOWN => "Actual CPI unknown".to_owned(),
            _ => format!("Actual {:.1}/{n} = {least:.2} CPI at least", least * n as f64),
        }));
    } else if let Some(actual) = block.actual_cpi {
        let half = actual.half_width(Coverage::P95);
        let cycles = actual.value * n as f64;
        rows.push(told(format!("Actual {cycles:.1}/{n} = {:.2} ±{half:.2} CPI", actual.value)));
    }
    let ran = frequency_cell(block.frequency).to_text();
    rows.push(told(format!("ran {ran} times, confidence {}", word(block.confidence))));
    rows
}

fn cells(line: &CodeLine, found: Option<&InstructionReport>, listing: &Listing) -> Vec<Cell> {
    let none = Cell::Empty;
    let Some(it) = found else {
        let text = Cell::text(line.text.as_str());
        let mut cells = vec![Cell::Hex(line.offset.0), text];
        cells.resize(columns().len(), none);
        return cells;
    };
    let samples = match it.samples {
        0 => Cell::Empty,
        count => Cell::Count(Count(count)),
    };
    vec![
        Cell::Hex(line.offset.0),
        Cell::text(line.text.as_str()),
        samples,
        instruction_cycles(it),
        Cell::Number(it.least_cycles, Unit::Number),
        head(it),
        frequency_cell(it.frequency),
        Cell::text(word(it.confidence)),
        culprits(it, listing),
        suspects(it),
        Cell::Count(Count(it.block as u64)),
    ]
}

/// `18.0 cy`, or that it left with the one before it.
fn head(it: &InstructionReport) -> Cell {
    match it.cpi {
        None => Cell::Empty,
        Some(_) if it.samples == 0 && it.is_dual_issue() => Cell::text("(dual issue)"),
        Some(cpi) if is_vague(it.frequency) => match least_of(cpi.value, it.frequency) {
            least if least < LEAST_SHOWN => Cell::Empty,
            least => Cell::text(format!("≥ {least:.1} cy")),
        },
        Some(cpi) => Cell::text(format!("{:.1} cy", cpi.value)),
    }
}

/// The places of the instructions that are responsible, each once.
fn culprits(it: &InstructionReport, listing: &Listing) -> Cell {
    let statics = it.static_stall.iter().filter_map(|stall| stall.responsible);
    let dynamic = it.culprits.iter().filter_map(|culprit| culprit.responsible);
    let mut named: Vec<String> = Vec::new();
    for address in dynamic.chain(statics) {
        let text = format!("{:#x}", listing.offset_of(address).0);
        if !named.contains(&text) {
            named.push(text);
        }
    }
    if named.is_empty() { Cell::Empty } else { Cell::text(named.join(" ")) }
}

/// Whom nothing clears of a stall that noise may hide, by their letters: `id`.
fn suspects(it: &InstructionReport) -> Cell {
    let letters: String = worth_naming(it).map(|suspect| suspect.cause.letter()).collect();
    if letters.is_empty() { Cell::Empty } else { Cell::text(letters) }
}

/// Those who may have cost enough to be written.
pub(super) fn worth_naming(it: &InstructionReport) -> impl Iterator<Item = &Suspect> {
    it.suspects.iter().filter(|suspect| suspect.cycles_max >= LEAST_SHOWN)
}

/// What the letters behind the instructions mean.
pub(super) fn legend(report: &ProcedureReport) -> Option<String> {
    let named: BTreeSet<(char, &str)> = report
        .instructions
        .iter()
        .flat_map(worth_naming)
        .map(|suspect| (suspect.cause.letter(), suspect.cause.title()))
        .collect();
    let letters: Vec<String> =
        named.into_iter().map(|(letter, title)| format!("{letter} = {title}")).collect();
    (!letters.is_empty()).then(|| {
        let letters = letters.join(", ");
        format!(
            "noise may hide a stall where none stands out; whom nothing clears of it stands behind \
             the instruction on pages of {SUSPECTS_COLUMNS} columns or more: {letters}"
        )
    })
}

fn tone(it: &InstructionReport, report: &ProcedureReport) -> Tone {
    crate::run::tone(Count(it.samples), Count(report.summary.samples))
}
