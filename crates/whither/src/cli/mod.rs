//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, ConfigArgument};
pub(crate) use plan::{
    Ask, CalibrateJob, DaemonJob, EpochChoice, Form, ImportJob, Job, ListJob, ListWhat, MeasureJob,
    ModelJob, ModelledRecord, Plan, ProfJob, RecordJob, RunJob, StartJob, StatJob, Varies, WarmUp,
    What, Who, Whom, event_table, parse, software_set,
};
