use super::*;
use crate::machine::Machine;

fn predictor(machine: &str) -> Predictor {
    Predictor::new(&Machine::named(machine).unwrap().branch)
}

fn conditional(taken: bool) -> Branch {
    Branch { pc: 0x4010, flow: Flow::Conditional, taken, target: 0x4000, next: 0x4012 }
}

/// Mispredictions of a loop that runs `period` times, in each of `visits` visits.
fn loop_misses(predictor: &mut Predictor, period: u32, visits: u32) -> Vec<u32> {
    let visit = |p: &mut Predictor| {
        (0..period).filter(|k| p.observe(&conditional(k + 1 < period)).mispredicted).count() as u32
    };
    (0..visits).map(|_| visit(predictor)).collect()
}

#[test]
fn a_loop_shorter_than_the_history_is_learnt() {
    for (machine, period) in [("icost-table6", 5), ("icost-table6", 12), ("zen4", 7), ("zen4", 40)]
    {
        let misses = loop_misses(&mut predictor(machine), period, 2000);
        assert!(misses[1500..].iter().all(|&m| m == 0), "{machine} {period}: {misses:?}");
    }
}

#[test]
fn a_loop_longer_than_the_history_mispredicts_its_exit_once() {
    let misses = loop_misses(&mut predictor("icost-table6"), 40, 500);
    assert!(misses[100..].iter().all(|&m| m == 1));
    // Without history even a short loop does.
    let misses = loop_misses(&mut predictor("alpha21164"), 5, 500);
    assert!(misses[100..].iter().all(|&m| m == 1));
}

#[test]
fn a_fair_coin_is_mispredicted_half_the_time() {
    for machine in ["icost-table6", "zen4", "alpha21164"] {
        let mut predictor = predictor(machine);
        let mut state = 7_u64;
        let n = 100_000;
        let wrong = (0..n)
            .filter(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                predictor.observe(&conditional(state >> 63 == 1)).mispredicted
            })
            .count();
        // Five standard deviations of a fair coin.
        let off = (wrong as f64 - 0.5 * f64::from(n)).abs();
        assert!(
            off < 5.0 * (0.25 * f64::from(n)).sqrt() + 0.01 * f64::from(n),
            "{machine} {wrong}"
        );
    }
}

#[test]
fn calls_nested_within_the_stack_return_right_and_deeper_ones_do_not() {
    let mut predictor = predictor("zen4");
    let mut nest = |depth: u64| {
        for k in 0..depth {
            let call = Branch { pc: k, flow: Flow::Call, taken: true, target: 9, next: 1000 + k };
            predictor.observe(&call);
        }
        let wrong = (0..depth).rev().filter(|&k| {
            let ret = Branch { pc: 5, flow: Flow::Return, taken: true, target: 1000 + k, next: 6 };
            predictor.observe(&ret).mispredicted
        });
        wrong.count()
    };
    assert_eq!(nest(32), 0);
    assert_eq!(nest(40), 8);
}

#[test]
fn an_indirect_branch_that_cycles_is_learnt_with_a_path_and_not_without() {
    let cycle = |machine: &str| {
        let mut predictor = predictor(machine);
        let mut wrong = 0;
        for k in 0..3000_u64 {
            let target = 0x5000 + 0x40 * (k % 3);
            let jump =
                Branch { pc: 0x40, flow: Flow::IndirectJump, taken: true, target, next: 0x42 };
            wrong += u32::from(predictor.observe(&jump).mispredicted && k >= 1000);
        }
        wrong
    };
    assert_eq!(cycle("zen4"), 0);
    assert_eq!(cycle("icost-table6"), 2000);
}

#[test]
fn a_direct_jump_is_resteered_once_and_then_known() {
    let mut predictor = predictor("zen4");
    let jump = Branch { pc: 0x40, flow: Flow::Jump, taken: true, target: 0x80, next: 0x42 };
    assert!(predictor.observe(&jump).resteered);
    assert_eq!(predictor.observe(&jump), Verdict::default());
}

#[test]
fn an_indirect_branch_keeps_its_first_target_while_the_path_tells_the_others() {
    let mut predictor = predictor("zen4");
    let mut told = |k: u64| {
        let target = 0x5000 + 0x40 * (k % 4);
        let jump = Branch { pc: 0x40, flow: Flow::IndirectJump, taken: true, target, next: 0x42 };
        predictor.observe(&jump)
    };
    (0..1000).for_each(|k| {
        told(k);
    });
    let verdicts: Vec<Verdict> = (0..400).map(&mut told).collect();
    assert!(verdicts.iter().all(|verdict| !verdict.mispredicted));
    assert_eq!(verdicts.iter().filter(|verdict| verdict.retargeted).count(), 300);
}

#[test]
fn a_procedure_that_calls_itself_returns_right_from_any_depth() {
    let mut predictor = predictor("zen4");
    for _ in 0..64 {
        let call = Branch { pc: 7, flow: Flow::Call, taken: true, target: 9, next: 1000 };
        predictor.observe(&call);
    }
    let ret = Branch { pc: 5, flow: Flow::Return, taken: true, target: 1000, next: 6 };
    assert!((0..64).all(|_| !predictor.observe(&ret).mispredicted));
}

#[test]
fn of_sixteen_jumps_in_a_line_four_are_crowded_every_time() {
    let mut predictor = predictor("zen4");
    let mut told = |k: u64| {
        let (pc, flow) =
            (0x4000 + 4 * k, if k.is_multiple_of(2) { Flow::Jump } else { Flow::Conditional });
        predictor.observe(&Branch { pc, flow, taken: true, target: pc + 4, next: pc + 2 })
    };
    (0..16).for_each(|k| {
        told(k);
    });
    for round in 0..3 {
        let crowded: Vec<u64> = (0..16).filter(|&k| told(k).crowded).collect();
        assert_eq!(crowded, [12, 13, 14, 15], "round {round}");
    }
    assert!((16..28).all(|k| !told(k).crowded), "the next line has room");
}
