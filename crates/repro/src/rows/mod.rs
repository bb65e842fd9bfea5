//! The rows that have landed: one file a row, one table here.
//!
//! A row's values of the papers and its goals are in suite/rows.toml; its file measures. To add
//! one: write `rows/NAME.rs` with `pub(super) fn run(&Context) -> Result<RowResult, String>` and
//! name it in [`ROWS`].

mod attribution;
mod culprits;
mod dcpi_copy;
mod dcpi_overhead;
mod dcpi_space;
mod dcpi_table;
mod frequency;
mod icost;
mod measure_metrics;
mod measure_suite;
mod model_accuracy;
mod model_agreement;
mod model_speed;
mod mux_alias;
mod mux_coverage;
mod mux_kl;
mod mux_loops;
mod mux_series;
mod mux_sweep;
mod mux_threads;
mod mux_total;
mod native;
mod peers;
mod shares;
mod ssb_gcc;
mod ssb_modes;
mod ssb_overhead;
mod suite;

use crate::context::Context;
use crate::result::RowResult;

/// How a row is run. An error is a sentence: the row could not be measured at all.
pub type Run = fn(&Context) -> Result<RowResult, String>;

/// A row whose code is here.
#[derive(Clone, Copy)]
pub struct Row {
    /// Its name on the page.
    pub name: &'static str,
    /// What measures it.
    pub run: Run,
    /// A short form that follows from seeds alone and must meet the row's goals; what is timed
    /// has none, because it must never gate.
    pub smoke: Option<Run>,
}

/// Every row that has landed.
pub const ROWS: &[Row] = &[
    Row { name: "suite", run: suite::run, smoke: None },
    Row { name: "peers", run: peers::run, smoke: None },
    Row { name: "measure-suite", run: measure_suite::run, smoke: Some(measure_suite::smoke) },
    Row { name: "measure-metrics", run: measure_metrics::run, smoke: None },
    Row { name: "model-agreement", run: model_agreement::run, smoke: Some(model_agreement::smoke) },
    Row { name: "model-speed", run: model_speed::run, smoke: None },
    Row { name: "model-accuracy", run: model_accuracy::run, smoke: None },
    Row { name: "mux-total", run: mux_total::run, smoke: Some(mux_total::smoke) },
    Row { name: "mux-kl", run: mux_kl::run, smoke: None },
    Row { name: "mux-series", run: mux_series::run, smoke: None },
    Row { name: "mux-sweep", run: mux_sweep::run, smoke: None },
    Row { name: "mux-coverage", run: mux_coverage::run, smoke: None },
    Row { name: "mux-alias", run: mux_alias::run, smoke: Some(mux_alias::run) },
    Row { name: "mux-loops", run: mux_loops::run, smoke: None },
    Row { name: "mux-threads", run: mux_threads::run, smoke: None },
    Row { name: "ssb-modes", run: ssb_modes::run, smoke: None },
    Row { name: "ssb-overhead", run: ssb_overhead::run, smoke: None },
    Row { name: "dcpi-copy", run: dcpi_copy::run, smoke: Some(dcpi_copy::run) },
    Row {
        name: "freq-inorder",
        run: frequency::run_in_order,
        smoke: Some(frequency::smoke_in_order),
    },
    Row {
        name: "freq-ooo",
        run: frequency::run_out_of_order,
        smoke: Some(frequency::smoke_out_of_order),
    },
    Row { name: "freq-samples", run: frequency::run_samples, smoke: None },
    Row {
        name: "edges-inorder",
        run: frequency::run_edges_in_order,
        smoke: Some(frequency::smoke_edges_in_order),
    },
    Row {
        name: "edges-ooo",
        run: frequency::run_edges_out_of_order,
        smoke: Some(frequency::smoke_edges_out_of_order),
    },
    Row { name: "culprits", run: culprits::run, smoke: Some(culprits::smoke) },
    Row { name: "attribution", run: attribution::run, smoke: Some(attribution::smoke) },
    Row { name: "shares", run: shares::run, smoke: None },
    Row { name: "freq-native", run: native::run_frequency, smoke: None },
    Row { name: "time-overlap", run: native::run_overlap, smoke: None },
    Row { name: "ssb-gcc", run: ssb_gcc::run, smoke: None },
    Row { name: "dcpi-overhead", run: dcpi_overhead::run, smoke: None },
    Row { name: "dcpi-space", run: dcpi_space::run, smoke: Some(dcpi_space::smoke) },
    Row { name: "dcpi-table", run: dcpi_table::run, smoke: None },
    Row { name: "icost-4a", run: icost::signs::four_a, smoke: None },
    Row { name: "icost-4b", run: icost::signs::four_b, smoke: None },
    Row { name: "icost-4c", run: icost::signs::four_c, smoke: Some(icost::signs::four_c_smoke) },
    Row { name: "icost-window", run: icost::window::run, smoke: None },
    Row { name: "icost-accuracy", run: icost::accuracy::run, smoke: None },
];

/// The landed row called `name`.
pub fn find(name: &str) -> Option<Row> {
    ROWS.iter().find(|row| row.name == name).copied()
}
