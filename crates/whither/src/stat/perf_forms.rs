//! What perf prints for programs: `-x` and `-j`, column for column and key for key, with ours at
//! the end.
//!
//! ```text
//! [time,][CPU,]value,unit,event,[control group,][spread,]runtime,share,metric value,metric unit,±,estimator
//! ```

use metrology::Coverage;
use serde_json::json;

use super::batch::{Batch, CountRow, Total};
use super::measures::{Measure, modifiers};

/// A row's measure as perf has it: value and unit.
struct Beside {
    value: f64,
    unit: String,
    places: usize,
}

/// One line an event.
pub(crate) fn csv(batch: &Batch, separator: &str) -> String {
    let mut text = String::new();
    for row in &batch.rows {
        text.push_str(&csv_line(batch, row, separator));
        text.push('\n');
    }
    text
}

fn csv_line(batch: &Batch, row: &CountRow, separator: &str) -> String {
    let mut fields = Vec::new();
    // perf's own width, the sign of which scripts rely on.
    fields.extend(batch.at_s.map(|at| format!("{at:16.9}")));
    fields.extend(row.part.cpu.map(|cpu| format!("CPU{cpu}")));
    let unit = if row.is_clock { "msec" } else { "" };
    fields.push(match &row.total {
        Ok(total) if row.is_clock => format!("{:.2}", total.estimate.value * 1e-6),
        Ok(total) => format!("{:.0}", total.estimate.value),
        Err(missing) => absent(missing.is_supported).to_owned(),
    });
    fields.extend([unit.to_owned(), row.typed.clone()]);
    fields.extend(row.part.cgroup.clone());
    let spread = row.total.as_ref().ok().and_then(|total| total.spread_pct);
    fields.extend(spread.map(|pct| format!("{pct:.2}%")));
    let total = row.total.as_ref().ok();
    fields.push(total.map_or(0, |total| total.running_ns).to_string());
    fields.push(format!("{:.2}", 100.0 * total.map_or(1.0, |total| total.share)));
    match beside(batch, row) {
        Some(Beside { value, unit, places }) => fields.extend([format!("{value:.places$}"), unit]),
        None => fields.extend([String::new(), String::new()]),
    }
    fields.push(total.map_or(String::new(), |total| half_width(row, total)));
    fields.push(total.map_or("", |total| total.estimator).to_owned());
    let quoted = fields.iter().map(|field| quote(field, separator));
    quoted.collect::<Vec<_>>().join(separator)
}

fn absent(is_supported: bool) -> &'static str {
    if is_supported { "<not counted>" } else { "<not supported>" }
}

/// The number behind the ±, in the unit of the value; `inf` where it is not known.
fn half_width(row: &CountRow, total: &Total) -> String {
    let half = total.half_width();
    if row.is_clock { format!("{:.2}", half * 1e-6) } else { format!("{half:.0}") }
}

/// An event such as `cpu/event=1,umask=2/` holds the separator itself.
fn quote(field: &str, separator: &str) -> String {
    let is_plain = separator.is_empty() || !field.contains(separator);
    if is_plain { field.to_owned() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}

/// One object a line, an event each.
pub(crate) fn json_lines(batch: &Batch) -> String {
    let mut text = String::new();
    for row in &batch.rows {
        text.push_str(&json_line(batch, row).to_string());
        text.push('\n');
    }
    text
}

fn json_line(batch: &Batch, row: &CountRow) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    let mut put = |key: &str, value| drop(object.insert(key.to_owned(), value));
    if let Some(at) = batch.at_s {
        put("interval", json!(at));
    }
    if let Some(cpu) = row.part.cpu {
        put("cpu", json!(cpu.to_string()));
    }
    let scale = if row.is_clock { 1e-6 } else { 1.0 };
    let total = row.total.as_ref().ok();
    let value = match &row.total {
        Ok(total) => format!("{:.6}", total.estimate.value * scale),
        Err(missing) => absent(missing.is_supported).to_owned(),
    };
    put("counter-value", json!(value));
    put("unit", json!(if row.is_clock { "msec" } else { "" }));
    put("event", json!(row.typed));
    if let Some(cgroup) = &row.part.cgroup {
        put("cgroup", json!(cgroup));
    }
    if let Some(pct) = total.and_then(|total| total.spread_pct) {
        put("variance", json!(pct));
    }
    put("event-runtime", json!(total.map_or(0, |total| total.running_ns)));
    put("pcnt-running", json!(100.0 * total.map_or(1.0, |total| total.share)));
    let beside = beside(batch, row);
    put("metric-value", json!(beside.as_ref().map_or(0.0, |beside| beside.value)));
    put("metric-unit", json!(beside.map_or(String::new(), |beside| beside.unit)));
    // Infinite becomes null: nothing is known.
    put("uncertainty", json!(total.map(|total| total.half_width() * scale)));
    put("coverage", json!(total.map(|_| Coverage::P95.probability())));
    put("estimator", json!(total.map(|total| total.estimator)));
    if let Err(missing) = &row.total {
        put("not-counted", json!(missing.why));
    }
    serde_json::Value::Object(object)
}

/// The measure of an event; where it has none, how often it happened a second of task time.
fn beside(batch: &Batch, row: &CountRow) -> Option<Beside> {
    let total = row.total.as_ref().ok()?;
    let belongs = |measure: &&Measure| {
        measure.metric.beside.as_deref() == Some(row.name.as_str())
            && measure.modifiers == modifiers(&row.typed)
            && measure.part == row.part
    };
    if let Some(measure) = batch.measures.iter().find(belongs) {
        let value = measure.value.as_ref().ok()?.value;
        let label = measure.metric.label.clone().unwrap_or_else(|| measure.metric.unit.clone());
        let (value, places) = if measure.metric.is_share() {
            (100.0 * value, 2)
        } else {
            (value, if label == "insn per cycle" { 2 } else { 3 })
        };
        return Some(Beside { value, unit: label, places });
    }
    rate(batch, row, total)
}

/// `1.751 K/sec`, by the task's own time.
fn rate(batch: &Batch, row: &CountRow, total: &Total) -> Option<Beside> {
    let clock = batch.rows.iter().find(|clock| clock.is_clock && clock.part == row.part)?;
    let seconds = clock.total.as_ref().ok()?.estimate.value * 1e-9;
    if seconds <= 0.0 {
        return None;
    }
    let mut value = total.estimate.value / seconds;
    let mut unit = "/sec";
    for larger in ["K/sec", "M/sec", "G/sec"] {
        if value <= 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    Some(Beside { value, unit: unit.to_owned(), places: 3 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::batch::Part;
    use crate::stat::measures::{Constants, Slices, measures};
    use crate::stat::testing::{batch, counted, refused};

    fn example() -> Batch {
        let mut batch = batch(vec![
            counted("task-clock", 2e6, 0.0),
            counted("page-faults", 48.0, 0.0),
            refused("cycles"),
            counted("branch-misses:u", 10.0, 1.0),
            counted("branches:u", 400.0, 10.0),
            counted("cpu/event=1,umask=2/", 7.0, 0.0),
        ]);
        let constants = Constants(vec![("seconds", 0.004)]);
        let metrics = pmu::metrics().unwrap();
        batch.measures = measures(&metrics, &batch, &constants, &Slices::default());
        batch
    }

    #[test]
    fn csv_has_perfs_columns_and_then_ours() {
        let text = csv(&example(), ",");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2.00,msec,task-clock,1000000,100.00,0.500,CPUs utilized,0.00,exact");
        assert_eq!(lines[1], "48,,page-faults,1000000,100.00,24.000,K/sec,0,exact");
        assert_eq!(lines[2], "<not supported>,,cycles,0,100.00,,,,");
        assert_eq!(lines[3], "10,,branch-misses:u,250000,25.00,2.50,of all branches,2,per-cycle");
        assert!(lines[5].starts_with("7,,\"cpu/event=1,umask=2/\",1000000"), "{}", lines[5]);
    }

    #[test]
    fn intervals_cpus_and_runs_have_their_columns_where_perf_has_them() {
        let mut batch = example();
        batch.at_s = Some(1.5);
        for row in &mut batch.rows {
            row.part = Part { cpu: Some(3), cgroup: Some("a/b".into()) };
            row.total = row.total.clone().map(|total| Total { spread_pct: Some(1.39), ..total });
        }
        let line = csv(&batch, ";").lines().nth(1).unwrap().to_owned();
        assert_eq!(
            line,
            "     1.500000000;CPU3;48;;page-faults;a/b;1.39%;1000000;100.00;24.000;K/sec;0;exact"
        );
    }

    #[test]
    fn json_lines_have_perfs_keys_and_then_ours() {
        let text = json_lines(&example());
        let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let keys: Vec<&String> = first.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "counter-value",
                "unit",
                "event",
                "event-runtime",
                "pcnt-running",
                "metric-value",
                "metric-unit",
                "uncertainty",
                "coverage",
                "estimator"
            ]
        );
        assert_eq!(first["counter-value"], "2.000000");
        let third: serde_json::Value = serde_json::from_str(text.lines().nth(2).unwrap()).unwrap();
        assert_eq!(third["counter-value"], "<not supported>");
        assert_eq!(third["uncertainty"], serde_json::Value::Null);
        assert_eq!(third["not-counted"], "not there on this machine");
    }
}
