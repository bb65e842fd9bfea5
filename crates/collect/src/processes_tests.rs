//! Processes that fork, execute, end and whose numbers come again.

use super::*;
use vocab::ImageKind;

fn processes() -> Processes {
    let kallsyms = "ffffffff81000000 T _text\nffffffff81000100 T do_syscall_64\n\
                    ffffffff81000200 T other\nffffffff82000000 T _end\n";
    Processes::new(KernelLayout::parse(kallsyms, ""))
}

fn mapping(pid: u32, path: &str, start: u64) -> Mapping {
    Mapping {
        pid: Pid(pid),
        start: Pc(start),
        length: 0x1000,
        file_offset: 0,
        executable: true,
        path: path.into(),
        build_id: None,
    }
}

fn take(processes: &mut Processes, body: RecordBody) {
    processes.take(&body);
}

fn fork(processes: &mut Processes, pid: u32, parent: u32) {
    let fork = ForkOrExit { pid: Pid(pid), parent: Pid(parent), tid: pid };
    take(processes, RecordBody::Forked(fork));
}

fn exec(processes: &mut Processes, pid: u32, path: &str) {
    take(processes, RecordBody::Named { pid: Pid(pid), exec: true, name: path.into() });
    take(processes, RecordBody::Mapped(mapping(pid, path, 0x40_0000)));
}

fn exit(processes: &mut Processes, pid: u32) {
    let exit = ForkOrExit { pid: Pid(pid), parent: Pid(1), tid: pid };
    take(processes, RecordBody::Exited(exit));
}

fn path(processes: &mut Processes, pid: u32, pc: u64) -> Result<String, Unplaced> {
    let place = processes.place(Pid(pid), Pc(pc))?;
    Ok(processes.image(place.image).unwrap().path.clone())
}

#[test]
fn a_dead_process_is_placed_until_the_drain_is_over() {
    let mut all = processes();
    fork(&mut all, 7, 1);
    exec(&mut all, 7, "/bin/cc1");
    exit(&mut all, 7);
    assert_eq!(path(&mut all, 7, 0x40_0010).unwrap(), "/bin/cc1");
    all.settle(|_| false);
    assert_eq!(path(&mut all, 7, 0x40_0010), Err(Unplaced::UnknownProcess));
    assert!(all.is_empty());
}

#[test]
fn a_process_whose_other_threads_go_on_stays() {
    let mut all = processes();
    exec(&mut all, 7, "/bin/server");
    exit(&mut all, 7);
    all.settle(|pid| pid == Pid(7));
    assert_eq!(path(&mut all, 7, 0x40_0010).unwrap(), "/bin/server");
}

#[test]
fn only_a_process_that_had_other_threads_is_asked_for_after_its_end() {
    let mut all = processes();
    for pid in [7, 8] {
        fork(&mut all, pid, 1);
        exec(&mut all, pid, "/bin/cc1");
    }
    let thread = ForkOrExit { pid: Pid(8), parent: Pid(8), tid: 9 };
    take(&mut all, RecordBody::Forked(thread));
    exit(&mut all, 7);
    exit(&mut all, 8);
    let mut asked = Vec::new();
    all.settle(|pid| {
        asked.push(pid);
        true
    });
    assert_eq!(asked, [Pid(8)]);
    assert_eq!(all.len(), 1);
}

#[test]
fn maps_before_an_exec_answer_where_the_new_ones_do_not() {
    let mut all = processes();
    all.scanned(Pid(1), "sh", &[mapping(1, "/bin/sh", 0x10_0000)]);
    fork(&mut all, 7, 1);
    exec(&mut all, 7, "/bin/cc1");
    assert_eq!(path(&mut all, 7, 0x10_0010).unwrap(), "/bin/sh");
    assert_eq!(path(&mut all, 7, 0x40_0010).unwrap(), "/bin/cc1");
    assert!(!all.place(Pid(7), Pc(0x40_0010)).unwrap().ambiguous);
    all.settle(|_| true);
    assert_eq!(path(&mut all, 7, 0x10_0010), Err(Unplaced::UnknownAddress));
}

#[test]
fn two_lives_with_other_code_at_one_address_are_told() {
    let mut all = processes();
    exec(&mut all, 7, "/bin/a");
    exit(&mut all, 7);
    fork(&mut all, 7, 1);
    exec(&mut all, 7, "/bin/b");
    let place = all.place(Pid(7), Pc(0x40_0010)).unwrap();
    assert!(place.ambiguous);
    assert_eq!(all.image(place.image).unwrap().path, "/bin/b");
}

#[test]
fn a_fork_shares_its_parents_maps_until_one_of_them_changes() {
    let mut all = processes();
    exec(&mut all, 1, "/bin/a");
    fork(&mut all, 2, 1);
    take(&mut all, RecordBody::Mapped(mapping(2, "/lib/new", 0x50_0000)));
    assert_eq!(path(&mut all, 2, 0x50_0000).unwrap(), "/lib/new");
    assert_eq!(path(&mut all, 1, 0x50_0000), Err(Unplaced::UnknownAddress));
}

#[test]
fn kernel_addresses_belong_to_no_process_and_blind_spots_are_marked() {
    let mut all = processes();
    let place = all.place(Pid(999), Pc(0xffff_ffff_8100_0110)).unwrap();
    assert_eq!((place.offset, place.blind), (Offset(0x110), true));
    assert_eq!(all.image(place.image).unwrap().kind, ImageKind::Kernel);
    assert!(!all.place(Pid(999), Pc(0xffff_ffff_8100_0200)).unwrap().blind);
    let unknown = all.place(Pid(999), Pc(0xffff_ffff_f000_0000));
    assert_eq!(unknown, Err(Unplaced::UnknownAddress));
    let mut hidden = Processes::new(KernelLayout::default());
    let found = hidden.place(Pid(1), Pc(0xffff_ffff_8100_0110));
    assert_eq!(found, Err(Unplaced::HiddenKernel));
}

#[test]
fn images_that_nobody_maps_are_let_go_and_the_others_keep_their_places() {
    let mut all = processes();
    exec(&mut all, 1, "/tmp/short-lived");
    exec(&mut all, 1, "/bin/b");
    exec(&mut all, 2, "/bin/c");
    all.place(Pid(1), Pc(0xffff_ffff_8100_0110)).unwrap();
    all.settle(|_| true);
    assert_eq!(all.image_count(), 4);
    all.forget_unused_images();
    assert_eq!(all.image_count(), 3);
    assert_eq!(path(&mut all, 1, 0x40_0000).unwrap(), "/bin/b");
    assert_eq!(path(&mut all, 2, 0x40_0000).unwrap(), "/bin/c");
    assert_eq!(path(&mut all, 2, 0xffff_ffff_8100_0110).unwrap(), "[kernel]");
    exec(&mut all, 3, "/bin/c");
    assert_eq!(all.image_count(), 3);
}

/// A record as the kernel lays it out: a mapping of a path without a build-id.
fn mapped_bytes(pid: u32, path: &str, start: u64, time_ns: u64) -> Vec<u8> {
    let mut body: Vec<u8> = Vec::new();
    let words = [u64::from(pid), start, 0x1000, 0x400];
    words.iter().for_each(|word| body.extend(word.to_ne_bytes()));
    body.extend([0; 24]);
    body.extend(5_u64.to_ne_bytes());
    body.extend(path.as_bytes());
    body.resize(body.len().next_multiple_of(8) + 8, 0);
    [u64::from(pid), time_ns, 0].iter().for_each(|word| body.extend(word.to_ne_bytes()));
    let mut bytes = 10_u32.to_ne_bytes().to_vec();
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend((8 + body.len() as u16).to_ne_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn what_is_heard_out_of_order_happens_in_order() {
    let mut all = processes();
    // Ring A told of the later mapping before ring B was read.
    assert!(all.hear(&mapped_bytes(7, "/lib/new", 0x40_0000, 20)));
    assert!(all.hear(&mapped_bytes(7, "/lib/old", 0x40_0000, 10)));
    all.end_round();
    assert_eq!(path(&mut all, 7, 0x40_0000), Err(Unplaced::UnknownProcess));
    all.end_round();
    assert_eq!(path(&mut all, 7, 0x40_0000).unwrap(), "/lib/new");
    assert_eq!(all.place(Pid(7), Pc(0x40_0010)).unwrap().offset, Offset(0x410));
}

#[test]
fn a_path_that_comes_again_is_the_same_image_and_a_cut_record_is_none() {
    let mut all = processes();
    for (pid, name) in [(1, "/bin/a"), (2, "/bin/b"), (3, "/bin/a"), (4, "//anon"), (5, "//anon")] {
        assert!(all.hear(&mapped_bytes(pid, name, 0x40_0000, u64::from(pid))));
    }
    all.end_round();
    all.end_round();
    let image = |all: &mut Processes, pid: u32| all.place(Pid(pid), Pc(0x40_0000)).unwrap().image;
    assert_eq!(image(&mut all, 1), image(&mut all, 3));
    assert_ne!(image(&mut all, 1), image(&mut all, 2));
    // Generated code is its process's alone.
    assert_ne!(image(&mut all, 4), image(&mut all, 5));
    assert_eq!(all.image_count(), 4);
    let whole = mapped_bytes(9, "/bin/a", 0, 9);
    for end in 0..whole.len() {
        assert!(!all.hear(&whole[..end]), "cut at {end}");
    }
}

#[test]
fn a_mapping_that_waits_keeps_its_image() {
    let mut all = processes();
    exec(&mut all, 1, "/tmp/short-lived");
    exec(&mut all, 1, "/bin/b");
    all.settle(|_| true);
    assert!(all.hear(&mapped_bytes(2, "/lib/waiting", 0x40_0000, 5)));
    all.forget_unused_images();
    all.end_round();
    all.end_round();
    assert_eq!(path(&mut all, 2, 0x40_0000).unwrap(), "/lib/waiting");
    assert_eq!(path(&mut all, 1, 0x40_0000).unwrap(), "/bin/b");
    assert_eq!(all.image_count(), 2);
}
