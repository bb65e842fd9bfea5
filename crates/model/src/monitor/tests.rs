use super::*;
use crate::core::{Life, NOBODY};
use crate::machine::Class;
use crate::units::Level;
use crate::uop::Flow;

struct Number(u64);

impl Recorder for Number {
    type Detail = u64;

    fn record(&mut self, life: &Life) -> u64 {
        self.0 += 1;
        life.pc
    }
}

fn life(pc: u64, class: Class) -> Life {
    Life {
        sequence: 0,
        instruction: 0,
        pc,
        class,
        slots: 1,
        instruction_slots: 1,
        is_last: true,
        flow: Flow::Next,
        producers: [NOBODY; 4],
        store: NOBODY,
        fetched: 0,
        code_cycles: 0,
        code_translation_cycles: 0,
        dispatched: 0,
        ready: 0,
        issued: 0,
        completed: 0,
        committed: 0,
        miss_cycles: 0,
        translation_cycles: 0,
        level: Level::L1,
        from: Level::L1,
        address: None,
        bytes: 0,
        mispredicted: false,
        resteered: false,
        taken: false,
        missed_l1d: false,
        missed_l2d: false,
        missed_l1i: false,
        missed_l2i: false,
        missed_tlb: false,
    }
}

fn bits_of(lives: &[Life]) -> (bool, bool) {
    let mut bits = Bits::default();
    lives.iter().for_each(|life| bits.add(life));
    (bits.first(), bits.second())
}

#[test]
fn bits_are_those_of_table_5() {
    let (alu, load) = (life(0, Class::Alu), life(0, Class::Load));
    let (store, data) = (life(0, Class::StoreAddress), life(0, Class::StoreData));
    let branch = Life { flow: Flow::Conditional, ..life(0, Class::Branch) };
    let taken = Life { taken: true, ..branch };
    assert_eq!(bits_of(&[alu]), (false, false));
    assert_eq!(bits_of(&[load]), (true, false));
    assert_eq!(bits_of(&[store, data]), (true, false));
    assert_eq!(bits_of(&[branch]), (false, false));
    assert_eq!(bits_of(&[taken]), (true, false));
    assert_eq!(bits_of(&[Life { missed_l1d: true, ..load }]), (true, true));
    let far = Life { missed_l1d: true, missed_l2d: true, ..load };
    assert_eq!(bits_of(&[far]), (false, true));
    // A load from memory and the operation or the store that follows in the same instruction.
    assert_eq!(bits_of(&[far, alu]), (false, true));
    assert_eq!(bits_of(&[far, store, data]), (false, true));
    assert_eq!(bits_of(&[Life { missed_l1i: true, ..alu }]), (false, true));
    assert_eq!(bits_of(&[Life { missed_l2i: true, ..taken }]), (true, true));
    assert_eq!(bits_of(&[Life { missed_tlb: true, ..load }]), (true, true));
}

#[test]
fn surroundings_hold_21_instructions_and_count_identical_bits() {
    let bits = |k: u64| Bits::from_number((k % 4) as u8);
    let all = Surroundings::of((0..30).map(bits));
    assert_eq!(all, Surroundings::of((9..30).map(bits)), "older ones have fallen out");
    assert_eq!(all.back(0), bits(29));
    assert_eq!(all.back(AROUND), bits(19));
    assert_eq!(all.same(all, 0), 42);
    assert_eq!(all.same(all, 3), 36);
    let other = Surroundings(all.0 ^ 0b11);
    assert_eq!(all.same(other, 0), 40);
    assert_eq!(all.same(other, 1), 40, "the instruction that differs is left out");
}

/// A loop of seven instructions, of which the third loads and the last jumps back through a
/// register.
fn run(monitor: &mut Monitor<Number>, count: u64) {
    for k in 0..count {
        let pc = 0x1000 + 4 * (k % 7);
        monitor.lived(&match k % 7 {
            2 => life(pc, Class::Load),
            6 => Life { flow: Flow::IndirectJump, taken: true, ..life(pc, Class::Branch) },
            _ => life(pc, Class::Alu),
        });
    }
}

fn expected(place: u64) -> Bits {
    Bits::new(matches!(place % 7, 2 | 6), false)
}

#[test]
fn samples_hold_the_bits_of_what_ran() {
    let rates = Rates { signature_every: 1500, detail_every: 60, seed: 3 };
    let mut monitor = Monitor::new(Number(0), rates).with_truth();
    run(&mut monitor, 60_000);
    let samples = monitor.take();
    assert_eq!(samples.instructions, 60_000);
    assert_eq!(samples.paths.len(), samples.signatures.len());
    for (signature, path) in samples.signatures.iter().zip(&samples.paths) {
        let first = (signature.start - 0x1000) / 4;
        assert_eq!((signature.bits.len(), path.len()), (LENGTH, LENGTH));
        for (k, bits) in signature.bits.iter().enumerate() {
            assert_eq!(*bits, expected(first + k as u64));
        }
        let before = Surroundings::of((first + 70 - 10..first + 70).map(expected));
        assert_eq!(signature.before, before);
        assert_eq!(path[8], 0x1000 + 4 * ((first + 8) % 7));
    }
    for detail in &samples.details {
        let place = (detail.pc - 0x1000) / 4;
        let around = (place + 70 - 10..=place + 70 + 10).map(expected);
        assert_eq!(detail.around, Surroundings::of(around));
        assert_eq!(detail.target, (place == 6).then_some(0x1000));
        assert_eq!(detail.ops, [detail.pc]);
    }
    // What a signature says around a place is what a detailed sample there holds.
    let signature = &samples.signatures[0];
    let at = 7 * 40 + 3 - ((signature.start - 0x1000) / 4) as usize;
    let same = samples.details.iter().find(|detail| detail.pc == 0x1000 + 4 * 3).unwrap();
    assert_eq!(signature.around(at), (same.around, 0));
    assert_eq!(signature.around(LENGTH - 1).1, AROUND);
}

#[test]
fn rates_are_means_and_the_seed_decides_where_samples_fall() {
    let rates = Rates { signature_every: 2000, detail_every: 50, seed: 1 };
    let sampled = |seed: u64| {
        let mut monitor = Monitor::new(Number(0), Rates { seed, ..rates });
        run(&mut monitor, 400_000);
        monitor.take()
    };
    let samples = sampled(1);
    assert!((190..=210).contains(&samples.signatures.len()), "{}", samples.signatures.len());
    assert!((7_700..=8_300).contains(&samples.details.len()), "{}", samples.details.len());
    assert_eq!(samples, sampled(1));
    assert_ne!(samples, sampled(2));
    // Every place of the loop gets its share: 8000/7 ± 4 standard deviations.
    for place in 0..7 {
        let count = samples.details.iter().filter(|d| d.pc == 0x1000 + 4 * place).count();
        assert!((1_000..=1_280).contains(&count), "{place}: {count}");
    }
}

#[test]
fn a_restart_drops_what_is_open_and_says_so() {
    let mut monitor =
        Monitor::new(Number(0), Rates { signature_every: 1000, detail_every: 21, seed: 1 });
    run(&mut monitor, 500);
    monitor.restart(Number(0));
    run(&mut monitor, 1100);
    let samples = monitor.take();
    assert_eq!((samples.cut, samples.signatures.len()), (1, 1));
    assert!(samples.details.iter().all(|detail| detail.ops.len() == 1));
}

#[test]
fn an_instruction_that_seldom_runs_is_sampled_as_soon_as_it_comes() {
    let rates = Rates { signature_every: 2000, detail_every: 50, seed: 1 };
    // One instruction of seven hundred stands apart.
    let sampled = |mut monitor: Monitor<Number>| {
        for _ in 0..143 {
            run(&mut monitor, 699);
            monitor.lived(&life(0x2000, Class::Alu));
        }
        let samples = monitor.take();
        let rare = samples.details.iter().filter(|detail| detail.pc == 0x2000).count();
        (rare, samples.details.len(), monitor.take_seen())
    };
    let (plain, all, _) = sampled(Monitor::new(Number(0), rates));
    let preferring = Monitor::new(Number(0), rates).preferring_rare(Seen::default());
    let (rare, nearly_all, seen) = sampled(preferring);
    assert!(plain <= 10, "{plain} of {all}");
    assert!(rare >= 16, "{rare} of {nearly_all}");
    assert!(nearly_all.abs_diff(all) < all / 20, "as many samples: {nearly_all} and {all}");
    // Known from one stretch, it is not waited for in the next.
    let (again, _, _) = sampled(Monitor::new(Number(0), rates).preferring_rare(seen));
    assert!(again <= 10, "{again}");
}
