//! Figure 3 and section 4.2: what twice the window gains where a loop is short, and where it is
//! long.

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::{Wanted, answers, mean_of};
use crate::context::Context;
use crate::idealise::{Answer, Times, Variant};
use crate::result::{Figure, RowResult};

const WINDOWS: usize = 20;
const QUICK_WINDOWS: usize = 8;
const WINDOW_INSTRUCTIONS: u64 = 50_000;

/// A loop of the machine, short and long: the figure's key and the fact.
const LOOPS: [(&str, &str, u32); 4] = [
    ("gain_latency_1_pct", "caches.l1d.latency_cycles", 1),
    ("gain_latency_4_pct", "caches.l1d.latency_cycles", 4),
    ("gain_wakeup_1_pct", "window.wakeup_cycles", 1),
    ("gain_wakeup_2_pct", "window.wakeup_cycles", 2),
];

fn wanted(windows: usize) -> Wanted {
    let sizes = [64, 128];
    let variant = |&(_, key, value): &(&str, &str, u32), size: u32| {
        // The window is what limits: the queues grow with it.
        let window = ["window.rob", "window.load_queue", "window.store_queue"];
        let mut facts: Vec<(&str, u32)> = window.iter().map(|&key| (key, size)).collect();
        facts.push((key, value));
        Variant::table_6(&facts)
    };
    let variants = LOOPS.iter().flat_map(|one| sizes.map(|size| variant(one, size))).collect();
    Wanted {
        row: "icost-window",
        variants,
        windows,
        window_instructions: WINDOW_INSTRUCTIONS,
        most: 0,
        really: false,
        shotgun: None,
    }
}

pub(in crate::rows) fn run(context: &Context) -> Result<RowResult, String> {
    let windows = if context.quick { QUICK_WINDOWS } else { WINDOWS };
    let (found, mut result) = answers(context, &wanted(windows))?;
    fill(&mut result, &found, context.size_name());
    Ok(result)
}

fn fill(result: &mut RowResult, found: &[(String, Answer)], size: &str) {
    result.caption = format!("{size} size; the machine of table 6; windows of 64 and of 128");
    let cycles = |times: &[Times]| times.iter().map(|time| time.cycles).sum::<f64>();
    let gain = |answer: &Answer, place: usize| {
        let of = |variant: usize| answer.variants.get(variant).map_or(f64::NAN, |t| cycles(t));
        100.0 * (of(2 * place) / of(2 * place + 1) - 1.0)
    };
    let means: Vec<f64> = (0..LOOPS.len())
        .map(|place| {
            mean_of(&found.iter().map(|(_, answer)| gain(answer, place)).collect::<Vec<_>>())
        })
        .collect();
    for ((key, _, _), &mean) in LOOPS.iter().zip(&means) {
        result.ours.push(Figure::exact(key, mean));
    }
    let agree = means.chunks(2).filter(|pair| matches!(pair, [short, long] if long > short));
    result.ours.push(Figure::exact("directions_agree", agree.count() as f64));
    let mut columns = vec![Column::text("program", "program")];
    let headings = ["latency 1", "latency 4", "wakeup 1", "wakeup 2"];
    columns.extend(LOOPS.iter().zip(headings).map(|(one, heading)| Column::number(one.0, heading)));
    let row = |(name, answer): &(String, Answer)| {
        let mut cells = vec![Cell::text(name)];
        let gains = (0..LOOPS.len()).map(|place| gain(answer, place));
        cells.extend(gains.map(|gain| Cell::Number(gain, Unit::Number)));
        Row::Cells(Tone::Plain, cells)
    };
    result.detail = Table { columns, rows: found.iter().map(row).collect(), text_rows: None };
    result.notes.push("gains: cycles at 64 over cycles at 128, less one, in percent".to_owned());
}
