//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, ConfigArgument};
pub(crate) use plan::{
    Ask, CalibrateJob, DaemonJob, Form, Job, ListJob, ListWhat, MeasureJob, ModelJob, Plan, RunJob,
    StartJob, StatJob, Varies, WarmUp, What, Whom, event_table, parse, software_set,
};
