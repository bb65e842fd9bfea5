//! What the daemon holds in memory while five hundred processes live.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::context::Context;
use crate::peers::our_binary;
use crate::result::{Figure, RowResult};
use crate::run::{self, Wrap};

const PROCESSES: usize = 500;
const PATIENCE: Duration = Duration::from_secs(120);

/// Processes that only live, ended with this.
struct Living(Vec<Child>);

impl Living {
    fn start() -> Result<Living, String> {
        let mut living = Living(Vec::new());
        for _ in 0..PROCESSES {
            let child = Command::new("sleep")
                .arg("3600")
                .stdin(Stdio::null())
                .spawn()
                .map_err(|e| format!("sleep cannot be started: {e}"))?;
            living.0.push(child);
        }
        Ok(living)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The daemon, ended with this.
struct Daemon {
    child: Child,
    whither: String,
    db: std::path::PathBuf,
}

impl Daemon {
    fn start(whither: &str, folder: &Path) -> Result<Daemon, String> {
        let db = folder.join("db");
        let _ = std::fs::remove_dir_all(&db);
        let child = Command::new(whither)
            .args(["daemon", "start", "--foreground", "--drain", "2s", "--merge", "4s", "--db"])
            .arg(&db)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("whither cannot be started: {e}"))?;
        let mut daemon = Daemon { child, whither: whither.to_owned(), db };
        let began = Instant::now();
        while daemon.ask("status").is_err() {
            if daemon.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err("the daemon cannot run here; `whither doctor` says why".to_owned());
            }
            if began.elapsed() > PATIENCE {
                return Err("the daemon does not answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    fn ask(&self, what: &str) -> Result<Value, String> {
        let output = Command::new(&self.whither)
            .args(["daemon", what, "--json", "--db"])
            .arg(&self.db)
            .output()
            .map_err(|e| format!("whither cannot run: {e}"))?;
        serde_json::from_slice(&output.stdout).map_err(|e| format!("the daemon's {what}: {e}"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.db);
    }
}

/// High water with everything alive, compilations going on, and several appends behind it.
pub(super) fn measure(context: &Context, result: &mut RowResult) -> Result<(), String> {
    let whither = our_binary(context)?;
    let streams = context.work.streams()?;
    let _living = Living::start()?;
    let daemon = Daemon::start(&whither, &streams)?;
    let (tasks, wrong) = context.tasks(&["gcc-50"]);
    result.wrong.extend(wrong);
    for task in &tasks {
        result.remember(task);
        for _ in 0..if context.quick { 1 } else { 3 } {
            run::run(task, &Wrap::default(), &streams)?;
        }
    }
    daemon.ask("flush")?;
    let status = daemon.ask("status")?;
    daemon.ask("stop")?;
    let number = |value: &Value, what: &str| {
        value.as_f64().ok_or_else(|| format!("the daemon does not tell its {what}"))
    };
    let peak = number(&status["cost"]["peak_mib"], "memory")?;
    let kernel = number(&status["table"]["kernel_kib"], "tables")?;
    let processes = number(&status["daemon"]["processes"], "processes")?;
    // Mebibytes are larger than the megabytes of the goal: said in the goal's unit.
    result.ours.push(Figure::exact("daemon_rss_mb", peak * 1.048_576));
    result.ours.push(Figure::exact("kernel_kb_per_cpu", kernel * 1.024));
    result.notes.push(format!(
        "{processes:.0} processes known when it was read; {} appends",
        status["database"]["appends"]
    ));
    if processes < PROCESSES as f64 {
        return Err(format!("only {processes:.0} processes were known"));
    }
    Ok(())
}
