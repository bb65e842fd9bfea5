//! What the daemon says of itself.

use collect::Route;
use show::{
    Body, Cell, Colour, Column, Fact, Page, Row, Schema, Section, Table, Tone, Unit, View,
    render_json, render_text,
};
use vocab::{Count, Unplaced};

use super::clock::Moment;
use super::proc;
use super::serve::Service;

const PAGE: Page = Page { width: 100, colour: Colour::Off };

/// Everything, as text or JSON.
pub(super) fn status(service: &Service, json: bool) -> String {
    render(&view(service), json)
}

pub(super) fn flushed(service: &Service, json: bool) -> String {
    match json {
        true => status(service, true),
        false => format!("{}written to the database\n", last_words(service)),
    }
}

/// How many samples there were, in one line.
pub(super) fn last_words(service: &Service) -> String {
    let account = &service.account;
    format!(
        "{} samples: {} stored, {} unplaced, {} lost; ",
        account.drained.entries,
        account.stored,
        account.unplaced_total(),
        account.drained.lost + account.dropped
    )
}

/// One sentence.
pub(super) fn said(text: &str, json: bool) -> String {
    match json {
        true => render(
            &View {
                schema: Schema { name: "daemon_said", version: 1 },
                title: String::new(),
                sections: vec![Section {
                    key: "said",
                    title: String::new(),
                    caption: String::new(),
                    body: Body::Prose(vec![text.trim_end().to_owned()]),
                }],
            },
            true,
        ),
        false => text.to_owned(),
    }
}

fn render(view: &View, json: bool) -> String {
    if json { format!("{}\n", render_json(view)) } else { render_text(view, PAGE) }
}

fn view(service: &Service) -> View {
    let title = format!(
        "whither daemon: pid {} collects into {}",
        std::process::id(),
        service.job.database.display()
    );
    let mut sections = vec![
        facts("daemon", "THIS DAEMON", daemon(service)),
        facts("samples", "SAMPLES", samples(service)),
        events(service),
        facts("table", "TABLE", table(service)),
        facts("cost", "COST", cost(service)),
        facts("database", "DATABASE", database(service)),
    ];
    let notes = notes(service);
    if !notes.is_empty() {
        sections.push(Section {
            key: "notes",
            title: "NOTES".into(),
            caption: String::new(),
            body: Body::Prose(notes),
        });
    }
    View { schema: Schema { name: "daemon", version: 1 }, title, sections }
}

fn facts(key: &'static str, title: &str, facts: Vec<Fact>) -> Section {
    Section { key, title: title.into(), caption: String::new(), body: Body::Facts(facts) }
}

fn count(value: u64) -> Cell {
    Cell::Count(Count(value))
}

fn seconds(value: f64) -> Cell {
    Cell::Number(value, Unit::Seconds)
}

fn daemon(service: &Service) -> Vec<Fact> {
    let route = match service.route {
        Route::Program => Cell::Word { key: "program", text: "counted in the kernel".into() },
        Route::Ring { .. } => Cell::Word { key: "ring", text: "through rings".into() },
        Route::Own { .. } => Cell::Word { key: "own", text: "own processes, through rings".into() },
    };
    let running = service.started.steady.elapsed().as_secs_f64();
    vec![
        Fact::new("pid", "pid", Cell::Id(u64::from(std::process::id()))),
        Fact::new("db", "database", Cell::text(service.job.database.display().to_string())),
        Fact::new("host", "host", Cell::text(service.keep.epoch.host.as_str())),
        Fact::new("running_s", "running for", seconds(running)),
        Fact::new("route", "samples are", route),
        Fact::new("rate", "rate", Cell::Number(service.choice.hertz as f64, Unit::Hertz)),
        Fact::new("drain_s", "drained every", seconds(service.job.drain.as_secs_f64())),
        Fact::new("merge_s", "merged every", seconds(service.job.merge.as_secs_f64())),
        Fact::new("processes", "processes", count(service.gather.processes.len() as u64)),
        Fact::new("images", "images", count(service.gather.processes.image_count() as u64)),
    ]
}

fn samples(service: &Service) -> Vec<Fact> {
    let account = &service.account;
    let reason = |reason| count(account.unplaced.get(&reason).copied().unwrap_or(0));
    vec![
        Fact::new("taken", "taken", count(account.drained.entries)),
        Fact::new("stored", "stored", count(account.stored)),
        Fact::new("unplaced", "unplaced", count(account.unplaced_total())),
        Fact::new("unknown_process", "  of unknown processes", reason(Unplaced::UnknownProcess)),
        Fact::new("unknown_address", "  at unknown addresses", reason(Unplaced::UnknownAddress)),
        Fact::new("hidden_kernel", "  in a hidden kernel", reason(Unplaced::HiddenKernel)),
        Fact::new("lost", "lost", count(account.drained.lost + account.dropped)),
        Fact::new("adds_up", "adds up", Cell::Flag(account.adds_up())),
        Fact::new("idle", "of them idle", count(account.idle)),
        Fact::new("blind", "of them in blind spots", count(account.blind)),
        Fact::new("ambiguous", "of them ambiguous", count(account.ambiguous)),
        // Beside those taken: between two drains this may be all there is.
        Fact::new("waiting", "counted, not drained", count(service.gather.collector.waiting())),
    ]
}

/// What each event owed, beside what came of all of them.
fn events(service: &Service) -> Section {
    let columns = vec![
        Column::text("event", "event"),
        Column::number("period", "mean period"),
        Column::number("due", "samples due"),
        Column::number("counted_share", "share of time counted"),
    ];
    let lines = service.gather.collector.expected();
    let rows = lines.iter().filter_map(|line| {
        let sampled = service.choice.events.get(usize::from(line.event.0))?;
        let elapsed = service.started.steady.elapsed().as_nanos() as f64;
        let cpus = crate::run::online_cpus().len() as f64;
        let share = (line.running_ns as f64 / (elapsed * cpus)).min(1.0);
        let cells = vec![
            Cell::text(&*sampled.event.name),
            count(sampled.period),
            Cell::Number(line.samples, Unit::Count),
            Cell::Number(share, Unit::Share),
        ];
        Some(Row::Cells(Tone::Plain, cells))
    });
    let table = Table { columns, rows: rows.collect(), text_rows: None };
    let caption = "due = occurrences ÷ period; what is missing was throttled or fell to a stopped \
                   CPU";
    Section {
        key: "events",
        title: "EVENTS".into(),
        caption: caption.into(),
        body: Body::Table(table),
    }
}

fn table(service: &Service) -> Vec<Fact> {
    let account = &service.account;
    let none = || Cell::NotCounted("no samples yet".into());
    let bytes = service.gather.collector.kernel_bytes_per_cpu();
    vec![
        Fact::new(
            "hit_rate",
            "hit rate",
            account.hit_rate().map_or_else(none, |rate| Cell::Number(rate, Unit::Share)),
        ),
        Fact::new(
            "aggregation",
            "samples an entry",
            account.aggregation().map_or_else(none, |factor| Cell::Number(factor, Unit::Number)),
        ),
        Fact::new("drains", "drains", count(account.drains)),
        Fact::new("woken", "of them because it filled up", count(account.woken)),
        Fact::new("kernel_kib", "KiB a CPU", Cell::Number(bytes as f64 / 1024.0, Unit::Number)),
    ]
}

fn cost(service: &Service) -> Vec<Fact> {
    let used = perf::own_use();
    let cpu = used.user_s + used.system_s;
    let elapsed = service.started.steady.elapsed().as_secs_f64().max(1e-9);
    let taken = service.account.drained.entries;
    let each = match taken {
        0 => Cell::NotCounted("no samples yet".into()),
        taken => seconds(cpu / taken as f64),
    };
    let resident = match proc::resident_kib() {
        Some(kib) => Cell::Number(kib as f64 / 1024.0, Unit::Number),
        None => Cell::NotCounted("/proc does not say".into()),
    };
    vec![
        Fact::new("user_s", "user time", seconds(used.user_s)),
        Fact::new("system_s", "system time", seconds(used.system_s)),
        Fact::new("cpu_share", "of one CPU", Cell::Number(cpu / elapsed, Unit::Share)),
        Fact::new("cpu_per_sample_s", "for each sample", each),
        Fact::new("resident_mib", "MiB now", resident),
        Fact::new(
            "peak_mib",
            "MiB at most",
            Cell::Number(used.peak_kib as f64 / 1024.0, Unit::Number),
        ),
    ]
}

fn database(service: &Service) -> Vec<Fact> {
    let keep = &service.keep;
    let since = Moment::now().steady.saturating_duration_since(keep.last.steady).as_secs_f64();
    let account = &service.account;
    let trouble = keep.trouble.as_deref().map_or(Cell::Empty, Cell::text);
    vec![
        Fact::new("epoch", "epoch", count(keep.number)),
        Fact::new("written_s", "last written before", seconds(since)),
        Fact::new("bytes", "bytes written", count(keep.bytes)),
        Fact::new("appends", "appends", count(account.flushes)),
        Fact::new("failed", "of them failed", count(account.failed_flushes)),
        Fact::new("pending", "places pending", count(service.pending.len() as u64)),
        Fact::new("trouble", "trouble", trouble),
    ]
}

fn notes(service: &Service) -> Vec<String> {
    let account = &service.account;
    let mut notes = service.notes.clone();
    if account.clock_steps > 0 {
        notes.push(format!(
            "the clock was set {} times, last by {:+.0} s; times in the database follow it",
            account.clock_steps, account.last_step_s
        ));
    }
    if account.vanished > 0 {
        notes.push(format!(
            "{} images could not be read any more when they were first sampled",
            account.vanished
        ));
    }
    if account.lost_maps > 0 {
        notes.push(format!(
            "{} records of maps found no room; /proc was read instead",
            account.lost_maps
        ));
    }
    if account.dropped > 0 {
        notes.push(format!("{} samples found no room in memory", account.dropped));
    }
    if account.uneven > 0 {
        notes.push(format!("{} drains did not add up: this is a fault of ours", account.uneven));
    }
    notes
}
