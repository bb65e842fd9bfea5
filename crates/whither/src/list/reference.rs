//! docs/EVENTS.md: every event, breakdown and formula, from the data that is computed with.

use std::fmt::Write as _;

use model::event::Event as ModelEvent;
use pmu::{
    Breakdown, CoreEvents, EventTable, Metric, TableError, cores, event_sets, metrics,
    modelled_events,
};

/// The page as Markdown.
pub(super) fn page() -> Result<String, TableError> {
    let mut page = String::from(
        "# Events, sets and formulas\n\
         Written by `whither list reference` from `events/` and the modelled core\'s own table: what \
         stands here is what is counted and computed. Formulas are shown as they are evaluated; a \
         name in them is an event or a constant (`seconds` of the measurement, `width` of the core \
         in slots a cycle, `line-bytes`, the modelled `clock`, one `bytes` an event). \
         `whither list events` says which of them this machine has.\n",
    );
    let table = EventTable::embedded()?;
    kernel_section(&mut page, &table);
    set_section(&mut page)?;
    metric_section(&mut page, "Measures from the kernel\'s events", &metrics()?);
    for core in cores()? {
        core_section(&mut page, &core);
    }
    modelled_section(&mut page)?;
    Ok(page)
}

/// Bars would end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Writing to a String cannot fail.
fn line(page: &mut String, text: &str) {
    let _ = writeln!(page, "{text}");
}

fn kernel_section(page: &mut String, table: &EventTable) {
    line(page, "\n## The kernel\'s names\n");
    line(page, &format!("Source: {}.\n", table.source));
    line(page, "| event | kind | unit | counts | how it misleads |");
    line(page, "| --- | --- | --- | --- | --- |");
    for entry in &table.entries {
        let names: Vec<String> =
            std::iter::once(&entry.name).chain(&entry.aliases).map(|n| format!("`{n}`")).collect();
        let unit = entry.unit.as_deref().unwrap_or("events");
        let (counts, lies) = (cell(&entry.counts), cell(&entry.lies));
        let kind = entry.kind.word();
        line(page, &format!("| {} | {kind} | {unit} | {counts} | {lies} |", names.join(", ")));
    }
}

fn set_section(page: &mut String) -> Result<(), TableError> {
    line(page, "\n## Sets\n");
    line(page, "| set | answers | events |");
    line(page, "| --- | --- | --- |");
    for set in event_sets()? {
        let events: Vec<String> = set.events.iter().map(|event| format!("`{event}`")).collect();
        line(page, &format!("| `{}` | {} | {} |", set.name, cell(&set.what), events.join(", ")));
    }
    Ok(())
}

fn metric_section(page: &mut String, title: &str, metrics: &[Metric]) {
    line(page, &format!("\n## {title}\n"));
    line(page, "| measure | formula | unit | says |");
    line(page, "| --- | --- | --- | --- |");
    for metric in metrics {
        let says = format!("{}. {}", metric.what, metric.lies);
        line(
            page,
            &format!(
                "| {} | `{}` | {} | {} |",
                metric.name,
                metric.formula.text(),
                metric.unit,
                cell(says.trim_end())
            ),
        );
    }
}

fn core_section(page: &mut String, core: &CoreEvents) {
    line(page, &format!("\n## {} (`{}`)\n", core.title, core.name));
    line(
        page,
        &format!(
            "Codes: {}. Checked: {}. Processors: {}.",
            core.source,
            core.checked,
            core.host_source()
        ),
    );
    if let Some(width) = core.width {
        line(page, &format!("Width: {width} a cycle, so that the ideal CPI is 1/{width}."));
    }
    line(page, "\n| event | code | unit | counts | how it misleads |");
    line(page, "| --- | --- | --- | --- | --- |");
    for event in &core.event {
        line(
            page,
            &format!(
                "| `{}` | `{}` | {} | {} | {} |",
                event.name,
                event.code,
                event.unit,
                cell(&event.counts),
                cell(&event.lies)
            ),
        );
    }
    core.breakdown.iter().for_each(|breakdown| breakdown_part(page, breakdown));
}

fn breakdown_part(page: &mut String, breakdown: &Breakdown) {
    line(
        page,
        &format!(
            "\n**`{}`**: {}, of `{}`.",
            breakdown.name,
            breakdown.what,
            breakdown.whole.text()
        ),
    );
    line(page, &format!("Source: {}. {}\n", breakdown.source, breakdown.lies));
    line(page, "| cause | amount |");
    line(page, "| --- | --- |");
    for cause in &breakdown.cause {
        line(page, &format!("| {} | `{}` |", cause.title, cause.amount.text()));
    }
}

fn modelled_section(page: &mut String) -> Result<(), TableError> {
    let modelled = modelled_events()?;
    line(page, "\n## The modelled core\n");
    line(page, "| event | counts |");
    line(page, "| --- | --- |");
    for event in ModelEvent::ALL {
        line(page, &format!("| `{}` | {} |", event.name(), cell(event.about())));
    }
    modelled.breakdown.iter().for_each(|breakdown| breakdown_part(page, breakdown));
    metric_section(page, "Measures from the modelled core\'s events", &modelled.metric);
    Ok(())
}
