//! Arguments in, plan out.

mod arguments;
mod plan;

pub(crate) use arguments::{Arguments, By, ConfigArgument};
pub(crate) use plan::{
    Ask, CalibrateJob, DaemonJob, EpochChoice, Form, Here, ImportJob, Job, ListJob, ListWhat,
    MeasureJob, ModelJob, ModelledRecord, OnModel, Plan, ProfJob, RecordJob, RunJob, SsbJob,
    StartJob, StatJob, Varies, WarmUp, Watched, What, Who, Whom, event_table, parse, software_set,
};
