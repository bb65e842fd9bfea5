//! DCPI's copy loop, from the counts that the paper prints.
//!
//! Figure 7 gives samples and the least cycles of each instruction; the frequency follows by our
//! rules, and with it the cycles at the head of the queue, which figure 2 prints in half cycles,
//! one line of its listing each.

use analyse::{ClassMember, in_order_frequency};
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::result::{Figure, RowResult};

/// Address, instruction, samples, least cycles.
type Line = (u64, &'static str, u64, f64);

/// The paper's figure 7.
const LOOP: [Line; 13] = [
    (0x9810, "ldq t4, 0(t1)", 3126, 1.0),
    (0x9814, "addq t0, 0x4, t0", 0, 0.0),
    (0x9818, "ldq t5, 8(t1)", 1636, 1.0),
    (0x981c, "ldq t6, 16(t1)", 390, 0.0),
    (0x9820, "ldq a0, 24(t1)", 1482, 1.0),
    (0x9824, "lda t1, 32(t1)", 0, 0.0),
    (0x9828, "stq t4, 0(t2)", 27_766, 1.0),
    (0x982c, "cmpult t0, v0, t4", 0, 0.0),
    (0x9830, "stq t5, 8(t2)", 1493, 1.0),
    (0x9834, "stq t6, 16(t2)", 174_727, 1.0),
    (0x9838, "stq a0, 24(t2)", 1548, 1.0),
    (0x983c, "lda t2, 32(t2)", 0, 0.0),
    (0x9840, "bne t4, 0x9810", 1586, 1.0),
];

/// Longer than any stall of a 21164: a miss to memory behind a full write buffer and a TLB fill.
const LONGEST_STALL_CYCLES: f64 = 500.0;

const COLUMNS: [Column; 6] = [
    Column::text("address", "address"),
    Column::text("instruction", "instruction"),
    Column::number("samples", "samples"),
    Column::number("least_cycles", "least cycles"),
    Column::number("cycles", "cycles"),
    Column::text("used", "averaged"),
];

pub(super) fn run(_context: &Context) -> Result<RowResult, String> {
    let member = |&(_, _, samples, least_cycles): &Line| ClassMember {
        samples,
        least_cycles,
        waits_for: None,
    };
    let members: Vec<ClassMember> = LOOP.iter().map(member).collect();
    let found = in_order_frequency(&members, LONGEST_STALL_CYCLES)
        .ok_or("the loop has no issue point, so it has no frequency")?;
    let frequency = found.frequency.value;
    let half_cycles = |samples: u64| (2.0 * samples as f64 / frequency).round() / 2.0;
    let cycles: Vec<f64> = LOOP.iter().map(|line| half_cycles(line.2)).collect();
    let instructions = LOOP.len() as f64;
    let at = |address: u64| LOOP.iter().position(|line| line.0 == address).map(|k| cycles[k]);
    let mut result = RowResult {
        caption: "samples and least cycles from the paper's figure 7; cycles in halves".to_owned(),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    let best: f64 = LOOP.iter().map(|line| line.3).sum();
    result.ours = vec![
        Figure::exact("frequency", frequency.round()),
        Figure::exact("best_cpi", best / instructions),
        Figure::exact("actual_cpi", cycles.iter().sum::<f64>() / instructions),
    ];
    let stalls = [("stall_9828", at(0x9828)), ("stall_9834", at(0x9834))];
    let stalls = stalls.into_iter().filter_map(|(key, stall)| Some(Figure::exact(key, stall?)));
    result.ours.extend(stalls);
    for (k, &(address, instruction, samples, least)) in LOOP.iter().enumerate() {
        let used = if found.used.contains(&k) { "yes" } else { "" };
        result.detail.rows.push(Row::Cells(
            Tone::Plain,
            vec![
                Cell::text(format!("{address:06x}")),
                Cell::text(instruction),
                Cell::Number(samples as f64, Unit::Count),
                Cell::Number(least, Unit::Number),
                Cell::Number(cycles[k], Unit::Number),
                Cell::text(used),
            ],
        ));
    }
    result.notes.push(
        "the least cycles are the paper's: its scheduler looked at the block alone, so that the \
         first load has 1 where its loop gives 2"
            .to_owned(),
    );
    Ok(result)
}
