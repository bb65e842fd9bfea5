//! A database of a test's own, with samples at chosen places of a program.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may end here")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// Where the program's file is mapped, from its first byte on.
pub(crate) const BASE: u64 = 0x40_0000;

/// A database and a program of this test's own.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) program: PathBuf,
}

impl Place {
    /// With a copy of a program, called walk.
    pub(crate) fn new(program: &str) -> Place {
        let place = Place::empty("walk");
        std::fs::copy(program, &place.program).unwrap();
        place
    }

    /// Where a program of this name is yet to be made.
    pub(crate) fn empty(program: &str) -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("whither-dcpi-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join(program);
        Place { folder, program }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_whither"))
            .args(arguments)
            .env("WHITHER_DB", self.folder.join("db"))
            .output()
            .unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["--json"], arguments].concat());
        let said = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
        let text = String::from_utf8_lossy(said);
        serde_json::from_str(text.lines().last().unwrap()).unwrap_or_else(|_| panic!("{text}"))
    }

    /// The text, from a heading on: what is before depends on the day.
    pub(crate) fn text(&self, arguments: &[&str], from: &str) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        let at = text.find(from).unwrap_or_else(|| panic!("{text} {:?}", output.stderr));
        text[at..].replace(self.program.to_str().unwrap(), "WALK")
    }

    pub(crate) fn import(&self, samples: &[(u64, u64)], build_id: Option<[u8; 20]>) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_whither"))
            .args(["import", "-", "--host", host().as_str()])
            .env("WHITHER_DB", self.folder.join("db"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let recording = recording(&self.program, samples, build_id);
        child.stdin.take().unwrap().write_all(&recording).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((8 + body.len() as u16).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// A recording in the form of a pipe: cycles every 1000, one map, the samples.
pub(crate) fn recording(
    program: &Path,
    samples: &[(u64, u64)],
    build_id: Option<[u8; 20]>,
) -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[16]));
    bytes.extend(record(64, 0, &words(&[64 << 32, 0, 1000, 0b111, 0, 0, 0, 0])));
    let length = std::fs::metadata(program).map_or(0x1000, |file| file.len());
    let mut map = words(&[7 | 7 << 32, BASE, length.next_multiple_of(0x1000), 0]);
    let (kind, misc) = match build_id {
        None => (1, 2),
        Some(id) => {
            map.extend([20, 0, 0, 0]);
            map.extend(id);
            map.extend([5, 0, 0, 0, 2, 0, 0, 0]);
            (10, 2 | 1 << 14)
        }
    };
    let mut path = program.to_str().unwrap().as_bytes().to_vec();
    path.push(0);
    path.resize(path.len().next_multiple_of(8), 0);
    map.extend(path);
    bytes.extend(record(kind, misc, &map));
    let mut time = 10;
    for &(offset, count) in samples {
        for _ in 0..count {
            time += 1;
            bytes.extend(record(9, 2, &words(&[BASE + offset, 7 | 7 << 32, time])));
        }
    }
    bytes
}

pub(crate) fn total(samples: &[(u64, u64)]) -> u64 {
    samples.iter().map(|(_, count)| count).sum()
}

pub(crate) fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().filter_map(|row| row[key].as_u64()).sum()
}
