//! Which static instructions are asked about: those whose fixing saves most, alone or behind others.
//!
//! What hides behind another costs nothing alone. So each is judged twice: fixed alone, and fixed
//! last of all that are tried.

use std::collections::{BTreeMap, HashSet};

use icost::sample::Sampled;
use icost::{Arbitration, Categories, Category, Costs, Fixed, Player, Weights};

use super::Names;
use crate::cli::IcostBy;

/// How many are tried (a set holds no more), and how many of them in pairs.
const TRIED: usize = 16;
const KEPT: usize = 8;

/// What a category is of an instruction.
fn part_words(category: Category) -> &'static str {
    match category {
        Category::Dmiss => "misses of",
        Category::Bmisp => "mispredicts of",
        Category::Imiss => "code misses at",
        Category::Dl1 => "first-level latency of",
        _ => "work of",
    }
}

/// The players that cost most, by what is fixed.
pub(super) fn statics(by: IcostBy, sampled: &Sampled, names: &Names, fixed: Fixed) -> Vec<Player> {
    let weights = Weights::of(sampled.windows.iter().flat_map(|window| &window.steps));
    let tried = match by {
        IcostBy::Instruction | IcostBy::Category => instructions(&weights, names),
        IcostBy::Procedure => groups(&weights, sampled, |number| Some(names.procedure(number))),
        IcostBy::Line => groups(&weights, sampled, |number| names.line(number)),
    };
    best(tried, sampled, fixed)
}

fn instructions(weights: &Weights, names: &Names) -> Vec<Player> {
    let mut places: BTreeMap<(usize, String, Category), HashSet<u32>> = BTreeMap::new();
    let mut ranks: BTreeMap<(String, Category), usize> = BTreeMap::new();
    for (rank, (number, category)) in weights.heaviest(TRIED).into_iter().enumerate() {
        let name = names.instruction(number);
        // The same instruction of another process is the same.
        let rank = *ranks.entry((name.clone(), category)).or_insert(rank);
        places.entry((rank, name, category)).or_default().insert(number);
    }
    let player = |((_, name, category), places): ((usize, String, Category), HashSet<u32>)| {
        Player::part(format!("{} {name}", part_words(category)), category, places)
    };
    places.into_iter().map(player).collect()
}

fn groups(
    weights: &Weights,
    sampled: &Sampled,
    name: impl Fn(u32) -> Option<String>,
) -> Vec<Player> {
    let cycles = weights.by_instruction();
    let mut groups: BTreeMap<String, (u64, HashSet<u32>)> = BTreeMap::new();
    for number in 0..sampled.places.len() as u32 {
        let Some(name) = name(number) else { continue };
        let group = groups.entry(name).or_default();
        group.0 += cycles.get(&number).copied().unwrap_or(0);
        group.1.insert(number);
    }
    let mut groups: Vec<(String, (u64, HashSet<u32>))> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (cycles, _))| std::cmp::Reverse(*cycles));
    let player = |(name, (_, places))| Player::instructions(name, places);
    groups.into_iter().take(TRIED).map(player).collect()
}

/// Those that save most, alone or last.
fn best(tried: Vec<Player>, sampled: &Sampled, fixed: Fixed) -> Vec<Player> {
    let all = Categories(((1_u32 << tried.len().min(TRIED)) - 1) as u16);
    let alone = |number: usize| Categories::single(number);
    let without = |number: usize| Categories(all.0 & !alone(number).0);
    let mut sets: Vec<Categories> = vec![all];
    sets.extend((0..tried.len()).flat_map(|number| [alone(number), without(number)]));
    sets.dedup();
    let costs = Costs::of(fixed, &sampled.windows, &tried, &sets, Arbitration::Anew);
    let cost = |set: Categories| costs.whole().cost(set).unwrap_or(0.0);
    let saved = |number: usize| cost(alone(number)).max(cost(all) - cost(without(number)));
    let mut found: Vec<(f64, Player)> =
        tried.into_iter().enumerate().map(|(number, player)| (saved(number), player)).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(KEPT).filter(|(cycles, _)| *cycles > 0.0).map(|(_, p)| p).collect()
}
