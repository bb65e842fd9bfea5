//! What held fetch up.

use model::core::Life;
use model::uop::Flow;

use super::{Branch, Labeller};
use crate::history::Past;
use crate::step::Step;

impl Labeller {
    /// What held fetch up before an instruction. Times are those of fetch, seen from dispatch.
    pub(super) fn label_fetch(&mut self, life: &Life, last: &Past, step: &mut Step) {
        let arrived = self.arrived(life);
        step.queue = Some(self.queue.full(&self.past));
        step.ideal_queue = self.ideal_queue.full(&self.past);
        step.fetch_width = self.fetch.beside(life.instruction_slots.max(1), &self.past);
        let mut known = last.arrived;
        if let Some(branch) = self.branch {
            known = known.max(self.label_branch(&branch, arrived, last, step));
        }
        let room = |distance: u32| {
            let front = u64::from(self.fixed.front);
            self.past.before(distance).map_or(0, |past| past.dispatched + front)
        };
        let room = step.queue.map_or(0, room);
        if room > arrived {
            step.queue = Some(0);
        } else {
            known = known.max(room);
        }
        let gap = arrived.saturating_sub(known) as u32;
        let code = life.code_cycles.min(gap);
        step.code_translation = life.code_translation_cycles.min(code);
        step.code = code - step.code_translation;
        known += u64::from(code);
        let width = self.past.before(step.fetch_width).map_or(0, |past| past.arrived + 1);
        if width > arrived {
            step.fetch_width = 0;
        } else {
            known = known.max(width);
        }
        step.bubble = arrived.saturating_sub(known) as u32;
    }

    /// What a branch did to the fetch of the instruction behind it; when that could go on.
    fn label_branch(&self, branch: &Branch, arrived: u64, last: &Past, step: &mut Step) -> u64 {
        let mut known = 0;
        if branch.taken {
            // Fetch ends at so many taken branches: the last of them counts from the first.
            let (bubble, call) = self.fixed.taken_bubbles;
            let is_call = matches!(branch.flow, Flow::Call | Flow::IndirectCall | Flow::Return);
            let lost = bubble + if is_call { call } else { 0 };
            let first = match lost {
                0 => self.taken.front().filter(|_| self.taken.len() >= self.fixed.taken as usize),
                _ => Some(&branch.sequence),
            };
            let distance = first.map_or(0, |&first| self.past.distance(first));
            if let Some(past) = self.past.before(distance) {
                let there = past.arrived + 1 + u64::from(lost);
                if there <= arrived {
                    step.taken = (distance, 1 + lost);
                    known = there;
                }
            }
        }
        if branch.mispredicted {
            let distance = self.past.distance(branch.sequence);
            if let Some(past) = self.past.before(distance) {
                let after = arrived.saturating_sub(past.completed);
                let label = u64::from(self.fixed.redirect).min(after);
                step.redirect = (distance, label as u32);
                known = known.max(past.completed + label);
            }
        } else if branch.resteered {
            let after = arrived.saturating_sub(last.arrived);
            let label = u64::from(self.fixed.resteer).min(after);
            step.resteer = label as u32;
            known = known.max(last.arrived + label);
        }
        known
    }
}
