//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, ConfigArgument};
pub(crate) use plan::{
    Ask, DaemonJob, Job, ListWhat, ModelJob, Plan, RunJob, StartJob, What, event_table, parse,
};
