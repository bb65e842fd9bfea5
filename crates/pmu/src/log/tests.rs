use super::*;
use crate::Reading;
use crate::random::Random;

fn header() -> Header {
    Header {
        source: "modelled core".into(),
        machine: "zen4".into(),
        mode: "user".into(),
        boundary: "cycles".into(),
        slice: 200_000,
        events: ["cycles", "instructions", "loads", "stores"].map(str::to_owned).to_vec(),
        anchors: 2,
        groups: vec![vec![0, 1, 2], vec![0, 1, 3]],
    }
}

fn records() -> Vec<Record> {
    let mut list = vec![
        Record::Header(header()),
        Record::Process { pid: 7, parent: 0, name: "/bin/true".into() },
    ];
    for k in 0..20_u64 {
        let counts = vec![200_000 + k, 1 << k, k * k];
        let reading = Reading { group: (k % 2) as usize, round: k / 2, counts };
        list.push(Record::Slice(Slice { pid: 7, tid: 0, at: 200_000 * (k + 1), reading }));
    }
    list.push(Record::End { pid: 7, tid: 0 });
    list
}

fn written() -> Vec<u8> {
    let mut bytes = begin(header());
    records()[1..].iter().for_each(|record| append(&mut bytes, record));
    bytes
}

fn all(follower: &mut Follower) -> Result<Vec<Record>, LogError> {
    let mut list = Vec::new();
    while let Some(record) = follower.next_record()? {
        list.push(record);
    }
    Ok(list)
}

#[test]
fn what_was_written_is_read_at_whatever_pace_it_arrives() {
    let bytes = written();
    for pace in [1, 3, 64, bytes.len()] {
        let mut follower = Follower::new();
        let mut list = Vec::new();
        for part in bytes.chunks(pace) {
            follower.feed(part);
            list.extend(all(&mut follower).unwrap());
        }
        assert_eq!(list, records());
        assert_eq!((follower.pending(), follower.offset()), (0, bytes.len() as u64));
    }
}

#[test]
fn a_torn_tail_is_waited_for_and_zeros_are_no_record() {
    let bytes = written();
    for cut in 0..bytes.len() {
        let mut follower = Follower::new();
        follower.feed(&bytes[..cut]);
        let before = all(&mut follower).unwrap();
        follower.feed(&bytes[cut..]);
        let after = all(&mut follower).unwrap();
        assert_eq!([before, after].concat(), records(), "cut at {cut}");
        // The same with the rest of the file laid out and not yet written.
        let mut laid_out = bytes[..cut].to_vec();
        laid_out.resize(bytes.len() + 64, 0);
        let mut follower = Follower::new();
        follower.feed(&laid_out);
        let Ok(before) = all(&mut follower) else {
            assert!(cut < MAGIC.len());
            continue;
        };
        let offset = follower.offset() as usize;
        follower.forget_pending();
        follower.feed(&bytes[offset..]);
        assert_eq!([before, all(&mut follower).unwrap()].concat(), records(), "cut at {cut}");
    }
}

#[test]
fn what_is_no_log_too_new_or_damaged_is_said() {
    let mut follower = Follower::new();
    follower.feed(b"GIF89a..");
    assert_eq!(follower.next_record(), Err(LogError::NotALog));
    let mut bytes = written();
    bytes[MAGIC.len() + 60] ^= 1;
    let mut follower = Follower::new();
    follower.feed(&bytes);
    let offset = MAGIC.len() as u64;
    assert_eq!(follower.next_record(), Err(LogError::Damaged { offset }));
    let mut newer = MAGIC.to_vec();
    append(&mut newer, &Record::Header(header()));
    let end = newer.len();
    newer[MAGIC.len() + 9] = 2;
    let sum = bytes::check(&newer[MAGIC.len() + 8..end]).to_le_bytes();
    newer[MAGIC.len() + 4..MAGIC.len() + 8].copy_from_slice(&sum);
    let mut follower = Follower::new();
    follower.feed(&newer);
    assert_eq!(follower.next_record(), Err(LogError::Version(2)));
}

#[test]
fn records_of_unknown_kinds_are_passed_over() {
    let mut bytes = begin(header());
    let mut odd = Vec::new();
    append(&mut odd, &Record::End { pid: 1, tid: 2 });
    odd[8] = 77;
    let sum = bytes::check(&odd[8..]).to_le_bytes();
    odd[4..8].copy_from_slice(&sum);
    bytes.extend(odd);
    append(&mut bytes, &Record::End { pid: 1, tid: 2 });
    let mut follower = Follower::new();
    follower.feed(&bytes);
    assert_eq!(all(&mut follower).unwrap().len(), 2);
}

#[test]
fn no_mutation_of_a_log_breaks_the_follower_or_changes_what_stands() {
    let rounds = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|r| r.parse().ok());
    let rounds: u64 = rounds.unwrap_or(2000);
    let bytes = written();
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let mut mutant = bytes.clone();
        let first = random.below(mutant.len());
        for _ in 0..=random.below(4) {
            let place = first + random.below(mutant.len() - first);
            match random.below(3) {
                0 => mutant[place] = random.next() as u8,
                1 => mutant.truncate(place.max(first + 1)),
                _ => mutant.insert(place, random.next() as u8),
            }
            if mutant.len() <= first {
                break;
            }
        }
        let mut follower = Follower::new();
        follower.feed(&mutant);
        let mut read = Vec::new();
        while let Ok(Some(record)) = follower.next_record() {
            read.push(record);
        }
        // Whatever lies wholly before the first change is read as it was written.
        let mut intact = Follower::new();
        intact.feed(&bytes[..first]);
        let stands = all(&mut intact).unwrap();
        assert!(read.len() >= stands.len() && read[..stands.len()] == stands[..], "seed {seed}");
    }
}
