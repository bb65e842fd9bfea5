//! The costs that a report speaks of.

use icost::sample::Sampled;
use icost::{Arbitration, Categories, Category, Costs, Fixed, Player, subsets_of};
use metrology::{Coverage, Estimate};

use super::Names;
use super::players::statics;
use crate::cli::{IcostBy, IcostJob};
use crate::failure::{Failure, RUN_FAILED};

/// Some players and what fixing them saves, alone and together.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) players: Vec<Player>,
    /// What each is, in plain words.
    pub(crate) words: Vec<String>,
    pub(crate) costs: Costs,
}

impl Asked {
    fn of(
        fixed: Fixed,
        sampled: &Sampled,
        players: Vec<Player>,
        words: Vec<String>,
        most: u32,
    ) -> Asked {
        let mut sets = subsets_of(players.len(), most);
        let everything = everything(players.len());
        if !sets.contains(&everything) {
            sets.push(everything);
        }
        let costs = Costs::of(fixed, &sampled.windows, &players, &sets, Arbitration::Anew);
        Asked { players, words, costs }
    }

    /// All of them.
    pub(crate) fn everything(&self) -> Categories {
        everything(self.players.len())
    }

    pub(crate) fn name(&self, set: Categories) -> String {
        let name = |number: usize| self.players.get(number).map_or("?", |p| p.name.as_str());
        set.numbers().map(name).collect::<Vec<_>>().join(" + ")
    }

    /// Every two of them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Categories> {
        subsets_of(self.players.len(), 2).into_iter().filter(|set| set.len() == 2)
    }

    /// What more than two together save beyond singles and pairs.
    pub(crate) fn rest(&self) -> Option<Estimate> {
        let parts: Vec<Categories> =
            subsets_of(self.players.len(), 2).into_iter().filter(|set| !set.is_empty()).collect();
        self.costs.share(|window| {
            let whole = window.cost(self.everything())?;
            let parts: f64 = parts.iter().map(|&set| window.icost(set)).sum::<Option<f64>>()?;
            Some(whole - parts)
        })
    }
}

fn everything(count: usize) -> Categories {
    Categories(((1_u32 << count.min(16)) - 1) as u16)
}

/// Everything that a report speaks of.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) main: Asked,
    /// The same singles with the waits for ports as they were observed.
    pub(crate) frozen: Costs,
    /// The finer categories, alone.
    pub(crate) finer: Option<Asked>,
    /// The costliest static instructions, in pairs.
    pub(crate) instructions: Option<Asked>,
}

impl Answer {
    pub(crate) fn of(job: &IcostJob, sampled: &Sampled, names: &Names) -> Result<Answer, Failure> {
        let fixed = Fixed::of(&job.model.machine);
        let most = if job.is_powerset { 16 } else { 2 };
        let is_by_category = job.by == IcostBy::Category;
        let categories = |list: &[Category]| -> (Vec<Player>, Vec<String>) {
            list.iter().map(|&c| (Player::category(c), c.words().to_owned())).unzip()
        };
        let (players, words) = match is_by_category {
            true => categories(&job.categories),
            false => {
                let players = statics(job.by, sampled, names, fixed);
                let words = players.iter().map(|player| player.name.clone()).collect();
                (players, words)
            }
        };
        if players.is_empty() {
            return Err(nothing_by(job.by));
        }
        let alone: Vec<Categories> = (0..players.len()).map(Categories::single).collect();
        let frozen = Costs::of(fixed, &sampled.windows, &players, &alone, Arbitration::Frozen);
        let main = Asked::of(fixed, sampled, players, words, most);
        let (mut finer, mut instructions) = (None, None);
        if is_by_category {
            let (players, words) = categories(Category::FINER);
            finer = Some(Asked::of(fixed, sampled, players, words, 1));
            let found = statics(IcostBy::Instruction, sampled, names, fixed);
            let words = found.iter().map(|player| player.name.clone()).collect();
            instructions = (!found.is_empty()).then(|| Asked::of(fixed, sampled, found, words, 2));
        }
        Ok(Answer { main, frozen, finer, instructions })
    }
}

fn nothing_by(by: IcostBy) -> Failure {
    let (what, remedy) = match by {
        IcostBy::Line => ("no source line is known of what ran", "compile it with -g"),
        _ => ("nothing of what ran costs any time by itself", ""),
    };
    Failure::new(RUN_FAILED, what).remedy(remedy)
}

/// The smallest share that is worth a sentence.
const WORTH: f64 = 0.01;

/// Whether a share differs from none by more than chance, and is worth a sentence.
pub(super) fn matters(share: Estimate) -> bool {
    share.value.abs() >= WORTH && share.value.abs() > share.half_width(Coverage::P95)
}
