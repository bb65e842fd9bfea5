use super::*;

fn zen4_with(overrides: &[(&str, &str)]) -> Result<Machine, MachineError> {
    Machine::load("zen4.toml", text_of("zen4").unwrap(), overrides)
}

#[test]
fn every_machine_that_travels_with_the_tool_loads_under_its_own_name() {
    for name in machines() {
        assert_eq!(Machine::named(name).unwrap().name, name);
    }
    assert!(machines().is_sorted());
}

#[test]
fn a_host_finds_the_machine_that_describes_it() {
    let name = |vendor, family, model| Machine::matching(vendor, family, model).map(|m| m.name);
    assert_eq!(name("AuthenticAMD", 25, 17).as_deref(), Some("zen4"));
    assert_eq!(name("AuthenticAMD", 25, 1).as_deref(), Some("zen3"));
    assert_eq!(name("AuthenticAMD", 26, 2).as_deref(), Some("zen5"));
    assert_eq!(name("GenuineIntel", 6, 106).as_deref(), Some("icelake-server"));
    assert_eq!(name("GenuineIntel", 6, 143).as_deref(), Some("goldencove"));
    assert_eq!(name("GenuineIntel", 6, 1), None);
}

#[test]
fn an_unknown_key_is_refused_with_file_table_and_key() {
    let text = text_of("zen4").unwrap().replace("[memory]\n", "[memory]\nlatency_ns = 3\n");
    let error = Machine::load("mine.toml", &text, &[]).unwrap_err().to_string();
    assert!(error.starts_with("machine mine.toml: [memory] unknown field `latency_ns`"), "{error}");
    let text = text_of("zen4").unwrap().replace("\nalu = ", "\nalou = ");
    let error = Machine::load("mine.toml", &text, &[]).unwrap_err().to_string();
    assert!(error.contains("[classes.of.alou] unknown variant `alou`"), "{error}");
}

#[test]
fn text_that_is_no_table_is_refused_with_its_line() {
    let error = Machine::load("mine.toml", "name = 1\nname = 2\n", &[]).unwrap_err().to_string();
    assert_eq!(error, "machine mine.toml: line 2: duplicate key");
}

#[test]
fn a_fact_without_a_source_is_refused() {
    let text = text_of("zen4").unwrap().replace("source = \"AMD 57647, 2.6.3\"", "source = \" \"");
    let error = Machine::load("mine.toml", &text, &[]).unwrap_err().to_string();
    assert_eq!(error, "machine mine.toml: [caches.l2] source is empty");
}

#[test]
fn an_override_replaces_one_fact_and_only_an_existing_one() {
    let machine = zen4_with(&[("caches.l1d.latency_cycles", "9"), ("window.rob", "77")]).unwrap();
    assert_eq!((machine.caches.l1d.latency_cycles, machine.window.rob), (9, 77));
    let error = zen4_with(&[("caches.l1d.size", "9")]).unwrap_err().to_string();
    assert_eq!(error, "machine zen4.toml: override of unknown key caches.l1d.size");
    let error = zen4_with(&[("window.rob", "many")]).unwrap_err().to_string();
    assert!(error.contains("[window] rob: invalid type: string \"many\""), "{error}");
}

#[test]
fn a_slip_is_told_with_its_table_and_key() {
    let said = |from: &str, to: &str| {
        let text = text_of("zen4").unwrap();
        assert!(text.contains(from));
        Machine::load("m", &text.replacen(from, to, 1), &[]).unwrap_err().to_string()
    };
    for (from, to, sentence) in [
        (
            "rob = 320",
            "rob = -5",
            "[window] rob: invalid value: integer `-5`, expected a whole number",
        ),
        ("rob = 320\n", "", "[window] missing field `rob`"),
        ("size_kib = 1024", "size_kib = 1e9", "[caches.l2] size_kib: invalid type: floating point"),
        ("size_kib = 1024", "size = 1024", "[caches.l2] unknown field `size`"),
        ("size_kib = 1024", "size_kib = 2097152", "[caches.l2] size_kib must be at most 1048576"),
        ("entries = 72, ", "", "[tlbs.l1d] missing field `entries`"),
        ("order = \"out-of-order\"", "order = \"odd\"", "[window] order: unknown variant `odd`"),
        ("walk_cycles = 14", "walk_cycles = 4000000000", "tlbs.walk_cycles must be at most 10000"),
        ("name = \"zen4\"", "name = \"\"", "name and title must not be empty"),
    ] {
        let told = said(from, to);
        assert!(told.starts_with(&format!("machine m: {sentence}")), "{told}");
    }
}

#[test]
fn impossible_shapes_are_refused() {
    for (key, value) in [
        ("caches.l1d.ways", "7"),
        ("caches.l1d.line_bytes", "48"),
        ("window.rob", "0"),
        ("window.mispredict_cycles", "1"),
        ("branch.btb_ways", "7"),
        ("branch.base_entries", "1000"),
        ("tlbs.page_bytes", "3000"),
        ("pmu.general", "0"),
        ("window.bundle_slots", "5"),
    ] {
        assert!(zen4_with(&[(key, value)]).is_err(), "{key} = {value}");
    }
}

#[test]
fn damaged_files_are_refused_without_panicking() {
    let text = text_of("ppc970").unwrap();
    let rounds: u32 =
        std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(300);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..rounds {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..1 + next() % 4 {
            let at = (next() % bytes.len() as u64) as usize;
            match next() % 3 {
                0 => bytes[at] = (next() % 96 + 32) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, b'0' + (next() % 10) as u8),
            }
        }
        // Either answer is fine; what is accepted must satisfy the checks again.
        if let Ok(machine) = Machine::load("fuzz", &String::from_utf8(bytes).unwrap(), &[]) {
            assert_eq!(check::check(&machine), Ok(()));
        }
    }
}
