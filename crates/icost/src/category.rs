//! What can be idealised.

use model::core::Ideal;

macro_rules! categories {
    ($($(#[doc = $doc:literal])+ $category:ident = $name:literal, $ideal:ident;)+) => {
        /// A class of events or a resource that can be made perfect.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Category {
            $($(#[doc = $doc])+ $category,)+
        }

        impl Category {
            /// Every category, in the order of the paper's tables.
            pub const ALL: &[Category] = &[$(Category::$category,)+];

            /// The paper's name for it.
            pub fn name(self) -> &'static str {
                match self { $(Category::$category => $name,)+ }
            }

            /// The same, on a core that is really idealised.
            pub fn ideal(self) -> Ideal {
                match self { $(Category::$category => Ideal::$ideal,)+ }
            }
        }
    };
}

categories! {
    /// The time that a hit in the first-level data cache takes.
    Dl1 = "dl1", L1D_LATENCY;
    /// The size of the window.
    Win = "win", WINDOW;
    /// The width of fetch, issue and retirement.
    Bw = "bw", BANDWIDTH;
    /// Mispredicted branches.
    Bmisp = "bmisp", MISPREDICTS;
    /// Data-cache and data-TLB misses.
    Dmiss = "dmiss", DATA_MISSES;
    /// Integer work of one cycle.
    Shalu = "shalu", SHORT_ALU;
    /// Longer integer work, floating point, vectors.
    Lgalu = "lgalu", LONG_ALU;
    /// Instruction-cache and instruction-TLB misses.
    Imiss = "imiss", CODE_MISSES;
}

/// A set of categories.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Categories(pub u16);

impl Categories {
    /// None.
    pub const NONE: Categories = Categories(0);
    /// All of them.
    pub const ALL: Categories = Categories((1 << Category::ALL.len()) - 1);

    /// A set of these.
    pub fn of(list: &[Category]) -> Categories {
        list.iter().fold(Categories::NONE, |set, &category| set.with(category))
    }

    /// With one more.
    #[must_use]
    pub fn with(self, category: Category) -> Categories {
        Categories(self.0 | 1 << category as u16)
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
        Category::ALL.iter().copied().filter(move |&category| self.has(category))
    }

    /// The same idealisation of a core.
    pub fn ideal(self) -> Ideal {
        self.iter().fold(Ideal::NONE, |ideal, category| ideal.with(category.ideal()))
    }

    /// Its members' names, joined by a plus.
    pub fn name(self) -> String {
        self.iter().map(Category::name).collect::<Vec<_>>().join("+")
    }
}
