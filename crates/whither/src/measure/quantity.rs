//! What is measured: events of the machine, of a modelled core, and time.

use model::event::Event as ModelEvent;
use pmu::{EventKind, EventTable, nearest, parse_event};
use show::Unit;
use vocab::Event;

use crate::cli::{MeasureJob, event_table};
use crate::failure::{ERROR, Failure, USAGE};

/// Counted by the operating system and free of any counter; always there.
const TIMES: [(&str, Kind); 3] =
    [("wall-clock", Kind::Wall), ("user-time", Kind::User), ("system-time", Kind::System)];
/// What a modelled core counts unless asked otherwise.
const MODELLED: [&str; 8] = [
    "cycles",
    "branches",
    "branch-misses",
    "l1d-load-misses",
    "l2-load-misses",
    "l3-load-misses",
    "loads",
    "stores",
];

/// Something with a value in every run that measures it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Quantity {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// Where its value comes from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    /// From start to end.
    Wall,
    /// In the program, by the kernel's account.
    User,
    /// In the kernel for it, by the kernel's account.
    System,
    /// A perf event.
    Counted {
        /// Which.
        event: Event,
        /// Whether it needs one of the PMU's counters.
        needs_counter: bool,
        /// What an interruption may add to it.
        extra_per_interruption: u32,
    },
    /// A modelled core's event.
    Modelled(ModelEvent),
}

impl Quantity {
    /// From what a user types.
    pub(crate) fn named(
        name: &str,
        table: &EventTable,
        is_modelled: bool,
    ) -> Result<Quantity, Failure> {
        if let Some((_, kind)) = TIMES.iter().find(|(time, _)| *time == name && !is_modelled) {
            return Ok(Quantity { name: name.into(), kind: kind.clone() });
        }
        let kind = if is_modelled { modelled(name)? } else { counted(name, table)? };
        Ok(Quantity { name: name.into(), kind })
    }

    fn known(name: &str, kind: Kind) -> Quantity {
        Quantity { name: name.into(), kind }
    }

    /// Seconds or a count.
    pub(super) fn unit(&self) -> Unit {
        match &self.kind {
            Kind::Wall | Kind::User | Kind::System => Unit::Seconds,
            Kind::Counted { event, .. } if is_clock(event) => Unit::Seconds,
            Kind::Counted { .. } | Kind::Modelled(_) => Unit::Count,
        }
    }

    /// Whether it takes one of the counters.
    pub(super) fn needs_counter(&self) -> bool {
        match &self.kind {
            Kind::Counted { needs_counter, .. } => *needs_counter,
            Kind::Modelled(_) => true,
            Kind::Wall | Kind::User | Kind::System => false,
        }
    }
}

/// The kernel's clocks count nanoseconds.
pub(super) fn is_clock(event: &Event) -> bool {
    matches!(event.name.as_str(), "task-clock" | "cpu-clock")
}

fn modelled(name: &str) -> Result<Kind, Failure> {
    ModelEvent::named(name).map(Kind::Modelled).ok_or_else(|| {
        let what = match nearest(name, ModelEvent::ALL.iter().map(|event| event.name())) {
            Some(near) => {
                format!("the modelled core has no event '{name}'; did you mean '{near}'?")
            }
            None => format!("the modelled core has no event '{name}'"),
        };
        Failure::new(USAGE, what).remedy("`whither model -- true` shows all that it counts")
    })
}

fn counted(name: &str, table: &EventTable) -> Result<Kind, Failure> {
    let event = parse_event(table, name).map_err(|error| Failure::new(USAGE, error.to_string()))?;
    let entry = table.get(name.split(':').next().unwrap_or(name));
    Ok(Kind::Counted {
        needs_counter: entry.is_none_or(|entry| entry.kind != EventKind::Software),
        extra_per_interruption: entry.map_or(0, |entry| entry.extra_per_interruption),
        event,
    })
}

/// What will be measured, and what cannot be.
#[derive(Debug)]
pub(crate) struct Choice {
    /// All of it; the measurand is among them.
    pub(super) quantities: Vec<Quantity>,
    /// The place of the measurand.
    pub(super) measurand: usize,
    /// What was asked for and is not there, and why.
    pub(super) refused: Vec<(Quantity, String)>,
    /// Why this measurand, where it was not asked for.
    pub(super) why_measurand: String,
}

impl Choice {
    pub(super) fn measurand(&self) -> Option<&Quantity> {
        self.quantities.get(self.measurand)
    }
}

/// Decides what is measured on this machine, or on the modelled core.
pub(super) fn choose(job: &MeasureJob) -> Result<Choice, Failure> {
    let table = event_table(ERROR)?;
    let is_modelled = job.model.is_some();
    let named = |name: &str| Quantity::named(name, &table, is_modelled);
    let instructions = named("instructions")?;
    let has_pmu = is_modelled || probe(&instructions).is_ok();
    let mut wanted = match &job.asked {
        Some(asked) => asked.clone(),
        None if is_modelled => MODELLED.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
        None => default_events(has_pmu).iter().map(|n| named(n)).collect::<Result<_, _>>()?,
    };
    if !is_modelled {
        wanted.extend(TIMES.iter().map(|(name, kind)| Quantity::known(name, kind.clone())));
    }
    let (measurand, why_measurand) = match &job.measurand {
        Some(asked) => (asked.clone(), String::new()),
        None if has_pmu => (instructions, String::new()),
        None => {
            let clock = named("task-clock")?;
            let why = "instructions cannot be counted here (--machine NAME counts them, and cycles, \
                       on a modelled core)";
            match probe(&clock) {
                Ok(()) => (clock, format!("{why}, so the time on a CPU decides")),
                Err(_) => (
                    Quantity::known("wall-clock", Kind::Wall),
                    format!("{why}, nor the time on a CPU, so the time on the wall decides"),
                ),
            }
        }
    };
    if let Err(why) = probe(&measurand) {
        return Err(Failure::new(ERROR, format!("{} cannot be measured: {why}", measurand.name))
            .remedy("`whither list events` shows what this machine has; --machine counts on a modelled core"));
    }
    let (mut quantities, mut refused) = (vec![measurand], Vec::new());
    for quantity in wanted {
        if quantities.iter().any(|held| held.name == quantity.name) {
            continue;
        }
        match probe(&quantity) {
            Ok(()) => quantities.push(quantity),
            Err(why) => refused.push((quantity, why)),
        }
    }
    Ok(Choice { quantities, measurand: 0, refused, why_measurand })
}

fn default_events(has_pmu: bool) -> &'static [&'static str] {
    const PMU: [&str; 10] = [
        "cycles",
        "branches",
        "branch-misses",
        "cache-references",
        "cache-misses",
        "task-clock",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
    ];
    if has_pmu { &PMU } else { &PMU[5..] }
}

fn probe(quantity: &Quantity) -> Result<(), String> {
    match &quantity.kind {
        Kind::Counted { event, .. } => perf::probe(event).map_err(|refusal| refusal.to_string()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_cores_and_of_times() {
        let table = EventTable::embedded().unwrap();
        let named = |name, modelled| Quantity::named(name, &table, modelled);
        assert_eq!(named("wall-clock", false).unwrap().unit(), Unit::Seconds);
        assert_eq!(named("task-clock", false).unwrap().unit(), Unit::Seconds);
        assert!(named("cycles", false).unwrap().needs_counter());
        assert!(!named("minor-faults", false).unwrap().needs_counter());
        assert!(named("r01c2", false).unwrap().needs_counter());
        assert_eq!(named("l1d-load-misses", true).unwrap().unit(), Unit::Count);
        let refused = named("l1d-load-mises", true).unwrap_err();
        assert!(refused.what.contains("'l1d-load-misses'") && refused.status == USAGE);
        assert!(named("wall-clock", true).is_err());
        assert!(named("cylces", false).unwrap_err().what.contains("'cycles'"));
    }
}
