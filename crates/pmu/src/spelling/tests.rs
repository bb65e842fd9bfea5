use super::*;
use crate::{Device, TermFormat};

fn dictionary() -> Dictionary {
    let format = |name: &str, text: &str| (name.to_owned(), TermFormat::parse(text).unwrap());
    let msr = Device {
        name: "msr".into(),
        kind: 9,
        formats: vec![format("event", "config:0-63")],
        events: vec![("tsc".into(), "event=0x00".into()), ("smi".into(), "event=0x04".into())],
        cpumask: String::new(),
    };
    let cpu = Device {
        name: "cpu".into(),
        kind: 4,
        formats: vec![format("event", "config:0-7,32-35"), format("umask", "config:8-15")],
        events: vec![("slots".into(), "event=0,umask=4".into())],
        cpumask: String::new(),
    };
    let mut dictionary = Dictionary::of_table(EventTable::embedded().unwrap());
    dictionary.devices = vec![cpu, msr];
    dictionary.tracepoints =
        |group, name| (group == "sched" && name == "sched_switch").then_some(312);
    dictionary
}

fn parse(spelling: &str) -> Result<Event, EventError> {
    dictionary().parse_event(spelling)
}

fn said(spelling: &str) -> String {
    dictionary().parse_list(spelling).unwrap_err().to_string()
}

#[test]
fn names_aliases_modifiers_and_raw_codes() {
    assert_eq!(parse("cpu-cycles:u").unwrap().code, EventCode::new(0, 0));
    assert_eq!(parse("cycles:u").unwrap().mode, Mode::User);
    assert_eq!(parse("cycles:k").unwrap().mode, Mode::Kernel);
    assert_eq!(parse("cycles:ukpp").unwrap().mode, Mode::Both);
    assert_eq!(parse("r01c2").unwrap().code, EventCode::new(4, 0x1c2));
}

#[test]
fn a_slip_suggests_the_nearest_and_a_bad_modifier_is_named() {
    assert_eq!(said("cylces"), "there is no event 'cylces'; did you mean 'cycles'?");
    assert!(said("cycles:x").contains("cycles:x"));
    assert!(said("cycles:D").contains("perf's modifier 'D'"));
    assert!(said("cycles:pppp").contains("p (precise)"));
    assert_eq!(parse(""), Err(EventError::Empty));
    assert!(parse("rzz").is_err() && parse("r").is_err());
}

#[test]
fn terms_of_a_pmu_and_its_own_names() {
    assert_eq!(parse("cpu/event=0x1a0,umask=1/u").unwrap().mode, Mode::User);
    assert_eq!(parse("cpu/event=0x1a0,umask=1/").unwrap().code.config, 0x1_0000_01a0);
    assert_eq!(parse("msr/smi/").unwrap().code, EventCode::new(9, 4));
    assert_eq!(parse("msr/smi/:k").unwrap().mode, Mode::Kernel);
    assert_eq!(parse("slots").unwrap().code, EventCode::new(4, 0x400));
    assert_eq!(parse("cpu/config=7,name=seven/").unwrap().name, "seven");
    assert_eq!(said("gpu/x/"), "this machine has no PMU 'gpu'; it has cpu, msr");
    assert!(said("msr/tcs/").contains("'msr' has no term 'tcs'"));
    assert!(said("cpu/event=1").contains("no partner"));
}

#[test]
fn an_event_of_the_core_needs_the_cores_pmu() {
    let mut dictionary = dictionary();
    dictionary.core = crate::cores().unwrap().into_iter().find(|core| core.name == "zen4");
    let parsed = dictionary.parse_event("ex_no_retire.empty:u").unwrap();
    assert_eq!((parsed.code, parsed.mode), (EventCode::new(4, 0x01d6), Mode::User));
    let split = dictionary.parse_event("de_no_dispatch_per_slot.backend_stalls").unwrap();
    assert_eq!(split.code.config, 0x1_0000_1ea0);
    dictionary.devices.clear();
    let said = dictionary.parse_event("ex_no_retire.empty").unwrap_err().to_string();
    assert_eq!(
        said,
        "'ex_no_retire.empty' is an event of AMD Zen 4, whose PMU this machine does not show"
    );
}

#[test]
fn breakpoints_as_perf_spells_them() {
    let code = |text: &str| parse(text).unwrap().code;
    let of = |config, config1, config2| EventCode { kind: BREAKPOINT, config, config1, config2 };
    assert_eq!(code("mem:0x601040"), of(3, 0x60_1040, 4));
    assert_eq!(code("mem:0x601040/8:w"), of(2, 0x60_1040, 8));
    assert_eq!(code("mem:4096:x:u"), of(4, 4096, 8));
    assert_eq!(parse("mem:4096:x:u").unwrap().mode, Mode::User);
    for odd in ["mem:", "mem:zz", "mem:1/3", "mem:1/8:w:u:k", "mem:1/"] {
        assert!(parse(odd).is_err(), "{odd}");
    }
}

#[test]
fn a_tracepoint_is_told_from_a_modifier() {
    assert_eq!(parse("sched:sched_switch").unwrap().code, EventCode::new(2, 312));
    assert_eq!(parse("sched:sched_switch:u").unwrap().mode, Mode::User);
    assert!(parse("sched:nothing").is_err());
}

#[test]
fn a_list_keeps_its_order_and_its_braces() {
    let spelling = "page-faults,{cycles,cpu/event=1,umask=2/}:u,mem:0x10/8:w,{branches:k,cs}";
    let list = dictionary().parse_list(spelling).unwrap();
    assert_eq!(
        list.typed,
        ["page-faults", "cycles:u", "cpu/event=1,umask=2/:u", "mem:0x10/8:w", "branches:k", "cs"]
    );
    assert_eq!(list.groups, [vec![1, 2], vec![4, 5]]);
    let modes: Vec<Mode> = list.events.iter().map(|event| event.mode).collect();
    assert_eq!(modes[1..5], [Mode::User, Mode::User, Mode::Both, Mode::Kernel]);
    let mut joined = list.clone();
    joined.extend(list);
    assert_eq!(joined.groups[2], [7, 8]);
}

#[test]
fn lists_with_holes_or_loose_braces_are_refused() {
    assert_eq!(said("cycles,"), "an event name is empty");
    for odd in ["{cycles", "cycles}", "{cycles}x", "{cycles}:", "{{cycles}}", "{}", "cpu/event=1"] {
        assert!(dictionary().parse_list(odd).is_err(), "{odd}");
    }
}

#[test]
fn bent_lists_never_panic() {
    let rounds = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok());
    let seed = b"{cycles:u,r1c2}:k,cpu/event=0x1a0,umask=1/u,mem:0x10/8:rw:u,sched:sched_switch";
    let alphabet = b"{}:/,=urwxk0x12pmemcpu \xc3";
    let mut state = 3_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) as usize) % bound.max(1)
    };
    let dictionary = dictionary();
    for _ in 0..rounds.unwrap_or(3000_u64) {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + next(6) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = alphabet[next(alphabet.len())],
                1 => bytes.insert(at, alphabet[next(alphabet.len())]),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(list) = dictionary.parse_list(&String::from_utf8_lossy(&bytes)) {
            assert_eq!(list.events.len(), list.typed.len());
            assert!(list.groups.iter().flatten().all(|&place| place < list.events.len()));
        }
        let format = String::from_utf8_lossy(&bytes[..bytes.len().min(12)]).into_owned();
        let _ = TermFormat::parse(&format!("config:{format}"));
    }
}
