//! Recipes that start from what the machine has installed.
//!
//! Every program is run with a fixed environment in a scratch directory under relative names, so
//! that neither the caller's environment nor a path reaches the bytes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Ask, Place, circuit, text};

/// `amount` bytes: half Markov text, half the bytes of the file that `from` names.
pub(super) fn text_and_binary(ask: &Ask<'_>, _: &Place<'_>) -> Result<Vec<u8>, String> {
    let [source] = ask.from else {
        return Err(format!("{}: text-and-binary wants one file in `from`", ask.file));
    };
    let binary = fs::read(source).map_err(|e| format!("{source}: {e}"))?;
    Ok(text::with_binary(ask.seed, ask.amount, &binary))
}

/// The headers that `from` names, each with the macro that turns its code on, through cpp.
/// An entry is `header` or `header:MACRO`.
pub(super) fn preprocessed(ask: &Ask<'_>, place: &Place<'_>) -> Result<Vec<u8>, String> {
    let mut source = String::new();
    for entry in ask.from {
        let (header, switch) = entry.split_once(':').unwrap_or((entry, ""));
        if !switch.is_empty() {
            source.push_str(&format!("#define {switch}\n"));
        }
        source.push_str(&format!("#include <{header}>\n"));
    }
    put(place, "all.c", source.as_bytes())?;
    // -P: no line markers, so no path of the headers reaches the text.
    run(
        place,
        "cpp-12",
        &[
            "-P",
            "-nostdinc",
            "-isystem",
            "/usr/include",
            "-isystem",
            "/usr/include/x86_64-linux-gnu",
            "-isystem",
            "/usr/lib/gcc/x86_64-linux-gnu/12/include",
            "all.c",
            "-o",
            "all.i",
        ],
    )?;
    take(place, "all.i")
}

/// GAP's own library, loaded and saved, so that a small run need not load it again.
pub(super) fn gap_workspace(ask: &Ask<'_>, place: &Place<'_>) -> Result<Vec<u8>, String> {
    let [gap] = ask.from else {
        return Err(format!("{}: gap-workspace wants the interpreter in `from`", ask.file));
    };
    // What GAP knows of the kernel and the host's name is found anew when the file is loaded;
    // saved, it would make the bytes the host's own. One statement, because GAP keeps the
    // milliseconds that the statement before took.
    let save = b"if true then GAPInfo.KernelInfo := 0; SaveWorkspace(\"saved\"); fi; QUIT;\n";
    put(place, "save.g", save)?;
    // GAP's collector takes every word on the stack for a reference, so what old words are left
    // there decides which dead objects are saved. Three things would make that the host's:
    // the dynamic linker, which binding late spills as many vector registers as the processor
    // has (LD_BIND_NOW); a collection while loading, whose moment follows from the lengths of
    // the host's names (-m, more than loading takes); and an old word that happens to be an
    // object's address (-R).
    let words =
        ["-R", "env", "LD_BIND_NOW=1", gap, "-l", "/usr/share/gap", "-q", "-A", "-m", "512m"];
    run(place, "setarch", &words)?;
    take(place, "saved")
}

/// A generated circuit of `amount` cells, synthesised for the iCE40 by yosys.
pub(super) fn blif(ask: &Ask<'_>, place: &Place<'_>) -> Result<Vec<u8>, String> {
    put(place, "top.v", &circuit::verilog(ask.seed, ask.amount))?;
    run(place, "yosys", &["-q", "-p", "read_verilog top.v; synth_ice40 -top top -blif top.blif"])?;
    take(place, "top.blif")
}

/// One of our own C programs, `from` naming its source in the suite's data.
pub(super) fn c_program(ask: &Ask<'_>, place: &Place<'_>) -> Result<Vec<u8>, String> {
    let [source] = ask.from else {
        return Err(format!("{}: c-program wants one source in `from`", ask.file));
    };
    let path = place.data.join(source);
    let bytes = fs::read(&path).map_err(|e| format!("{source}: {e}"))?;
    // The name reaches the debug information, so it is the same for every program.
    put(place, "program.c", &bytes)?;
    let here = place.scratch.canonicalize().map_err(|e| format!("scratch directory: {e}"))?;
    let map = format!("-fdebug-prefix-map={}=suite", here.display());
    run(place, "gcc", &["-O2", "-g", &map, "program.c", "-o", "program"])?;
    take(place, "program")
}

fn put(place: &Place<'_>, name: &str, bytes: &[u8]) -> Result<(), String> {
    fs::write(place.scratch.join(name), bytes).map_err(|e| format!("{name}: {e}"))
}

fn take(place: &Place<'_>, name: &str) -> Result<Vec<u8>, String> {
    fs::read(place.scratch.join(name)).map_err(|e| format!("{name} was not made: {e}"))
}

fn run(place: &Place<'_>, program: &str, arguments: &[&str]) -> Result<(), String> {
    let stdin = stdin_of(place.scratch)?;
    let output = Command::new(program)
        .args(arguments)
        .current_dir(place.scratch)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("HOME", "/nonexistent")])
        .stdin(stdin)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let first = message.lines().next().unwrap_or("it said nothing");
    Err(format!("{program} failed ({}): {first}", output.status))
}

/// GAP reads its program from standard input; the others read nothing.
fn stdin_of(scratch: &Path) -> Result<Stdio, String> {
    let program = scratch.join("save.g");
    if !program.exists() {
        return Ok(Stdio::null());
    }
    fs::File::open(program).map(Stdio::from).map_err(|e| format!("save.g: {e}"))
}
