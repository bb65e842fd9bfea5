//! The report: as that of `whither icost`, with what became of the samples.

use icost::shotgun::{Flaw, Tally};
use show::{Body, Cell, Fact, Schema, Section, Unit, View};
use vocab::{Count, Source};

use super::Taken;
use crate::cli::ShotgunJob;
use crate::icost::{Answer, breakdown, costs, estimate, interactions, together};

pub(super) fn view(
    job: &ShotgunJob,
    taken: &Taken,
    tally: &Tally,
    answer: &Answer,
    cpi: Option<f64>,
) -> View {
    let sections = vec![
        summary(job, taken, answer, cpi),
        fragments(tally),
        together(answer),
        costs(&job.icost, answer),
        interactions("interactions", "WHAT THEY DO TOGETHER", &answer.main),
        breakdown(&answer.main),
        Section {
            key: "notes",
            title: "WHAT THIS REPORT DOES NOT SEE".into(),
            caption: String::new(),
            body: Body::Prose(notes(taken, tally)),
        },
    ];
    View {
        schema: Schema { name: "shotgun", version: 1 },
        title: format!("whither shotgun: {}", taken.what),
        sections,
    }
}

fn count(number: u64) -> Cell {
    Cell::Count(Count(number))
}

fn share(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Number(value, Unit::Share))
}

fn summary(job: &ShotgunJob, taken: &Taken, answer: &Answer, cpi: Option<f64>) -> Section {
    let ended = match taken.exit {
        Some(exit) => Cell::text(exit.to_string()),
        None => Cell::Word { key: "read", text: "read from a file".into() },
    };
    let left = answer.main.costs.left(answer.main.everything());
    let mut facts = vec![
        Fact::new("command", "samples of", Cell::text(taken.what.clone())),
        Fact::new("source", "source", Cell::text(taken.source.word())),
        Fact::new("machine", "machine", Cell::text(&*job.icost.model.machine.name)),
        Fact::new("ended", "ended", ended),
    ];
    if let Some(ran) = taken.instructions {
        facts.push(Fact::new("instructions", "instructions", count(ran)));
    }
    let cpi = cpi.map_or(Cell::Empty, |cpi| Cell::Number(cpi, Unit::Number));
    facts.push(Fact::new("cpi", "cycles an instruction", cpi));
    facts.push(Fact::new("left", "left with all idealised", estimate(left, Unit::Share)));
    let body = Body::Facts(facts);
    Section { key: "run", title: String::new(), caption: String::new(), body }
}

fn fragments(tally: &Tally) -> Section {
    let discarded = |flaw: Flaw| count(tally.discarded.get(&flaw).copied().unwrap_or(0));
    Section {
        key: "fragments",
        title: "WHAT BECAME OF THE SAMPLES".into(),
        caption: "pieces of the program put together from samples and its code".into(),
        body: Body::Facts(vec![
            Fact::new("signatures", "signatures followed", count(tally.signatures)),
            Fact::new("details", "detailed samples", count(tally.details)),
            Fact::new("consistent", "held together at once", share(tally.consistent_share())),
            Fact::new("mended", "held together on another path", count(tally.mended)),
            Fact::new("cut", "followed in part", count(tally.cut)),
            Fact::new("discarded", "discarded", count(tally.discarded_count())),
            Fact::new("impossible", "  for impossible bits", discarded(Flaw::Impossible)),
            Fact::new("no_code", "  for leaving the code", discarded(Flaw::NoCode)),
            Fact::new("assembled", "instructions in them", count(tally.instructions)),
            Fact::new("inferred", "without a sample of their own", share(tally.inferred_share())),
            Fact::new("lost_edges", "waits for what is out of sight", count(tally.lost_edges)),
        ]),
    }
}

/// Of a recording, what more than this is inferred is said aloud.
const INFERRED_MUCH: f64 = 0.02;

fn notes(taken: &Taken, tally: &Tally) -> Vec<String> {
    let mut notes = taken.lacks.clone();
    if let Some(inferred) = tally.inferred_share().filter(|&share| share > INFERRED_MUCH) {
        notes.push(format!(
            "Of {:.1} % of the instructions no detailed sample speaks: they stand as their code and \
             the machine's numbers have them, with their data at hand.",
            100.0 * inferred
        ));
    }
    if taken.source == Source::Modelled {
        notes.push(
            "The samples are those of a modelled core, whose monitor no processor has yet."
                .to_owned(),
        );
    }
    notes.push(
        "The ± is what signatures and detailed samples leave open. What putting together gets wrong \
         is not in it: `repro run icost-accuracy` compares with the whole graph and with really \
         idealised cores."
            .to_owned(),
    );
    notes
}
