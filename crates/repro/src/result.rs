//! What a row found, and how it stands against its goal.

use metrology::Interval;
use serde_json::{Map, Value, json};
use show::{Body, Section, Table};

use crate::run::Task;
use crate::suite::PageRow;

/// One of ours: a figure under a key of the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The key, as in the goal.
    pub key: String,
    /// The value.
    pub value: f64,
    /// Its interval at 95 %; none when the figure is exact.
    pub interval: Option<Interval>,
}

impl Figure {
    /// An exact figure.
    pub fn exact(key: &str, value: f64) -> Figure {
        Figure { key: key.to_owned(), value, interval: None }
    }

    /// A measured figure.
    pub fn measured(key: &str, value: f64, interval: Interval) -> Figure {
        Figure { key: key.to_owned(), value, interval: Some(interval) }
    }
}

/// A drawing that belongs to a row.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its file name without directory or extension.
    pub name: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The drawing.
    pub svg: String,
}

/// What a row found.
#[derive(Debug, Default)]
pub struct RowResult {
    /// The page's keys.
    pub ours: Vec<Figure>,
    /// One row a program or configuration; `detail` in JSON.
    pub detail: Table,
    /// What the detail's numbers are and where they come from.
    pub caption: String,
    /// The size of its inputs, where the row chooses that itself.
    pub size: Option<&'static str>,
    /// Drawings.
    pub plots: Vec<Plot>,
    /// What a reader must know to judge the numbers.
    pub notes: Vec<String>,
    /// What failed and was left out, a sentence each; any makes the exit status 1.
    pub wrong: Vec<String>,
    /// Inputs used, by `program/file`, and their sha256.
    pub inputs: Map<String, Value>,
    /// Versions of programs and peers.
    pub versions: Map<String, Value>,
    /// Seeds used, by what they are for.
    pub seeds: Map<String, Value>,
}

impl RowResult {
    /// The figure under `key`.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.ours.iter().find(|figure| figure.key == key)
    }

    /// Records the inputs and versions behind `task`.
    pub fn remember(&mut self, task: &Task) {
        for (file, hash) in &task.inputs {
            self.inputs.insert(format!("{}/{file}", task.name), json!(hash));
        }
        for (package, version) in &task.versions {
            self.versions.insert(package.clone(), json!(version));
        }
    }

    /// Whether every goal is met; none for a row without goals. A figure that was not measured
    /// does not meet its goal.
    pub fn met(&self, row: &PageRow) -> Option<bool> {
        if row.goal.is_empty() {
            return None;
        }
        let holds = |key: &String, bound: &crate::suite::Bound| {
            self.figure(key).is_some_and(|figure| bound.holds(figure.value))
        };
        Some(row.goal.iter().all(|(key, bound)| holds(key, bound)))
    }

    /// The row's one object: name, paper, ours, goal, met, detail; and what it took.
    pub fn json(&self, row: &PageRow, size: &str, run: Value) -> Value {
        let mut ours = Map::new();
        for figure in &self.ours {
            ours.insert(figure.key.clone(), json!(figure.value));
            if let Some(interval) = figure.interval {
                let half = interval.half_width();
                ours.insert(format!("{}_pm95", figure.key), json!(half));
            }
        }
        let bound = |b: &crate::suite::Bound| {
            let mut object = Map::new();
            object.extend(b.min.map(|min| ("min".to_owned(), json!(min))));
            object.extend(b.max.map(|max| ("max".to_owned(), json!(max))));
            Value::Object(object)
        };
        let goal: Map<String, Value> =
            row.goal.iter().map(|(key, b)| (key.clone(), bound(b))).collect();
        json!({
            "name": row.name,
            "paper": json!(row.paper),
            "ours": ours,
            "goal": goal,
            "met": self.met(row),
            "detail": self.detail_json(),
            "size": self.size.unwrap_or(size),
            "notes": self.notes,
            "wrong": self.wrong,
            "run": run,
        })
    }

    /// The detail as `show` writes it.
    fn detail_json(&self) -> Value {
        let mut all = show::render_json(&show::View {
            schema: show::Schema { name: "repro", version: 1 },
            title: String::new(),
            sections: vec![self.detail_section()],
        });
        all.get_mut("detail").map_or_else(|| json!([]), Value::take)
    }

    /// The detail as a section of a view.
    pub fn detail_section(&self) -> Section {
        Section {
            key: "detail",
            title: "DETAIL".to_owned(),
            caption: self.caption.clone(),
            body: Body::Table(self.detail.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Page;

    const PAGE: &str = "[[row]]\nname='a'\nregenerates='x'\npaper={k=3}\ngoal={k={max=2}}\n\
                        [[row]]\nname='b'\nregenerates='y'\n";

    fn with(value: f64) -> RowResult {
        RowResult { ours: vec![Figure::exact("k", value)], ..RowResult::default() }
    }

    #[test]
    fn a_goal_is_met_missed_or_absent() {
        let page = Page::parse("p", PAGE).unwrap();
        let (a, b) = (page.find("a").unwrap(), page.find("b").unwrap());
        assert_eq!(with(2.0).met(a), Some(true));
        assert_eq!(with(2.1).met(a), Some(false));
        assert_eq!(RowResult::default().met(a), Some(false));
        assert_eq!(with(2.0).met(b), None);
    }

    #[test]
    fn the_object_has_the_pages_keys() {
        let page = Page::parse("p", PAGE).unwrap();
        let object = with(1.5).json(page.find("a").unwrap(), "quick", json!({}));
        assert_eq!(object["name"], "a");
        assert_eq!(object["paper"]["k"], 3);
        assert_eq!(object["ours"]["k"], 1.5);
        assert_eq!(object["goal"]["k"]["max"], 2.0);
        assert_eq!(object["met"], true);
        assert_eq!(object["detail"], json!([]));
    }
}
