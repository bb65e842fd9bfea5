//! Costs in plain words.

use icost::{Categories, Category};
use metrology::{Coverage, Estimate};

use super::answer::{Answer, Asked, matters};

/// Of a cost, the part that a serial interaction must take away for one fix to do.
const ENOUGH: f64 = 0.8;
/// Sentences about pairs.
const PAIRS: usize = 5;
/// Two that save so many times what the best single does are to be fixed together.
const TOGETHER: f64 = 2.0;
/// What costs less than this is as good as free.
const FREE: f64 = 0.005;

/// `12.3 % ± 0.8`.
pub(super) fn percent(share: Estimate) -> String {
    let half = share.half_width(Coverage::P95);
    match half.is_finite() {
        true => format!("{:.1} % ± {:.1}", 100.0 * share.value, 100.0 * half),
        false => format!("{:.1} % ± ?", 100.0 * share.value),
    }
}

/// How two players interact, if they do.
pub(super) fn pair_words(asked: &Asked, pair: Categories) -> Option<String> {
    let costs = &asked.costs;
    let icost = costs.icost(pair)?;
    if !matters(icost) {
        return None;
    }
    let share = |number| costs.whole().cost(Categories::single(number)).unwrap_or(0.0);
    let mut each: Vec<(f64, usize)> =
        pair.numbers().map(|number| (share(number) / costs.cycles().max(1.0), number)).collect();
    each.sort_by(|a, b| a.0.total_cmp(&b.0));
    let &[(smaller, less), (larger, more)] = each.as_slice() else { return None };
    let name = |number: usize| asked.players.get(number).map_or("?", |p| p.name.as_str());
    let size = 100.0 * icost.value.abs();
    Some(if icost.value > 0.0 {
        format!("fixing both saves {size:.1} % more than the sum")
    } else if -icost.value >= ENOUGH * larger {
        "fixing either is enough".to_owned()
    } else if smaller > FREE && -icost.value >= ENOUGH * smaller {
        format!("fixing {} leaves little to gain from {}", name(more), name(less))
    } else {
        format!("fixing both saves {size:.1} % less than the sum")
    })
}

/// What to fix first, what to fix together, and what could be smaller.
pub(super) fn advice(answer: &Answer) -> Vec<String> {
    let asked = &answer.main;
    let mut sentences = Vec::new();
    sentences.extend(first(asked));
    sentences.extend(together(asked));
    sentences
        .extend(answer.instructions.as_ref().and_then(|asked| together(asked).into_iter().next()));
    sentences.extend(shrinkable(asked));
    sentences
}

/// Players by what fixing them alone saves.
pub(super) fn by_cost(asked: &Asked) -> Vec<(usize, Estimate)> {
    let cost = |number| Some((number, asked.costs.cost(Categories::single(number))?));
    let mut found: Vec<(usize, Estimate)> = (0..asked.players.len()).filter_map(cost).collect();
    found.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    found
}

/// What to begin with: one of them, or two where neither alone does much.
fn first(asked: &Asked) -> Option<String> {
    let order = by_cost(asked);
    let (number, cost) = order.first().copied()?;
    let name = |number: usize| asked.words.get(number).map_or("?", String::as_str);
    let share = |set| asked.costs.cost(set);
    let pairs = asked.pairs().filter_map(|pair| Some((pair, share(pair)?)));
    let best = pairs.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    if let Some((pair, both)) = best.filter(|(pair, both)| {
        let is_parallel = asked.costs.icost(*pair).is_some_and(|icost| icost.value > 0.0);
        is_parallel && matters(*both) && both.value > TOGETHER * cost.value
    }) {
        let each: Vec<String> = pair
            .numbers()
            .filter_map(|number| share(Categories::single(number)))
            .map(|alone| format!("{:.1} %", 100.0 * alone.value))
            .collect();
        let names: Vec<&str> = pair.numbers().map(name).collect();
        return Some(format!(
            "Fix {} together first: that saves {} of the time, where alone they save {}.",
            names.join(", and "),
            percent(both),
            each.join(" and ")
        ));
    }
    if !matters(cost) {
        return None;
    }
    let mut sentence =
        format!("Fix {} first: that saves {} of the time", name(number), percent(cost));
    // What fixing it leaves of the next one.
    if let Some(&(next, alone)) = order.get(1).filter(|(_, cost)| matters(*cost)) {
        let pair = Categories::single(number).union(Categories::single(next));
        if let Some(both) = share(pair) {
            sentence.push_str(&format!(
                "; after that, fixing {} saves {:.1} %, where alone it saves {:.1} %",
                name(next),
                100.0 * (both.value - cost.value),
                100.0 * alone.value
            ));
        }
    }
    sentence.push('.');
    Some(sentence)
}

/// The strongest interactions.
pub(super) fn by_interaction(asked: &Asked) -> Vec<(Categories, Estimate)> {
    let mut found: Vec<(Categories, Estimate)> =
        asked.pairs().filter_map(|pair| Some((pair, asked.costs.icost(pair)?))).collect();
    found.sort_by(|a, b| b.1.value.abs().total_cmp(&a.1.value.abs()));
    found
}

fn together(asked: &Asked) -> Vec<String> {
    let sentence = |&(pair, icost): &(Categories, Estimate)| {
        let words = pair_words(asked, pair)?;
        let names: Vec<&str> =
            pair.numbers().filter_map(|n| asked.words.get(n)).map(String::as_str).collect();
        let why = if icost.value > 0.0 {
            "they hide each other"
        } else {
            "they stand in a row beside other work"
        };
        Some(format!("{}: {words}; {why}.", capital(&names.join(", and "))))
    };
    let mut found = by_interaction(asked);
    // What only fixing both brings is said first: no other tool shows it.
    found.sort_by_key(|(_, icost)| icost.value < 0.0);
    let split = found.iter().position(|(_, icost)| icost.value < 0.0).unwrap_or(found.len());
    let (parallel, serial) = found.split_at(split);
    let some = |pairs: &[(Categories, Estimate)], count: usize| -> Vec<String> {
        pairs.iter().take(count).filter_map(sentence).collect()
    };
    let mut sentences = some(parallel, PAIRS.div_ceil(2));
    sentences.extend(some(serial, PAIRS / 2));
    sentences
}

/// Resources that nobody would miss, and events that cost nothing.
fn shrinkable(asked: &Asked) -> Option<String> {
    let is_free =
        |&(_, cost): &(usize, Estimate)| cost.value.abs() + cost.half_width(Coverage::P95) < FREE;
    let named = |(number, _): (usize, Estimate)| {
        let player = asked.players.get(number)?;
        let category = Category::EVERY.iter().find(|c| c.name() == player.name)?;
        Some(match category {
            Category::Win => "the window could be smaller",
            Category::Bw => "the core could be narrower",
            Category::Ports => "there could be fewer ports",
            Category::Dl1 => "the first-level data cache could be slower",
            Category::Dmiss => "the data caches could be smaller",
            Category::Imiss => "the instruction cache could be smaller",
            Category::Bmisp => "the branch predictor could be simpler",
            Category::Shalu => "simple arithmetic could be slower",
            Category::Lgalu => "long arithmetic could be slower",
            _ => return None,
        })
    };
    let free: Vec<&str> = by_cost(asked).into_iter().filter(is_free).filter_map(named).collect();
    (!free.is_empty()).then(|| {
        format!(
            "Costs nothing here, so that it could shrink before anybody noticed: {}.",
            free.join("; ")
        )
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
