//! The rooms look one way: the table in docs/ARCHITECTURE.md against what cargo knows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

type Edges = BTreeMap<String, BTreeSet<String>>;

/// Rows `| room | what it is for | may use |`; `all` is every room but itself.
fn table() -> Edges {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<(String, String)> = text
        .lines()
        .skip_while(|line| !line.starts_with("| room |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].to_owned(), cells[2].to_owned())
        })
        .collect();
    let all: BTreeSet<String> = rows.iter().map(|(room, _)| room.clone()).collect();
    let uses = |room: &String, cell: &str| match cell {
        "all" => all.iter().filter(|other| *other != room).cloned().collect(),
        "–" => BTreeSet::new(),
        list => list.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    rows.iter().map(|(room, cell)| (room.clone(), uses(room, cell))).collect()
}

/// Normal dependencies between packages of the workspace.
fn edges() -> Edges {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    let rooms: BTreeSet<String> = packages.iter().map(name).collect();
    let normal = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let kept = dependencies.filter(|dependency| dependency["kind"].is_null()).map(name);
        kept.filter(|dependency| rooms.contains(dependency)).collect()
    };
    packages.iter().map(|package| (name(package), normal(package))).collect()
}

#[test]
fn every_room_uses_only_what_the_table_allows() {
    let table = table();
    for (room, uses) in edges() {
        let allowed = table.get(&room).unwrap_or_else(|| panic!("{room} is not in the table"));
        let beyond: Vec<_> = uses.difference(allowed).collect();
        assert!(beyond.is_empty(), "{room} uses {beyond:?}, which the table does not allow");
    }
}

#[test]
fn the_table_itself_looks_one_way() {
    let table = table();
    // Take away rooms that use nothing that is left, until none is left.
    let mut left: Edges = table.into_iter().filter(|(room, _)| room != "repro").collect();
    while !left.is_empty() {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, uses| uses.iter().any(|used| names.contains(used)));
        assert!(left.len() < before, "these rooms use each other in a circle: {names:?}");
    }
}
