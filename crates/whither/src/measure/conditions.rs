//! What is drawn anew between runs, so that one lucky layout does not decide the result.

use std::ffi::OsString;

use metrology::Draws;
use perf::Layout;

use crate::cli::Varies;

/// The variable whose length is drawn; it moves the stack.
const PADDING: &str = "WHITHER_PADDING";
/// Past a page nothing new happens.
const PADDING_MAX_BYTES: usize = 4096;
/// Executions in the same surroundings, where they vary: two tell the levels apart, and more are
/// worth it only where drawing costs more than running.
pub(super) const EXECUTIONS: usize = 2;

/// The surroundings of one or more executions.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    pub(super) padding: Option<usize>,
    pub(super) layout: Layout,
}

impl Conditions {
    /// Draws them. Where anything varies, the layout is held between executions; where nothing
    /// does, the kernel draws it as always.
    pub(super) fn draw(varies: Varies, draws: &mut Draws) -> Conditions {
        let padding = varies.environment.then(|| draws.below(PADDING_MAX_BYTES));
        let layout = match (varies.environment, varies.layout) {
            (_, true) => Layout::Held { lower_by: draws.below(usize::from(u16::MAX)) as u16 },
            (true, false) => Layout::Held { lower_by: 0 },
            (false, false) => Layout::Drawn,
        };
        Conditions { padding, layout }
    }

    /// What the environment has beside the user's own.
    pub(super) fn added(&self) -> Vec<(OsString, OsString)> {
        self.padding.map(|bytes| (PADDING.into(), "x".repeat(bytes).into())).into_iter().collect()
    }
}

/// How many executions share their surroundings.
pub(super) fn executions(varies: Varies) -> usize {
    if varies.environment || varies.layout { EXECUTIONS } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_varies_is_drawn() {
        let mut draws = Draws::new(1);
        let nothing = Conditions::draw(Varies::default(), &mut draws);
        assert_eq!((nothing.padding, nothing.layout), (None, Layout::Drawn));
        let environment = Varies { environment: true, ..Varies::default() };
        let drawn = Conditions::draw(environment, &mut draws);
        assert_eq!(drawn.layout, Layout::Held { lower_by: 0 });
        assert_eq!(drawn.added().first().unwrap().1.len(), drawn.padding.unwrap());
        let all = Varies { environment: true, layout: true, order: true };
        let drawn: Vec<Layout> =
            (0..20).map(|_| Conditions::draw(all, &mut draws).layout).collect();
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!((executions(all), executions(Varies::default())), (2, 1));
    }
}
