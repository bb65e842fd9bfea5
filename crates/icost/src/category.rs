//! What can be idealised.

use model::core::Ideal;

/// Why an edge of the graph takes time: the grain at which labels are kept or dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Kind {
    /// A line of code on its way.
    Code,
    /// The translation of code.
    CodeTranslation,
    /// A mispredicted branch, or one that the front end set right by itself.
    Mispredict,
    /// So many a cycle: fetch, dispatch, retirement, writing stores.
    Width,
    /// A port.
    Ports,
    /// A place in the window, a scheduler or a queue.
    Window,
    /// A hit in the first level.
    Hit,
    /// One-cycle integer work.
    Short,
    /// Other work.
    Long,
    /// A line from the second level.
    #[default]
    L2,
    /// A line from the third level.
    L3,
    /// A line from memory.
    Memory,
    /// The translation of data.
    Translation,
    /// A line that somebody else has asked for.
    Line,
    /// From a store to a load that takes its data.
    Forward,
    /// A value that has to be there first.
    Dependence,
}

impl Kind {
    /// How many there are.
    pub const COUNT: usize = Kind::Dependence as usize + 1;
}

/// Some kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Kinds(u32);

impl Kinds {
    /// What an instruction takes time for by itself: not the machine's widths and sizes.
    pub const OF_INSTRUCTIONS: Kinds = Kinds::of(&[
        Kind::Code,
        Kind::CodeTranslation,
        Kind::Mispredict,
        Kind::Hit,
        Kind::Short,
        Kind::Long,
        Kind::L2,
        Kind::L3,
        Kind::Memory,
        Kind::Translation,
        Kind::Line,
        Kind::Forward,
    ]);

    /// These.
    pub const fn of(list: &[Kind]) -> Kinds {
        let (mut bits, mut k) = (0, 0);
        while k < list.len() {
            bits |= 1 << list[k] as u32;
            k += 1;
        }
        Kinds(bits)
    }

    /// Whether it is one of them.
    pub fn has(self, kind: Kind) -> bool {
        self.has_number(kind as usize)
    }

    pub(crate) fn has_number(self, kind: usize) -> bool {
        self.0 >> kind & 1 == 1
    }
}

macro_rules! categories {
    ($($(#[doc = $doc:literal])+ $category:ident = $name:literal, $words:literal,
       [$($kind:ident),+], $ideal:expr;)+) => {
        /// A class of events or a resource that can be made perfect.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Category {
            $($(#[doc = $doc])+ $category,)+
        }

        impl Category {
            /// The eight of the paper's tables and the finer ones.
            pub const EVERY: &[Category] = &[$(Category::$category,)+];

            /// The short name of it.
            pub fn name(self) -> &'static str {
                match self { $(Category::$category => $name,)+ }
            }

            /// What it is, in plain words.
            pub fn words(self) -> &'static str {
                match self { $(Category::$category => $words,)+ }
            }

            /// The kinds of labels that it drops.
            pub fn kinds(self) -> Kinds {
                match self { $(Category::$category => Kinds::of(&[$(Kind::$kind),+]),)+ }
            }

            /// The same on a core that is really idealised, where it can be.
            pub fn ideal(self) -> Option<Ideal> {
                match self { $(Category::$category => $ideal,)+ }
            }
        }
    };
}

categories! {
    /// The time that a hit in the first-level data cache takes.
    Dl1 = "dl1", "first-level data-cache latency", [Hit], Some(Ideal::L1D_LATENCY);
    /// The size of the window.
    Win = "win", "the size of the window", [Window], Some(Ideal::WINDOW);
    /// The width of fetch, issue and retirement.
    Bw = "bw", "the width of fetch, issue and retirement", [Width, Ports], Some(Ideal::BANDWIDTH);
    /// Mispredicted branches.
    Bmisp = "bmisp", "mispredicted branches", [Mispredict], Some(Ideal::MISPREDICTS);
    /// Data-cache and data-TLB misses.
    Dmiss = "dmiss", "data-cache and data-TLB misses",
        [L2, L3, Memory, Translation, Line], Some(Ideal::DATA_MISSES);
    /// Integer work of one cycle.
    Shalu = "shalu", "one-cycle integer work", [Short], Some(Ideal::SHORT_ALU);
    /// Longer integer work, floating point, vectors.
    Lgalu = "lgalu", "longer integer, floating-point and vector work", [Long],
        Some(Ideal::LONG_ALU);
    /// Instruction-cache and instruction-TLB misses.
    Imiss = "imiss", "instruction-cache and instruction-TLB misses", [Code, CodeTranslation],
        Some(Ideal::CODE_MISSES);
    /// Loads from the second level.
    L2 = "l2", "loads from the second level", [L2], None;
    /// Loads from the third level.
    L3 = "l3", "loads from the third level", [L3], None;
    /// Loads from memory.
    Mem = "mem", "loads from memory", [Memory], None;
    /// Data translations.
    Dtlb = "dtlb", "data-TLB misses", [Translation], None;
    /// Code translations.
    Itlb = "itlb", "instruction-TLB misses", [CodeTranslation], None;
    /// Ports alone.
    Ports = "ports", "execution ports", [Ports], None;
    /// From a store to a load that takes its data.
    Fwd = "fwd", "store forwarding", [Forward], None;
    /// Values that have to be there first.
    Dep = "dep", "data dependences", [Dependence], Some(Ideal::DEPENDENCES);
}

impl Category {
    /// The eight of the paper's tables, in their order. They cover each other nowhere.
    pub const ALL: &[Category] = Category::EVERY.split_at(8).0;
    /// The finer ones: each a part of one of the eight, or beside them.
    pub const FINER: &[Category] = Category::EVERY.split_at(8).1;
}

/// A set of categories; where other things are idealised, of things by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Categories(pub u16);

impl Categories {
    /// None.
    pub const NONE: Categories = Categories(0);
    /// The eight.
    pub const ALL: Categories = Categories((1 << Category::ALL.len()) - 1);

    /// A set of these.
    pub fn of(list: &[Category]) -> Categories {
        list.iter().fold(Categories::NONE, |set, &category| set.with(category))
    }

    /// The set of the one with this number.
    pub fn single(number: usize) -> Categories {
        Categories(1 << (number & 15))
    }

    /// With one more.
    #[must_use]
    pub fn with(self, category: Category) -> Categories {
        Categories(self.0 | 1 << category as u16)
    }

    /// With all of another set.
    #[must_use]
    pub fn union(self, other: Categories) -> Categories {
        Categories(self.0 | other.0)
    }

    /// Whether it holds a category.
    pub fn has(self, category: Category) -> bool {
        self.0 >> category as u16 & 1 == 1
    }

    /// How many it holds.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it holds none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its members.
    pub fn iter(self) -> impl Iterator<Item = Category> {
        Category::EVERY.iter().copied().filter(move |&category| self.has(category))
    }

    /// Its members by number.
    pub fn numbers(self) -> impl Iterator<Item = usize> {
        (0..16).filter(move |number| self.0 >> number & 1 == 1)
    }

    /// The same idealisation of a core. What no core can do is left out.
    pub fn ideal(self) -> Ideal {
        self.iter().filter_map(Category::ideal).fold(Ideal::NONE, Ideal::with)
    }

    /// Its members' names, joined by a plus.
    pub fn name(self) -> String {
        self.iter().map(Category::name).collect::<Vec<_>>().join("+")
    }
}

/// All sets of at most so many of the eight categories, the empty one first.
pub fn subsets_up_to(most: u32) -> Vec<Categories> {
    subsets_of(Category::ALL.len(), most)
}

/// All sets of at most `most` of so many things, the empty one first, then by size.
pub fn subsets_of(things: usize, most: u32) -> Vec<Categories> {
    let end = 1_u32 << things.min(16);
    let all = (0..end).map(|bits| Categories(bits as u16));
    let mut sets: Vec<Categories> = all.filter(|set| set.len() <= most).collect();
    sets.sort_by_key(|set| (set.len(), set.0));
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_cover_every_kind_once_but_forwarding_and_dependences() {
        let holders = |kind: u32| {
            let holds = |category: &&Category| category.kinds().0 >> kind & 1 == 1;
            Category::ALL.iter().filter(holds).count()
        };
        for kind in 0..Kind::COUNT as u32 {
            let is_beside = kind == Kind::Forward as u32 || kind == Kind::Dependence as u32;
            assert_eq!(holders(kind), usize::from(!is_beside), "{kind}");
        }
    }

    #[test]
    fn singles_and_pairs_of_eight_are_thirty_seven_sets() {
        assert_eq!(subsets_up_to(2).len(), 37);
        assert_eq!(subsets_up_to(8).len(), 256);
        assert_eq!(subsets_up_to(2)[0], Categories::NONE);
        assert_eq!(Category::ALL.len() + Category::FINER.len(), Category::EVERY.len());
    }
}
