//! Machines that we do not have, judged from what they answer.

use perf::{BpfAbilities, Refusal};

use super::*;
use crate::doctor::probes::Processor;

/// A bare-metal machine on which root may do everything.
fn everything() -> Probes {
    Probes {
        kernel_release: "6.1.0-18-amd64".into(),
        architecture: "x86_64".into(),
        processor: Processor::default(),
        hypervisor: None,
        paranoid: Some(2),
        capabilities: u64::MAX,
        seccomp: false,
        clock_user: Ok(()),
        clock_kernel: Ok(()),
        system_wide: Ok(()),
        cycles: Ok(()),
        core_pmus: vec!["cpu".into()],
        breakpoint: Ok(()),
        bpf: BpfAbilities { table: Ok(()), program: Ok(()), bell: Ok(()) },
        kernel_symbols: true,
        engines: Some(Engines { native: true, qemu: QemuState::Ready("7.2.0".into()) }),
    }
}

fn finding(probes: &Probes, key: &str) -> Finding {
    judge(probes).into_iter().find(|finding| finding.key == key).unwrap()
}

#[test]
fn root_on_bare_metal_can_do_everything() {
    for finding in judge(&everything()) {
        assert_eq!((finding.state, finding.remedy.as_str()), (State::Works, ""), "{finding:?}");
    }
}

#[test]
fn a_virtual_machine_without_a_pmu_is_not_there() {
    let mut probes = everything();
    probes.hypervisor = Some("KVM".into());
    probes.cycles = Err(Refusal::NoSuchEvent);
    probes.core_pmus.clear();
    let pmu = finding(&probes, "pmu");
    assert_eq!(pmu.state, State::NotThere);
    assert!(pmu.why.contains("no PMU") && pmu.why.contains("KVM"), "{}", pmu.why);
}

#[test]
fn a_pmu_behind_the_paranoid_level_is_not_permitted() {
    let mut probes = everything();
    probes.capabilities = 0;
    probes.paranoid = Some(3);
    probes.cycles = Err(Refusal::Forbidden);
    let pmu = finding(&probes, "pmu");
    assert_eq!(pmu.state, State::NotPermitted);
    assert!(pmu.why.contains("perf_event_paranoid is 3"), "{}", pmu.why);
    assert!(pmu.remedy.contains("perf_event_paranoid=2"), "{}", pmu.remedy);
}

#[test]
fn a_refusal_on_a_machine_whose_sysfs_has_no_pmu_is_not_there() {
    let mut probes = everything();
    probes.capabilities = 0;
    probes.cycles = Err(Refusal::Privilege);
    probes.core_pmus.clear();
    assert_eq!(finding(&probes, "pmu").state, State::NotThere);
}

#[test]
fn an_ordinary_user_may_sample_own_programs_but_not_the_kernel() {
    let mut probes = everything();
    probes.capabilities = 0;
    probes.clock_kernel = Err(Refusal::Forbidden);
    probes.system_wide = Err(Refusal::Forbidden);
    assert_eq!(finding(&probes, "sample_own").state, State::Works);
    assert!(finding(&probes, "sample_kernel").remedy.contains("paranoid=1"));
    assert!(finding(&probes, "sample_all").remedy.contains("paranoid=0"));
}

#[test]
fn a_seccomp_filter_is_named_even_for_root() {
    let mut probes = everything();
    probes.seccomp = true;
    probes.clock_user = Err(Refusal::Privilege);
    let own = finding(&probes, "sample_own");
    assert_eq!(own.state, State::NotPermitted);
    assert!(own.why.contains("seccomp") && own.remedy.contains("seccomp"), "{own:?}");
}

#[test]
fn counters_held_by_another_user_are_named() {
    let mut probes = everything();
    probes.cycles = Err(Refusal::Busy);
    assert!(finding(&probes, "pmu").why.contains("another user"));
}

#[test]
fn bpf_is_missing_forbidden_or_too_old() {
    let mut probes = everything();
    probes.bpf.table = Err(Refusal::NoSuchCall);
    assert_eq!(finding(&probes, "bpf").state, State::NotThere);
    probes.bpf.table = Err(Refusal::NotUnderstood);
    probes.kernel_release = "5.4.0-150-generic".into();
    let old = finding(&probes, "bpf");
    assert_eq!(old.state, State::NotThere);
    assert!(old.why.contains("5.4"), "{}", old.why);
    probes.bpf.table = Err(Refusal::Privilege);
    probes.capabilities = 0;
    let forbidden = finding(&probes, "bpf");
    assert_eq!(forbidden.state, State::NotPermitted);
    assert!(forbidden.why.contains("CAP_BPF"), "{}", forbidden.why);
}

#[test]
fn a_kernel_without_a_bell_still_counts_in_the_kernel_and_says_so() {
    let mut probes = everything();
    probes.bpf.bell = Err(Refusal::NotUnderstood);
    let bpf = finding(&probes, "bpf");
    assert_eq!(bpf.state, State::Works);
    assert!(bpf.why.contains("cannot wake"), "{}", bpf.why);
}

fn with_engines(native: bool, qemu: QemuState) -> Finding {
    let probes = Probes { engines: Some(Engines { native, qemu }), ..everything() };
    finding(&probes, "engine")
}

#[test]
fn the_native_engine_works_whatever_qemu_is_like_and_qemu_is_named_beside_it() {
    let both = with_engines(true, QemuState::Ready("7.2.0".into()));
    assert!(both.why.contains("native") && both.why.contains("7.2.0"), "{both:?}");
    let states = [
        QemuState::Missing,
        QemuState::WithoutPlugins,
        QemuState::OtherPlugins("10.0.2".into()),
        QemuState::Broken("no".into()),
    ];
    for state in states {
        let alone = with_engines(true, state);
        assert_eq!((alone.state, alone.remedy.as_str()), (State::Works, ""), "{alone:?}");
        assert!(alone.why.contains("not needed: qemu-x86_64"), "{alone:?}");
    }
}

#[test]
fn where_our_own_engine_cannot_run_qemu_does_or_what_it_lacks_is_said() {
    let qemu = with_engines(false, QemuState::Ready("7.2.0".into()));
    assert_eq!((qemu.state, qemu.remedy.as_str()), (State::Works, ""), "{qemu:?}");
    assert!(qemu.why.starts_with("qemu-x86_64 7.2.0 takes plugins"), "{qemu:?}");
    let missing = with_engines(false, QemuState::Missing);
    assert_eq!(missing.state, State::NotThere);
    assert!(missing.remedy.contains("qemu-user"), "{missing:?}");
    let bare = with_engines(false, QemuState::WithoutPlugins);
    assert!(bare.why.contains("without plugins"), "{bare:?}");
    let new = with_engines(false, QemuState::OtherPlugins("10.0.2".into()));
    assert!(new.why.contains("10.0.2") && new.remedy.contains("8.2"), "{new:?}");
}

#[test]
fn releases_compare_by_number() {
    assert!(older_than("5.4.0-150-generic", 5, 5));
    assert!(!older_than("5.15.0", 5, 5));
    assert!(!older_than("6.1.0", 5, 5));
    assert!(!older_than("", 5, 5));
}
