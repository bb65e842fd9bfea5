//! `repro prepare`: packages installed, inputs made and verified, every program run once.
//!
//! What is there and verifies is not made again. A program that cannot be prepared is named and
//! left out; the rest goes on.

use std::collections::{BTreeMap, BTreeSet};

use crate::make;
use crate::packages::{self, Packages};
use crate::progress::Progress;
use crate::run;
use crate::suite::{Input, Lock, Locked, Program, Size, Suite, What};
use crate::work::{self, Work};

/// How to prepare.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plan {
    /// Installs missing packages.
    pub install: bool,
    /// Makes every input a second time and compares.
    pub check: bool,
    /// Records hashes in the lock instead of verifying against it.
    pub record: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Programs that are ready.
    pub ready: Vec<String>,
    /// Programs left out and everything else that went wrong, a sentence each.
    pub wrong: Vec<String>,
    /// Things worth knowing: hashes for which nothing is recorded.
    pub notes: Vec<String>,
    /// How many inputs were made, and how many were there already.
    pub made: usize,
    /// See `made`.
    pub kept: usize,
}

/// Prepares the whole suite.
pub fn prepare(suite: &mut Suite, work: &Work, plan: Plan, progress: &Progress) -> Report {
    let mut report = Report::default();
    let tools: Vec<String> = suite.tools.package.iter().map(|tool| tool.name.clone()).collect();
    let wanted: BTreeSet<String> =
        suite.programs.iter().flat_map(|p| p.packages.iter()).chain(&tools).cloned().collect();
    let missing = Packages::of_this_machine().missing(&wanted);
    if plan.install && !missing.is_empty() {
        progress.say(&format!("installing {}", join(&missing)));
        if let Err(sentence) = packages::install(&missing) {
            report.wrong.push(sentence);
        }
    }
    let packages = Packages::of_this_machine();
    for tool in packages.missing(&tools) {
        report.wrong.push(format!("the tool package {tool} is not installed"));
    }
    let programs = suite.programs.clone();
    for build in suite.tools.build.clone() {
        let mut one = One { suite, work, packages: &packages, plan, report: &mut report };
        if let Err(sentence) = one.input(&build.file, &build) {
            report.wrong.push(sentence);
        }
    }
    progress.start(programs.len() as u64);
    for program in &programs {
        progress.step(&program.name);
        let mut one = One { suite, work, packages: &packages, plan, report: &mut report };
        match one.prepare(program) {
            Ok(()) => report.ready.push(program.name.clone()),
            Err(sentence) => report.wrong.push(format!("{sentence}; left out")),
        }
    }
    progress.finish();
    work.tidy();
    report
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// One program being prepared.
struct One<'a> {
    suite: &'a mut Suite,
    work: &'a Work,
    packages: &'a Packages,
    plan: Plan,
    report: &'a mut Report,
}

impl One<'_> {
    fn prepare(&mut self, program: &Program) -> Result<(), String> {
        let missing = self.packages.missing(&program.packages);
        if !missing.is_empty() {
            return Err(format!("{}: not installed: {}", program.name, join(&missing)));
        }
        let directory = self.work.program(&program.name);
        std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", program.name))?;
        for input in &program.input {
            self.input(&program.name, input)?;
        }
        // Recording needs every size's output; preparing only shows that the program runs.
        let sizes: &[Size] = if self.plan.record { &Size::ALL } else { &[Size::Quick] };
        sizes.iter().try_for_each(|size| self.output(program, *size))
    }

    fn input(&mut self, program: &str, input: &Input) -> Result<(), String> {
        let versions = self.packages.versions(&input.depends);
        let what = What::Input(input.file.clone());
        let pure = matches!(
            make::recipe(&input.recipe),
            Some(make::Recipe::Pure(_) | make::Recipe::Files(_))
        );
        let there = self.work.digest(program, &input.file);
        // What follows from a seed is quicker made than trusted.
        if let (false, false, false, Some(hash)) = (pure, self.plan.check, self.plan.record, &there)
        {
            let lock = &self.suite.lock;
            if lock.compare(program, &what, &versions, hash) == Locked::Same {
                self.report.kept += 1;
                return Ok(());
            }
        }
        let made = self
            .work
            .make(self.suite, input)
            .map_err(|e| format!("{}: {} cannot be made: {e}", program, input.file))?;
        let hash = work::digest_made(&made);
        if self.plan.check && there.as_ref().is_some_and(|there| *there != hash) {
            return Err(format!("{}: {} came out differently", program, input.file));
        }
        self.verify(program, what, versions, &hash)?;
        self.report.made += usize::from(there.as_deref() != Some(hash.as_str()));
        self.report.kept += usize::from(there.as_deref() == Some(hash.as_str()));
        let directory = self.work.program(program);
        if there.is_some_and(|there| there != hash) && directory.join(&input.file).is_dir() {
            // Files of an earlier recipe would stay among the new ones.
            let stale = directory.join(&input.file);
            std::fs::remove_dir_all(&stale).map_err(|e| format!("{}: {e}", stale.display()))?;
        }
        work::put(&directory, &made)
    }

    fn output(&mut self, program: &Program, size: Size) -> Result<(), String> {
        let mut task = self.work.task(self.suite, self.packages, program, size)?;
        if self.plan.record {
            task.expected = None;
        }
        let outcome = run::run(&task, &run::Wrap::default(), &self.work.streams()?)?;
        let Some(hash) = outcome.output else { return Ok(()) };
        self.verify(&program.name, What::Output(size.name().to_owned()), task.versions, &hash)
    }

    fn verify(
        &mut self,
        program: &str,
        what: What,
        versions: BTreeMap<String, String>,
        hash: &str,
    ) -> Result<(), String> {
        let name = match &what {
            What::Input(file) => format!("input {file}"),
            What::Output(size) => format!("output at {size} size"),
        };
        let lock: &mut Lock = &mut self.suite.lock;
        if self.plan.record {
            lock.record(program, what, versions, hash.to_owned());
            return Ok(());
        }
        match lock.compare(program, &what, &versions, hash) {
            Locked::Same => Ok(()),
            Locked::Unknown => {
                let note = format!("{program}: {name} has sha256 {hash}, none is recorded");
                self.report.notes.push(format!("{note} for these package versions"));
                Ok(())
            }
            Locked::Differs { recorded } => Err(format!(
                "{program}: {name} has sha256 {hash} instead of the recorded {recorded}"
            )),
        }
    }
}
