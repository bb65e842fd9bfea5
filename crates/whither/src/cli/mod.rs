//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, ConfigArgument};
pub(crate) use plan::{
    Ask, DaemonJob, Form, Here, Job, ListJob, ListWhat, MeasureJob, ModelJob, OnModel, Plan,
    RunJob, SsbJob, StartJob, StatJob, Varies, WarmUp, Watched, What, Whom, event_table, parse,
    software_set,
};
