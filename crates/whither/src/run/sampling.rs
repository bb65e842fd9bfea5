//! What to sample: the best clock that this machine has.

use perf::{Rate, Refusal, SamplerRequest};
use vocab::{Event, EventCode, Mode};

use crate::cli::RunJob;
use crate::doctor::{Probes, State, judge};
use crate::failure::{Failure, RUN_FAILED};

/// The kernel's kind of events that it counts itself.
const SOFTWARE: u32 = 1;
/// Prime, so that they beat with no timer of the kernel. A timer interrupt costs ten times more
/// in a virtual machine than outside.
const HERTZ_IN_A_GUEST: u64 = 997;
const HERTZ: u64 = 3989;
/// 128 pages hold about 13,000 samples: seconds of sampling, even at 5 kHz.
const RING_PAGES: usize = 128;

/// What will be sampled, and why that.
#[derive(Clone, Debug)]
pub(crate) struct Sampling {
    pub(crate) request: SamplerRequest,
    /// Why it is not hardware cycles; empty if it is, or if the user chose.
    pub(crate) because: String,
}

impl Sampling {
    /// Whether the event is a clock of the kernel's, whose blind spots are known.
    pub(crate) fn is_software(&self) -> bool {
        self.request.event.code.kind == SOFTWARE
    }

    /// How many of the event lie between two samples, where that is known beforehand: of a clock
    /// always, of another event unless it is sampled by rate.
    pub(crate) fn period(&self) -> Option<u64> {
        match self.request.rate {
            Rate::Period(period) => Some(period),
            Rate::Hertz(_) => self.period_ns().map(|period| period.round() as u64),
        }
    }

    /// Nanoseconds between samples, where that is what the rate means.
    pub(crate) fn period_ns(&self) -> Option<f64> {
        let clock = self.is_software() && self.request.event.code.config <= 1;
        clock.then(|| match self.request.rate {
            Rate::Hertz(hertz) => 1e9 / hertz as f64,
            Rate::Period(period) => period as f64,
        })
    }
}

/// Decides on event and rate.
pub(crate) fn choose(job: &RunJob) -> Result<Sampling, Failure> {
    choose_for(job.event.as_ref(), job.rate)
}

/// The same for an event and a rate that were asked for, or not.
pub(crate) fn choose_for(event: Option<&Event>, rate: Option<Rate>) -> Result<Sampling, Failure> {
    let probes = Probes::take();
    let cycles = Event { name: "cycles".into(), code: EventCode::new(0, 0), mode: Mode::Both };
    let clock =
        Event { name: "cpu-clock".into(), code: EventCode::new(SOFTWARE, 0), ..cycles.clone() };
    let (event, because) = match event {
        Some(event) => (event.clone(), String::new()),
        None if probes.cycles.is_ok() => (cycles, String::new()),
        None => (clock, reason(&probes)),
    };
    if let Err(refusal) = perf::probe(&Event { mode: Mode::User, ..event.clone() }) {
        return Err(refused(&event, refusal, &probes));
    }
    let software = event.code.kind == SOFTWARE;
    let rate = match rate {
        Some(rate) => rate,
        None if software || probes.hypervisor.is_some() => Rate::Hertz(HERTZ_IN_A_GUEST),
        None => Rate::Hertz(HERTZ),
    };
    check_rate(rate)?;
    let request = SamplerRequest { event, rate, precise: !software, ring_pages: RING_PAGES };
    Ok(Sampling { request, because })
}

/// Why hardware cycles are not to be had.
fn reason(probes: &Probes) -> String {
    let pmu = judge(probes).into_iter().find(|finding| finding.key == "pmu");
    pmu.map(|finding| finding.why).unwrap_or_default()
}

fn refused(event: &Event, refusal: Refusal, probes: &Probes) -> Failure {
    let mut what = format!("cannot sample {}: {refusal}", event.name);
    let is_software = event.code.kind == SOFTWARE;
    let key = if is_software { "sample_own" } else { "pmu" };
    let finding = judge(probes).into_iter().find(|finding| finding.key == key);
    let remedy = match finding {
        Some(finding) if finding.state != State::Works && !is_software => {
            what += &format!(" ({})", finding.why);
            "without -e time is sampled; `whither record --machine NAME` samples on a modelled core"
                .into()
        }
        Some(finding) if finding.state != State::Works => {
            format!("{} ({})", finding.remedy, finding.why)
        }
        _ => "`whither doctor` says what this machine can do".into(),
    };
    Failure::new(RUN_FAILED, what).kept("the program was not started").remedy(remedy)
}

/// The kernel refuses more than it is set to allow; say so before it does.
fn check_rate(rate: Rate) -> Result<(), Failure> {
    let allowed = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate");
    let allowed: Option<u64> = allowed.ok().and_then(|text| text.trim().parse().ok());
    match (rate, allowed) {
        (Rate::Hertz(hertz), Some(allowed)) if hertz > allowed => Err(Failure::new(
            RUN_FAILED,
            format!("{hertz} samples a second are more than this kernel allows ({allowed})"),
        )
        .kept("the program was not started")
        .remedy(format!("ask for less, or `sysctl kernel.perf_event_max_sample_rate={hertz}`"))),
        _ => Ok(()),
    }
}
