//! The findings, for a person and for a program.

use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, View};

use super::{Finding, Probes, State};

pub(super) fn view(probes: &Probes, findings: &[Finding]) -> View {
    let unmet = findings.iter().filter(|finding| finding.state != State::Works).count();
    View {
        schema: Schema { name: "doctor", version: 1 },
        title: match unmet {
            0 => "whither doctor: everything works here".into(),
            n => format!("whither doctor: {n} of {} things do not work here", findings.len()),
        },
        sections: vec![machine(probes), abilities(findings)],
    }
}

fn machine(probes: &Probes) -> Section {
    let processor = match (probes.processor.family, probes.processor.model) {
        (Some(family), Some(model)) => {
            format!("{} (family {family}, model {model})", probes.processor.name)
        }
        _ => probes.processor.name.clone(),
    };
    let hypervisor = match &probes.hypervisor {
        Some(name) => Cell::text(name.as_str()),
        None => Cell::Word { key: "none", text: "none seen".into() },
    };
    let paranoid = match probes.paranoid {
        Some(level) => Cell::Number(level as f64, show::Unit::Number),
        None => Cell::NotCounted("this kernel has no perf events".into()),
    };
    Section {
        key: "machine",
        title: "THIS MACHINE".into(),
        caption: String::new(),
        body: Body::Facts(vec![
            Fact::new("kernel", "kernel", Cell::text(&*probes.kernel_release)),
            Fact::new("architecture", "architecture", Cell::text(&*probes.architecture)),
            Fact::new("processor", "processor", Cell::text(processor)),
            Fact::new("hypervisor", "hypervisor", hypervisor),
            Fact::new("perf_event_paranoid", "perf_event_paranoid", paranoid),
            Fact::new("seccomp", "seccomp filter", Cell::Flag(probes.seccomp)),
        ]),
    }
}

fn abilities(findings: &[Finding]) -> Section {
    Section {
        key: "abilities",
        title: "WHAT CAN BE DONE".into(),
        caption: String::new(),
        body: Body::Table(Table {
            columns: vec![
                Column::text("key", "").only_in_json(),
                Column::text("what", "to"),
                Column::text("state", "state"),
                Column::text("why", "").only_in_json(),
                Column::text("remedy", "").only_in_json(),
                Column::text("advice", "why, and what to do").only_in_text(),
            ],
            rows: findings.iter().map(row).collect(),
            text_rows: None,
        }),
    }
}

fn row(finding: &Finding) -> Row {
    let (key, text, tone) = match finding.state {
        State::Works => ("works", "works", Tone::Good),
        State::NotPermitted => ("not_permitted", "not permitted", Tone::Bad),
        State::NotThere => ("not_there", "not there", Tone::Bad),
    };
    let remedy = match finding.remedy.as_str() {
        "" => Cell::Empty,
        remedy => Cell::text(remedy),
    };
    let advice = match finding.remedy.as_str() {
        "" => finding.why.clone(),
        remedy => format!("{}; {remedy}", finding.why),
    };
    Row::Cells(
        tone,
        vec![
            Cell::text(finding.key),
            Cell::text(finding.what),
            Cell::Word { key, text: text.into() },
            Cell::text(&*finding.why),
            remedy,
            Cell::text(advice),
        ],
    )
}
