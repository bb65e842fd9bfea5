//! Recording a program's instructions for later.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use show::{Body, Cell, Fact, Schema, Section, View};
use tracer::launch::Finished;
use vocab::Count;

use crate::failure::{Failure, RUN_FAILED, passed_on};

/// What a recording left, for a person.
pub(super) fn view(command: &str, trace: &Path, finished: &Finished) -> Result<View, Failure> {
    let bytes = std::fs::metadata(trace).map(|metadata| metadata.len()).map_err(|error| {
        Failure::new(RUN_FAILED, format!("cannot look at {}: {error}", trace.display()))
    })?;
    let lost: u64 = finished.processes.values().map(|process| process.trace_chunks_lost).sum();
    let facts = vec![
        Fact::new("command", "command", Cell::text(command)),
        Fact::new("ended", "ended", Cell::text(finished.status.to_string())),
        Fact::new("trace", "trace", Cell::text(trace.to_string_lossy())),
        Fact::new("bytes", "bytes", Cell::Count(Count(bytes))),
        Fact::new("processes", "processes", Cell::Count(Count(finished.processes.len() as u64))),
        Fact::new("lost", "chunks lost", Cell::Count(Count(lost))),
    ];
    let section = Section {
        key: "run",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(facts),
    };
    let again = format!(
        "`whither model --replay {}` models it, on any machine file, without running it again.",
        trace.display()
    );
    let notes = finished.missing_instruction().map(str::to_owned).into_iter().chain([again]);
    let notes = notes.collect();
    let next = Section {
        key: "notes",
        title: String::new(),
        caption: String::new(),
        body: Body::Prose(notes),
    };
    Ok(View {
        schema: Schema { name: "record", version: 1 },
        title: format!("whither model --record: {command}"),
        sections: vec![section, next],
    })
}

/// The status to pass through, as a shell would have it.
pub(super) fn status(finished: &Finished) -> u8 {
    passed_on(finished.status.code(), finished.status.signal())
}
