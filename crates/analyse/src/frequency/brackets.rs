//! Lists that can be joined, and lose any member, in constant time.
//!
//! Every back edge is a *bracket* around the tree edges that it spans. A list holds the brackets
//! that span one place; its top and its length name the class of the tree edge there.

/// Not a place.
const NONE: usize = usize::MAX;

/// A bracket, by its place in the arena.
pub(super) type Bracket = usize;

#[derive(Clone, Copy, Debug)]
struct Link {
    above: usize,
    below: usize,
}

/// All brackets, wherever they are listed.
#[derive(Debug, Default)]
pub(super) struct Arena {
    links: Vec<Link>,
    /// Length of the list when the bracket was last on top, and the class that it had then.
    recent: Vec<(usize, usize)>,
}

/// A list of brackets.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    top: usize,
    bottom: usize,
    len: usize,
}

impl List {
    pub(super) const EMPTY: List = List { top: NONE, bottom: NONE, len: 0 };

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn top(&self) -> Option<Bracket> {
        (self.top != NONE).then_some(self.top)
    }
}

impl Arena {
    /// A bracket that is in no list yet.
    pub(super) fn add(&mut self) -> Bracket {
        self.links.push(Link { above: NONE, below: NONE });
        self.recent.push((0, NONE));
        self.links.len() - 1
    }

    pub(super) fn push(&mut self, list: &mut List, bracket: Bracket) {
        self.links[bracket] = Link { above: NONE, below: list.top };
        match list.top {
            NONE => list.bottom = bracket,
            top => self.links[top].above = bracket,
        }
        list.top = bracket;
        list.len += 1;
    }

    /// One list on top of the other.
    pub(super) fn join(&mut self, upper: List, lower: List) -> List {
        match (upper.len, lower.len) {
            (0, _) => lower,
            (_, 0) => upper,
            _ => {
                self.links[upper.bottom].below = lower.top;
                self.links[lower.top].above = upper.bottom;
                List { top: upper.top, bottom: lower.bottom, len: upper.len + lower.len }
            }
        }
    }

    /// Takes a bracket out of the list that it is in.
    pub(super) fn delete(&mut self, list: &mut List, bracket: Bracket) {
        let Link { above, below } = self.links[bracket];
        match above {
            NONE => list.top = below,
            above => self.links[above].below = below,
        }
        match below {
            NONE => list.bottom = above,
            below => self.links[below].above = above,
        }
        list.len -= 1;
    }

    /// The class of whatever a list spans: the same whenever the same bracket is on top of a list
    /// of the same length.
    pub(super) fn class(&mut self, list: &List, new_class: &mut impl FnMut() -> usize) -> usize {
        let Some(top) = list.top() else { return new_class() };
        let (len, class) = self.recent[top];
        if class != NONE && len == list.len() {
            return class;
        }
        let class = new_class();
        self.recent[top] = (list.len(), class);
        class
    }
}
