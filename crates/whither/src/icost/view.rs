//! The report.

use icost::Categories;
use icost::sample::Timing;
use metrology::{Coverage, Estimate, mean};
use show::{Body, Cell, Column, Fact, Part, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::{Count, Source};

use super::answer::{Answer, Asked, matters};
use super::{Heard, Names, what_played, words};
use crate::cli::{IcostBy, IcostJob};

pub(super) fn view(job: &IcostJob, heard: &Heard, answer: &Answer, names: &Names) -> View {
    let command = what_played(&job.model);
    let mut sections = vec![summary(job, heard, answer, command.clone()), together(answer)];
    sections.push(costs(job, answer));
    sections.push(interactions("interactions", "WHAT THEY DO TOGETHER", &answer.main));
    sections.push(breakdown(&answer.main));
    if let Some(finer) = &answer.finer {
        sections.push(finer_costs(finer));
    }
    if let Some(instructions) = &answer.instructions {
        sections.push(interactions("instructions", "INSTRUCTIONS, TWO BY TWO", instructions));
    }
    sections.push(Section {
        key: "notes",
        title: "WHAT THIS REPORT DOES NOT SEE".into(),
        caption: String::new(),
        body: Body::Prose(notes(heard, names)),
    });
    View {
        schema: Schema { name: "icost", version: 1 },
        title: format!("whither icost: {command}"),
        sections,
    }
}

fn summary(job: &IcostJob, heard: &Heard, answer: &Answer, command: String) -> Section {
    let windows = &heard.sampled.windows;
    let timed: u64 = windows.iter().map(|window| window.instructions).sum();
    let cpi: Vec<f64> =
        windows.iter().map(|w| w.cycles as f64 / w.instructions.max(1) as f64).collect();
    let cpi =
        mean(&cpi).unwrap_or(Estimate::known(cpi.first().copied().unwrap_or(0.0), f64::INFINITY));
    let costs = &answer.main.costs;
    let graph = costs.cycles() / costs.observed.max(1.0);
    let left = costs.left(answer.main.everything());
    let core = match job.plan.timing {
        Timing::Fast => "one pass",
        Timing::Reference => "cycle by cycle",
    };
    let ended = match heard.exit {
        Some(exit) => Cell::text(exit.to_string()),
        None => Cell::Word { key: "replayed", text: "replayed from a trace".into() },
    };
    Section {
        key: "run",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(vec![
            Fact::new("command", "command", Cell::text(command)),
            Fact::new("source", "source", Cell::text(Source::Modelled.word())),
            Fact::new("machine", "machine", Cell::text(&*job.model.machine.name)),
            Fact::new("core", "core", Cell::text(core)),
            Fact::new("ended", "ended", ended),
            Fact::new(
                "instructions",
                "instructions",
                Cell::Count(Count(heard.sampled.instructions)),
            ),
            Fact::new("windows", "windows", Cell::Count(Count(windows.len() as u64))),
            Fact::new("timed", "instructions in them", Cell::Count(Count(timed))),
            Fact::new("cpi", "cycles an instruction", estimate(Some(cpi), Unit::Number)),
            Fact::new("graph", "the graph's cycles of them", Cell::Number(graph, Unit::Share)),
            Fact::new("left", "left with all idealised", estimate(left, Unit::Share)),
        ]),
    }
}

/// What to fix first, and what to fix together.
pub(crate) fn together(answer: &Answer) -> Section {
    Section {
        key: "together",
        title: "WHAT TO FIX FIRST, AND WHAT TO FIX TOGETHER".into(),
        caption: "modelled; ± at 95 %".into(),
        body: Body::Prose(words::advice(answer)),
    }
}

pub(crate) fn costs(job: &IcostJob, answer: &Answer) -> Section {
    let asked = &answer.main;
    let everything = asked.everything();
    let row = |(number, cost): (usize, Estimate)| {
        let set = Categories::single(number);
        let frozen = answer.frozen.cost(set);
        let fair = match job.is_powerset {
            true => estimate(asked.costs.share(|w| w.share(everything, number)), Unit::Share),
            false => Cell::Empty,
        };
        Row::Cells(
            tone(cost),
            vec![
                estimate(Some(cost), Unit::Share),
                estimate(frozen, Unit::Share),
                fair,
                Cell::text(asked.name(set)),
                Cell::text(asked.words.get(number).map_or("", String::as_str)),
            ],
        )
    };
    let is_by_category = job.by == IcostBy::Category;
    let about = Column::text("about", "what it is");
    let mut columns = vec![
        Column::number("cost", "saves"),
        Column::number("frozen", "ports frozen"),
        Column::number("fair", "fair share"),
        Column::text("name", "fixed"),
        if is_by_category { about } else { about.only_in_json() },
    ];
    if !job.is_powerset {
        columns[2] = columns[2].clone().only_in_json();
    }
    Section {
        key: "costs",
        title: "WHAT FIXING ONE SAVES".into(),
        caption: "share of all cycles; ± at 95 %".into(),
        body: Body::Table(Table {
            columns,
            rows: words::by_cost(asked).into_iter().map(row).collect(),
            text_rows: None,
        }),
    }
}

pub(crate) fn interactions(key: &'static str, title: &str, asked: &Asked) -> Section {
    let row = |(pair, icost): (Categories, Estimate)| {
        let kind = match (matters(icost), icost.value > 0.0) {
            (false, _) => Cell::Word { key: "none", text: "–".into() },
            (true, true) => Cell::Word { key: "parallel", text: "parallel".into() },
            (true, false) => Cell::Word { key: "serial", text: "serial".into() },
        };
        let cells = vec![
            estimate(Some(icost), Unit::Share),
            estimate(asked.costs.cost(pair), Unit::Share),
            kind,
            Cell::text(asked.name(pair)),
            Cell::text(words::pair_words(asked, pair).unwrap_or_default()),
        ];
        match matters(icost) {
            true => Row::Cells(tone(icost), cells),
            false => Row::InJson(cells),
        }
    };
    Section {
        key,
        title: title.into(),
        caption: "interaction cost: what fixing both saves beyond the sum".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("icost", "beyond"),
                Column::number("cost", "both save"),
                Column::text("kind", "kind"),
                Column::text("name", "fixed"),
                Column::text("about", "in words"),
            ],
            rows: words::by_interaction(asked).into_iter().map(row).collect(),
            text_rows: Some(14),
        }),
    }
}

/// Every part of the time: what is left, each alone, every two beyond that, and the rest.
pub(crate) fn breakdown(asked: &Asked) -> Section {
    let mut parts = Vec::new();
    let mut put = |name: String, share: Option<Estimate>| {
        parts.extend(share.map(|share| Part { name, share: share.value }));
    };
    put("left with all idealised".into(), asked.costs.left(asked.everything()));
    for (number, cost) in words::by_cost(asked) {
        put(asked.name(Categories::single(number)), Some(cost));
    }
    for (pair, icost) in words::by_interaction(asked) {
        put(asked.name(pair), Some(icost));
    }
    if asked.players.len() > 2 {
        put("three and more together".into(), asked.rest());
    }
    let total: f64 = parts.iter().map(|part| part.share).sum();
    Section {
        key: "breakdown",
        title: "ALL OF THE TIME".into(),
        caption: format!("adds up to {:.1} %", 100.0 * total),
        body: Body::Stack(parts),
    }
}

fn finer_costs(asked: &Asked) -> Section {
    let row = |(number, cost): (usize, Estimate)| {
        let cells = vec![
            estimate(Some(cost), Unit::Share),
            Cell::text(asked.name(Categories::single(number))),
            Cell::text(asked.words.get(number).map_or("", String::as_str)),
        ];
        if cost.value.abs() >= 5e-4 { Row::Cells(tone(cost), cells) } else { Row::InJson(cells) }
    };
    Section {
        key: "finer",
        title: "A FINER GRAIN".into(),
        caption: "parts of the above, and what lies beside them".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("cost", "saves"),
                Column::text("name", "fixed"),
                Column::text("about", "what it is"),
            ],
            rows: words::by_cost(asked).into_iter().map(row).collect(),
            text_rows: None,
        }),
    }
}

fn notes(heard: &Heard, names: &Names) -> Vec<String> {
    let mut notes = vec![
        "Saved is what the modelled core saves if the thing were perfect: misses hit, branches are \
         predicted right, work takes no time, widths and sizes do not bind. A real fix gets part \
         of it."
            .to_owned(),
        "The ± is what the choice of windows leaves open. What the graph is off by is not in it: \
         `repro icost-accuracy` compares it with really idealised cores."
            .to_owned(),
        "Not modelled: the kernel, wrong paths, and the clocks of threads against each other."
            .to_owned(),
    ];
    notes.extend(heard.damage.iter().cloned());
    notes.extend(names.unread());
    notes
}

pub(crate) fn estimate(share: Option<Estimate>, unit: Unit) -> Cell {
    match share {
        None => Cell::Empty,
        Some(share) => Cell::Estimate(share.value, share.interval(Coverage::P95), unit),
    }
}

fn tone(share: Estimate) -> Tone {
    match share.value.abs() {
        share if share >= 0.2 => Tone::Hot,
        share if share >= 0.05 => Tone::Warm,
        share if share >= 0.005 => Tone::Plain,
        _ => Tone::Faint,
    }
}
