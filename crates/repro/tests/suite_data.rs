//! The suite's own data: complete, strict, and what its hashes say.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use repro::make::{self, Ask, Place, Rng};
use repro::run::sha256_hex;
use repro::suite::{Lock, Page, Program, Size, Suite, Tools};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite")
}

fn suite() -> Suite {
    Suite::load(&data()).unwrap()
}

#[test]
fn all_seventeen_programs_are_there_and_every_source_they_name() {
    let suite = suite();
    let names: Vec<&str> = suite.programs.iter().map(|p| p.name.as_str()).collect();
    let expected = [
        "applu", "art", "bzip2", "cc1", "chess", "copy", "gap", "gcc-50", "gzip", "mcf", "mgrid",
        "parser", "perl", "place", "povray", "redis", "sqlite",
    ];
    assert_eq!(names, expected);
    for input in suite.programs.iter().flat_map(|p| &p.input).filter(|i| i.recipe == "c-program") {
        assert!(input.from.iter().all(|source| data().join(source).is_file()), "{}", input.file);
    }
}

#[test]
fn every_command_reads_only_inputs_that_are_made_for_its_size() {
    for program in &suite().programs {
        for size in Size::ALL {
            let spec = program.at(size);
            let made: Vec<&str> = program.inputs_at(size).map(|i| i.file.as_str()).collect();
            if let Some(stdin) = &spec.stdin {
                assert!(made.contains(&stdin.as_str()), "{} {}", program.name, size.name());
            }
            let other = |input: &&repro::suite::Input| !made.contains(&input.file.as_str());
            for stray in program.input.iter().filter(other) {
                let words = spec.command.iter().chain(spec.client.iter().flatten());
                let named = words.clone().any(|word| word.contains(stray.file.as_str()));
                assert!(!named, "{} at {} names {}", program.name, size.name(), stray.file);
            }
        }
    }
}

#[test]
fn every_row_of_the_page_is_listed() {
    let page = suite().page;
    let names: Vec<&str> = page.row.iter().map(|row| row.name.as_str()).collect();
    let expected = "suite mux-total mux-loops mux-threads mux-kl mux-series mux-sweep mux-coverage \
        mux-alias ssb-modes ssb-overhead ssb-gcc measure-suite measure-metrics dcpi-copy \
        freq-inorder freq-ooo freq-samples edges-inorder edges-ooo culprits attribution \
        dcpi-overhead dcpi-space dcpi-table icost-4a icost-4b icost-4c icost-window \
        icost-accuracy model-speed model-accuracy model-agreement peers shares freq-native \
        time-overlap";
    assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
}

/// Bytes of the pure recipes at a small amount: they must never change.
const GOLDEN: &[(&str, &str)] = &[
    ("markov-text", "793e3942607a6256c2147bf7c2963f5d94d0808022061e6996fcdbb3816cfa50"),
    ("pod", "8b66bb4eaf8dca260efc8faebb7738fb75ad0bdb3e239462c97aeca780d352be"),
    ("gap-program", "68700e9e20548dd4359fc3a5c5c3aabd10c8182e85a63f3e136c73ddbd20b8b7"),
    ("sentences", "34c9123bd79a3b4a038006e9815a44ca2321425209a3b7fe9df04c99684d7c86"),
    ("scene", "6941631fb9bbfef1398caa68acdaecd22836632b6919b285bed0aaea7dfcdaa7"),
    ("sql", "71289a7ec4a24f4dbcc3cb97740f9aba7ce129c2479be7d747b6ad561e66b9b3"),
    ("dimacs", "08594f48a8999158a2fe12f0ab32316835117e35bd16c7fa853f0907339ad78d"),
    ("verilog", "fb21e0133c628322e6265df205ae38eae8923d99dbe93db9e8f0c7a2bc680340"),
    ("redis-load", "8f9f5e51c413bbe530981087d09b367dc10171264160fb5a4145a54733d9f26e"),
    ("c-files", "f3efecf30b55482cf2eaea680d96edad538128667f1709bc368a0ef9e06932a0"),
];

#[test]
fn seeded_recipes_make_the_bytes_they_always_made() {
    let scratch = std::env::temp_dir();
    for (name, expected) in GOLDEN {
        let ask = Ask { file: "x", seed: 99, amount: 300, from: &[] };
        let place = Place { data: &data(), scratch: &scratch };
        let made = make::make(make::recipe(name).unwrap(), &ask, &place).unwrap();
        let all: Vec<u8> = made.iter().flat_map(|file| file.bytes.clone()).collect();
        assert_eq!(sha256_hex(&all), *expected, "{name}");
    }
    let pure = make::RECIPES.iter().filter(|(_, r)| !matches!(r, make::Recipe::System(_))).count();
    assert_eq!(GOLDEN.len(), pure, "a recipe has no golden hash");
}

#[test]
fn another_seed_makes_other_bytes() {
    for (name, recipe) in make::RECIPES {
        if let make::Recipe::Pure(make) = recipe {
            assert_ne!(make(1, 300), make(2, 300), "{name}");
            assert_eq!(make(1, 300), make(1, 300), "{name}");
        }
    }
}

/// The bytes are locked by package versions, so nothing else of the host may be among them.
#[test]
fn a_saved_workspace_holds_nothing_of_the_host_and_comes_out_the_same_twice() {
    let gap = suite().programs.into_iter().find(|program| program.name == "gap").unwrap();
    let input = gap.input.iter().find(|input| input.recipe == "gap-workspace").unwrap();
    if !input.from.iter().all(|file| Path::new(file).is_file()) {
        eprintln!("GAP is not here: its saved workspace goes unchecked");
        return;
    }
    let make = |directory: &str| {
        let scratch =
            std::env::temp_dir().join(format!("repro-{}-{directory}", std::process::id()));
        std::fs::create_dir_all(&scratch).unwrap();
        let ask = Ask { file: &input.file, seed: 0, amount: 0, from: &input.from };
        let place = Place { data: &data(), scratch: &scratch };
        let made = make::make(make::recipe(&input.recipe).unwrap(), &ask, &place).unwrap();
        std::fs::remove_dir_all(scratch).unwrap();
        made.into_iter().next().unwrap().bytes
    };
    let bytes = make("workspace");
    assert!(bytes == make("workspace-in-a-directory-of-another-length"));
    // The host's name may be too short to tell from chance; the kernel's release is not, and
    // GAP has both from one call.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let release = release.trim_end().as_bytes();
    assert!(!bytes.windows(release.len()).any(|window| window == release));
}

fn rounds() -> u64 {
    std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

/// One seeded damage to a text: a byte changed, a piece dropped or doubled.
fn damaged(text: &str, rng: &mut Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..rng.between(1, 4) {
        let at = rng.below(bytes.len() as u64) as usize;
        let end = (at + rng.below(12) as usize).min(bytes.len());
        match rng.below(3) {
            0 => bytes[at] = rng.below(256) as u8,
            1 => drop(bytes.drain(at..end)),
            _ => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn damaged_data_is_refused_in_one_line_or_read_never_a_panic() {
    let read = |name: &str| std::fs::read_to_string(data().join(name)).unwrap();
    let program = read("programs/redis.toml");
    let (page, tools, lock) = (read("rows.toml"), read("tools.toml"), read("lock.toml"));
    let mut rng = Rng::new(2024);
    let mut refused = 0;
    for _ in 0..rounds() {
        let errors = [
            Program::parse("f", &damaged(&program, &mut rng)).err(),
            Page::parse("f", &damaged(&page, &mut rng)).err(),
            Tools::parse("f", &damaged(&tools, &mut rng)).err(),
            Lock::parse("f", &damaged(&lock, &mut rng)).err(),
        ];
        for error in errors.into_iter().flatten() {
            let sentence = error.to_string();
            assert!(sentence.starts_with("f: ") && !sentence.contains('\n'), "{sentence:?}");
            refused += 1;
        }
    }
    assert!(refused > rounds(), "damage went unnoticed: {refused}");
}

#[test]
fn a_misspelt_key_recipe_stripper_or_path_is_refused() {
    let text = std::fs::read_to_string(data().join("programs/redis.toml")).unwrap();
    let refuse = |from: &str, to: &str| {
        Program::parse("f", &text.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert!(refuse("stresses", "streses").contains("unknown key `streses`"));
    assert!(refuse("redis-load", "redis-lode").contains("no recipe is called `redis-lode`"));
    assert!(refuse("lines-with:", "lines:").contains("no stripper is called `lines:"));
    assert!(refuse("\"quick.resp\"", "\"../quick.resp\"").contains("must stay inside"));
    assert!(refuse("[\"quick\"]", "[\"small\"]").contains("no size is called `small`"));
}

/// Counts a run's instructions with valgrind.
fn counted(program: &Path, name: &str, n: &str) -> Option<i64> {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args([name, n])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("I ") && line.contains("refs:"))?;
    line.split("refs:").nth(1)?.trim().replace(',', "").parse().ok()
}

#[test]
fn microbenchmarks_retire_what_their_closed_form_says() {
    let directory = std::env::temp_dir().join(format!("repro-micro-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let program = directory.join("micro");
    let source = data().join("micro/micro.c");
    let compiled = Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(source).status();
    assert!(compiled.unwrap().success());
    let list = Command::new(&program).arg("--list").output().unwrap().stdout;
    let list = String::from_utf8(list).unwrap();
    // One loop a class by default; all of them when more rounds are asked for.
    let all = rounds() > 400;
    let mut last = "";
    for line in list.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [class, name, slope] = words[..] else { panic!("{line}") };
        if class == last && !all {
            continue;
        }
        last = class;
        // Counts of equally many digits: printing and reading them costs the same.
        let (Some(few), Some(many)) =
            (counted(&program, name, "1000"), counted(&program, name, "3000"))
        else {
            eprintln!("valgrind is not here: the closed forms go unchecked");
            break;
        };
        assert_eq!(many - few, 2000 * slope.parse::<i64>().unwrap(), "{name}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}
