//! The view.

use std::time::SystemTime;

use show::{Body, Cell, Fact, Row, Schema, Section, Table, View};
use vocab::Count;

use super::{Annotated, lines, whole};
use crate::cli::AnnotateJob;
use crate::database::notes as notes_section;
use crate::listing::{self, CodeTable, Sources};
use crate::sampled::Sampled;

pub(super) fn view(job: &AnnotateJob, sampled: &Sampled, annotated: &[Annotated]) -> View {
    let mut sources = Sources::default();
    let all = sampled.whole();
    let mut sections = vec![sampled.what()];
    if let ([one], false) = (annotated, job.all) {
        sections.push(sampled.about(&one.time));
    }
    let mut by_line = Vec::new();
    let mut code = Vec::new();
    for one in annotated {
        let title = sampled.title(&one.time);
        match &one.code {
            Ok(listing) => {
                by_line.extend(lines::tables(listing, all, &mut sources));
                let rows =
                    listing::rows(&CodeTable { listing, whole: all, report: None }, &mut sources);
                code.push((title, Table { columns: listing::columns(), rows, text_rows: None }));
            }
            Err(why) => code.push((
                title,
                Table {
                    columns: listing::columns(),
                    rows: vec![Row::Gap(format!("no code: {why}"))],
                    text_rows: None,
                },
            )),
        }
    }
    if job.all {
        sections.push(shown(annotated, all));
    } else {
        sections.push(section("source", "SOURCE", Body::Tables(by_line), sampled.caption()));
    }
    sections.push(section("code", "ASSEMBLY", Body::Tables(code), sampled.caption()));
    sections.push(notes_section(notes(sampled, annotated, &sources)));
    View {
        schema: Schema { name: "annotate", version: 1 },
        title: match (annotated, job.all) {
            ([one], false) => format!("whither annotate: {}", sampled.title(&one.time)),
            _ => format!("whither annotate: {} procedures", annotated.len()),
        },
        sections,
    }
}

fn section(key: &'static str, title: &str, body: Body, caption: String) -> Section {
    Section { key, title: title.into(), caption, body }
}

fn shown(annotated: &[Annotated], all: Count) -> Section {
    let facts = vec![
        Fact::new("procedures", "procedures", Cell::Count(Count(annotated.len() as u64))),
        Fact::new("samples", "samples in them", Cell::Count(whole(annotated))),
        Fact::new("share", "share of all", Cell::share_of(whole(annotated), all)),
    ];
    section("shown", "", Body::Facts(facts), String::new())
}

fn notes(sampled: &Sampled, annotated: &[Annotated], sources: &Sources) -> Vec<String> {
    let mut notes = Vec::new();
    let listings = || annotated.iter().filter_map(|one| one.code.as_ref().ok());
    if listings().all(|listing| listing.lines.iter().all(|line| line.from.is_none())) {
        notes.push("there is no line information: build with -g to see the source".into());
    }
    let bad: u64 = listings().map(|listing| listing.bad_bytes).sum();
    if bad > 0 {
        notes.push(format!(
            "{bad} bytes are no instruction: data among the code, or code that overlaps"
        ));
    }
    let cut: u64 = listings().map(|listing| listing.left_out_bytes).sum();
    if cut > 0 {
        notes.push(format!("{cut} bytes of code beyond the first megabyte are left out"));
    }
    let made = annotated.first().and_then(|one| made(sampled, one));
    let newer = made.map(|made| sources.newer_than(made)).unwrap_or_default();
    if let Some(first) = newer.first() {
        notes.push(format!(
            "{first}{} changed after the image was made: lines may not be those that ran",
            if newer.len() > 1 { " and others" } else { "" }
        ));
    }
    notes.push("a sample marks where the processor was, not always what it waited for".into());
    notes.extend(sampled.notes());
    notes
}

fn made(sampled: &Sampled, one: &Annotated) -> Option<SystemTime> {
    let path = &sampled.image(one.time.image)?.path;
    std::fs::metadata(path).ok()?.modified().ok()
}
