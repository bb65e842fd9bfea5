//! Culprits against the true causes of stalls.

use std::collections::BTreeMap;

use analyse::DynamicCause;
use model::cause::Cause;

use super::{Examined, Program, Seen, Use};

/// One procedure's instruction-cache stalls, in cycles, and its misses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodeStalls {
    /// The procedure's cycles.
    pub cycles: f64,
    /// Exact misses.
    pub misses: f64,
    /// The least that is its fault, and the most.
    pub range: (f64, f64),
}

/// How well stalls are explained.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blamed {
    /// Cycles of all procedures, as sampled.
    pub cycles: f64,
    /// Of these, stalls that nobody is left to blame for.
    pub unexplained: f64,
    /// True cycles of dynamic stall, and those whose true cause is listed.
    pub stall: (f64, f64),
    /// Those whose true cause is listed or, where no stall stands out, not ruled out.
    pub suspected: f64,
    /// The same by true cause.
    pub by_cause: BTreeMap<&'static str, (f64, f64)>,
    /// Ranges of procedure × cause, and those that hold the truth.
    pub ranges: (u64, u64),
    /// Cycles of truth outside its range, by cause.
    pub missed: BTreeMap<&'static str, f64>,
    /// Instruction-cache stalls by procedure.
    pub code: Vec<CodeStalls>,
}

/// The culprit that a true cause is known as.
pub fn culprit_of(cause: Cause) -> DynamicCause {
    match cause {
        Cause::Mispredict => DynamicCause::Mispredict,
        Cause::Code => DynamicCause::CodeCache,
        Cause::CodeTlb => DynamicCause::CodeTlb,
        Cause::Resteer | Cause::Fetch => DynamicCause::Fetch,
        Cause::L2 | Cause::L3 | Cause::Memory => DynamicCause::DataCache,
        Cause::DataTlb => DynamicCause::DataTlb,
        Cause::Forward => DynamicCause::Forward,
        Cause::Store => DynamicCause::StoreBuffer,
        Cause::L1d | Cause::Integer => DynamicCause::Dependence,
        Cause::LongInteger => DynamicCause::IntegerUnit,
        Cause::Float => DynamicCause::FloatUnit,
        Cause::Other => DynamicCause::Synchronisation,
    }
}

/// Static stalls show as one of these, in this order: they are what remains when nothing goes
/// wrong.
const OF_CODE: [DynamicCause; 5] = [
    DynamicCause::Dependence,
    DynamicCause::IntegerUnit,
    DynamicCause::FloatUnit,
    DynamicCause::Fetch,
    DynamicCause::Forward,
];

/// Judges every procedure of a program.
pub fn judge_culprits(program: &Program, used: Use) -> Blamed {
    let mut blamed = Blamed::default();
    program
        .examine(used, |examined| procedure(examined, program.periods.cycles as f64, &mut blamed));
    blamed
}

fn procedure(examined: &Examined<'_>, period: f64, blamed: &mut Blamed) {
    let summary = &examined.report.summary;
    let cycles = summary.samples as f64 * period;
    blamed.cycles += cycles;
    blamed.unexplained += summary.unexplained_stall * cycles;
    let mut truth: BTreeMap<DynamicCause, f64> = BTreeMap::new();
    let mut misses = 0.0;
    for it in &examined.report.instructions {
        let Some(seen) = examined.truth.get(&it.address) else { continue };
        misses += seen.3 as f64;
        let statics = it.static_stall.map_or(0.0, |stall| stall.cycles * seen.1 as f64);
        for (cause, stalled) in dynamic(seen, statics) {
            let is_listed = it.culprits.iter().any(|culprit| culprit.cause == cause);
            let listed = if is_listed { stalled } else { 0.0 };
            let is_suspect = is_listed || it.suspects.iter().any(|suspect| suspect.cause == cause);
            blamed.suspected += if is_suspect { stalled } else { 0.0 };
            blamed.stall = (blamed.stall.0 + stalled, blamed.stall.1 + listed);
            let by = blamed.by_cause.entry(cause.key()).or_default();
            *by = (by.0 + stalled, by.1 + listed);
            *truth.entry(cause).or_default() += stalled;
        }
    }
    for range in &summary.dynamic {
        let held = truth.get(&range.cause).copied().unwrap_or(0.0) / cycles.max(1.0);
        // Less than one cycle in a thousand is nobody's question.
        if held < 0.001 && range.share_max < 0.001 {
            continue;
        }
        let is_held = (range.share_min - 0.001..=range.share_max + 0.001).contains(&held);
        blamed.ranges = (blamed.ranges.0 + 1, blamed.ranges.1 + u64::from(is_held));
        if !is_held {
            let off = (range.share_min - held).max(held - range.share_max) * cycles;
            *blamed.missed.entry(range.cause.key()).or_default() += off;
        }
    }
    let code = summary.dynamic.iter().find(|range| range.cause == DynamicCause::CodeCache);
    blamed.code.extend(code.map(|range| CodeStalls {
        cycles,
        misses,
        range: (range.share_min * cycles, range.share_max * cycles),
    }));
}

/// An instruction's true stall cycles by culprit, less what the code itself makes.
fn dynamic(seen: &Seen, mut statics: f64) -> BTreeMap<DynamicCause, f64> {
    let mut stalls: BTreeMap<DynamicCause, f64> = BTreeMap::new();
    for &(cause, cycles) in &seen.4 {
        if let Some(&cause) = Cause::ALL.get(usize::from(cause)) {
            *stalls.entry(culprit_of(cause)).or_default() += cycles as f64;
        }
    }
    for cause in OF_CODE {
        if let Some(held) = stalls.get_mut(&cause) {
            let of_code = held.min(statics);
            *held -= of_code;
            statics -= of_code;
        }
    }
    stalls.retain(|_, cycles| *cycles > 0.0);
    stalls
}

/// The correlation coefficient of pairs; none for fewer than three or where nothing varies.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    if pairs.len() < 3 {
        return None;
    }
    let (mx, my) = pairs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        xx += (x - mx) * (x - mx);
        yy += (y - my) * (y - my);
        xy += (x - mx) * (y - my);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_code_makes_is_taken_off_the_work_and_never_off_a_miss() {
        let causes = vec![(Cause::Integer as u8, 30), (Cause::L2 as u8, 50)];
        let seen = Seen(0, 10, 0, 0, causes, Vec::new());
        let left = dynamic(&seen, 40.0);
        assert_eq!(left.get(&DynamicCause::DataCache), Some(&50.0));
        assert_eq!(left.get(&DynamicCause::Dependence), None);
    }

    #[test]
    fn correlation_is_one_on_a_line_and_less_off_it() {
        let line: Vec<(f64, f64)> = (0..9).map(|k| (f64::from(k), 3.0 * f64::from(k))).collect();
        assert!((correlation(&line).unwrap() - 1.0).abs() < 1e-12);
        let square = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)];
        assert!(correlation(&square).unwrap().abs() < 1e-12);
        assert_eq!(correlation(&line[..2]), None);
    }
}
