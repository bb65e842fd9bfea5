use std::sync::{Arc, Mutex, PoisonError};

use model::stream::StaticBlock;
use tracer::block::BlockTable;

use super::*;
use crate::plan;

/// What a listener was told of, in order.
type Told = Arc<Mutex<Vec<BlockId>>>;

/// Idles for so many instructions whenever it is asked, and wants to hear of order.
struct Idler {
    idles_for: u64,
    told: Told,
}

impl Idler {
    fn note(&self, blocks: &[BlockId]) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(blocks);
    }
}

impl CoreListener for Idler {
    fn translated(&mut self, _: BlockId, _: &StaticBlock) {}

    fn executed(&mut self, id: BlockId, _: u16, _: &[Access]) {
        self.note(&[id]);
    }

    fn idles_for(&self) -> u64 {
        self.idles_for
    }

    fn hears_lines(&self) -> bool {
        false
    }

    fn hears_order(&self) -> bool {
        true
    }

    fn passed(&mut self, blocks: &[BlockId]) {
        self.note(blocks);
    }
}

/// A teller that knows some blocks, of one and more instructions, which touch nothing.
fn teller(blocks: usize, idles_for: u64) -> (Teller, Told) {
    let told = Told::default();
    let mut teller = Teller::new(Box::new(Idler { idles_for, told: told.clone() }));
    let mut table = BlockTable::new(false);
    for k in 0..blocks {
        // nop, again and again; jmp to the next instruction
        let bytes = [vec![0x90; k], vec![0xeb, 0]].concat();
        let mut plan = plan::read(0x1000 * (k as u64 + 1), &bytes).unwrap();
        let (live, _) = table.intern(plan.codes.clone());
        teller.lens.push(live.len);
        teller.known.push(Block::new(live, &mut plan));
    }
    (teller, told)
}

#[test]
fn blocks_are_told_in_the_order_in_which_they_ran_however_they_were_recorded() {
    let (mut teller, told) = teller(5, 100_000);
    let mut ran = Vec::new();
    let mut dice = 1_u64;
    let slots = [0; WINDOW];
    teller.next();
    for batch in 0..400 {
        let mut roll = |below: u64| {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % below
        };
        let mode = if roll(2) == 0 { Mode::Told } else { Mode::Noted };
        let ids: Vec<BlockId> = (0..1 + roll(700)).map(|_| BlockId(roll(5) as u32)).collect();
        // A fault cuts a block short now and then: what ran of it is told.
        let cut = (batch % 7 == 0).then_some(1);
        teller.tell(&Ran { ids: &ids, slots: &slots, mode, fs: 0, cut });
        ran.extend(ids);
        teller.next();
    }
    teller.system_call(39);
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(*told == ran, "{} of {}", told.len(), ran.len());
}
