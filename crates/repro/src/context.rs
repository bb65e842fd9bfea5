//! What a row is given to work with.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::kept::Kept;
use crate::packages::Packages;
use crate::progress::Progress;
use crate::run::Task;
use crate::suite::{Size, Suite};
use crate::work::Work;

/// Everything a row may use.
#[derive(Debug)]
pub struct Context {
    /// The suite's data.
    pub suite: Suite,
    /// The work directory.
    pub work: Work,
    /// Installed packages.
    pub packages: Packages,
    /// Fewer and shorter programs.
    pub quick: bool,
    /// Commands to use instead of the suite.
    pub commands: Vec<Task>,
    /// Programs to use instead of a row's own choice; none to leave it the choice.
    pub programs: Vec<String>,
    /// The seed of everything a row draws by chance.
    pub seed: u64,
    /// Finished measurements.
    pub kept: Kept,
    /// Where work under way is shown.
    pub progress: Progress,
    /// The directory of this executable, where our other binaries are.
    pub beside: Option<PathBuf>,
}

impl Context {
    /// The size figures are taken at.
    pub fn size(&self) -> Size {
        if self.quick { Size::Quick } else { Size::Standard }
    }

    /// The size as results state it.
    pub fn size_name(&self) -> &'static str {
        if self.commands.is_empty() { self.size().name() } else { "command" }
    }

    /// What to run: the commands given, or the suite's programs of these names (all when none is
    /// named) at the row's size. What cannot run comes back as sentences.
    pub fn tasks(&self, names: &[&str]) -> (Vec<Task>, Vec<String>) {
        self.chosen_at(names, self.size())
    }

    /// The same at a size of the row's own choice.
    pub fn chosen_at(&self, names: &[&str], size: Size) -> (Vec<Task>, Vec<String>) {
        if self.programs.is_empty() {
            return self.tasks_at(names, size);
        }
        let asked: Vec<&str> = self.programs.iter().map(String::as_str).collect();
        let (tasks, mut wrong) = self.tasks_at(&asked, size);
        let known = |name: &str| self.suite.programs.iter().any(|program| program.name == name);
        let unknown = asked.iter().filter(|name| !known(name));
        wrong.extend(unknown.map(|name| format!("the suite has no program {name}; left out")));
        (tasks, wrong)
    }

    /// The programs of these names at a size, whatever was chosen.
    pub fn tasks_at(&self, names: &[&str], size: Size) -> (Vec<Task>, Vec<String>) {
        if !self.commands.is_empty() {
            return (self.commands.clone(), Vec::new());
        }
        let (mut tasks, mut wrong) = (Vec::new(), Vec::new());
        for program in &self.suite.programs {
            if !names.is_empty() && !names.contains(&program.name.as_str()) {
                continue;
            }
            match self.work.task(&self.suite, &self.packages, program, size) {
                Ok(task) => tasks.push(task),
                Err(sentence) => wrong.push(format!("{sentence}; left out")),
            }
        }
        (tasks, wrong)
    }

    /// The key under which `row` keeps what it measured of `task` with `tools`, over `rounds`.
    pub fn key(&self, row: &str, task: &Task, tools: &[&str], rounds: usize) -> Value {
        json!({
            "row": row, "program": task.name, "size": self.size_name(), "seed": self.seed,
            "inputs": task.inputs, "versions": task.versions, "argv": task.argv,
            "executable": task.executable_sha256(), "tools": tools, "rounds": rounds,
        })
    }
}
