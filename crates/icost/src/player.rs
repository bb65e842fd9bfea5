//! Who can be idealised: a category, or some static instructions.

use std::collections::HashSet;

use crate::{Categories, Category, Kind, Kinds};

/// Something that is idealised as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Player {
    /// What the reader calls it.
    pub name: String,
    /// The kinds of labels that it drops.
    pub kinds: Kinds,
    /// Of which static instructions, as places in the program; none for all of them.
    pub places: Option<HashSet<u32>>,
}

impl Player {
    /// A category.
    pub fn category(category: Category) -> Player {
        Player { name: category.name().to_owned(), kinds: category.kinds(), places: None }
    }

    /// Some instructions, as if they took no time: no work, no misses, no mispredicts.
    pub fn instructions(name: impl Into<String>, places: HashSet<u32>) -> Player {
        Player { name: name.into(), kinds: Kinds::OF_INSTRUCTIONS, places: Some(places) }
    }

    /// One category of some instructions: all misses of a load, all mispredicts of a branch.
    pub fn part(name: impl Into<String>, category: Category, places: HashSet<u32>) -> Player {
        Player { name: name.into(), kinds: category.kinds(), places: Some(places) }
    }
}

/// What a lane keeps of a label: all bits, or none where its kind is idealised.
pub(crate) type Keep<const L: usize> = [[u32; L]; Kind::COUNT];

/// What each lane keeps of each instruction's labels.
///
/// Instructions of the same players answer alike, so that there are few classes of them.
#[derive(Clone, Debug)]
pub(crate) struct Keeps<const L: usize> {
    classes: Vec<Keep<L>>,
    /// The class of each instruction; beyond its end the first, which no set of instructions holds.
    class_of: Vec<u8>,
}

impl<const L: usize> Keeps<L> {
    pub(crate) fn new(players: &[Player], sets: &[Categories]) -> Keeps<L> {
        let mut found: Vec<u16> = vec![0];
        let mut class_of = Vec::new();
        let places = players.iter().filter_map(|player| player.places.as_ref());
        let last = places.flatten().max().copied();
        for place in 0..last.map_or(0, |last| last + 1) {
            let holds =
                |player: &Player| player.places.as_ref().is_some_and(|p| p.contains(&place));
            let held = players.iter().enumerate().filter(|(_, player)| holds(player));
            let members = held.fold(0_u16, |bits, (number, _)| bits | 1 << (number & 15));
            let class = found.iter().position(|&known| known == members).unwrap_or_else(|| {
                found.push(members);
                found.len() - 1
            });
            // There are at most as many classes as players for sets that do not overlap.
            class_of.push(class.min(usize::from(u8::MAX)) as u8);
        }
        let classes = found.iter().map(|&members| keep(players, sets, members)).collect();
        Keeps { classes, class_of }
    }

    #[inline(always)]
    pub(crate) fn of(&self, instruction: u32) -> &Keep<L> {
        let class = self.class_of.get(instruction as usize).copied().unwrap_or(0);
        &self.classes[usize::from(class)]
    }
}

fn keep<const L: usize>(players: &[Player], sets: &[Categories], members: u16) -> Keep<L> {
    let mut keep = [[u32::MAX; L]; Kind::COUNT];
    for (lane, set) in sets.iter().enumerate().take(L) {
        for (number, player) in players.iter().enumerate().take(16) {
            let is_meant = player.places.is_none() || members >> number & 1 == 1;
            if set.0 >> number & 1 == 1 && is_meant {
                for (kind, kept) in keep.iter_mut().enumerate() {
                    if player.kinds.has_number(kind) {
                        kept[lane] = 0;
                    }
                }
            }
        }
    }
    keep
}
