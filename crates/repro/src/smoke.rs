//! `repro smoke`: what must hold anywhere, without the suite's packages and without a clock.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::context::Context;
use crate::make::{self, Ask, Place};
use crate::result::RowResult;
use crate::rows;
use crate::suite::{Input, Locked, PageRow, What};
use crate::work::{digest_made, put};

/// One check and how it went.
pub type Checked = (String, Result<(), String>);

/// The tiny runs that smoke makes of our own programs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tiny {
    kernel: Vec<Kernel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernel {
    source: String,
    arguments: Vec<String>,
    prints: String,
}

/// Runs every check.
pub fn smoke(context: &Context) -> Vec<Checked> {
    let mut checks = Vec::new();
    generators(context, &mut checks);
    kernels(context, &mut checks);
    checks.push(("microbenchmarks run".to_owned(), micro(context)));
    checks.push(("every landed row is on the page".to_owned(), page(context)));
    goals(context, &mut checks);
    context.work.tidy();
    checks
}

/// What follows from a seed alone must hash to what is recorded.
fn generators(context: &Context, checks: &mut Vec<Checked>) {
    for program in &context.suite.programs {
        for input in program.input.iter().filter(|input| seeded(input)) {
            let name = format!("{}/{} follows from its seed", program.name, input.file);
            checks.push((name, generator(context, &program.name, input)));
        }
    }
}

fn seeded(input: &Input) -> bool {
    matches!(make::recipe(&input.recipe), Some(make::Recipe::Pure(_) | make::Recipe::Files(_)))
}

fn generator(context: &Context, program: &str, input: &Input) -> Result<(), String> {
    let hash = digest_made(&context.work.make(&context.suite, input)?);
    let what = What::Input(input.file.clone());
    match context.suite.lock.compare(program, &what, &std::collections::BTreeMap::new(), &hash) {
        Locked::Same => Ok(()),
        Locked::Unknown => Err("no sha256 is recorded".to_owned()),
        Locked::Differs { recorded } => Err(format!("sha256 {hash} instead of {recorded}")),
    }
}

fn kernels(context: &Context, checks: &mut Vec<Checked>) {
    let path = context.suite.data.join("smoke.toml");
    let read = std::fs::read_to_string(&path).map_err(|e| format!("suite/smoke.toml: {e}"));
    let tiny = read.and_then(|text| {
        toml::from_str::<Tiny>(&text).map_err(|e| format!("suite/smoke.toml: {}", e.message()))
    });
    match tiny {
        Err(sentence) => checks.push(("kernels".to_owned(), Err(sentence))),
        Ok(tiny) => checks.extend(tiny.kernel.iter().map(|kernel| {
            let name = format!("{} prints what is recorded", kernel.source);
            (name, run_kernel(context, kernel))
        })),
    }
}

fn run_kernel(context: &Context, kernel: &Kernel) -> Result<(), String> {
    let directory = context.work.streams()?;
    compile(context, &kernel.source, &directory)?;
    let arguments: Vec<&str> = kernel.arguments.iter().map(String::as_str).collect();
    let printed = output(&directory.join("program"), &arguments)?;
    if printed.trim() == kernel.prints {
        return Ok(());
    }
    Err(format!("it printed `{}` instead of `{}`", printed.trim(), kernel.prints))
}

fn micro(context: &Context) -> Result<(), String> {
    let directory = context.work.streams()?;
    compile(context, "micro/micro.c", &directory)?;
    let program = directory.join("program");
    let list = output(&program, &["--list"])?;
    let mut classes = std::collections::BTreeMap::new();
    for line in list.lines() {
        let mut words = line.split(' ');
        let (Some(class), Some(name)) = (words.next(), words.next()) else {
            return Err(format!("--list printed `{line}`"));
        };
        *classes.entry(class.to_owned()).or_insert(0_u32) += 1;
        let printed = output(&program, &[name, "3"])?;
        if printed.trim() != format!("{name} 3") {
            return Err(format!("{name} printed `{}`", printed.trim()));
        }
    }
    match classes.iter().find(|(_, count)| **count < 4) {
        Some((class, count)) => Err(format!("class {class} has only {count} loops")),
        None if list.lines().count() < 30 => Err("there are fewer than 30 loops".to_owned()),
        None => Ok(()),
    }
}

pub(crate) fn compile(context: &Context, source: &str, directory: &Path) -> Result<(), String> {
    let recipe = make::recipe("c-program").ok_or("there is no recipe c-program")?;
    let from = [source.to_owned()];
    let ask = Ask { file: "program", seed: 0, amount: 0, from: &from };
    let made = make::make(recipe, &ask, &Place { data: &context.suite.data, scratch: directory })?;
    put(directory, &made)
}

fn output(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("it cannot be started: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ({})", said.trim(), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn page(context: &Context) -> Result<(), String> {
    match rows::ROWS.iter().find(|row| context.suite.page.find(row.name).is_none()) {
        Some(row) => Err(format!("suite/rows.toml has no row {}", row.name)),
        None => Ok(()),
    }
}

/// Rows with a seeded form must still meet their goals, in the figures that the form gives.
fn goals(context: &Context, checks: &mut Vec<Checked>) {
    for row in rows::ROWS {
        let (Some(run), Some(on_page)) = (row.smoke, context.suite.page.find(row.name)) else {
            continue;
        };
        let met = run(context).and_then(|result| judge(&result, on_page));
        checks.push((format!("{} meets its goals", row.name), met));
    }
}

fn judge(result: &RowResult, row: &PageRow) -> Result<(), String> {
    let judged = || row.goal.iter().filter_map(|(key, bound)| Some((result.figure(key)?, bound)));
    if judged().next().is_none() {
        return Err("it gave no figure that has a goal".to_owned());
    }
    let lost: Vec<String> = judged()
        .filter(|(figure, bound)| !bound.holds(figure.value))
        .map(|(figure, bound)| {
            format!("{} is {:.2}, not {}", figure.key, figure.value, bound.text())
        })
        .collect();
    if lost.is_empty() { Ok(()) } else { Err(lost.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Figure;
    use crate::suite::Page;

    #[test]
    fn a_form_is_judged_by_the_figures_it_gives_and_must_give_one() {
        let text = "[[row]]\nname='a'\nregenerates='x'\ngoal={k={max=2},l={min=1}}\n";
        let page = Page::parse("p", text).unwrap();
        let row = page.find("a").unwrap();
        let with = |figures: &[(&str, f64)]| RowResult {
            ours: figures.iter().map(|(key, value)| Figure::exact(key, *value)).collect(),
            ..RowResult::default()
        };
        assert_eq!(judge(&with(&[("k", 2.0)]), row), Ok(()));
        assert_eq!(judge(&with(&[("k", 3.0), ("l", 1.0)]), row), Err("k is 3.00, not ≤ 2".into()));
        assert!(judge(&with(&[("m", 0.0)]), row).is_err());
    }
}
