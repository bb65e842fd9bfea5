//! Exact counts of a command and of everything that it starts.
//!
//! ```text
//! cargo run --release -p tracer --example count -- sh -c 'echo hello'
//! ```

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use tracer::counts::count;
use tracer::launch::{Engines, Launch};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("say what to run")?;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let built = tracer_embed::build(&target)?;
    let (plugin, native) = (fs::read(built.plugin)?, fs::read(built.native)?);
    let launch = Launch { arguments: words.collect(), ..Launch::new(program) };
    let finished = launch.run(&Engines { plugin: &plugin, native: &native })?;
    for key in finished.processes.keys() {
        let Some(process) = count(&finished.processes, *key) else { continue };
        let totals = process.totals();
        let partials = process.threads.values().flat_map(|thread| &thread.partials);
        let cut: u64 = partials.map(|partial| partial.times).sum();
        eprintln!(
            "{:>8} {:>13} instructions {:>6} blocks {:>3} threads {cut:>6} cut  {}  {:?}{}",
            process.key.to_string(),
            totals.instructions,
            process.blocks.len(),
            process.threads.len(),
            process.program,
            process.execs.last(),
            if process.is_complete { "" } else { "  INCOMPLETE" },
        );
    }
    eprintln!("{}", finished.status);
    Ok(())
}
