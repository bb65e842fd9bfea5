//! The CPI stack: every cycle, by what held it up.

use model::cause::Cause;
use model::event::Event;
use show::{Body, Cell, Column, Row, Section, Table, Tone, Unit};
use vocab::Source;

use super::account::Totals;
use crate::cli::ModelJob;

/// What a stall waited for, in the reader's words.
fn words(cause: Cause) -> (&'static str, &'static str) {
    match cause {
        Cause::Mispredict => ("mispredict", "mispredicted branches"),
        Cause::Resteer => ("resteer", "taken branches that the target buffer did not know"),
        Cause::Code => ("code", "instruction-cache misses"),
        Cause::CodeTlb => ("code_tlb", "instruction-TLB misses"),
        Cause::Fetch => ("fetch", "fetch bandwidth and other front-end waits"),
        Cause::L1d => ("l1d", "loads that hit the first-level cache"),
        Cause::L2 => ("l2", "loads from the second level"),
        Cause::L3 => ("l3", "loads from the third level"),
        Cause::Memory => ("memory", "loads from memory"),
        Cause::DataTlb => ("data_tlb", "data-TLB misses"),
        Cause::Forward => ("forward", "loads that waited for an older store"),
        Cause::Store => ("store", "a full store queue"),
        Cause::Integer => ("integer", "short integer work and branches"),
        Cause::LongInteger => ("long_integer", "integer multiplication and division"),
        Cause::Float => ("float", "floating-point and vector work"),
        Cause::Other => ("other", "fences and microcode"),
    }
}

/// Every cycle retires something or has one cause: the rows add up to the cycles, exactly.
pub(crate) fn section(totals: &Totals, job: &ModelJob) -> Section {
    let total = |event| totals.of(event).value.round() as u64;
    let caption = format!("{}: {}; every cycle once", Source::Modelled.word(), job.machine.title);
    let mut rows = vec![(("retiring", "instructions retiring"), Event::RetireCycles, None)];
    for cause in Cause::ALL {
        let charged = total(cause.charged_event());
        rows.push((words(cause), cause.exact_event(), Some(charged)));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(total(row.1)));
    let per_instruction = 1.0 / total(Event::Instructions).max(1) as f64;
    let whole = total(Event::Cycles).max(1) as f64;
    let row = |((key, text), event, charged): ((&'static str, &str), Event, Option<u64>)| {
        let cycles = total(event);
        let share = cycles as f64 / whole;
        let charged =
            charged.map_or(Cell::Empty, |cycles| Cell::Number(cycles as f64 / whole, Unit::Share));
        Row::Cells(
            tone(share),
            vec![
                Cell::Number(share, Unit::Share),
                Cell::Number(cycles as f64 * per_instruction, Unit::Number),
                totals.cell(event),
                charged,
                Cell::Word { key, text: text.to_owned() },
            ],
        )
    };
    let rows =
        rows.into_iter().filter(|row| total(row.1) > 0 || row.2 > Some(0)).map(row).collect();
    let columns = vec![
        Column::number("share", "share"),
        Column::number("cpi", "CPI"),
        Column::number("cycles", "cycles"),
        Column::number("charged_share", "charged"),
        Column::text("cause", "waiting for"),
    ];
    Section {
        key: "cpi_stack",
        title: "WHAT THE CYCLES WAITED FOR".into(),
        caption,
        body: Body::Table(Table { columns, rows, text_rows: None }),
    }
}

fn tone(share: f64) -> Tone {
    match share {
        share if share >= 0.2 => Tone::Hot,
        share if share >= 0.05 => Tone::Warm,
        share if share >= 0.005 => Tone::Plain,
        _ => Tone::Faint,
    }
}
