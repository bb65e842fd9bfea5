//! Counts as rows.

use std::collections::{BTreeMap, HashMap};

use show::{Cell, Column};
use store::{CountRow, Counts, EpochEntry};
use vocab::Count;

use super::procedures;
use crate::cli::{By, ProfJob};
use crate::database::{Selected, shown};
use crate::failure::{ERROR, Failure};
use crate::sampled::rank;

/// Rows of a view, most samples first, and what they are rows of.
pub(super) struct Rows {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<(Count, Vec<Cell>)>,
    /// The samples of which shares are shares; unplaced ones among them where they can be told.
    pub(super) whole: Count,
    /// The event, unless rows are of all events.
    pub(super) event: Option<String>,
    /// Whether unplaced samples belong to the whole.
    pub(super) unplaced_belong: bool,
    pub(super) notes: Vec<String>,
}

pub(super) fn rows(
    job: &ProfJob,
    selected: &Selected,
    counts: &Counts,
    progress: bool,
) -> Result<Rows, Failure> {
    let by_event = totals(job, counts, |row| row.event);
    if by_event.is_empty() && job.selection.event.is_some() {
        return Err(no_such_event(job, selected));
    }
    let mut made = match job.by {
        By::Epoch => return Ok(by_epoch(job, selected)),
        By::Host => return Ok(by_host(job, selected)),
        By::Event => events(counts, &by_event),
        By::Image => images(counts, &of_event(job, counts, &by_event, |row| row.image)),
        By::Process => processes(counts, &of_event(job, counts, &by_event, |row| row.process)),
        By::Procedure => {
            let event = main_event(counts, &by_event);
            let rows = counts.rows.iter().filter(|row| Some(row.event) == event);
            let rows = rows.filter(|row| wants(job, counts, row)).copied();
            procedures::rows(selected, counts, rows, progress)
        }
    };
    made.rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let event = main_event(counts, &by_event).filter(|_| job.by != By::Event);
    let stored = event.map_or_else(
        || by_event.values().copied().sum(),
        |event| by_event.get(&event).copied().unwrap_or_default(),
    );
    // With one event every unplaced sample is one of its; with a filter none can be told.
    let filtered = job.selection.image.is_some() || job.selection.event.is_some();
    made.unplaced_belong = !filtered && (by_event.len() == 1 || job.by == By::Event);
    let unplaced =
        if made.unplaced_belong { selected.tally().unplaced_total() } else { Count::ZERO };
    made.whole = stored + unplaced;
    made.event = event.and_then(|event| counts.events.get(event as usize).cloned());
    if by_event.len() > 1 && job.by != By::Event {
        made.notes.push(format!(
            "{} other events were sampled too: --event shows one, `by event` lists them",
            by_event.len() - 1
        ));
    }
    Ok(made)
}

/// An image filter that is not a whole path compares the path's last part.
fn wants(job: &ProfJob, counts: &Counts, row: &CountRow) -> bool {
    let Some(wanted) = &job.selection.image else { return true };
    let image = counts.images.get(row.image.0 as usize);
    image.is_some_and(|image| image.path == *wanted || image.short_name() == wanted)
}

fn totals<K: Ord>(
    job: &ProfJob,
    counts: &Counts,
    key: impl Fn(&CountRow) -> K,
) -> BTreeMap<K, Count> {
    let mut sums = BTreeMap::new();
    for row in counts.rows.iter().filter(|row| wants(job, counts, row)) {
        *sums.entry(key(row)).or_default() += row.count;
    }
    sums
}

fn of_event<K: std::hash::Hash + Eq>(
    job: &ProfJob,
    counts: &Counts,
    by_event: &BTreeMap<u32, Count>,
    key: impl Fn(&CountRow) -> K,
) -> HashMap<K, Count> {
    let event = main_event(counts, by_event);
    let mut sums = HashMap::new();
    let rows = counts.rows.iter().filter(|row| Some(row.event) == event);
    for row in rows.filter(|row| wants(job, counts, row)) {
        *sums.entry(key(row)).or_default() += row.count;
    }
    sums
}

/// The one that is shown where none was asked for.
fn main_event(counts: &Counts, by_event: &BTreeMap<u32, Count>) -> Option<u32> {
    let name = |event: u32| counts.events.get(event as usize).map_or("", String::as_str);
    by_event
        .iter()
        .max_by_key(|(event, count)| (rank(name(**event), **count), std::cmp::Reverse(**event)))
        .map(|(e, _)| *e)
}

fn no_such_event(job: &ProfJob, selected: &Selected) -> Failure {
    let mut known: Vec<&str> = selected.epochs.iter().flat_map(EpochEntry::events).collect();
    known.sort_unstable();
    known.dedup();
    let name = job.selection.event.as_deref().unwrap_or("");
    Failure::new(ERROR, format!("no samples of an event '{name}' match"))
        .remedy(format!("there are {}", known.join(", ")))
}

pub(super) fn of(columns: Vec<Column>, rows: Vec<(Count, Vec<Cell>)>) -> Rows {
    Rows {
        columns,
        rows,
        whole: Count::ZERO,
        event: None,
        unplaced_belong: false,
        notes: Vec::new(),
    }
}

fn events(counts: &Counts, sums: &BTreeMap<u32, Count>) -> Rows {
    let name = |event: &u32| counts.events.get(*event as usize).map_or("?", String::as_str);
    let rows = sums.iter().map(|(event, &count)| (count, vec![Cell::text(name(event))]));
    of(vec![Column::text("event", "event")], rows.collect())
}

fn images(counts: &Counts, sums: &HashMap<vocab::ImageId, Count>) -> Rows {
    let rows = sums.iter().filter_map(|(id, &count)| {
        let image = counts.images.get(id.0 as usize)?;
        let build_id = image.build_id.map_or(Cell::Empty, |id| Cell::text(id.to_string()));
        Some((count, vec![Cell::text(image.path.as_str()), build_id]))
    });
    let columns = vec![Column::text("image", "image"), Column::text("build_id", "").only_in_json()];
    of(columns, rows.collect())
}

fn processes(counts: &Counts, sums: &HashMap<Option<vocab::ProcessId>, Count>) -> Rows {
    let row = |(id, &count): (&Option<vocab::ProcessId>, &Count)| {
        let process = id.and_then(|id| counts.processes.get(id.0 as usize));
        let cells = match process {
            Some(process) => {
                vec![Cell::text(process.pid.0.to_string()), Cell::text(process.name.as_str())]
            }
            None => vec![Cell::Empty, Cell::text("(processes were not kept apart)")],
        };
        (count, cells)
    };
    let columns = vec![Column::number("pid", "pid"), Column::text("process", "process")];
    of(columns, sums.iter().map(row).collect())
}

/// Samples of one epoch: of all images and events from its tally, else from its rows.
fn stored(job: &ProfJob, epoch: &EpochEntry) -> Count {
    if job.selection.image.is_none() && job.selection.event.is_none() {
        return epoch.tally().stored;
    }
    let want = super::want(job);
    let mut own = Counts::new(want);
    // What cannot be read has been told already.
    let _ = own.take(epoch);
    own.rows.iter().filter(|row| wants(job, &own, row)).map(|row| row.count).sum()
}

fn by_epoch(job: &ProfJob, selected: &Selected) -> Rows {
    let columns = vec![
        Column::text("host", "host"),
        Column::number("epoch", "epoch"),
        Column::text("began", "began (UTC)"),
        Column::text("last", "last sample (UTC)"),
        Column::text("ended", "").only_in_json(),
        Column::text("origin", "from"),
        Column::number("unplaced", "unplaced"),
        Column::number("lost", "lost"),
        Column::number("gaps", "gaps"),
        Column::number("bytes", "bytes"),
    ];
    let row = |epoch: &EpochEntry| {
        let tally = epoch.tally();
        let cells = vec![
            Cell::text(epoch.host()),
            Cell::Count(Count(epoch.number())),
            Cell::text(shown(epoch.began_unix_ns())),
            Cell::text(shown(epoch.last_unix_ns())),
            epoch.ended_unix_ns().map_or(Cell::Empty, |ended| Cell::text(shown(ended))),
            Cell::text(epoch.facts().origin.as_str()),
            Cell::Count(tally.unplaced_total()),
            Cell::Count(tally.lost),
            Cell::Count(Count(epoch.gaps().len() as u64)),
            Cell::Count(Count(epoch.bytes())),
        ];
        (stored(job, epoch), cells)
    };
    let rows: Vec<_> = selected.epochs.iter().map(row).collect();
    let whole = rows.iter().map(|(count, _)| *count).sum();
    Rows { whole, ..of(columns, rows) }
}

fn by_host(job: &ProfJob, selected: &Selected) -> Rows {
    let mut hosts: BTreeMap<&str, (Count, Vec<&EpochEntry>)> = BTreeMap::new();
    for epoch in &selected.epochs {
        let (count, epochs) = hosts.entry(epoch.host()).or_default();
        *count += stored(job, epoch);
        epochs.push(epoch);
    }
    let columns = vec![
        Column::text("host", "host"),
        Column::number("epochs", "epochs"),
        Column::number("unplaced", "unplaced"),
        Column::number("lost", "lost"),
        Column::number("bytes", "bytes"),
    ];
    let row = |(host, (count, epochs)): (&str, (Count, Vec<&EpochEntry>))| {
        let sum = |of: fn(&EpochEntry) -> Count| Cell::Count(epochs.iter().map(|e| of(e)).sum());
        let cells = vec![
            Cell::text(host),
            Cell::Count(Count(epochs.len() as u64)),
            sum(|epoch| epoch.tally().unplaced_total()),
            sum(|epoch| epoch.tally().lost),
            sum(|epoch| Count(epoch.bytes())),
        ];
        (count, cells)
    };
    let rows: Vec<_> = hosts.into_iter().map(row).collect();
    let whole = rows.iter().map(|(count, _)| *count).sum();
    Rows { whole, ..of(columns, rows) }
}
