//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::Arguments;
pub(crate) use plan::{
    Form, Job, ListJob, ListWhat, MeasureJob, ModelJob, Plan, RunJob, StatJob, Varies, WarmUp,
    Whom, event_table, parse, software_set,
};
