//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::Arguments;
pub(crate) use plan::{
    Job, ListWhat, MeasureJob, ModelJob, Plan, RunJob, Varies, WarmUp, event_table, parse,
};
