//! The kernel's interfaces as safe values: perf events, their rings, `bpf()`, a program held
//! before its first instruction.
//!
//! Constraints: every `unsafe` block of the collector's side lives here, each a few lines around
//! one system call or one mapping. A failed call keeps its `errno`, and [`Refusal`] tells 'not
//! permitted' from 'not there'.
//!
//! Not for: deciding what to sample or count, remembering maps (see `collect`), or event names
//! (see `pmu`).
//!
//! ```text
//! Held::fork(cmd) ──pid──► Sampler::open(pid, cpu) ──mmap──► Ring ──► Record{time, …}
//!       └──go()──► exec: counting and sampling begin with the program's first instruction
//!
//! Group::open(events, Target) ──enable/disable: one call a group──► read ──► GroupReading
//!       └──UserPages: the same without a system call, on the counted thread itself
//! ```

mod alarm;
mod attr;
mod bpf;
mod breakpoint;
mod capability;
mod cgroup;
mod chain;
mod counter;
mod cpu_event;
mod group;
mod held;
mod hypervisor;
mod open;
mod page;
mod record;
mod refusal;
mod ring;
mod sampler;
mod service;
mod signals;
mod stdin;
mod stop;
mod surroundings;
mod target;
mod thread;
mod told;
mod wait;
mod words;

pub use alarm::{Alarm, AlarmClock};
pub use bpf::{
    Alu, Assembler, Bell, BpfAbilities, CURRENT_PID_TGID, FORCE_WAKEUP, If, Label, NotLoaded,
    Program, RING_THE_BELL, Reg, SharedArray, Width, probe_bpf,
};
pub use breakpoint::{BreakpointKind, breakpoint, probe_breakpoint};
pub use capability::{Capability, keep_only};
pub use cgroup::cgroup_directory;
pub use chain::parse_chain;
pub use counter::{Counter, Reading};
pub use cpu_event::{CpuEvent, CpuEventRequest, Scope};
pub use group::{Group, GroupOptions, GroupReading, GroupRefusal};
pub use held::{ExecFailed, Held, Running};
pub use hypervisor::hypervisor_name;
pub use open::{probe, probe_system_wide};
pub use page::UserPages;
pub use record::{ForkOrExit, Mapping, Record, RecordBody, SampleMode, parse_body, parse_record};
pub use refusal::Refusal;
pub use ring::{Ring, RingRead};
pub use sampler::{Precision, Rate, Sampler, SamplerExtras, SamplerRequest};
pub use service::{
    OwnUse, Requests, give_memory_back, is_root, keep_files_private, leave_session, own_use,
    pin_thread,
};
pub use signals::Bystander;
pub use stdin::KeptInput;
pub use stop::{StopRequest, terminate};
pub use surroundings::{Layout, Surroundings};
pub use target::{Inherit, Target, cpus_online, running_on, threads_of};
pub use thread::{pin_to, ring_on_time, run_first, take_no_signals, this_thread};
pub use told::{MappedText, Told, parse_told};
pub use wait::{Ended, ProcessFd, Usage, wait_for_any};
