//! The frequency of a class on a core that issues in order, from where samples are fewest.
//!
//! An instruction is sampled in proportion to its runs times the cycles that it spends at the head
//! of the queue. Without dynamic stalls those are the least cycles `M` of the static schedule, so
//! samples over `M` is the frequency; stalls only ever add to it. The small ratios therefore tell.
//!
//! ```text
//! S/M   1482 1493 1548 1586 │ 3126 │ 27766 │ 174727        the copy loop of figure 7
//!       └───── cluster ────┘   └── stalled ──────┘         mean 1527
//! ```
//!
//! The paper says 'various rules' choose the ratios. Ours:
//!
//! 1. An issue point whose companions (issued with it, `M` = 0) were themselves sampled did not
//!    always issue as scheduled, so its `M` is in doubt: it is left out where others remain.
//! 2. Where an issue point waits for an instruction a few places before it, both sums run from
//!    behind that instruction, since a stall in between hides part of the wait.
//! 3. A cluster spans at most a factor of 1.5 from its smallest ratio. It is passed over if it
//!    holds too few of the points, or if it would mean a stall longer than the machine can make.
//! 4. Chance makes some of the small ratios small. So the cluster only says where to look: every
//!    point that chance alone may have put beside its mean then counts, ΣS/ΣM, until no more come.
//! 5. With few samples in all, every point counts: ΣS/ΣM.

use metrology::Estimate;

/// An instruction of a class, in program order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassMember {
    /// Samples there.
    pub samples: u64,
    /// The least cycles that it spends at the head of the queue; 0 if it issues with the one
    /// before it.
    pub least_cycles: f64,
    /// How many places before it the instruction stands that its wait depends on.
    pub waits_for: Option<usize>,
}

/// How far an estimate is to be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// Wrong by more than a sixth more often than not would be no surprise.
    Low,
    /// Few points or few samples stand behind it.
    Medium,
    /// Several points agree.
    High,
}

/// How often a class ran, in samples per cycle of the period.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassFrequency {
    /// The estimate; its uncertainty is that of counting alone.
    pub frequency: Estimate,
    /// How far to trust it.
    pub confidence: Confidence,
    /// The members whose ratios were averaged.
    pub used: Vec<usize>,
}

/// Below this many samples in a class no ratio of its own is worth looking at.
const FEW_SAMPLES: u64 = 40;
/// The largest ratio of a cluster over its smallest.
const CLUSTER_SPAN: f64 = 1.5;
/// The least share of the issue points that a cluster must hold.
const CLUSTER_SHARE: f64 = 0.25;

/// A member's ratio, and the samples that it rests on.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    member: usize,
    value: f64,
    samples: u64,
    cycles: f64,
}

/// The frequency of a class whose instructions are these. `longest_stall_cycles` is the longest
/// that the machine can make an instruction wait.
///
/// None if the class has no issue point: then only flow can tell.
pub fn in_order_frequency(
    members: &[ClassMember],
    longest_stall_cycles: f64,
) -> Option<ClassFrequency> {
    let ratios = trusted(members, ratios(members));
    if ratios.is_empty() {
        return None;
    }
    let samples: u64 = members.iter().map(|member| member.samples).sum();
    if samples < FEW_SAMPLES {
        return Some(pooled(members, samples));
    }
    let chosen = beside(&ratios, cluster(&ratios, longest_stall_cycles));
    // Samples are counts: the variance of ΣS/ΣM is ΣS/(ΣM)².
    let samples = chosen.iter().map(|ratio| ratio.samples).sum::<u64>() as f64;
    let cycles: f64 = chosen.iter().map(|ratio| ratio.cycles).sum();
    let used: Vec<usize> = chosen.iter().map(|ratio| ratio.member).collect();
    let confidence = confidence(&chosen, ratios.len());
    let frequency = Estimate::known(samples / cycles, samples.max(1.0).sqrt() / cycles);
    Some(ClassFrequency { frequency, confidence, used })
}

/// How far from the mean chance may put a point, in standard deviations of its count.
const CHANCE: f64 = 2.0;
/// How far a schedule may be off, besides.
const SCHEDULE_OFF: f64 = 0.03;

/// All points that chance may have put beside the mean of a cluster.
fn beside(ratios: &[Ratio], cluster: Vec<Ratio>) -> Vec<Ratio> {
    let mut chosen = cluster;
    for _ in 0..8 {
        let samples = chosen.iter().map(|ratio| ratio.samples).sum::<u64>() as f64;
        let mean = samples / chosen.iter().map(|ratio| ratio.cycles).sum::<f64>();
        let is_beside = |ratio: &&Ratio| {
            let expected = mean * ratio.cycles;
            let off = (ratio.samples as f64 - expected).abs();
            off <= CHANCE * expected.sqrt() + SCHEDULE_OFF * expected
        };
        let mut next: Vec<Ratio> = ratios.iter().filter(is_beside).copied().collect();
        next.sort_by(|a, b| a.value.total_cmp(&b.value));
        let is_settled = next.len() == chosen.len();
        if next.is_empty() {
            break;
        }
        chosen = next;
        if is_settled {
            break;
        }
    }
    chosen
}

/// Too few samples to tell points apart.
fn pooled(members: &[ClassMember], samples: u64) -> ClassFrequency {
    let cycles: f64 = members.iter().map(|member| member.least_cycles).sum();
    // Of no samples we know only that there were fewer than a few.
    let sigma = (samples.max(1) as f64).sqrt();
    ClassFrequency {
        frequency: Estimate::known(samples as f64 / cycles, sigma / cycles),
        confidence: Confidence::Low,
        used: (0..members.len()).collect(),
    }
}

fn ratios(members: &[ClassMember]) -> Vec<Ratio> {
    let ratio = |(k, member): (usize, &ClassMember)| {
        let back = member.waits_for.unwrap_or(1).clamp(1, k + 1);
        let waited = members.get(k + 1 - back..=k)?;
        let samples = waited.iter().map(|m| m.samples).sum();
        let cycles: f64 = waited.iter().map(|m| m.least_cycles).sum();
        Some(Ratio { member: k, value: samples as f64 / cycles, samples, cycles })
    };
    let points = members.iter().enumerate().filter(|(_, member)| member.least_cycles > 0.0);
    points.filter_map(ratio).collect()
}

/// Leaves out points whose companions were sampled, where others remain.
fn trusted(members: &[ClassMember], ratios: Vec<Ratio>) -> Vec<Ratio> {
    let is_sound = |ratio: &Ratio| {
        let behind = members.get(ratio.member + 1..).unwrap_or(&[]);
        let companions = behind.iter().take_while(|member| member.least_cycles == 0.0);
        let strays: u64 = companions.map(|member| member.samples).sum();
        // A few strays are skid; more than a twentieth is another schedule.
        strays as f64 <= 0.05 * ratio.samples as f64 + 3.0 * (strays as f64).sqrt()
    };
    let sound: Vec<Ratio> = ratios.iter().copied().filter(is_sound).collect();
    if sound.is_empty() { ratios } else { sound }
}

/// The smallest ratios that stand together.
fn cluster(ratios: &[Ratio], longest_stall_cycles: f64) -> Vec<Ratio> {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let largest = sorted.last().map_or(0.0, |ratio| ratio.value);
    let least = (CLUSTER_SHARE * sorted.len() as f64).max(1.0);
    let mut first = 0;
    while let Some(start) = sorted.get(first) {
        let behind = sorted.partition_point(|ratio| ratio.value <= CLUSTER_SPAN * start.value);
        let found = &sorted[first..behind.max(first + 1)];
        let mean = found.iter().map(|ratio| ratio.value).sum::<f64>() / found.len() as f64;
        let is_possible = largest <= longest_stall_cycles * mean;
        if found.len() as f64 >= least && mean > 0.0 && is_possible {
            return found.to_vec();
        }
        first += found.len();
    }
    sorted
}

fn confidence(chosen: &[Ratio], points: usize) -> Confidence {
    let samples: u64 = chosen.iter().map(|ratio| ratio.samples).sum();
    match (chosen.len(), samples) {
        (3.., 200..) if 2 * chosen.len() >= points => Confidence::High,
        (5.., 200..) => Confidence::High,
        (2.., 60..) => Confidence::Medium,
        _ => Confidence::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(list: &[(u64, f64)]) -> Vec<ClassMember> {
        let member = |&(samples, least_cycles): &(u64, f64)| ClassMember {
            samples,
            least_cycles,
            waits_for: None,
        };
        list.iter().map(member).collect()
    }

    #[test]
    fn stalled_points_do_not_count_and_the_rest_is_averaged() {
        let points = [(1000, 1.0), (0, 0.0), (2040, 2.0), (990, 1.0), (70_000, 1.0), (5_000, 1.0)];
        let found = in_order_frequency(&members(&points), 500.0).unwrap();
        assert_eq!(found.used, [3, 0, 2]);
        // Four cycles in all, the second point's two among them.
        assert!((found.frequency.value - 4030.0 / 4.0).abs() < 1e-9);
        assert!((found.frequency.standard_uncertainty - 4030_f64.sqrt() / 4.0).abs() < 1e-9);
        assert_eq!(found.confidence, Confidence::High);
    }

    #[test]
    fn points_that_chance_made_large_count_as_those_that_it_made_small() {
        // Twelve points of 100 ± 10: the cluster of a factor of 1.5 would take the small ones.
        let counts = [81, 88, 92, 95, 98, 100, 101, 104, 107, 111, 117, 119];
        let points: Vec<(u64, f64)> = counts.iter().map(|&count| (count, 1.0)).collect();
        let found = in_order_frequency(&members(&points), 500.0).unwrap();
        assert_eq!(found.used.len(), 12);
        assert!((found.frequency.value - 1213.0 / 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_point_that_seldom_issued_alone_is_left_out() {
        // The second point's companion was sampled a quarter as often.
        let points = [(1500, 1.0), (1600, 1.0), (400, 0.0), (1510, 1.0)];
        let found = in_order_frequency(&members(&points), 500.0).unwrap();
        assert_eq!(found.used, [0, 3]);
    }

    #[test]
    fn a_cluster_that_would_need_an_impossible_stall_is_passed_over() {
        // One odd point of ten samples would mean that another waits 10,000 cycles.
        let points = [(10, 1.0), (9_000, 1.0), (9_100, 1.0), (100_000, 1.0)];
        let found = in_order_frequency(&members(&points), 200.0).unwrap();
        assert_eq!(found.used, [1, 2]);
    }

    #[test]
    fn a_wait_for_an_earlier_instruction_is_taken_over_both() {
        // The third waits 3 cycles behind the first; the second stalled for a cycle and hid one.
        let mut list = members(&[(1000, 1.0), (2000, 1.0), (2000, 3.0)]);
        list[2].waits_for = Some(2);
        let found = in_order_frequency(&list, 500.0).unwrap();
        assert_eq!(found.used, [0, 2]);
        assert!((found.frequency.value - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn few_samples_are_pooled_and_no_issue_point_says_nothing() {
        let found = in_order_frequency(&members(&[(3, 1.0), (0, 0.0), (9, 2.0)]), 500.0).unwrap();
        assert_eq!((found.frequency.value, found.confidence), (4.0, Confidence::Low));
        let silent = in_order_frequency(&members(&[(0, 1.0)]), 500.0).unwrap();
        assert!(silent.frequency.standard_uncertainty > 0.0);
        assert_eq!(in_order_frequency(&members(&[(7, 0.0)]), 500.0), None);
    }
}
