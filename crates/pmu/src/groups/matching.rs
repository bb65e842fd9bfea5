//! Which event goes on which counter, at one time.

use crate::{Counter, Counters, Limit};

/// A counter for every event, in their order; or the place of the first event that finds none.
///
/// Fixed counters are used first. The rest is a matching of events to general counters, grown by
/// moving earlier events where that makes room, so an event is refused only if nothing would help.
///
/// # Errors
///
/// The place of the event that cannot be counted beside those before it.
pub fn place(counters: &Counters, events: &[&str]) -> Result<Vec<Counter>, usize> {
    let mut places: Vec<Option<Counter>> = vec![None; events.len()];
    let mut fixed_taken = vec![false; counters.fixed.len()];
    let mut used = vec![0_u32; counters.rules.len()];
    for (k, (place, event)) in places.iter_mut().zip(events).enumerate() {
        if counters.is_free(event) {
            // Those that need no counter may still share something else, as breakpoints do.
            if !fits_together(counters, event, &mut used) {
                return Err(k);
            }
            *place = Some(Counter::Free);
            continue;
        }
        let fixed = counters.fixed.iter().position(|name| name == event);
        if let Some(fixed) = fixed.filter(|&k| fixed_taken.get(k) == Some(&false)) {
            fixed_taken[fixed] = true;
            *place = Some(Counter::Fixed(fixed as u32));
        }
    }
    let masks: Vec<u64> = events.iter().map(|event| counters.mask(event)).collect();
    let mut owner: Vec<Option<usize>> = vec![None; (counters.general as usize).min(64)];
    for (k, event) in events.iter().enumerate() {
        if places[k].is_some() {
            continue;
        }
        if !fits_together(counters, event, &mut used) || !grow(&masks, k, &mut owner, &mut 0) {
            return Err(k);
        }
    }
    for (counter, owner) in owner.iter().enumerate() {
        if let Some(k) = *owner {
            places[k] = Some(Counter::General(counter as u32));
        }
    }
    Ok(places.into_iter().flatten().collect())
}

/// Counts the event in every rule on what may stand together; whether all still hold. Rules do
/// not bind an event on a fixed counter, which has its own wiring.
fn fits_together(counters: &Counters, event: &str, used: &mut [u32]) -> bool {
    let rules = counters.rules.iter().zip(used);
    let mine = rules.filter(|(rule, _)| rule.events.iter().any(|name| name == event));
    let mut fits = true;
    for (rule, used) in mine {
        if let Limit::Together(most) = rule.limit {
            *used += 1;
            fits &= *used <= most;
        }
    }
    fits
}

/// Finds a counter for event `k`, moving others if need be.
fn grow(masks: &[u64], k: usize, owner: &mut [Option<usize>], tried: &mut u64) -> bool {
    for counter in 0..owner.len() {
        let bit = 1_u64 << counter;
        if masks[k] & bit == 0 || *tried & bit != 0 {
            continue;
        }
        *tried |= bit;
        let is_free = match owner[counter] {
            None => true,
            Some(other) => grow(masks, other, owner, tried),
        };
        if is_free {
            owner[counter] = Some(k);
            return true;
        }
    }
    false
}
