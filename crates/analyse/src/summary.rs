//! The whole procedure, line by line as in the paper's figure 4.

use crate::report::{CauseRange, Culprit, DynamicCause, StaticCause, Summary};

/// How one instruction's samples divide.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) samples: u64,
    /// How often it ran, in samples per cycle of the period.
    pub(crate) runs: f64,
    pub(crate) least_cycles: f64,
    pub(crate) static_cause: StaticCause,
    pub(crate) static_samples: f64,
    /// What its least cycles do not explain.
    pub(crate) left: f64,
    /// The standard deviation of that.
    pub(crate) noise: f64,
    /// Whether it is more than noise.
    pub(crate) stands_out: bool,
    pub(crate) culprits: Vec<Culprit>,
    /// The share of what is left that nobody explains.
    pub(crate) unexplained: f64,
    /// What each cause may have cost unseen, in samples, where nothing stands out.
    pub(crate) hidden: Vec<(DynamicCause, f64)>,
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            samples: 0,
            runs: 0.0,
            least_cycles: 0.0,
            static_cause: StaticCause::Slotting,
            static_samples: 0.0,
            left: 0.0,
            noise: 0.0,
            stands_out: false,
            culprits: Vec::new(),
            unexplained: 0.0,
            hidden: Vec::new(),
        }
    }
}

/// Adds the instructions up.
pub(crate) fn summarise(cells: &[Cell], samples: u64, of_all: u64, cycles_each: f64) -> Summary {
    let total = samples.max(1) as f64;
    let sum = |part: &dyn Fn(&Cell) -> f64| cells.iter().map(part).sum::<f64>() / total;
    let stall = |cell: &Cell| if cell.stands_out { cell.left.max(0.0) } else { 0.0 };
    let range = |cause: DynamicCause| {
        let of = |share: fn(&Culprit) -> f64| {
            sum(&|cell| {
                let mine = cell.culprits.iter().filter(|culprit| culprit.cause == cause);
                stall(cell) * mine.map(share).sum::<f64>()
            })
        };
        // Counting noise widens what is known of the stalls that it stands for.
        let spread = cells.iter().filter(|cell| cell.culprits.iter().any(|c| c.cause == cause));
        let noise = spread.map(|cell| cell.noise * cell.noise).sum::<f64>().sqrt() / total;
        let hidden = cells.iter().flat_map(|cell| &cell.hidden).filter(|(of, _)| *of == cause);
        let hidden = hidden.map(|(_, most)| most * most).sum::<f64>().sqrt() / total;
        CauseRange {
            cause,
            share_min: (of(|culprit| culprit.share_min) - 2.0 * noise).max(0.0),
            share_max: (of(|culprit| culprit.share_max) + (2.0 * noise).hypot(hidden)).min(1.0),
        }
    };
    let statics: Vec<(StaticCause, f64)> = StaticCause::ALL
        .into_iter()
        .map(|cause| {
            let of = |cell: &Cell| match cell.static_cause == cause {
                true => cell.static_samples,
                false => 0.0,
            };
            (cause, sum(&of))
        })
        .collect();
    let subtotal_static: f64 = statics.iter().map(|(_, share)| share).sum();
    let stalls = sum(&stall);
    let unexplained_gain = sum(&|cell| if cell.stands_out { cell.left.min(0.0) } else { 0.0 });
    let subtotal_dynamic = stalls + unexplained_gain;
    let best = sum(&|cell| cell.runs * cell.least_cycles);
    // Out of order, least cycles spent in another's shadow were not spent again.
    let execution = 1.0
        - subtotal_dynamic
        - subtotal_static
        - sum(&|cell| if cell.stands_out { 0.0 } else { cell.left });
    let sampling_error = sum(&|cell| if cell.stands_out { 0.0 } else { cell.left });
    Summary {
        best_case: best * total,
        actual: total,
        executions: cells.iter().map(|cell| cell.runs).sum(),
        dynamic: DynamicCause::ALL.into_iter().map(range).collect(),
        unexplained_stall: sum(&|cell| stall(cell) * cell.unexplained),
        unexplained_gain,
        subtotal_dynamic,
        statics,
        subtotal_static,
        total_stall: subtotal_static + subtotal_dynamic,
        execution,
        sampling_error,
        total_tallied: subtotal_static + subtotal_dynamic + execution + sampling_error,
        samples,
        share_of_all: samples as f64 / of_all.max(1) as f64,
        cycles_per_sample: cycles_each,
    }
}
