//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::Arguments;
pub(crate) use plan::{
    Form, Job, ListJob, ListWhat, ModelJob, Plan, RunJob, StatJob, Whom, parse, software_set,
};
