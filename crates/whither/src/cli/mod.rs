//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::Arguments;
pub(crate) use plan::{Job, ListWhat, Plan, RunJob, event_table, parse};
