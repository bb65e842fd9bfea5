//! The command line: arguments become a request, the request runs, an exit status comes back.
//!
//! Status: 0 all well; 1 something failed or was left out, and the rest went on; 2 the command
//! line is wrong; 3 `--check` found a goal that is not met.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::context::Context;
use crate::kept::Kept;
use crate::packages::Packages;
use crate::prepare::{self, Plan};
use crate::progress::Progress;
use crate::result::RowResult;
use crate::run::Task;
use crate::suite::{PageRow, Suite, find_data};
use crate::work::Work;
use crate::{report, results, rows, smoke};

/// Words that are not rows.
const VERBS: [&str; 4] = ["list", "all", "smoke", "prepare"];

/// Regenerates the papers' tables and figures, ours beside theirs.
#[derive(Debug, Parser)]
#[command(name = "repro", version)]
struct Arguments {
    /// A row's name, or: list, all, smoke, prepare
    name: String,
    /// Fewer and shorter programs, within a minute
    #[arg(long)]
    quick: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Run the row on this command instead of the suite (may be repeated)
    #[arg(long, value_name = "PROGRAM ARGS")]
    cmd: Vec<String>,
    /// Run the row on these programs of the suite instead of its own choice
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "cmd")]
    programs: Vec<String>,
    /// Exit with 3 when a goal is not met; with prepare: make every input twice and compare
    #[arg(long)]
    check: bool,
    /// The seed of everything drawn by chance
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// With all: rewrite docs/RESULTS.md; with prepare: record hashes instead of verifying them
    #[arg(long)]
    write: bool,
    /// Measure again what an earlier run has kept
    #[arg(long)]
    fresh: bool,
    /// With prepare: install nothing
    #[arg(long)]
    no_install: bool,
}

/// Runs the command line; the exit status comes back.
pub fn main(arguments: Vec<std::ffi::OsString>) -> u8 {
    // What rows start around a program; people do not type it, so help does not name it.
    if arguments.get(1).is_some_and(|verb| verb == crate::hear::VERB) {
        return crate::hear::main(arguments.get(2..).unwrap_or_default());
    }
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let status = if error.use_stderr() { 2 } else { 0 };
            // A closed pipe leaves nothing to say and no one to say it to.
            let _ = error.print();
            return status;
        }
    };
    match act(&arguments) {
        Ok(status) => status,
        Err((status, sentence)) => {
            eprintln!("repro: {sentence}");
            status
        }
    }
}

type Status = Result<u8, (u8, String)>;

fn act(arguments: &Arguments) -> Status {
    if arguments.write && !matches!(arguments.name.as_str(), "all" | "prepare") {
        return Err((2, "--write goes with all or prepare".to_owned()));
    }
    let mut context = context(arguments).map_err(|sentence| (1, sentence))?;
    let status = match arguments.name.as_str() {
        "list" => list(&context, arguments.json),
        "prepare" => prepare_suite(&mut context, arguments),
        "smoke" => Ok(run_smoke(&context, arguments.json)),
        "all" => all(&context, arguments),
        name => one(&context, arguments, name),
    };
    context.work.tidy();
    status
}

fn context(arguments: &Arguments) -> Result<Context, String> {
    let here = std::env::current_dir().map_err(|e| format!("the current directory: {e}"))?;
    let executable = std::env::current_exe().ok();
    let data = find_data(&here)
        .or_else(|| executable.as_deref().and_then(find_data))
        .ok_or_else(|| crate::suite::SuiteError::NotFound.to_string())?;
    let suite = Suite::load(&data).map_err(|e| e.to_string())?;
    let default = || data.parent().unwrap_or(Path::new(".")).join("target/suite");
    let root = std::env::var_os("WHITHER_SUITE_DIR").map_or_else(default, PathBuf::from);
    // Programs run in directories of their own: a relative path would mean another place there.
    let root = std::path::absolute(&root).map_err(|e| format!("{}: {e}", root.display()))?;
    let work = Work::new(root);
    let commands: Result<Vec<Task>, String> =
        arguments.cmd.iter().map(|text| Task::from_command(text, &here)).collect();
    Ok(Context {
        suite,
        kept: Kept::new(work.kept(), arguments.fresh),
        work,
        packages: Packages::of_this_machine(),
        quick: arguments.quick,
        commands: commands?,
        programs: arguments.programs.clone(),
        seed: arguments.seed,
        progress: Progress::new(!arguments.json),
        beside: executable.and_then(|path| path.parent().map(Path::to_owned)),
    })
}

fn list(context: &Context, as_json: bool) -> Status {
    let landed = |row: &PageRow| rows::find(&row.name).is_some();
    let page = &context.suite.page.row;
    if as_json {
        let row = |row: &PageRow| {
            let goal: Vec<String> =
                row.goal.iter().map(|(k, b)| format!("{k} {}", b.text())).collect();
            serde_json::json!({
                "name": row.name, "landed": landed(row), "regenerates": row.regenerates,
                "goal": goal.join(", "), "print": row.print,
            })
        };
        println!("{}", serde_json::json!({ "rows": page.iter().map(row).collect::<Vec<_>>() }));
        return Ok(0);
    }
    for (title, want) in [("landed", true), ("still missing", false)] {
        let some: Vec<&PageRow> = page.iter().filter(|row| landed(row) == want).collect();
        println!("{title} ({}):", some.len());
        for row in some {
            println!("  {:16} {}", row.name, row.regenerates);
            println!("  {:16} goal: {}", "", goal_text(row));
        }
    }
    Ok(0)
}

fn goal_text(row: &PageRow) -> String {
    let mut parts: Vec<String> =
        row.goal.iter().map(|(key, bound)| format!("{key} {}", bound.text())).collect();
    if !row.print.is_empty() {
        parts.push(format!("print {}", row.print));
    }
    parts.join(", ")
}

fn prepare_suite(context: &mut Context, arguments: &Arguments) -> Status {
    let plan =
        Plan { install: !arguments.no_install, check: arguments.check, record: arguments.write };
    let began = std::time::Instant::now();
    let report = prepare::prepare(&mut context.suite, &context.work, plan, &context.progress);
    if arguments.write {
        let path = context.suite.data.join("lock.toml");
        context.suite.lock.write(&path).map_err(|e| (1, e.to_string()))?;
    }
    for sentence in &report.notes {
        println!("note: {sentence}");
    }
    for sentence in &report.wrong {
        eprintln!("repro: {sentence}");
    }
    println!(
        "prepare: {} ready, {} wrong; {} inputs made, {} kept; {:.0} s",
        report.ready.len(),
        report.wrong.len(),
        report.made,
        report.kept,
        began.elapsed().as_secs_f64()
    );
    Ok(u8::from(!report.wrong.is_empty()))
}

fn run_smoke(context: &Context, as_json: bool) -> u8 {
    let checks = smoke::smoke(context);
    let failed = checks.iter().filter(|(_, outcome)| outcome.is_err()).count();
    for (name, outcome) in &checks {
        match outcome {
            Ok(()) if as_json => {}
            Ok(()) => println!("ok      {name}"),
            Err(sentence) => eprintln!("FAILED  {name}: {sentence}"),
        }
    }
    let passed = checks.len() - failed;
    if as_json {
        println!("{}", serde_json::json!({ "passed": passed, "failed": failed }));
    } else {
        println!("smoke: {passed} passed, {failed} failed");
    }
    u8::from(failed > 0)
}

fn one(context: &Context, arguments: &Arguments, name: &str) -> Status {
    let Some(on_page) = context.suite.page.find(name) else {
        let known = context.suite.page.row.iter().map(|row| row.name.as_str()).chain(VERBS);
        let hint = match pmu::nearest(name, known) {
            Some(near) => format!("did you mean {near}?"),
            None => "`repro list` names them".to_owned(),
        };
        return Err((2, format!("no row is called {name}: {hint}")));
    };
    let Some(row) = rows::find(name) else {
        return Err((1, format!("the row {name} is known but its code has not landed yet")));
    };
    let result = (row.run)(context).map_err(|sentence| (1, format!("{name}: {sentence}")))?;
    if arguments.json {
        let run = report::run_object(context, &result);
        println!("{}", result.json(on_page, context.size_name(), run));
    } else {
        print!("{}", report::text(on_page, &result, context.size_name(), width()));
    }
    complain(&result);
    Ok(status(arguments, [(on_page, &result)]))
}

fn all(context: &Context, arguments: &Arguments) -> Status {
    let mut finished = Vec::new();
    let mut objects = Vec::new();
    for on_page in &context.suite.page.row {
        let Some(row) = rows::find(&on_page.name) else { continue };
        let result = (row.run)(context);
        match &result {
            Ok(result) => {
                if arguments.json {
                    let run = report::run_object(context, result);
                    objects.push(result.json(on_page, context.size_name(), run));
                } else {
                    println!("{}", report::text(on_page, result, context.size_name(), width()));
                }
                complain(result);
            }
            Err(sentence) => eprintln!("repro: {}: {sentence}", on_page.name),
        }
        finished.push((on_page, result));
    }
    if arguments.json {
        println!("{}", serde_json::json!({ "rows": objects }));
    }
    if arguments.write {
        let docs = context.suite.data.parent().unwrap_or(Path::new(".")).join("docs");
        results::write(&docs, &context.suite.page, &finished, context.size_name())
            .map_err(|sentence| (1, sentence))?;
    }
    if finished.iter().any(|(_, result)| result.is_err()) {
        return Ok(1);
    }
    let good = finished.iter().filter_map(|(row, result)| Some((*row, result.as_ref().ok()?)));
    Ok(status(arguments, good))
}

/// What was left out is said where errors are looked for, too.
fn complain(result: &RowResult) {
    for sentence in &result.wrong {
        eprintln!("repro: {sentence}");
    }
}

fn status<'a>(
    arguments: &Arguments,
    finished: impl IntoIterator<Item = (&'a PageRow, &'a RowResult)>,
) -> u8 {
    let (mut left_out, mut missed) = (false, false);
    for (row, result) in finished {
        left_out |= !result.wrong.is_empty();
        missed |= result.met(row) == Some(false);
    }
    match (left_out, arguments.check && missed) {
        (true, _) => 1,
        (false, true) => 3,
        (false, false) => 0,
    }
}

/// Wide enough for a table when no one says how wide the screen is.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.filter(|_| std::io::stdout().is_terminal()).unwrap_or(120)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Figure;
    use crate::suite::Page;

    fn parsed(words: &[&str]) -> Arguments {
        Arguments::try_parse_from([&["repro"], words].concat()).unwrap()
    }

    #[test]
    fn a_missed_goal_is_status_3_only_when_checked_and_a_failure_is_always_1() {
        let text = "[[row]]\nname = 'r'\nregenerates = 'x'\ngoal = { k = { max = 2 } }\n";
        let page = Page::parse("p", text).unwrap();
        let row = page.find("r").unwrap();
        let with = |value: f64, wrong: &[&str]| RowResult {
            ours: vec![Figure::exact("k", value)],
            wrong: wrong.iter().map(|&sentence| sentence.to_owned()).collect(),
            ..RowResult::default()
        };
        let (plain, check) = (parsed(&["r"]), parsed(&["r", "--check"]));
        assert_eq!(status(&plain, [(row, &with(3.0, &[]))]), 0);
        assert_eq!(status(&check, [(row, &with(3.0, &[]))]), 3);
        assert_eq!(status(&check, [(row, &with(2.0, &[]))]), 0);
        assert_eq!(status(&plain, [(row, &with(2.0, &["gone"]))]), 1);
        assert_eq!(status(&check, [(row, &with(3.0, &["gone"]))]), 1);
    }

    #[test]
    fn commands_may_be_repeated_and_the_seed_is_a_number() {
        let arguments = parsed(&["r", "--cmd", "a b", "--cmd", "c", "--seed", "9"]);
        assert_eq!((arguments.cmd, arguments.seed), (vec!["a b".to_owned(), "c".to_owned()], 9));
        assert!(Arguments::try_parse_from(["repro", "r", "--seed", "x"]).is_err());
        assert_eq!(parsed(&["r", "--programs", "gzip,mcf"]).programs, ["gzip", "mcf"]);
    }
}
