//! Whom `whither stat` counts for: a program, processes, threads, CPUs, control groups.

use counters::{CountError, On};
use perf::{cgroup_directory, cpus_online};
use pmu::EventList;
use vocab::Cpu;

use crate::cli::arguments::StatArguments;
use crate::failure::{Failure, RUN_FAILED};
use crate::stat::Part;

/// Whose events are counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whom {
    /// The program that is started.
    Program,
    /// Something that runs already; each is counted apart, and those of one part are added up.
    Others(Vec<Subject>),
}

/// One that is counted by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Subject {
    pub(crate) on: On,
    pub(crate) part: Part,
    /// The events that are counted for it, by their places; all where none are named.
    pub(crate) events: Option<Vec<usize>>,
}

impl Subject {
    /// All events, as a part of the whole.
    pub(crate) fn all(on: On) -> Subject {
        Subject { on, part: Part::default(), events: None }
    }
}

fn failed(why: impl Into<String>) -> Failure {
    Failure::new(RUN_FAILED, why)
}

/// Whether the processes and threads to be counted exist: whatever the machine can count, without
/// them there is nothing to be said of it.
pub(super) fn must_be_there(pids: &[u32], tids: &[u32]) -> Result<(), Failure> {
    let gone = |number: &&u32| !counters::is_there(**number);
    let pid = pids.iter().find(gone).map(|&pid| CountError::Gone(pid));
    let tid = tids.iter().find(gone).map(|&tid| CountError::NoThread(tid));
    pid.or(tid).map_or(Ok(()), |error| Err(failed(error.to_string())))
}

pub(super) fn whom(arguments: &StatArguments, events: &EventList) -> Result<Whom, Failure> {
    // None: not by CPU. Empty: all.
    let wide = match &arguments.cpu {
        Some(list) => Some(cpus(list)?),
        None => arguments.all_cpus.then(Vec::new),
    };
    let is_by_cgroup = !arguments.cgroup.is_empty() || !arguments.for_each_cgroup.is_empty();
    let Some(wide) = wide else {
        if arguments.no_aggr || is_by_cgroup {
            let why = match is_by_cgroup {
                true => "a control group is counted on CPUs, not for a program or process",
                false => "CPUs are told apart only where everything on them is counted",
            };
            return Err(failed(why).remedy("add -a for all CPUs, or -C LIST"));
        }
        let processes = arguments.pid.iter().map(|&pid| On::Process(pid));
        let threads = arguments.tid.iter().map(|&tid| On::Thread(tid));
        let others: Vec<Subject> = processes.chain(threads).map(Subject::all).collect();
        return Ok(if others.is_empty() { Whom::Program } else { Whom::Others(others) });
    };
    let shares = match (&arguments.cgroup[..], &arguments.for_each_cgroup[..]) {
        ([], []) => vec![Share { cgroup: None, events: None }],
        ([], each) => each.iter().map(|name| Share::of(name, None)).collect(),
        (names, _) => mapped(names, events)?,
    };
    let mut subjects = Vec::new();
    for share in &shares {
        if arguments.no_aggr {
            let all = if wide.is_empty() { cpus_online() } else { wide.clone() };
            for cpu in all {
                subjects.push(share.subject(vec![cpu], Some(cpu.0))?);
            }
        } else {
            subjects.push(share.subject(wide.clone(), None)?);
        }
    }
    Ok(Whom::Others(subjects))
}

/// Events of a control group, or of all.
struct Share {
    cgroup: Option<String>,
    events: Option<Vec<usize>>,
}

impl Share {
    fn of(name: &str, events: Option<Vec<usize>>) -> Share {
        Share { cgroup: Some(name.to_owned()), events }
    }

    fn subject(&self, cpus: Vec<Cpu>, cpu: Option<u32>) -> Result<Subject, Failure> {
        let on = match self.cgroup.as_deref() {
            // perf's way to name everything.
            None | Some("") => On::Cpus(cpus),
            Some(name) => {
                let directory = cgroup_directory(name).ok_or_else(|| {
                    failed(format!("there is no place for a control group '{name}' here"))
                        .remedy("name it by its path below the mount of cgroup2, without ..")
                })?;
                On::Cgroup(directory, cpus)
            }
        };
        let part = Part { cpu, cgroup: self.cgroup.clone() };
        Ok(Subject { on, part, events: self.events.clone() })
    }
}

/// perf's `-G`: one name is for all events; several go to the events in turn, and what is left over
/// is counted for all.
fn mapped(names: &[String], events: &EventList) -> Result<Vec<Share>, Failure> {
    let count = events.events.len();
    if let [name] = names {
        return Ok(vec![Share::of(name, None)]);
    }
    if names.len() > count {
        let given = names.len();
        return Err(failed(format!("{given} control groups were named for {count} events"))
            .remedy(
                "name one for all events, or one for each; --for-each-cgroup repeats all events",
            ));
    }
    let name_of = |place: usize| names.get(place).map_or("", String::as_str);
    for group in &events.groups {
        let mut of = group.iter().map(|&place| name_of(place));
        let first = of.next();
        if of.any(|name| Some(name) != first) {
            return Err(failed("events in one pair of braces belong to one control group"));
        }
    }
    let mut shares: Vec<Share> = Vec::new();
    for place in 0..count {
        let name = name_of(place);
        match shares.iter_mut().find(|share| share.cgroup.as_deref() == Some(name)) {
            Some(share) => share.events.get_or_insert_default().push(place),
            None => shares.push(Share::of(name, Some(vec![place]))),
        }
    }
    Ok(shares)
}

/// `0,2-3`.
fn cpus(list: &str) -> Result<Vec<Cpu>, Failure> {
    let bad = || failed(format!("'{list}' is no list of CPUs; they are written 0,2-3"));
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Err(bad());
        };
        // No kernel has more; a larger number is not a CPU.
        if first > last || last >= 1 << 16 {
            return Err(bad());
        }
        cpus.extend((first..=last).map(Cpu));
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::{Dictionary, EventTable};

    #[test]
    fn lists_of_cpus_are_checked() {
        assert_eq!(cpus("0,2-3").unwrap(), [0, 2, 3].map(Cpu));
        for odd in ["", "3-1", "a", "0-99999999", "1,"] {
            assert!(cpus(odd).is_err(), "{odd}");
        }
    }

    fn listed(spelling: &str) -> EventList {
        Dictionary::of_table(EventTable::embedded().unwrap()).parse_list(spelling).unwrap()
    }

    fn shares(names: &[&str], events: &str) -> Vec<(String, Option<Vec<usize>>)> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let shares = mapped(&names, &listed(events)).unwrap();
        shares.into_iter().map(|share| (share.cgroup.unwrap(), share.events)).collect()
    }

    #[test]
    fn control_groups_go_to_events_in_turn_and_one_goes_to_all() {
        assert_eq!(shares(&["a"], "cs,faults"), [("a".into(), None)]);
        assert_eq!(
            shares(&["a", "", "a"], "cs,faults,cycles,branches"),
            [("a".into(), Some(vec![0, 2])), (String::new(), Some(vec![1, 3]))]
        );
        let many = ["a", "b"].map(str::to_owned);
        let said = |result: Result<Vec<Share>, Failure>| result.err().unwrap().sentence();
        assert!(said(mapped(&many, &listed("cs"))).contains("2 control groups"));
        assert!(said(mapped(&many, &listed("{cs,faults}"))).contains("braces"));
    }
}
