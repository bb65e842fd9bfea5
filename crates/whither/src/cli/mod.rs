//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::Arguments;
pub(crate) use plan::{CalibrateJob, Job, ListWhat, ModelJob, Plan, RunJob, event_table, parse};
