//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::Arguments;
pub(crate) use plan::{
    Form, Here, Job, ListJob, ListWhat, ModelJob, OnModel, Plan, RunJob, SsbJob, StatJob, Watched,
    Whom, parse, software_set,
};
