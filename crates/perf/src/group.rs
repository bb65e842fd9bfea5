//! Events that are counted together or not at all.
//!
//! ```text
//! leader ─┬─ member ─ member ─ …      one ioctl on the leader starts or stops them all
//!         └─ read: {events, enabled, running, (count, id)…}      one call, one moment
//! ```
//! Members are open and never switched: the kernel counts them exactly while their leader runs,
//! and their times follow the leader's. A switch is therefore one call a group, whatever its size.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use vocab::{Count, Event};

use crate::attr::{Attr, flag, read};
use crate::open::{FLAG_PID_CGROUP, open_with};
use crate::words::read_words;
use crate::{Alarm, Inherit, Refusal, Target};

const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_DISABLE: libc::Ioctl = 0x2401;
const IOC_RESET: libc::Ioctl = 0x2403;
const IOC_FLAG_GROUP: libc::c_ulong = 1;

/// How a group is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupOptions {
    /// What becomes of the target's offspring.
    pub inherit: Inherit,
    /// Counting starts with the target's next exec, not with [`Group::enable`].
    pub on_exec: bool,
    /// The group must always have its counters; it fails rather than take turns.
    pub pinned: bool,
    /// The counters are to be read without a system call where the machine allows it.
    pub user_read: bool,
    /// A member that overflows, for an [`AlarmClock`](crate::AlarmClock).
    pub alarm: Option<Alarm>,
}

/// An open group.
#[derive(Debug)]
pub struct Group {
    /// The leader first.
    fds: Vec<OwnedFd>,
    /// Whether the kernel reads all members in one call.
    together: bool,
}

/// What a group held when it was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupReading {
    /// How long the group was switched on, in nanoseconds of the target's time; over several
    /// threads their sum.
    pub enabled_ns: u64,
    /// How long it really had its counters. Zero means that it was never counted.
    pub running_ns: u64,
    /// One a member, the leader's first.
    pub counts: Vec<Count>,
}

/// The member that the kernel would not take, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupRefusal {
    /// Its place in the list.
    pub place: usize,
    /// Its name.
    pub event: String,
    /// The kernel's answer.
    pub refusal: Refusal,
    /// Whether the kernel takes the event by itself: then the group is too large, or its members
    /// cannot be counted together.
    pub opens_alone: bool,
}

impl fmt::Display for GroupRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.opens_alone {
            let before = self.place;
            write!(
                f,
                "'{}' does not fit into a group with the {before} before it: this machine cannot \
                 count them at one time",
                self.event
            )
        } else {
            write!(f, "'{}': {}", self.event, self.refusal)
        }
    }
}

impl std::error::Error for GroupRefusal {}

impl Group {
    /// Opens the events together, switched off. An empty list is not understood.
    pub fn open(
        events: &[Event],
        target: &Target,
        options: GroupOptions,
    ) -> Result<Group, GroupRefusal> {
        match Group::open_as(events, target, options, true) {
            // Kernels before 4.13 do not read inherited groups in one call.
            Err(no) if no.refusal == Refusal::NotUnderstood && no.place == 0 => {
                match options.inherit {
                    Inherit::No => Err(no),
                    _ => Group::open_as(events, target, options, false),
                }
            }
            opened => opened,
        }
    }

    fn open_as(
        events: &[Event],
        target: &Target,
        options: GroupOptions,
        together: bool,
    ) -> Result<Group, GroupRefusal> {
        let mut fds: Vec<OwnedFd> = Vec::with_capacity(events.len());
        for (place, event) in events.iter().enumerate() {
            let leader = fds.first().map_or(-1, AsRawFd::as_raw_fd);
            let attr = attr(event, options, place, together);
            fds.push(open_on(&attr, target, leader).map_err(|refusal| GroupRefusal {
                place,
                event: event.name.clone(),
                refusal,
                opens_alone: leader >= 0
                    && refusal == Refusal::NotUnderstood
                    && open_on(&attr, target, -1).is_ok(),
            })?);
        }
        if fds.is_empty() {
            let (event, refusal) = (String::new(), Refusal::NotUnderstood);
            return Err(GroupRefusal { place: 0, event, refusal, opens_alone: false });
        }
        Ok(Group { fds, together })
    }

    /// How many events it counts.
    pub fn len(&self) -> usize {
        self.fds.len()
    }

    /// Never: an empty group cannot be opened.
    pub fn is_empty(&self) -> bool {
        self.fds.is_empty()
    }

    pub(crate) fn fds(&self) -> &[OwnedFd] {
        &self.fds
    }

    /// Switches the group on.
    pub fn enable(&self) -> io::Result<()> {
        self.leader(IOC_ENABLE, 0)
    }

    /// Switches the group off; what was counted stays.
    pub fn disable(&self) -> io::Result<()> {
        self.leader(IOC_DISABLE, 0)
    }

    /// Sets the counts to zero. The kernel keeps the times, and the counts of offspring that has
    /// ended: differences of readings are the better way where those matter.
    pub fn reset(&self) -> io::Result<()> {
        self.leader(IOC_RESET, IOC_FLAG_GROUP)
    }

    fn leader(&self, request: libc::Ioctl, argument: libc::c_ulong) -> io::Result<()> {
        let Some(leader) = self.fds.first() else { return Ok(()) };
        // SAFETY: these requests take a plain number, and the descriptor is an open perf event.
        if unsafe { libc::ioctl(leader.as_raw_fd(), request, argument) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Reads all members, into a value that may be used again and again.
    pub fn read(&self, into: &mut GroupReading) -> io::Result<()> {
        into.counts.clear();
        if self.together { self.read_together(into) } else { self.read_apart(into) }
    }

    /// `{nr, enabled, running, (count, id) × nr}`
    fn read_together(&self, into: &mut GroupReading) -> io::Result<()> {
        let Some(leader) = self.fds.first() else { return Ok(()) };
        let wanted = 3 + 2 * self.fds.len();
        read_words(leader, wanted, |words| {
            into.enabled_ns = words.get(1).copied().unwrap_or(0);
            into.running_ns = words.get(2).copied().unwrap_or(0);
            into.counts.extend(words.iter().skip(3).step_by(2).map(|&count| Count(count)));
        })
    }

    /// `{count, enabled, running, id}` of each; the times are the leader's.
    fn read_apart(&self, into: &mut GroupReading) -> io::Result<()> {
        for (place, fd) in self.fds.iter().enumerate() {
            read_words(fd, 4, |words| {
                into.counts.push(Count(words.first().copied().unwrap_or(0)));
                if place == 0 {
                    into.enabled_ns = words.get(1).copied().unwrap_or(0);
                    into.running_ns = words.get(2).copied().unwrap_or(0);
                }
            })?;
        }
        Ok(())
    }
}

fn attr(event: &Event, options: GroupOptions, place: usize, together: bool) -> Attr {
    let mut attr = Attr::of(event);
    attr.read_format = read::TIME_ENABLED | read::TIME_RUNNING | read::ID;
    if together {
        attr.read_format |= read::GROUP;
    }
    attr.flags |= match options.inherit {
        Inherit::No => 0,
        Inherit::Threads => flag::INHERIT | flag::INHERIT_THREAD,
        Inherit::All => flag::INHERIT,
    };
    if place == 0 {
        attr.flags |= if options.on_exec { flag::ENABLE_ON_EXEC } else { 0 };
        attr.flags |= if options.pinned { flag::PINNED } else { 0 };
    } else {
        attr.flags &= !flag::DISABLED;
    }
    if let Some(alarm) = options.alarm.filter(|alarm| alarm.place == place) {
        attr.sample_period_or_freq = alarm.period;
        attr.wakeup = 1;
    }
    if options.user_read {
        crate::page::ask_for_user_read(&mut attr);
    }
    attr
}

fn open_on(attr: &Attr, target: &Target, group: i32) -> Result<OwnedFd, Refusal> {
    let (pid, cpu) = target.numbers();
    let flags = if matches!(target, Target::Cgroup { .. }) { FLAG_PID_CGROUP } else { 0 };
    open_with(attr, pid, cpu, group, flags)
}
