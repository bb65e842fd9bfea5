//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, ConfigArgument};
pub(crate) use plan::{
    Ask, DaemonJob, EpochChoice, ImportJob, Job, ListWhat, ModelJob, ModelledRecord, Plan, ProfJob,
    RecordJob, RunJob, StartJob, What, Who, event_table, parse,
};
