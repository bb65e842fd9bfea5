//! Levels of variation, whether runs may be combined, and what was spent.

use show::{Body, Cell, Fact, Section, Unit};

use super::{Report, count, section};
use crate::measure::conditions::EXECUTIONS;
use crate::measure::findings::FALSE_ALARMS;

impl Report<'_> {
    pub(super) fn levels(&self) -> Option<Section> {
        let levels = self.findings.levels?;
        let varies = self.job.varies;
        let mut drawn = Vec::new();
        drawn.extend(varies.environment.then_some("the size of the environment"));
        drawn.extend(varies.layout.then_some("where libraries and mappings lie"));
        let mean = levels.estimate.value.abs().max(f64::MIN_POSITIVE);
        let spread = |variance: f64| Cell::Number(variance.sqrt() / mean, Unit::Share);
        let facts = vec![
            Fact::new("drawn", "drawn anew", Cell::text(drawn.join(", "))),
            Fact::new("draws", "draws", count(self.runs.readings.len() as u64)),
            Fact::new("executions_each", "executions of each", count(EXECUTIONS as u64)),
            Fact::new("between", "spread between draws", spread(levels.between)),
            Fact::new("within", "spread between executions", spread(levels.within)),
            Fact::new(
                "share_between",
                "part of the variance due to the draw",
                Cell::Number(levels.share_between(), Unit::Share),
            ),
            Fact::new("p", "probability of that by chance", Cell::Number(levels.p, Unit::Number)),
        ];
        let title = "LEVELS OF VARIATION";
        Some(section("levels", title, "of the measurand".into(), Body::Facts(facts)))
    }

    pub(super) fn groups(&self) -> Section {
        let title = "MAY THE RUNS BE COMBINED";
        let Some(groups) = &self.findings.groups else {
            let why = Cell::NotCounted("too few runs for two groups".into());
            let facts = vec![Fact::new("agree", "groups agree", why)];
            return section("groups", title, String::new(), Body::Facts(facts));
        };
        let number = |value: f64| Cell::Number(value, Unit::Number);
        let mut facts = vec![
            Fact::new("count", "groups of runs", count(groups.count as u64)),
            Fact::new("size", "readings in a group", count(groups.size as u64)),
            Fact::new("agree", "groups agree", self.verdict()),
            Fact::new("p", "probability of such a spread", number(groups.comparison.p)),
            Fact::new(
                "overlap",
                "the paper's test: mean ± 3 u overlap",
                Cell::Flag(groups.comparison.overlap),
            ),
        ];
        if let Some(worst) = groups.comparison.worst {
            let pair = format!("{} and {}", worst.first + 1, worst.second + 1);
            let difference = Cell::Number(groups.difference, Unit::Share);
            facts.push(Fact::new("worst_pair", "they differ most", Cell::text(pair)));
            facts.push(Fact::new("worst_difference", "by", difference));
        }
        let caption = format!(
            "of the measurand, in the order of time; {} % of false alarms",
            100.0 * FALSE_ALARMS
        );
        section("groups", title, caption, Body::Facts(facts))
    }

    fn verdict(&self) -> Cell {
        let (key, text) = match &self.findings.groups {
            Some(groups) if groups.disagree() => ("no", "no: conditions changed between them"),
            Some(groups) if !groups.comparison.holds_at(FALSE_ALARMS) => {
                ("nearly", "yes, but for a difference below the uncertainty asked for")
            }
            _ => ("yes", "yes"),
        };
        Cell::Word { key, text: text.into() }
    }

    pub(super) fn spent(&self) -> Section {
        let spent = self.findings.spent;
        let nothing = || Cell::NotCounted("no two events need a counter".into());
        let or_none = |runs: Option<u64>| runs.map_or_else(nothing, count);
        let facts = vec![
            Fact::new("used", "executions used", count(spent.used)),
            Fact::new(
                "groups_of_events",
                "groups of events",
                count(self.turns.groups.len() as u64),
            ),
            Fact::new("one_by_one", "one event an execution", or_none(spent.one_by_one)),
            Fact::new("full_groups", "counters full, measurand once", or_none(spent.full_groups)),
        ];
        let caption = "and what the same uncertainty would take otherwise".into();
        section("spent", "WHAT WAS SPENT", caption, Body::Facts(facts))
    }
}
