//! Identities that must hold on whatever programs this machine has, and agreement with binutils
//! and the compiler where they are installed.
// Helpers of tests may unwrap as tests may; clippy knows only the tests themselves.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use image::{Architecture, Binary, Callees, Edge, Kernel, KernelError, NameSource, Syntax};
use vocab::Offset;

/// Programs and libraries that are here; the test's own program always is.
fn programs() -> Vec<PathBuf> {
    let mut programs = vec![std::env::current_exe().unwrap()];
    let usual = ["/bin/sh", "/bin/ls", "/bin/gzip", "/usr/bin/perl", "/usr/bin/python3"];
    programs.extend(usual.iter().map(PathBuf::from).filter(|path| path.exists()));
    programs.extend(libraries());
    programs
}

/// The libraries that this process has mapped.
fn libraries() -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.filter(|path| path.contains(".so")).map(PathBuf::from).collect()
}

fn open(path: &Path) -> (Vec<u8>, Binary) {
    let bytes = std::fs::read(path).unwrap();
    let binary = Binary::parse(&bytes).unwrap();
    (bytes, binary)
}

/// What a tool prints, or `None`, said aloud, where it is not installed.
fn output_of(tool: &str, arguments: &[&str], path: &Path) -> Option<String> {
    match Command::new(tool).args(arguments).arg(path).env("LC_ALL", "C").output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool} failed on {}", path.display());
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(_) => {
            eprintln!("skipped: {tool} is not installed");
            None
        }
    }
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

#[test]
fn procedures_are_sorted_disjoint_and_inside_executable_segments() {
    for path in programs() {
        let (_, binary) = open(&path);
        assert!(!binary.procedures().is_empty(), "{}", path.display());
        let mut reached = 0;
        for procedure in binary.procedures() {
            assert!(reached <= procedure.start.0 && procedure.start < procedure.end);
            reached = procedure.end.0;
            let inside = binary.segments().iter().any(|segment| {
                let end = segment.offset.0 + segment.len;
                segment.executable && segment.offset <= procedure.start && procedure.end.0 <= end
            });
            assert!(inside, "{procedure:?} of {}", path.display());
        }
    }
}

#[test]
fn offsets_and_addresses_are_inverse_and_look_up_finds_its_own_range() {
    for path in programs() {
        let (_, binary) = open(&path);
        for procedure in binary.procedures() {
            let last = Offset(procedure.end.0 - 1);
            for offset in [procedure.start, last] {
                let address = binary.address_of(offset).unwrap();
                assert_eq!(binary.offset_of(address), Some(offset));
                assert_eq!(binary.procedures().find(offset), Some(procedure));
            }
        }
    }
}

#[test]
fn every_unwind_range_of_readelf_begins_in_exactly_one_procedure() {
    for path in programs().into_iter().skip(1) {
        let Some(text) = output_of("readelf", &["-wFN"], &path) else { return };
        let (_, binary) = open(&path);
        let mut seen = 0;
        for line in text.lines().filter(|line| line.contains(" FDE ")) {
            let (start, end) = line.split_once("pc=").unwrap().1.split_once("..").unwrap();
            let (start, end) = (hexadecimal(start), hexadecimal(end));
            if start == end {
                continue;
            }
            seen += 1;
            let offset = binary.offset_of(start).unwrap();
            // Procedures are disjoint, so the one found is the only one. The range of the return
            // from a signal handler begins a byte before its procedure.
            let after = Offset(offset.0 + 1);
            let found = binary.procedures().find(offset);
            let found = found.or_else(|| binary.procedures().find(after));
            assert!(found.is_some(), "{start:#x} of {}", path.display());
        }
        assert!(seen > 0, "{} has unwind data", path.display());
    }
}

/// Names and sizes by address, of the text symbols that `nm` lists.
fn symbols_of_nm(text: &str) -> BTreeMap<u64, Vec<(u64, String)>> {
    let mut by_address: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let &[address, size, kind, name] = &words[..] else { continue };
        if matches!(kind, "t" | "T" | "i") {
            let symbol = (hexadecimal(size), name.to_owned());
            by_address.entry(hexadecimal(address)).or_default().push(symbol);
        }
    }
    by_address
}

#[test]
fn every_sized_text_symbol_of_nm_begins_a_procedure_with_one_of_its_names() {
    let path = std::env::current_exe().unwrap();
    let Some(text) = output_of("nm", &["-S", "--defined-only"], &path) else { return };
    let (_, binary) = open(&path);
    let symbols = symbols_of_nm(&text);
    assert!(symbols.len() > 100);
    for (&address, aliases) in &symbols {
        let offset = binary.offset_of(address).unwrap();
        let procedure = binary.procedures().find(offset).unwrap();
        assert_eq!(procedure.start, offset);
        let raw = procedure.raw_name.as_deref().unwrap();
        let chosen = aliases.iter().find(|(_, name)| name == raw).unwrap();
        let next = symbols.range(address + 1..).next().map_or(u64::MAX, |(&next, _)| next);
        assert_eq!(procedure.len_bytes(), chosen.0.min(next - address), "{raw}");
    }
}

#[test]
fn linkage_table_entries_agree_with_objdump() {
    for path in programs().into_iter().skip(1) {
        let Some(text) = output_of(
            "objdump",
            &["-d", "-j", ".plt", "-j", ".plt.got", "-j", ".plt.sec", "-j", ".text"],
            &path,
        ) else {
            return;
        };
        let (_, binary) = open(&path);
        let labels = text.lines().filter_map(|line| line.strip_suffix("@plt>:")?.split_once(" <"));
        for (address, name) in labels {
            let offset = binary.offset_of(hexadecimal(address)).unwrap();
            let procedure = binary.procedures().find(offset).unwrap();
            assert_eq!((procedure.start, procedure.source), (offset, NameSource::Plt));
            // objdump knows no name for a slot that the image resolves itself.
            if !name.starts_with("*ABS*") {
                let plain = name.split('@').next().unwrap();
                assert_eq!(procedure.raw_name.as_deref().unwrap(), format!("{plain}@plt"));
            }
        }
    }
}

#[test]
fn instructions_begin_where_objdump_says() {
    let path = Path::new("/bin/gzip");
    if !path.exists() || open(path).1.architecture() != Architecture::X86_64 {
        eprintln!("skipped: no gzip for x86-64");
        return;
    }
    let Some(text) = output_of("objdump", &["-dw", "-j", ".text"], path) else { return };
    let listed =
        |line: &str| line.strip_prefix("  ")?.split_once(":\t").map(|pair| pair.0.to_owned());
    let begun: BTreeSet<u64> =
        text.lines().filter_map(listed).map(|address| hexadecimal(address.trim())).collect();
    let (bytes, binary) = open(path);
    let range = *begun.first().unwrap()..=*begun.last().unwrap();
    let mut compared = 0;
    for procedure in binary.procedures() {
        let start = binary.address_of(procedure.start).unwrap();
        if !range.contains(&start) {
            continue;
        }
        let listing = binary.disassemble(&bytes, procedure, Syntax::Att, "gzip").unwrap();
        let end = start + procedure.len_bytes();
        let ours: BTreeSet<u64> = listing.instructions.iter().map(|i| i.address).collect();
        assert_eq!(ours, begun.range(start..end).copied().collect());
        assert_eq!(listing.bad_bytes, 0);
        let sum: u64 = listing.instructions.iter().map(|i| u64::from(i.len_bytes)).sum();
        assert_eq!(sum, procedure.len_bytes());
        compared += ours.len();
    }
    assert!(compared > 0);
}

/// The path that debug packages use.
fn debug_path(binary: &Binary) -> Option<PathBuf> {
    let id = binary.build_id()?.to_string();
    let (first, rest) = id.split_at_checked(2)?;
    Some(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug").into())
}

#[test]
fn a_separate_debug_file_names_every_procedure_of_its_table() {
    let mut tried = 0;
    for path in libraries() {
        let (_, binary) = open(&path);
        let Some(debug_path) = debug_path(&binary).filter(|path| path.exists()) else { continue };
        let Some(text) = output_of("nm", &["-S", "--defined-only"], &debug_path) else { return };
        let (debug_bytes, debug) = open(&debug_path);
        let named = binary.with_debug(&debug).unwrap();
        for (&address, aliases) in &symbols_of_nm(&text) {
            let offset = named.offset_of(address).unwrap();
            let procedure = named.procedures().find(offset).unwrap();
            assert_eq!(procedure.start, offset);
            let raw = procedure.raw_name.as_deref().unwrap();
            assert!(
                procedure.source == NameSource::Dynsym
                    || aliases.iter().any(|(_, name)| name == raw),
                "{raw} at {address:#x}"
            );
        }
        assert!(binary.with_linked_debug(&debug_bytes).is_ok(), "the checksum agrees");
        tried += 1;
    }
    if tried == 0 {
        eprintln!("skipped: no debug files of the libraries here");
    }
}

const SOURCE: &str = r#"
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) static int leaf(int n) { return n * 3 + sink; }
__attribute__((noinline)) int loop(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
__attribute__((cold, noinline)) void unlikely(int n) { sink = n; abort(); }
__attribute__((noinline)) int checked(int n) { if (n < 0) unlikely(n); return loop(n); }
int main(int argc, char **argv) { (void)argv; return checked(argc) & 1; }
"#;

/// Compiles the source with some options and strips a copy; `None`, said aloud, without tools.
fn compiled(name: &str, options: &[&str]) -> Option<(PathBuf, PathBuf)> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = directory.join(format!("{name}.c"));
    let (whole, stripped) = (directory.join(name), directory.join(format!("{name}-stripped")));
    std::fs::write(&source, SOURCE).unwrap();
    let gcc = Command::new("gcc").args(options).arg("-o").args([&whole, &source]).output();
    let Ok(gcc) = gcc else {
        eprintln!("skipped: gcc is not installed");
        return None;
    };
    assert!(gcc.status.success(), "{}", String::from_utf8_lossy(&gcc.stderr));
    let strip = Command::new("strip").arg("-o").args([&stripped, &whole]).status().ok()?;
    strip.success().then_some((whole, stripped))
}

fn assert_stripping_keeps_ranges(name: &str, options: &[&str]) {
    let Some((whole, stripped)) = compiled(name, options) else { return };
    let ((_, whole), (_, stripped)) = (open(&whole), open(&stripped));
    assert!(whole.has_symtab() && !stripped.has_symtab());
    for name in ["leaf", "loop", "unlikely", "checked", "main"] {
        let known = whole.procedures().named(name).unwrap();
        let found = stripped.procedures().find(known.start).unwrap();
        assert_eq!((found.start, found.end), (known.start, known.end), "{name}");
        assert_eq!((known.source, found.source), (NameSource::Symtab, NameSource::Unwind));
    }
    let aborts = |binary: &Binary| binary.procedures().named("abort@plt").map(|p| (p.start, p.end));
    assert!(aborts(&whole).is_some());
    assert_eq!(aborts(&whole), aborts(&stripped));
}

#[test]
fn stripping_a_compiled_program_changes_names_but_no_range() {
    assert_stripping_keeps_ranges("pie", &["-O2"]);
    assert_stripping_keeps_ranges("no-pie", &["-O2", "-no-pie"]);
    let based = ["-O1", "-no-pie", "-Wl,-Ttext-segment=0x10000000"];
    assert_stripping_keeps_ranges("based", &based);
}

#[test]
fn neither_the_unwind_index_nor_the_hardened_linkage_table_matters() {
    assert_stripping_keeps_ranges("no-index", &["-O2", "-Wl,--no-eh-frame-hdr"]);
    let hardened = ["-O2", "-fcf-protection", "-Wl,-z,ibtplt"];
    assert_stripping_keeps_ranges("hardened", &hardened);
}

#[test]
fn the_page_of_code_that_the_kernel_maps_is_an_image_too() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else {
        eprintln!("skipped: no vdso");
        return;
    };
    let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let (start, end) = (hexadecimal(start), hexadecimal(end));
    let mut bytes = vec![0; (end - start) as usize];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut bytes, start).unwrap();
    let binary = Binary::parse(&bytes).unwrap();
    let named = binary.procedures().iter().filter(|p| p.source == NameSource::Dynsym);
    assert!(named.count() > 0);
    assert!(binary.procedures().iter().any(|p| p.name("vdso").contains("clock_gettime")));
}

#[test]
fn the_running_kernel_is_listed_in_order_or_hidden() {
    let Ok(text) = std::fs::read("/proc/kallsyms") else {
        eprintln!("skipped: no /proc/kallsyms");
        return;
    };
    match Kernel::parse(&text) {
        Ok(kernel) => {
            assert!(!kernel.procedures().is_empty());
            assert_eq!(kernel.unread_lines(), 0);
            let ends = kernel.procedures().iter().map(|p| p.end);
            let starts = kernel.procedures().iter().skip(1).map(|p| p.start);
            assert!(ends.zip(starts).all(|(end, start)| end <= start));
        }
        Err(refusal) => assert_eq!(refusal, KernelError::Hidden),
    }
}

/// A program whose flow we know: a switch of five cases that gcc turns into a table, a callee
/// that never returns, and a jump through a pointer in the place of a return.
const SWITCHING: &str = r#"
extern void die(void) __attribute__((noreturn));
__attribute__((noinline)) void stop(void) { for (;;) __asm__ volatile("ud2"); }
__attribute__((noinline)) int choose(int k, int x) {
    switch (k) {
        case 0: return x * 3;
        case 1: return x ^ 0x55;
        case 2: return x - 77;
        case 3: return x / 7;
        case 4: return x << 3;
        default: return -1;
    }
}
int through(int (*p)(int), int x) { return p(x); }
int main(int n, char **v) { if (n > 9) stop(); return choose(n, n * 5); }
"#;

#[test]
fn a_compiled_switch_has_an_edge_for_every_case() {
    let folder = std::env::temp_dir().join(format!("whither-flow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("switching.c"), folder.join("switching"));
    std::fs::write(&source, SWITCHING).unwrap();
    for pie in ["-pie", "-no-pie"] {
        let code = if pie == "-pie" { "-fPIE" } else { "-fno-pie" };
        let flags = ["-O2", "-fno-tree-switch-conversion", pie, code, "-o"];
        let mut gcc = Command::new("gcc");
        let Ok(made) = gcc.args(flags).arg(&program).arg(&source).status() else {
            eprintln!("skipped: gcc is not installed");
            return;
        };
        assert!(made.success());
        let (bytes, binary) = open(&program);
        let callees = Callees::new(&binary, &bytes);
        let flow = |name: &str| callees.flow_of(binary.procedures().named(name).unwrap()).unwrap();
        let choose = flow("choose");
        assert!(!choose.has_missing_edges());
        let switched = |edge: &&Edge| edge.kind == image::EdgeKind::Switch;
        assert_eq!(choose.edges.iter().filter(switched).count(), 5, "{pie}");
        assert_eq!(choose.entries.len(), 1);
        let exits = |graph: &image::FlowGraph| -> Vec<image::Exit> {
            graph.blocks.iter().filter_map(|block| block.exit).collect()
        };
        assert_eq!(exits(&flow("through")), [image::Exit::TailCall]);
        assert!(exits(&flow("main")).contains(&image::Exit::NoReturn));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
